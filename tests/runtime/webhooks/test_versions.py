"""Versions that an operator converts, on the embedded API server: no sockets, no certificates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client
from konverge.runtime.webhooks import InProcess
from konverge.testing.operators import install_definitions
from tests.runtime.webhooks import versions_contract as contract

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-75")]


@asynccontextmanager
async def operating(server: ApiServer, client: Client) -> AsyncIterator[None]:
    await install_definitions(client, contract.VERSIONS)
    declared = contract.operator()
    assert declared.webhooks is not None
    webhooks = replace(declared.webhooks, place=InProcess(transports=server.webhooks.in_process))
    async with declared.bound_to(client, webhooks=webhooks).running():
        yield


async def test_an_object_is_written_and_read_in_every_version(server: ApiServer, client: Client) -> None:
    async with operating(server, client):
        await contract.written_and_read_in_every_version(client)


async def test_nothing_is_lost_by_a_version_that_cannot_say_it(server: ApiServer, client: Client) -> None:
    async with operating(server, client):
        await contract.nothing_is_lost_by_a_version_that_cannot_say_it(client)


async def test_apply_in_another_version(server: ApiServer, client: Client) -> None:
    async with operating(server, client):
        await contract.applied_in_another_version_than_the_stored(client)


async def test_lists_and_watches(server: ApiServer, client: Client) -> None:
    async with operating(server, client):
        await contract.lists_and_watches_in_every_version(client, 30)


async def test_the_stored_version_changes(server: ApiServer, client: Client) -> None:
    async with operating(server, client):
        await contract.the_stored_version_changes(client)


async def test_without_the_operator(server: ApiServer, client: Client) -> None:
    async with operating(server, client):
        pass
    await contract.without_the_operator(client)
    async with operating(server, client):
        await contract.with_the_operator_again(client)


async def test_objects_of_the_time_with_one_version(server: ApiServer, client: Client) -> None:
    await contract.before_there_were_versions(client)
    await contract.define(client)
    async with operating(server, client):
        await contract.after_there_are_versions(client)


async def test_stored_objects_are_migrated(server: ApiServer, client: Client) -> None:
    async with operating(server, client):
        await contract.stored_objects_are_migrated(client)
