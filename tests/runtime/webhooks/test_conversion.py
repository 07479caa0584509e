"""The conversion webhook: reviews in, reviews out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from konverge.objects import CustomResource, Model, NoStatus, Object, converts
from konverge.runtime import Controller, Manager
from konverge.runtime.webhooks import BadReview, Conversion, Webhooks
from konverge.runtime.webhooks.conversion import SLICE_BYTES, SLICE_OBJECTS, needed_conversion
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


async def converted_between_turns(objects: list[dict[str, Any]]) -> list[int]:
    """How many objects are converted between two turns of the loop."""
    done, seen = 0, [0]

    def count(text: str) -> str:
        nonlocal done
        done += 1
        return text

    async def look() -> None:
        while done < len(objects):
            seen.append(done)
            await asyncio.sleep(0)

    request = {"uid": "1", "desiredAPIVersion": "n.example.com/v2", "objects": objects}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(look())
        answer = json.loads(await Conversion(*notes(count)).answer(json.dumps(body, separators=(",", ":")).encode()))
    names = [obj["metadata"]["name"] for obj in answer["response"]["convertedObjects"]]
    assert names == [obj["metadata"]["name"] for obj in objects]
    steps = [later - before for before, later in pairwise([*seen, done])]
    return [step for step in steps if step]


async def test_a_long_list_does_not_hold_the_loop() -> None:
    slices = await converted_between_turns([note(str(number)) for number in range(3 * SLICE_OBJECTS + 1)])
    assert slices == [SLICE_OBJECTS, SLICE_OBJECTS, SLICE_OBJECTS, 1]


@pytest.mark.parametrize(("size", "at_once"), [(SLICE_BYTES, 1), (SLICE_BYTES - 1, 2), (SLICE_BYTES // 4, 4)])
async def test_large_objects_do_not_hold_the_loop(size: int, at_once: int) -> None:
    objects = [note(str(number)) for number in range(2 * at_once + 1)]
    for obj in objects:
        obj["spec"]["text"] = "x" * (size - len(json.dumps(obj, separators=(",", ":"))) + 1)
        assert len(json.dumps(obj, separators=(",", ":"))) == size
    assert await converted_between_turns(objects) == [at_once, at_once, 1]


def test_the_hub_is_the_one_that_is_given() -> None:
    old, new = notes(str)
    assert Conversion(old, new).conversions.hub is new
    assert Conversion(old, new, hub=old).conversions.hub is old
    served = Conversion(old, new)
    assert (served.path, served.definition, served.kinds) == (
        "/convert/notes.n.example.com",
        "notes.n.example.com",
        (old, new),
    )


def test_a_conversion_is_needed_where_functions_are_and_nothing_serves_it() -> None:
    versions = notes(str)
    needed = needed_conversion(None, versions)
    assert needed is not None
    assert needed.kinds == tuple(versions)
    assert needed_conversion(Webhooks(), versions) is not None
    assert needed_conversion(Webhooks().add(needed), versions[::-1]) is None
    assert needed_conversion(None, [Lone]) is None


class Lone(CustomResource[NoteSpec, NoStatus], group="n.example.com", version="v1", kind="Lone"):
    """A kind of one version."""


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

    class Loose(Object):
        """The same resource, by a class that accepts more."""

    Loose.resource = Pool.resource
    assert Controller(Loose, reconcile, versions=[PoolV1, Pool]).kind is Loose


def test_the_operator_of_a_manager_has_all_versions() -> None:
    from konverge.operators.loading.wrapping import as_operator

    manager = Manager(name="pools").add(Controller(Pool, reconcile, versions=[PoolV1, Pool, PoolV3]))
    (definition,) = as_operator(manager).definitions()
    assert [version["name"] for version in definition["spec"]["versions"]] == ["v1", "v2", "v3"]
    assert definition["spec"]["conversion"]["strategy"] == "Webhook"
