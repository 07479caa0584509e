"""Definitions that are compiled beside the loop: when they are served, and what is left of them at the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from tests.apiserver.api import Api
from tests.apiserver.definitions import DEFINITIONS, definition

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


def unsettled() -> dict[str, Any]:
    made = definition("widgets", "Widget")
    status = {"conditions": [], "storedVersions": ["v1"], "acceptedNames": {"plural": "", "kind": ""}}
    return {**made, "metadata": {**made["metadata"], "uid": "u", "generation": 1}, "status": status}
