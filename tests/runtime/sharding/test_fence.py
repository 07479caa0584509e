"""The fence: what leaves a replica is for its own keys, within the time of its Lease, and no later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.cache.record import Key
from konverge.client import Client, MergePatch, Static
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.sharding import NotOurs, Sharding
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.sharding.test_manager import Process
from tests.runtime.test_elector import Unreliable

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-79")]


async def make(
    server: ApiServer, reconcile: Callable[[Context[Secret]], Awaitable[None]], **options: Any
) -> tuple[Any, ...]:
    wire = Unreliable(server.transport, 0.0)
    manager = Manager(Client(wire, credentials=Static.bearer(server.token)), sharding=Sharding(name="op", **options))
    manager.add(Controller(Secret, reconcile))  # type: ignore[arg-type]
    stop = asyncio.Event()
    serving = asyncio.create_task(manager.serve(stop))
    await asyncio.sleep(3)
    return manager, wire, stop, serving


async def test_a_process_that_wakes_up_after_its_lease_writes_nothing(
    server: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended in the middle of a reconcile: the clock has gone on, and nothing else of the process has run."""
    refused: list[NotOurs] = []
    slept = 0.0
    real = clock.elapsed

    async def reconcile(ctx: Context[Secret]) -> None:
        nonlocal slept
        slept = 11.0
        try:
            await ctx.client.patch(Secret, "a", MergePatch({"data": {"late": "eA=="}}), SPACE)
        except NotOurs as error:
            refused.append(error)
            raise
        finally:
            slept = 0.0

    monkeypatch.setattr(clock, "elapsed", lambda: real() + slept)
    _, _, stop, serving = await make(server, reconcile)
    await client.create(secret("a"))
    await asyncio.sleep(1)
    assert refused
    assert "late" not in (await client.get(Secret, "a", SPACE)).data
    stop.set()
    await serving


async def test_a_write_that_is_on_its_way_when_the_lease_ends_is_given_up(server: ApiServer, client: Client) -> None:
    began: list[float] = []
    ended: list[tuple[float, BaseException]] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        began.append(clock.elapsed())
        try:
            await ctx.client.create(config_map("late"))
        except BaseException as error:
            ended.append((clock.elapsed(), error))
            raise

    _, wire, stop, serving = await make(server, reconcile)
    inner = wire._inner.send

    async def hang(request: Any) -> Any:
        if "configmaps" in request.target:
            await asyncio.sleep(3600)
        if "leases" in request.target and began:
            raise ConnectionError("away")
        return await inner(request)

    wire._inner = type("Hanging", (), {"send": staticmethod(hang), "stream": wire._inner.stream})()
    await client.create(secret("a"))
    await asyncio.sleep(14)
    assert ended
    assert ended[0][0] - began[0] <= 10.1, "by the renew deadline, five seconds before any other may begin"
    stop.set()
    await serving


async def test_a_reconcile_that_moves_may_finish_and_is_cancelled_when_it_takes_too_long(
    server: ApiServer, client: Client
) -> None:
    first = Process(server, "first", drain_timeout=4.0)
    for number in range(12):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(5)
    first.seconds = 60.0
    for number in range(12):
        await client.patch(Secret, f"s{number}", MergePatch({"metadata": {"labels": {"a": "b"}}}), SPACE)
    await asyncio.sleep(1)
    busy = set(first.in_work)
    assert busy
    second = Process(server, "second", drain_timeout=4.0)
    overlap: list[str] = []
    for _ in range(120):
        await asyncio.sleep(0.1)
        overlap += first.in_work & second.in_work
        assert not set(second.worked) & first.in_work, "a key is in work at two replicas"
    assert not overlap
    assert second.worked, "they were cancelled, and moved"
    assert first.in_work, "what stays is not cancelled"
    first.seconds = 0.0
    for process in (first, second):
        process.manager._shutdown_timeout = 1.0
        await process.end()


async def test_keys_of_another_replica_cannot_be_written_for(server: ApiServer, client: Client) -> None:
    """A task that a reconcile started lives on when its key has moved."""
    answers: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def later(ctx: Context[Secret]) -> None:
        await asyncio.sleep(20)
        try:
            await ctx.client.create(config_map(ctx.request.name))
            answers.append(f"written {ctx.request.name}")
        except NotOurs as error:
            answers.append(f"refused {str(error).split()[0]}")

    async def reconcile(ctx: Context[Secret]) -> None:
        tasks.append(asyncio.create_task(later(ctx)))

    manager, _, stop, serving = await make(server, reconcile)
    for number in range(20):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(2)
    second = Process(server, "second")
    await asyncio.gather(*tasks)
    names = [f"s{number}" for number in range(20)]
    kept = {name for name in names if manager.shares.replica.owns(Key(SPACE, name))}
    refused = {f"refused {SPACE}/{name}" for name in names if name not in kept}
    assert set(answers) == {f"written {name}" for name in kept} | refused
    assert 0 < len(kept) < 20
    stop.set()
    await serving
    await second.end()
