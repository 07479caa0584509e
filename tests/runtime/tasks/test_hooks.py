"""Start-up and shut-down hooks: when they run, and what their failures lead to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, LeadershipLost, Manager
from konverge.runtime.manager import LeaderElection
from konverge.runtime.tasks.hooks import HookContext, StartupFailed
from konverge.runtime.tasks.manager_tasks import TaskContext
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.tasks.network import Network

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-58", "R-01", "R-04")]

ELECTION = LeaderElection(name="hooks", namespace=SPACE)


class Life:
    """A manager whose parts note when they run."""

    def __init__(self, client: Client, **options: Any) -> None:
        self.notes: list[str] = []
        self.manager = Manager(client, **options).add(Controller(Secret, self._reconcile))
        self.manager.add_task(self._task, name="every", leader_only=False)
        self.manager.add_task(self._task, name="leader")

    async def _reconcile(self, ctx: Context[Secret]) -> None:
        self.notes.append("reconcile")
        await asyncio.sleep(3)
        self.notes.append("reconciled")

    async def _task(self, ctx: TaskContext) -> None:
        self.notes.append(f"task {ctx.name}")
        try:
            await asyncio.Event().wait()
        finally:
            self.notes.append(f"task {ctx.name} ended")

    def hook(self, name: str, error: Exception | None = None, seconds: float = 0.0) -> Any:
        async def hook(ctx: HookContext) -> None:
            self.notes.append(name)
            await asyncio.sleep(seconds)
            if error is not None:
                raise error

        hook.__name__ = name
        return hook


async def test_the_order_of_a_life(client: Client) -> None:
    life = Life(client, leader_election=ELECTION)
    holders: list[str | None] = []

    async def write(ctx: HookContext) -> None:
        await ctx.client.create(config_map("written"))
        holders.append((await client.get(Lease, "hooks", SPACE)).spec.holder_identity)

    for name in ("up 1", "up 2"):
        life.manager.on_startup(life.hook(name))
    life.manager.on_shutdown(life.hook("down 1"))
    life.manager.on_shutdown(write)
    life.manager.on_shutdown(life.hook("down 2"))
    await client.create(secret("a"))
    async with life.manager.running():
        await asyncio.sleep(1)
    assert life.notes[:3] == ["up 1", "up 2", "task every"]
    assert set(life.notes[3:5]) == {"task leader", "reconcile"}
    assert life.notes[5] == "reconciled", "the reconcile under way is finished first"
    assert set(life.notes[6:8]) == {"task every ended", "task leader ended"}
    assert life.notes[8:] == ["down 2", "down 1"]
    assert await client.get(ConfigMap, "written", SPACE)
    assert holders != [""], "the Lease is ours until the hooks have run"
    assert holders != [None]
    assert (await client.get(Lease, "hooks", SPACE)).spec.holder_identity in ("", None)


async def test_a_start_up_hook_that_raises_ends_the_manager(client: Client) -> None:
    life = Life(client)
    life.manager.on_startup(life.hook("good"))
    life.manager.on_startup(life.hook("bad", error=OSError("no database")))
    life.manager.on_startup(life.hook("never"))
    life.manager.on_shutdown(life.hook("nor this"))
    with pytest.raises(StartupFailed, match="the start-up hook bad failed: no database"):
        async with life.manager.running():
            raise AssertionError("it must not run")
    assert life.notes == ["good", "bad"]


async def test_a_start_up_hook_that_waits_does_not_hold_up_the_end(client: Client) -> None:
    life, stop = Life(client), asyncio.Event()
    life.manager.on_startup(life.hook("waits", seconds=1e6))
    serving = asyncio.create_task(life.manager.serve(stop))
    await asyncio.sleep(10)
    stop.set()
    await serving
    assert asyncio.get_running_loop().time() == 10
    assert life.notes == ["waits"]


async def test_neither_a_failing_nor_a_slow_shut_down_hook_stops_the_others(client: Client) -> None:
    life = Life(client)
    life.manager.on_shutdown(life.hook("first"))
    life.manager.on_shutdown(life.hook("fails", error=OSError("away")))
    life.manager.on_shutdown(life.hook("hangs", seconds=1e6))
    async with life.manager.running():
        await asyncio.sleep(1)
    assert life.notes[-3:] == ["hangs", "fails", "first"]
    assert asyncio.get_running_loop().time() == 11


async def test_who_never_led_runs_them_and_cannot_write(client: Client) -> None:
    refused: list[Exception] = []
    life, stop = Life(client, leader_election=ELECTION), asyncio.Event()

    async def write(ctx: HookContext) -> None:
        try:
            await ctx.client.create(config_map("written"))
        except LeadershipLost as error:
            refused.append(error)

    life.manager.on_shutdown(write)
    async with Manager(client, leader_election=ELECTION).running():
        serving = asyncio.create_task(life.manager.serve(stop))
        await asyncio.sleep(10)
        stop.set()
        await serving
    assert life.notes == ["task every", "task every ended"]
    assert len(refused) == 1
    assert "written" not in [item.metadata.name for item in await client.list(ConfigMap, SPACE)]


async def test_they_run_after_leadership_was_lost(server: ApiServer, client: Client) -> None:
    network = Network(server)
    life = Life(network.client, leader_election=ELECTION)
    life.manager.on_shutdown(life.hook("down"))

    async def live() -> None:
        async with life.manager.running():
            network.cut()
            await asyncio.sleep(3600)

    with pytest.raises(LeadershipLost):
        await live()
    assert life.notes[-1] == "down"
    assert life.notes.count("down") == 1
