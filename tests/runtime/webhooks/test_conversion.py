"""The conversion webhook: reviews in, reviews out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from konverge.objects import CustomResource, Model, NoStatus, converts
from konverge.runtime import Controller, Manager
from konverge.runtime.webhooks import BadReview, Conversion
from konverge.runtime.webhooks.conversion import SLICE_OBJECTS
from tests.objects.pools import GROUP, Pool, PoolV1, PoolV3

pytestmark = pytest.mark.spec("R-73")

POOLS = Conversion(PoolV1, Pool, PoolV3)


def pool(version: int, name: str = "a", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}"}
    return {"apiVersion": f"{GROUP}/v{version}", "kind": "Pool", "metadata": metadata, "spec": spec}


def review(version: int, *objects: Any, api: str = "v1") -> bytes:
    request = {"uid": "42", "desiredAPIVersion": f"{GROUP}/v{version}", "objects": objects}
    body = {"apiVersion": f"apiextensions.k8s.io/{api}", "kind": "ConversionReview", "request": request}
    return json.dumps(body).encode()


async def ask(version: int, *objects: Any, webhook: Conversion = POOLS) -> dict[str, Any]:
    answer = json.loads(await webhook.answer(review(version, *objects)))
    assert (answer["apiVersion"], answer["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    assert answer["response"]["uid"] == "42"
    response: dict[str, Any] = answer["response"]
    return response


async def test_a_list_of_mixed_versions() -> None:
    objects = [pool(1, "a", size="2x4"), pool(2, "b", nodes=3), pool(3, "c", nodes=4)]
    response = await ask(2, *objects)
    assert response["result"] == {"status": "Success"}
    shown = [(obj["apiVersion"], obj["metadata"], obj["spec"]) for obj in response["convertedObjects"]]
    version = f"{GROUP}/v2"
    defaults = {"cores": 1, "note": "", "grace": 30}
    assert shown == [
        (version, objects[0]["metadata"], {**defaults, "nodes": 2, "cores": 4}),
        (version, objects[1]["metadata"], {"nodes": 3}),
        (version, objects[2]["metadata"], {**defaults, "nodes": 4}),
    ]


async def test_one_object_that_cannot_be_converted_fails_all_and_is_named() -> None:
    response = await ask(2, pool(1, "good", size="1x1"), pool(1, "bad", size="large"))
    assert response["convertedObjects"] == []
    assert response["result"]["status"] == "Failure"
    assert response["result"]["message"].startswith(
        "Pool shop/bad cannot be converted to pools.example.com/v2: it is no valid PoolV1: "
    )


@pytest.mark.parametrize(
    ("obj", "name"),
    [
        (7, "the object at index 0"),
        ({}, "the object at index 0"),
        ({"kind": "Pool", "apiVersion": f"{GROUP}/v9", "metadata": {"generateName": "a-"}}, "Pool a-"),
        ({"kind": "Pool", "apiVersion": f"{GROUP}/v1", "metadata": 7}, "Pool at index 0"),
    ],
)
async def test_odd_objects_are_failures_too(obj: Any, name: str) -> None:
    response = await ask(2, obj)
    assert response["result"]["status"] == "Failure"
    assert name in response["result"]["message"]


async def test_an_unknown_version_is_a_failure() -> None:
    response = await ask(9, pool(1, size="1x1"))
    assert "there is no version 'pools.example.com/v9'" in response["result"]["message"]


async def test_the_version_of_the_review_is_that_of_the_request() -> None:
    answer = json.loads(await POOLS.answer(review(2, pool(1, size="1x1"), api="v1beta1")))
    assert answer["apiVersion"] == "apiextensions.k8s.io/v1beta1"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}).encode(),
        review(2).replace(b"ConversionReview", b"AdmissionReview"),
        review(2, api="v7"),
    ],
)
async def test_what_is_no_review_is_refused(body: bytes) -> None:
    with pytest.raises(BadReview):
        await POOLS.answer(body)


class NoteSpec(Model):
    text: str = ""


def notes(up: Callable[[str], str]) -> list[type[CustomResource[NoteSpec, NoStatus]]]:
    class Old(CustomResource[NoteSpec, NoStatus], group="n.example.com", version="v1", kind="Note", storage=False):
        pass

    class New(CustomResource[NoteSpec, NoStatus], group="n.example.com", version="v2", kind="Note"):
        pass

    converts(Old, New)(lambda old: New(spec=NoteSpec(text=up(old.spec.text))))
    converts(New, Old)(lambda new: Old(spec=NoteSpec(text=new.spec.text)))
    return [Old, New]


def note(name: str = "a") -> dict[str, Any]:
    return {"apiVersion": "n.example.com/v1", "kind": "Note", "metadata": {"name": name}, "spec": {"text": "x"}}


async def test_a_function_that_raises_is_a_failure_that_says_what_it_raised() -> None:
    def fail(text: str) -> str:
        raise KeyError("color")

    request = {"uid": "1", "desiredAPIVersion": "n.example.com/v2", "objects": [note()]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    answer = json.loads(await Conversion(*notes(fail)).answer(json.dumps(body).encode()))
    expected = "Note a cannot be converted to n.example.com/v2: KeyError: 'color'"
    assert answer["response"]["result"] == {"status": "Failure", "message": expected}


async def test_a_long_list_does_not_hold_the_loop() -> None:
    """Between two turns of the loop, only so many objects are converted."""
    done, most, last = 0, 0, 0

    def count(text: str) -> str:
        nonlocal done
        done += 1
        return text

    async def look() -> None:
        nonlocal most, last
        while done < 5000:
            most, last = max(most, done - last), done
            await asyncio.sleep(0)

    request = {"uid": "1", "desiredAPIVersion": "n.example.com/v2", "objects": [note(str(n)) for n in range(5000)]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(look())
        answer = json.loads(await Conversion(*notes(count)).answer(json.dumps(body).encode()))
    converted = answer["response"]["convertedObjects"]
    assert [obj["metadata"]["name"] for obj in converted] == [str(number) for number in range(5000)]
    assert 0 < most <= SLICE_OBJECTS


async def reconcile(ctx: Any) -> None:
    return None


def test_a_controller_brings_the_conversion_of_its_versions() -> None:
    manager = Manager(name="pools").add(Controller(Pool, reconcile, versions=[PoolV1, Pool, PoolV3]))
    assert manager.webhooks is not None
    assert list(manager.webhooks.routes) == [f"/convert/pools.{GROUP}"]
    assert manager.webhooks.definitions == [f"pools.{GROUP}"]
    manager.add(Controller(Pool, reconcile, name="other", versions=[PoolV1, Pool, PoolV3]))
    with pytest.raises(ValueError, match="there is already a webhook"):
        manager.add(Controller(Pool, reconcile, name="third", versions=[PoolV1, Pool]))


def test_versions_contain_the_kind_itself() -> None:
    with pytest.raises(ValueError, match="lack its own kind: add Pool"):
        Controller(Pool, reconcile, versions=[PoolV1])


def test_the_operator_of_a_manager_has_all_versions() -> None:
    from konverge.operators.loading.wrapping import as_operator

    manager = Manager(name="pools").add(Controller(Pool, reconcile, versions=[PoolV1, Pool, PoolV3]))
    (definition,) = as_operator(manager).definitions()
    assert [version["name"] for version in definition["spec"]["versions"]] == ["v1", "v2", "v3"]
    assert definition["spec"]["conversion"]["strategy"] == "Webhook"
