"""Tasks of a manager: when they run, what a failure costs, how they end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.observe.exposition import render
from konverge.runtime import Context, Controller, LeadershipLost, Manager, Use
from konverge.runtime.manager import LeaderElection
from konverge.runtime.tasks.manager_tasks import ManagerTask, RunningTasks, TaskContext
from konverge.wire.message import Headers, Request
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.tasks.network import Network

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-58")]

ELECTION = LeaderElection(name="tasks", namespace=SPACE)


def now() -> float:
    return asyncio.get_running_loop().time()


async def note(ctx: Context[Secret]) -> None: ...


class Ticking:
    """A task that notes the time every ten seconds, and how it ended."""

    def __init__(self) -> None:
        self.ticks: list[float] = []
        self.ends: list[str] = []

    async def __call__(self, ctx: TaskContext) -> None:
        try:
            while True:
                self.ticks.append(now())
                await asyncio.sleep(10)
        except asyncio.CancelledError:
            self.ends.append(f"cancelled, stop {'set' if ctx.stop.is_set() else 'not set'}")
            raise


async def names(client: Client) -> set[str]:
    return {item.metadata.name for item in await client.list(ConfigMap, SPACE)}


async def health(manager: Manager) -> str:
    answer = await manager.health.handle(Request("GET", "/readyz?verbose", Headers.of({})))
    return answer.body.decode()


async def test_it_runs_with_the_manager_and_reads_its_caches(client: Client) -> None:
    seen: list[tuple[list[str], list[str]]] = []

    async def look(ctx: TaskContext) -> None:
        secrets = await ctx.list(Secret, SPACE)
        found = await ctx.get(Secret, "a", SPACE)
        assert found is not None
        seen.append(([item.metadata.name for item in secrets], list(found.data)))
        assert await ctx.apply(config_map("made"), owner=found)
        await asyncio.sleep(1)  # until the cache shows it
        assert not await ctx.apply(config_map("made"), owner=found)

    await client.create(secret("a", key="value"))
    ticking = Ticking()
    manager = (
        Manager(client)
        .add(Controller(Secret, note, uses=[Use(ConfigMap, cached=True)]))
        .add_task(look)
        .add_task(ticking)
    )
    async with manager.running():
        await asyncio.sleep(25)
    assert seen == [(["a"], ["key"])], "a task that has returned has done its work"
    assert len(ticking.ticks) == 3
    assert ticking.ends == ["cancelled, stop set"]
    made = await client.get(ConfigMap, "made", SPACE)
    assert [owner.kind for owner in made.metadata.owner_references] == ["Secret"]


async def test_a_task_that_raises_is_started_again_and_nothing_else_is_touched(client: Client) -> None:
    starts: list[float] = []

    async def fails(ctx: TaskContext) -> None:
        starts.append(now())
        if len(starts) < 4:
            raise OSError("away")
        await asyncio.Event().wait()

    ticking = Ticking()
    manager = Manager(client).add(Controller(Secret, note)).add_task(fails).add_task(ticking)
    async with manager.running():
        await asyncio.sleep(0.5)
        assert "[!]tasks: fails: away" in await health(manager)
        await asyncio.sleep(98.5)
        assert "[!]tasks" not in await health(manager)
        text = render(manager.numbers).decode()
    assert 'manager_task_restarts_total{task="fails"} 3.0' in text
    assert 'manager_task_running{task="fails"} 1.0' in text
    pauses = [after - before for before, after in itertools.pairwise(starts)]
    assert [round(pause, 9) >= least for pause, least in zip(pauses, (1, 2, 4), strict=True)] == [True] * 3
    assert pauses[2] <= 4.8
    assert len(ticking.ticks) == 10


@pytest.mark.parametrize("leader_only", [True, False])
async def test_which_replica_runs_it(client: Client, leader_only: bool) -> None:
    first, second = Ticking(), Ticking()
    stops = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        serving = []
        for ticking, stop in zip((first, second), stops, strict=True):
            manager = Manager(client, leader_election=ELECTION).add(Controller(Secret, note))
            manager.add_task(ticking, leader_only=leader_only)
            serving.append(group.create_task(manager.serve(stop)))
            await asyncio.sleep(5)
        assert [bool(first.ticks), bool(second.ticks)] == [True, not leader_only]
        stops[0].set()
        await serving[0]
        await asyncio.sleep(20)
        assert first.ends == ["cancelled, stop set"]
        assert second.ticks
        stops[1].set()
    assert second.ends == ["cancelled, stop set"]


async def test_after_leadership_was_lost_a_task_writes_nothing(server: ApiServer, client: Client) -> None:
    network = Network(server)
    outcomes: list[object] = []

    async def writes(ctx: TaskContext) -> None:
        for number in range(1000):
            try:
                await asyncio.sleep(1)
                await Client.create(ctx.client, config_map(f"c{number}"))
            except LeadershipLost as error:
                outcomes.append(error)
                raise
            except Exception:  # the API server is away
                continue

    async def stubborn(ctx: TaskContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await ctx.client.create(config_map("late"))
            except Exception as error:
                outcomes.append(error)

    manager = Manager(network.client, leader_election=ELECTION).add(Controller(Secret, note))
    manager.add_task(writes).add_task(stubborn)

    async def live() -> None:
        async with manager.running():
            await asyncio.sleep(5)
            network.cut()
            await asyncio.sleep(9)
            before.update(await names(client))
            await client.delete(Lease, "tasks", SPACE)  # another one may lead from now on
            await asyncio.sleep(3600)

    before: set[str] = set()
    with pytest.raises(LeadershipLost):
        await live()
    network.mend()
    await asyncio.sleep(100)
    assert len(before) > 2
    assert await names(client) == before
    assert isinstance(outcomes[-1], LeadershipLost)


async def test_after_leadership_was_lost_no_task_has_its_grace(server: ApiServer, client: Client) -> None:
    network, times = Network(server), {}

    async def works_on(ctx: TaskContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            times["ended"] = now()

    manager = Manager(network.client, leader_election=ELECTION).add(Controller(Secret, note))
    manager.add_task(works_on, grace=25)

    async def live() -> None:
        async with manager.running():
            await asyncio.sleep(5)
            network.cut()
            times["cut"] = now()
            await asyncio.sleep(3600)

    with pytest.raises(LeadershipLost):
        await live()
    assert times["ended"] - times["cut"] <= ELECTION.timing.lease_duration
    network.mend()


async def test_a_task_has_its_grace_to_end_by_itself(client: Client) -> None:
    ended: list[float] = []

    async def polite(ctx: TaskContext) -> None:
        await ctx.stop.wait()
        await asyncio.sleep(4)
        ended.append(now())

    manager = Manager(client).add(Controller(Secret, note)).add_task(polite, grace=5)
    async with manager.running():
        await asyncio.sleep(1)
        stopped = now()
    assert ended == [stopped + 4]
    assert now() == stopped + 4


async def test_a_task_that_cannot_be_cancelled_is_left_behind(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    release = asyncio.Event()

    async def stubborn(ctx: TaskContext) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                ctx.log.info("not yet")

    manager = Manager(client, shutdown_timeout=8).add(Controller(Secret, note)).add_task(stubborn)
    async with manager.running():
        await asyncio.sleep(1)
        stopped = now()
    assert now() == stopped + 8
    assert "task stubborn has not ended 8 s after it was cancelled" in caplog.text
    release.set()
    await asyncio.sleep(0)


async def test_a_bound_manager_has_the_tasks_and_hooks(client: Client) -> None:
    ticking, calls = Ticking(), []
    declared = Manager(name="declared").add(Controller(Secret, note)).add_task(ticking, name="tick")

    @declared.on_startup
    async def first(ctx: Any) -> None:
        calls.append("start")

    declared.on_shutdown(_calling(calls, "end"))
    async with declared.bound_to(client).running():
        await asyncio.sleep(1)
    assert (len(ticking.ticks), calls) == (1, ["start", "end"])
    together = Manager(client).add_task(ticking, name="tick")
    together.take_tasks(declared)
    assert [task.name for task in together.tasks] == ["tick", "declared tick"]


def _calling(calls: list[str], text: str) -> Callable[[Any], Awaitable[None]]:
    async def hook(ctx: Any) -> None:
        calls.append(text)

    return hook


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="already a task 'note'"):
        Manager().add_task(note).add_task(note)  # type: ignore[arg-type]


class Alone:
    """A task that takes a moment to end, and may never run twice at once."""

    def __init__(self, grace: float = 0.0) -> None:
        self.running = 0
        self.runs = 0
        self.task = ManagerTask(function=self, name="alone", leader_only=True, grace=grace)
        self.tasks = RunningTasks(
            lambda task: TaskContext(task.name, client=None, caches=None, recorder=None, manager=""), {}
        )  # type: ignore[arg-type]

    async def __call__(self, ctx: TaskContext) -> None:
        self.running += 1
        self.runs += 1
        assert self.running == 1, "two runs of one task at once"
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(5)
            self.running -= 1


async def test_who_leads_again_waits_for_the_end_of_what_it_cancelled() -> None:
    alone = Alone()
    for _ in range(4):
        alone.tasks.start([alone.task])
        await asyncio.sleep(1)
        alone.tasks.cancel(leader_only=True)
    alone.tasks.start([alone.task])
    await asyncio.sleep(10)
    assert alone.running == 1
    assert alone.runs == 2, "those in between were cancelled before they began"
    for _ in range(4):
        alone.tasks.cancel(leader_only=True)
        await asyncio.sleep(10)
        alone.tasks.start([alone.task])
    assert len(alone.tasks._running) == 1, "what has ended is not kept"
    await alone.tasks.end(20)
    assert not alone.running


@pytest.mark.parametrize("ending", ["ask", "cancel", "end"])
async def test_nothing_is_started_by_who_ends(ending: str) -> None:
    alone = Alone()
    if ending == "end":
        await alone.tasks.end(20)
    else:
        getattr(alone.tasks, ending)()
    alone.tasks.start([alone.task])
    await asyncio.sleep(1)
    assert not alone.runs
    await alone.tasks.end(20)
    alone.tasks.start([alone.task])
    await asyncio.sleep(1)
    assert not alone.runs


async def test_what_waits_for_an_earlier_run_is_not_started_by_who_ends() -> None:
    alone = Alone(grace=8.0)
    alone.tasks.start([alone.task])
    await asyncio.sleep(1)
    alone.tasks.cancel(leader_only=True)
    alone.tasks.start([alone.task])
    await asyncio.sleep(1)
    await alone.tasks.end(20)
    assert alone.runs == 1
    assert not alone.running
