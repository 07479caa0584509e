"""Ended at any moment, a manager leaves nothing behind; asked to end at any moment, it ends in order."""

from __future__ import annotations

import asyncio

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Manager, Reconciler
from konverge.runtime.manager import LeaderElection
from konverge.sim.loop import VirtualLoop
from tests.runtime.conftest import config_map, secret

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
def test_at_every_await_nothing_is_left_behind(cancel: bool) -> None:
    for step in STEPS:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(step)) as runner:  # noqa: B023 - used within the turn
            runner.run(scene(step, cancel=cancel))
