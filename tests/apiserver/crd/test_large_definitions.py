"""Definitions that are compiled beside the loop: when they are served, and what is left of them at the end."""

from __future__ import annotations

import asyncio

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
