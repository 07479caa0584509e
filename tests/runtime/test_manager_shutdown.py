"""Ended at any moment, a manager leaves nothing behind; asked to end at any moment, it ends in order."""

from __future__ import annotations

import asyncio

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Call, Client, Static, Wrapper
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Secret
from konverge.runtime import Context, Controller, Manager, Reconciler
from konverge.runtime.manager import LeaderElection
from konverge.sim.loop import VirtualLoop
from konverge.wire.message import Response
from tests.runtime.objects import config_map, secret

pytestmark = pytest.mark.spec("R-04")

STEPS = range(0, 240, 3)


class Busy(Reconciler[Secret]):
    """Reads, writes, waits, and has something to clean up: awaits of every kind."""

    async def reconcile(self, ctx: Context[Secret]) -> None:
        await ctx.apply(config_map(ctx.request.name, a="1"))
        await asyncio.sleep(0)
        ctx.event("Done", "done")

    async def cleanup(self, ctx: Context[Secret]) -> None:
        await ctx.delete(ConfigMap, ctx.request.name)


async def scene(step: int, *, cancel: bool) -> None:
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        for name in ("a", "b"):
            await client.create(secret(name))
        before = asyncio.all_tasks()
        election = LeaderElection(name="op", identity="me")
        manager = Manager(client, leader_election=election).add(Controller(Secret, Busy(), owns=[ConfigMap]))
        stop = asyncio.Event()
        serving = asyncio.create_task(manager.serve(stop))
        for turn in range(step):
            await asyncio.sleep(0)
            if turn == 100:
                await client.delete(Secret, "a", "default")
        if cancel:
            serving.cancel()
        else:
            stop.set()
        (result,) = await asyncio.gather(serving, return_exceptions=True)
        assert result is None or isinstance(result, asyncio.CancelledError), result
        left = {task.get_name() for task in asyncio.all_tasks() - before if not task.done()}
        assert left == set()


@pytest.mark.parametrize("cancel", [True, False], ids=["cancelled", "stopped"])
def test_a_manager_stopped_at_any_await_leaves_nothing_behind(cancel: bool) -> None:
    for step in STEPS:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(step)) as runner:  # noqa: B023 - used within the turn
            runner.run(scene(step, cancel=cancel))


class SlowEvents(Wrapper):
    """Events take a second each to be written."""

    async def call(self, call: Call) -> Response:
        if call.resource == Event.resource:
            await asyncio.sleep(1)
        return await super().call(call)


class Slow(Client):
    def __init__(self, client: Client) -> None:
        self._use_caller(SlowEvents(client.caller), client.mapper)


@pytest.mark.virtual
async def test_events_are_written_before_the_lease_is_released() -> None:
    async def record(ctx: Context[Secret]) -> None:
        ctx.event("First", "one")
        ctx.event("Second", "two")

    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        await client.create(secret("a"))
        election = LeaderElection(name="op", identity="me")
        manager = Manager(Slow(client), leader_election=election).add(Controller(Secret, record))
        async with manager.running():
            await asyncio.sleep(0.1)
        events = await client.list(Event, "default", field_selector="involvedObject.kind=Secret")
        assert sorted(event.reason or "" for event in events) == ["First", "Second"]
        assert not (await client.get(Lease, "op", "default")).spec.holder_identity
