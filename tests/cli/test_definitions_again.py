"""Definitions that are applied again while a process on this machine converts their objects, or after it was killed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.install_objects import apply_definition
from konverge.client import Client
from konverge.objects import crd_dict
from konverge.runtime import Manager
from konverge.runtime.webhooks import InProcess
from tests.runtime.webhooks import versions_contract as versions

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-71")]

DEFINITION = crd_dict(*versions.VERSIONS)
NAME = DEFINITION["metadata"]["name"]


def bound(server: ApiServer, client: Client) -> Manager:
    declared = versions.operator()
    assert declared.webhooks is not None
    place = InProcess(transports=server.webhooks.in_process)
    return declared.bound_to(client, webhooks=replace(declared.webhooks, place=place))


async def target(client: Client) -> dict[str, Any]:
    live = await client.get("customresourcedefinitions.apiextensions.k8s.io", NAME)
    config: dict[str, Any] = live["spec"]["conversion"]["webhook"]["clientConfig"]
    return config


async def test_while_it_runs_the_conversion_stays_where_it_is(server: ApiServer, client: Client) -> None:
    await apply_definition(client, DEFINITION)
    placeholder = await target(client)
    async with bound(server, client).running():
        there = await target(client)
        assert "url" in there
        await apply_definition(client, DEFINITION)
        assert await target(client) == there
        await versions.written_and_read_in_every_version(client)
    assert await target(client) == placeholder


async def test_after_a_kill_the_next_process_takes_over_and_leaves_no_dead_url(
    server: ApiServer, client: Client
) -> None:
    await apply_definition(client, DEFINITION)
    placeholder = await target(client)
    dead = {
        "op": "add",
        "path": "/spec/conversion/webhook/clientConfig",
        "value": {"url": "https://gone-1.in-process/x"},
    }
    from konverge.client import JsonPatch

    await client.patch("customresourcedefinitions.apiextensions.k8s.io", NAME, JsonPatch([dead]))
    await apply_definition(client, DEFINITION)
    async with bound(server, client).running():
        assert (await target(client))["url"] != dead["value"]
        await versions.written_and_read_in_every_version(client)
    assert await target(client) == placeholder
