"""What others write while a large request is computed beside the loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.apiserver.http import writes
from konverge.apiserver.meta import system
from konverge.apiserver.registry import Served
from konverge.apiserver.storage import Event
from konverge.apiserver.storage.records import Draft, draft_of
from konverge.wire.message import Response
from tests.apiserver.api import APPLY, CONFIG_MAPS, Api
from tests.apiserver.definitions import DEFINITIONS, define, definition, undefine

pytestmark = pytest.mark.spec("T-08")
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
PODS = "/api/v1/namespaces/default/pods"
LARGE = {f"k{number}": "v" * 50 for number in range(1_000)}


class Gate:
    """Holds the first large write right before it is stored."""

    def __init__(self) -> None:
        self.arrived, self._open = threading.Event(), threading.Event()

    def draft(self, obj: Any) -> Draft:
        self.arrived.set()
        assert self._open.wait(60)
        return draft_of(obj)

    @asynccontextmanager
    async def holding(self, api: Api, method: str, path: str, body: Any, **more: Any) -> AsyncIterator[list[Response]]:
        """Inside, the request waits; afterwards the list has its answer."""
        answers: list[Response] = []
        sending = asyncio.create_task(api.send(method, path, body, **more))
        try:
            while not self.arrived.is_set() and not sending.done():
                await asyncio.sleep(0)
            assert not sending.done()
            yield answers
        finally:
            self._open.set()
            answers.append(await sending)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate()
    monkeypatch.setattr(writes, "draft_of", gate.draft)
    return gate


def with_fields(**properties: Any) -> Any:
    spec = {"type": "object", "properties": properties}
    return definition("widgets", "Widget", schema={"type": "object", "properties": {"spec": spec}})


MAP = {"type": "object", "additionalProperties": {"type": "string"}}


async def test_a_write_is_not_stored_by_a_definition_that_changed(api: Api, gate: Gate) -> None:
    await define(api, with_fields(a=MAP, old={"type": "string"}))
    path = f"{DEFINITIONS}/widgets.example.com"
    widget = {"metadata": {"name": "x"}, "spec": {"a": LARGE, "old": "o"}}
    async with gate.holding(api, "POST", WIDGETS, widget) as answers:
        await api.patch(path, {"spec": with_fields(a=MAP)["spec"]})
    assert (answers[0].status, answers[0].headers.get("retry-after")) == (503, "1")
    await api.call("GET", f"{WIDGETS}/x", expect=404)
    assert (await api.call("POST", WIDGETS, widget))["spec"] == {"a": LARGE}


async def test_a_write_is_not_stored_after_its_definition_is_gone(api: Api, gate: Gate) -> None:
    await define(api, with_fields(a=MAP))
    widget = {"metadata": {"name": "x"}, "spec": {"a": LARGE}}
    async with gate.holding(api, "POST", WIDGETS, widget) as answers:
        await undefine(api, "widgets.example.com")
    unknown = await api.send("POST", WIDGETS, widget)
    assert (answers[0].status, answers[0].body) == (404, unknown.body)
    assert not api.server.store.table("example.com/widgets").records


async def test_a_write_goes_on_when_another_definition_changes(api: Api, gate: Gate) -> None:
    await define(api, with_fields(a=MAP))
    async with gate.holding(api, "POST", WIDGETS, {"metadata": {"name": "x"}, "spec": {"a": LARGE}}) as answers:
        await define(api, definition("gadgets", "Gadget"))
    assert answers[0].status == 201
    assert json.loads(answers[0].body)["spec"] == {"a": LARGE}


async def test_a_generated_name_that_is_taken_is_generated_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await api.create("taken")
    names = iter(["taken", "taken", "free"])
    monkeypatch.setattr(system, "generate_name", lambda base: next(names))
    made = await api.call("POST", CONFIG_MAPS, {"metadata": {"generateName": "x-"}, "data": LARGE})
    assert made["metadata"]["name"] == "free"
    assert await api.call("GET", f"{CONFIG_MAPS}/free") == made


async def test_an_apply_that_begins_again_owns_what_was_applied(api: Api, gate: Gate) -> None:
    inner = {"type": "object", "properties": {"sent": {"type": "string"}, "filled": {"type": "string", "default": "d"}}}
    await define(api, with_fields(a=MAP, inner=inner))
    await api.create("x", WIDGETS)
    head = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}}
    applied = {**head, "spec": {"a": LARGE, "inner": {"sent": "s"}}}
    path = f"{WIDGETS}/x"
    query = {"fieldManager": "m"}
    async with gate.holding(api, "PATCH", path, applied, content_type=APPLY, query=query) as answers:
        await api.patch(path, {"metadata": {"labels": {"other": "writer"}}})
    assert answers[0].status == 200
    made = json.loads(answers[0].body)
    assert made["metadata"]["labels"] == {"other": "writer"}
    assert made["spec"]["inner"] == {"sent": "s", "filled": "d"}
    [fields] = [entry["fieldsV1"] for entry in made["metadata"]["managedFields"] if entry["manager"] == "m"]
    assert fields["f:spec"]["f:inner"] == {"f:sent": {}}


async def test_a_pod_without_grace_is_gone_even_if_its_request_ends_between(api: Api) -> None:
    """A graceful deletion is two writes: none waits for anything after the first."""
    await api.create("default", "/api/v1/namespaces/default/serviceaccounts")
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await api.create("p", PODS, metadata={"annotations": LARGE}, spec=spec)
    deleting = asyncio.create_task(api.send("DELETE", f"{PODS}/p"))
    marks: list[Any] = []

    def ended(event: Event) -> None:
        if event.record is not None:
            marks.append(event.record.decode()["metadata"])
            deleting.cancel()

    async with api.watch(PODS, resourceVersion=str(api.server.store.revision)) as watch:
        api.server.store.subscribe("/pods", ended)
        await asyncio.wait([deleting])
        assert [mark["deletionGracePeriodSeconds"] for mark in marks] == [0]
        assert not api.server.store.table("/pods").records
        marked, gone = (await watch.next()), (await watch.next())
    assert (marked["type"], gone["type"]) == ("MODIFIED", "DELETED")
    later = gone["object"]["metadata"].pop("resourceVersion")
    assert int(later) == int(marked["object"]["metadata"].pop("resourceVersion")) + 1
    assert gone["object"] == marked["object"]


# --- what is served is asked for on the loop: definitions come and go there


@pytest.fixture
def asked_aside(api: Api, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each question about a kind, whether it was asked beside the loop."""
    asked: list[bool] = []
    by_kind = api.server.registry.by_kind

    def noted(group: str, version: str, kind: str) -> Served | None:
        asked.append(asyncio._get_running_loop() is None)
        return by_kind(group, version, kind)

    monkeypatch.setattr(api.server.registry, "by_kind", noted)
    return asked


async def test_managers_of_other_versions_are_looked_up_on_the_loop(api: Api, asked_aside: list[bool]) -> None:
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    spec = {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}}
    await api.call(
        "POST", path.format("v2"), {"metadata": {"name": "x"}, "spec": spec}, query={"fieldManager": "first"}
    )
    asked_aside.clear()
    change = {"metadata": {"annotations": LARGE}}
    made = await api.patch(path.format("v1") + "/x", change, query={"fieldManager": "second"})
    assert {entry["manager"] for entry in made["metadata"]["managedFields"]} == {"first", "second"}
    assert asked_aside
    assert not any(asked_aside)


async def test_the_kind_of_a_body_is_looked_up_on_the_loop(api: Api, asked_aside: list[bool]) -> None:
    await define(api, with_fields(a=MAP))
    asked_aside.clear()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, "data": LARGE}
    refused = await api.call("POST", CONFIG_MAPS, widget, expect=400)
    assert "unknown conversion" in refused["message"]
    assert asked_aside
    assert not any(asked_aside)
