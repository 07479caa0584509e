"""Definitions that are compiled beside the loop: when they are served, and what is left of them at the end."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from konverge.apiserver import ApiServer, aside
from konverge.apiserver.crd.schema.values import compile_check
from konverge.apiserver.crd.serving.manager import outline
from konverge.apiserver.storage import Record
from konverge.apiserver.storage.records import record_of
from tests.apiserver.api import Api
from tests.apiserver.definitions import DEFINITIONS, definition
from tests.apiserver.held import held

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def large() -> dict[str, object]:
    properties = {f"field{number:04d}": {"type": "string", "maxLength": 10} for number in range(1000)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    made: dict[str, object] = definition("widgets", "Widget", schema=schema)
    return made


@pytest.mark.spec("S-09", "T-08")
async def test_a_large_definition_is_served_when_its_write_is_answered(api: Api) -> None:
    await api.call("POST", DEFINITIONS, large())
    widget = {"metadata": {"name": "a"}, "spec": {"field0999": "x" * 11}}
    assert "Too long" in (await api.call("POST", WIDGETS, widget, expect=422))["message"]


@pytest.mark.spec("T-15")
@pytest.mark.parametrize(("branches", "beside"), [(250, True), (2, False)], ids=["large", "small"])
async def test_what_writes_need_is_compiled_beside_the_loop_or_by_the_first_write(
    api: Api, monkeypatch: pytest.MonkeyPatch, branches: int, beside: bool
) -> None:
    on_loop: list[bool] = []

    def noted(*arguments: Any) -> Any:
        on_loop.append(asyncio._get_running_loop() is not None)
        return compile_check(*arguments)

    monkeypatch.setattr("konverge.apiserver.crd.serving.strategy.compile_check", noted)
    await api.call("POST", DEFINITIONS, nested(branches))
    assert on_loop == ([False] if beside else []), "without a status there is one check"
    for name in ("a", "b"):
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"f1": 3}}
        assert "must be of type object" in (await api.call("POST", WIDGETS, widget, expect=422))["message"]
    assert on_loop == ([False] if beside else [True])


@pytest.mark.spec("T-08")
async def test_nothing_goes_on_in_a_server_that_ends_while_it_compiles() -> None:
    async with ApiServer() as server:
        writing = asyncio.create_task(Api(server).send("POST", DEFINITIONS, large()))
        while not server.definitions._compiling:
            await asyncio.sleep(0)
    await writing
    assert not server.definitions._compiling


@pytest.mark.spec("T-08")
@pytest.mark.parametrize("stopped_first", [True, False])
async def test_a_manager_that_has_ended_writes_nothing(api: Api, stopped_first: bool) -> None:
    """The store is closed next: what is written then may not reach the disk."""
    table = "apiextensions.k8s.io/customresourcedefinitions"
    store, manager = api.server.store, api.server.definitions
    if stopped_first:
        await manager.stop()
    written: list[int] = []
    store.subscribe(table, lambda event: written.append(event.revision))
    store.put(store.table(table), unsettled(), expected=0)
    await manager.stop()
    for _ in range(5):
        await asyncio.sleep(0)
    assert written == [store.revision]
    assert not manager._pending


def nested(branches: int = 120, levels: int = 50) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for number in range(branches):
        node: dict[str, Any] = {"type": "string"}
        for _ in range(levels):
            node = {"type": "object", "properties": {"a": node}}
        properties[f"f{number}"] = node
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    made: dict[str, Any] = definition("widgets", "Widget", schema=schema)
    return made


@pytest.mark.spec("T-08")
@pytest.mark.blocking
async def test_a_deeply_nested_definition_is_settled_without_decoding_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and conditions are written on the loop, where nothing of the versions is looked at."""
    decoded: list[str] = []
    decode = Record.decode

    def noted(record: Record) -> dict[str, Any]:
        if asyncio._get_running_loop() is not None and len(record.data) > aside.FROM:
            decoded.append(record.name)
        return decode(record)

    monkeypatch.setattr(Record, "decode", noted)
    wanted = nested()
    path = f"{DEFINITIONS}/widgets.example.com"
    probe = await held(api, "POST", DEFINITIONS, wanted)
    assert probe.response.status == 201, probe.response.body[:300]
    probe.check()
    stored = await api.call("GET", path)
    assert stored["spec"]["versions"][0]["schema"] == wanted["spec"]["versions"][0]["schema"]
    assert {entry["type"] for entry in stored["status"]["conditions"] if entry["status"] == "True"} == {
        "NamesAccepted",
        "Established",
    }
    managed = {entry["manager"]: entry["fieldsV1"] for entry in stored["metadata"]["managedFields"]}
    assert "f:status" in managed["kube-apiserver"]
    assert len(managed) == 2, "the fields of the client are as they were"
    (await held(api, "DELETE", path)).check()
    while (await api.send("GET", path)).status != 404:  # its objects go first, and a busy machine takes its time
        await asyncio.sleep(0.01)
    assert decoded == []


def test_an_outline_is_the_definition_with_its_large_parts_as_json() -> None:
    made = {**unsettled(), "metadata": {"name": "widgets.example.com", "managedFields": [{"fieldsV1": {"f:a": {}}}]}}
    record = record_of(made, 7)
    outlined = outline(record)
    assert msgspec.json.decode(msgspec.json.encode(outlined)) == record.decode()
    assert isinstance(outlined["spec"]["versions"], msgspec.Raw)
    assert isinstance(outlined["metadata"]["managedFields"][0]["fieldsV1"], msgspec.Raw)
    assert outlined["status"] == made["status"]


def unsettled() -> dict[str, Any]:
    made = definition("widgets", "Widget")
    status = {"conditions": [], "storedVersions": ["v1"], "acceptedNames": {"plural": "", "kind": ""}}
    return {**made, "metadata": {**made["metadata"], "uid": "u", "generation": 1}, "status": status}
