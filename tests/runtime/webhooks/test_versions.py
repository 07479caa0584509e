"""Versions that an operator converts, on the embedded API server: no sockets, no certificates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client
from konverge.runtime import Manager
from konverge.runtime.sharding import Sharding
from konverge.runtime.webhooks import InProcess
from konverge.runtime.webhooks.installing import installed
from konverge.runtime.webhooks.places import Place, Serving
from konverge.testing.operators import install_definitions
from konverge.wire.in_process import Direct
from konverge.wire.message import Request, Response, Transport
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


class Service(Place):
    """Leads to the manager while it is ready, as a Service does."""

    def __init__(self, transports: MutableMapping[str, Transport]) -> None:
        self.transports = transports
        self.manager: Manager | None = None

    @asynccontextmanager
    async def serving(self, at_work: Serving) -> AsyncIterator[None]:
        async def handle(request: Request) -> Response:
            return await at_work.reviews.handle(request) if await self.is_ready() else Response(503)

        self.transports["service"] = direct = Direct(handle)
        async with installed(at_work, "https://service", b""):
            at_work.problem = ""
            yield
            at_work.problem = "no longer served"
        await direct.aclose()

    async def is_ready(self) -> bool:
        assert self.manager is not None
        return (await self.manager.health.handle(Request("GET", "/readyz"))).status == 200


@pytest.mark.parametrize("sharding", [None, Sharding(name="pools", namespace="default")], ids=["alone", "sharded"])
async def test_behind_a_service_caches_are_filled_from_objects_that_need_our_conversion(
    server: ApiServer, client: Client, sharding: Sharding | None
) -> None:
    """The Service needs a replica that is ready, and the caches of the replica need the Service."""
    await contract.before_there_were_versions(client)
    await contract.define(client)
    declared = contract.operator()
    assert declared.webhooks is not None
    place = Service(server.webhooks.in_process)
    webhooks = replace(declared.webhooks, place=place)
    running = place.manager = Manager(client, name="pools", webhooks=webhooks, sharding=sharding)
    for controller in declared.controllers:
        running.add(controller)
    async with asyncio.timeout(120), running.running():
        assert len(list(running.engines["pool"].caches.primary.items())) == 1
        assert await place.is_ready()
        await contract.after_there_are_versions(client)


async def test_what_is_not_filled_yet_is_a_remark_there(server: ApiServer, client: Client) -> None:
    declared = contract.operator()
    assert declared.webhooks is not None
    place = Service({})
    webhooks = replace(declared.webhooks, place=place)
    running = place.manager = Manager(client, name="pools", webhooks=webhooks)
    assert not await place.is_ready(), "before it serves"
    running.readiness.serves_conversions()
    running.health.ready["own"] = lambda: ""
    answer = await running.health.handle(Request("GET", "/readyz?verbose"))
    assert (answer.status, "[!]caches: not synced" in answer.body.decode()) == (200, True)
    assert (await running.health.handle(Request("GET", "/readyz/caches"))).status == 503
    running.health.ready["own"] = lambda: "an author's check counts"
    assert not await place.is_ready()
