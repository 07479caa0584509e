"""Several managers that share their work: on virtual time, on one embedded server."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager, dependencies
from konverge.runtime.sharding import Sharding
from konverge.wire.message import Request, Response
from tests.runtime.objects import secret
from tests.runtime.test_elector import Unreliable

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-78")]


class Process:
    """A manager of the group, on a wire of its own."""

    def __init__(self, server: ApiServer, name: str, **options: Any) -> None:
        self.wire = Unreliable(server.transport, 0.0)
        self.name = name
        self.worked: list[str] = []
        self.in_work: set[str] = set()
        self.seconds = 0.0
        client = Client(self.wire, credentials=Static.bearer(server.token))
        self.manager = Manager(client, name=name, sharding=Sharding(name="op", **options))
        self.manager.add(Controller(Secret, self.reconcile))
        self.stop = asyncio.Event()
        self.serving = asyncio.create_task(self.manager.serve(self.stop))

    async def reconcile(self, ctx: Context[Secret]) -> None:
        self.worked.append(ctx.request.name)
        self.in_work.add(ctx.request.name)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.in_work.discard(ctx.request.name)

    async def end(self) -> None:
        self.stop.set()
        await self.serving


async def test_keys_are_spread_over_the_live_members(server: ApiServer, client: Client) -> None:
    for number in range(60):
        await client.create(secret(f"s{number}"))
    first = Process(server, "first", identity="a")
    await asyncio.sleep(3)
    assert Counter(first.worked) == {f"s{number}": 1 for number in range(60)}
    second, third = Process(server, "second", identity="b"), Process(server, "third", identity="c")
    await asyncio.sleep(5)
    every = [first, second, third]
    for process in every:
        process.worked.clear()
    for number in range(60):
        await client.create(secret(f"n{number}"))
    await asyncio.sleep(1)
    assert Counter(name for process in every for name in process.worked) == {f"n{number}": 1 for number in range(60)}
    assert all(len(process.worked) > 8 for process in every)
    for process in every:
        await process.end()


async def test_the_keys_of_one_that_ends_in_order_are_taken_over_at_once(server: ApiServer, client: Client) -> None:
    first, second = Process(server, "first"), Process(server, "second")
    for number in range(20):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(10)
    moved = set(first.worked)
    assert moved
    second.worked.clear()
    began = asyncio.get_running_loop().time()
    await first.end()
    await asyncio.sleep(0.5)
    assert asyncio.get_running_loop().time() - began < 1
    assert set(second.worked) >= moved
    await second.end()


async def test_the_keys_of_one_that_fell_silent_move_when_its_lease_is_over(server: ApiServer, client: Client) -> None:
    first, second = Process(server, "first"), Process(server, "second")
    for number in range(20):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(10)
    moved = set(first.worked)
    second.worked.clear()
    first.wire.away = True
    await asyncio.sleep(12)
    assert not second.worked
    await asyncio.sleep(9)
    assert set(second.worked) >= moved
    first.wire.away = False
    await asyncio.sleep(5)
    assert first.manager.shares is not None
    assert first.manager.shares.replica.membership.share
    await first.end()
    await second.end()


async def test_after_a_short_outage_nothing_is_compared_with_the_server(server: ApiServer, client: Client) -> None:
    """A server that was too slow to renew Leases must not get a list from every replica for that."""
    first = Process(server, "first")
    for number in range(10):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(5)
    first.worked.clear()
    first.wire.away = True
    await asyncio.sleep(11)
    assert first.manager.shares is not None
    assert not first.manager.shares.replica.membership.share
    asked: list[str] = []
    send = first.wire._inner.send

    async def noting(request: Request) -> Response:
        asked.append(f"{request.method} {request.target}")
        return await send(request)

    first.wire._inner = Noting(noting, first.wire._inner.stream)
    first.wire.away = False
    await asyncio.sleep(3)
    assert sorted(first.worked) == sorted(f"s{number}" for number in range(10)), "what changed meanwhile is seen"
    assert not [line for line in asked if "/secrets" in line]
    await first.end()


async def test_a_controller_that_begins_late_takes_what_is_there(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connects(address: str) -> bool:
        return asyncio.get_running_loop().time() >= 60

    async def reconcile(ctx: Context[Secret]) -> None:
        worked.append(ctx.request.name)

    monkeypatch.setattr(dependencies, "_connects", connects)
    worked: list[str] = []
    await client.create(secret("a"))
    late = Controller(Secret, reconcile, depends_on=["tcp://db:3306"])
    async with Manager(client, sharding=Sharding(name="op")).add(late).running():
        await asyncio.sleep(50)
        assert worked == []
        await asyncio.sleep(20)
        assert worked == ["a"]


class Noting:
    def __init__(self, send: Any, stream: Any) -> None:
        self.send = send
        self.stream = stream
