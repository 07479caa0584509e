"""Timers of objects: when they are called, and what a failure or a change does to that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.observe.exposition import render
from konverge.runtime import Context, Controller, LeadershipLost, Manager, Settings, TerminalError
from konverge.runtime.manager import LeaderElection
from konverge.runtime.tasks import object_tasks
from konverge.runtime.tasks.declared import Every
from tests.runtime.objects import SPACE
from tests.runtime.tasks.feeds import Feed, feed, install, now, respec
from tests.runtime.tasks.network import Network

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-59")]


class Calls:
    """A timer that notes when it was called, for which object; it may take its time, and fail."""

    def __init__(self, *errors: Exception, seconds: float = 0.0) -> None:
        self.times: list[float] = []
        self.names: list[str] = []
        self.errors = list(errors)
        self.seconds = seconds
        self.running: dict[str, int] = {}

    async def __call__(self, ctx: Context[Feed]) -> None:
        name = ctx.request.name
        self.times.append(round(now(), 6))
        self.names.append(name)
        self.running[name] = self.running.get(name, 0) + 1
        assert self.running[name] == 1, "two calls for one object at a time"
        try:
            await asyncio.sleep(self.seconds)
            if self.errors:
                raise self.errors.pop(0)
        finally:
            self.running[name] -= 1

    def manager(self, client: Client, interval: Any = 10, **options: Any) -> Manager:
        settings = options.pop("settings", None)
        timer: Every[Feed] = Every(interval, self, name="calls", **options)
        return Manager(client, settings=settings).add(Controller(Feed, timers=[timer]))


def since(calls: Calls, start: float) -> list[float]:
    return [round(time - start, 6) for time in calls.times]


async def test_calls_come_on_a_grid_from_the_first_sight(client: Client) -> None:
    await install(client)
    calls = Calls(seconds=3.7)
    async with calls.manager(client).running():
        await asyncio.sleep(2)
        await client.create(feed("a"))
        start = now()
        await asyncio.sleep(1000)
    assert since(calls, start) == [10.0 * n for n in range(101)][: len(calls.times)]
    assert len(calls.times) in (100, 101)


@pytest.mark.parametrize(("sharp", "due"), [(True, [0, 30, 60, 90]), (False, [0, 35, 70, 105])])
async def test_a_slow_call_makes_no_other_late_and_leaves_out_the_missed(
    client: Client, sharp: bool, due: list[float]
) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls(seconds=25.0)
    async with calls.manager(client, sharp=sharp).running():
        start = now()
        await asyncio.sleep(110)
    assert since(calls, start) == due


async def test_each_object_has_its_own_interval_which_may_change(client: Client) -> None:
    await install(client)
    await client.create(feed("a", every=10))
    await client.create(feed("b", every=25))
    calls = Calls()
    async with calls.manager(client, lambda feed: feed.spec.every).running():
        start = now()
        await asyncio.sleep(52)
        assert sorted(zip(since(calls, start), calls.names, strict=True)) == [
            (0.0, "a"), (0.0, "b"), (10.0, "a"), (20.0, "a"), (25.0, "b"), (30.0, "a"), (40.0, "a"),
            (50.0, "a"), (50.0, "b"),
        ]  # fmt: skip
        await respec(client, "a", every=30)
        await respec(client, "b", every=1)
        calls.times.clear()
        calls.names.clear()
        await asyncio.sleep(29)
        assert [time for time, name in zip(since(calls, start), calls.names, strict=True) if name == "a"] == [80.0]
        assert len(calls.names) > 25


async def test_the_delays_before_a_call(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls()
    async with calls.manager(client, initial_delay=7).running():
        start = now()
        await asyncio.sleep(30)
    assert since(calls, start) == [7, 17, 27]


async def test_an_object_that_changes_is_not_idle(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls()
    async with calls.manager(client, 10, idle=25).running():
        start = now()
        for number in range(4):
            await asyncio.sleep(20)
            await respec(client, "a", url=str(number))
        await client.patch(Feed, "a", MergePatch({"status": {"seen": 1}}), SPACE, subresource="status")
        await asyncio.sleep(41)
    assert since(calls, start) == [105, 110, 120], "idle from 80 on; a status is no change of the spec"


async def test_only_objects_that_match_and_are_not_deleted(client: Client) -> None:
    await install(client)
    held = feed("held")
    held.metadata.finalizers = ["example.com/hold"]
    for obj in (feed("yes", url="x"), feed("no"), held):
        await client.create(obj)
    await respec(client, "held", url="x")
    calls = Calls()
    async with calls.manager(client, when=lambda feed: bool(feed.spec.url)).running():
        await asyncio.sleep(5)
        await client.delete(Feed, "held", SPACE)
        await asyncio.sleep(20)
        assert calls.names.count("yes") == 3
        assert calls.names.count("held") == 1
        await respec(client, "no", url="x")
        await client.delete(Feed, "yes", SPACE)
        await asyncio.sleep(10)
    assert calls.names.count("no") == 1
    assert calls.names.count("yes") == 3


async def test_a_failed_call_is_made_again_and_then_the_grid_counts(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls(OSError("away"), ValueError("defect"))
    manager = calls.manager(client, 60)
    async with manager.running():
        start = now()
        await asyncio.sleep(125)
        text = render(manager.numbers).decode()
    first, second, third, *grid = since(calls, start)
    assert first == 0
    assert 1 <= second <= 1.2
    assert 2 <= third - second <= 2.4
    assert grid == [60, 120]
    assert 'controller_task_failures_total{controller="feed",task="calls"} 2.0' in text
    assert 'controller_timer_calls_total{controller="feed",task="calls"} 5.0' in text


async def test_back_off_has_an_end_and_a_terminal_error_has_none(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls(*[ValueError("defect")] * 20)
    async with calls.manager(client, 1e9, settings=Settings(max_delay=100)).running():
        await asyncio.sleep(2000)
    gaps = [after - before for before, after in zip(calls.times[9:], calls.times[10:], strict=False)]
    assert gaps
    assert all(100 <= gap <= 120 for gap in gaps)
    terminal = Calls(TerminalError("never"))
    async with terminal.manager(client, 50).running():
        start = now()
        await asyncio.sleep(60)
    assert since(terminal, start) == [0, 50]


async def test_a_call_that_hangs_ends_by_the_limit_of_reconciles(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls(seconds=1e6)
    async with calls.manager(client, 10, settings=Settings(timeout=20)).running():
        start = now()
        await asyncio.sleep(22)
    second = since(calls, start)[1]
    assert 21 <= second <= 21.2


async def test_the_end_waits_for_calls_under_way_and_makes_no_other(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls(seconds=25.0)
    async with calls.manager(client, 10).running():
        start = now()
        await asyncio.sleep(1)
    assert now() - start == pytest.approx(25, abs=0.5)
    assert sum(calls.running.values()) == 0
    await asyncio.sleep(100)
    assert len(calls.times) == 1


async def test_a_call_sees_what_the_last_one_wrote_and_wakes_the_reconcile(client: Client) -> None:
    reconciled: list[int] = []

    async def count(ctx: Context[Feed]) -> None:
        ctx.obj.status.seen += 1
        await ctx.save_status()

    async def reconcile(ctx: Context[Feed]) -> None:
        reconciled.append(ctx.obj.status.seen)

    await install(client)
    await client.create(feed("a"))
    async with Manager(client).add(Controller(Feed, reconcile, timers=[Every(0.001, count)])).running():
        await asyncio.sleep(0.1)
    seen = (await client.get(Feed, "a", SPACE)).status.seen
    assert seen >= 99
    assert reconciled[-1] == seen


async def test_many_timers_are_one_heap_and_few_tasks(client: Client) -> None:
    def tasks() -> int:
        return len([task for task in asyncio.all_tasks() if task.get_name().endswith(" calls")])

    await install(client)
    names = [f"f{number}" for number in range(200)]
    for name in names:
        await client.create(feed(name))
    calls = Calls(seconds=0.5)
    async with calls.manager(client, 3600, settings=Settings(workers=7)).running():
        await asyncio.sleep(0.25)
        assert tasks() == 7
        await asyncio.sleep(60)
        assert sorted(calls.names) == sorted(names)
        assert tasks() == 0


async def test_a_look_at_many_objects_lets_others_run_in_between(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_tasks, "PER_TURN", 4)
    await install(client)
    for number in range(11):
        await client.create(feed(f"f{number}"))
    manager, turns = Calls().manager(client, 3600), 0
    async with manager.running():
        await asyncio.sleep(1)
        tasks, loop = manager.engines["feed"].object_tasks, asyncio.get_running_loop()
        assert tasks is not None

        def turn() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(turn) if turns < 100 else None

        loop.call_soon(turn)
        await tasks.refresh()
        assert turns == 2, "after four objects, and after eight"
        turns = 100


async def test_another_object_of_the_same_name_begins_its_own_time(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls(seconds=4.0)
    async with calls.manager(client, 100).running():
        start = now()
        await asyncio.sleep(1)
        await client.delete(Feed, "a", SPACE)
        await client.create(feed("a"))
        await asyncio.sleep(199)
    assert since(calls, start) == [0, 4, 101], "its call waits for the end of the one before, its grid is its own"


async def test_a_function_of_the_interval_that_fails_costs_that_object_its_pace(client: Client) -> None:
    await install(client)
    for name, every in (("zero", 0.0), ("good", 10.0)):
        await client.create(feed(name, every=every))
    calls = Calls()
    manager = calls.manager(client, lambda feed: 100 / feed.spec.every)
    async with manager.running():
        await asyncio.sleep(65)
        assert "zero" in manager.health.remarks["quarantine"]()
        assert calls.names.count("good") == 7
        assert calls.names.count("zero") == 2
        await respec(client, "zero", every=10)
        await asyncio.sleep(61)
        assert manager.health.remarks["quarantine"]() == "", "what is mended is reported no more"


async def test_an_interval_may_be_short_and_must_be_positive(client: Client) -> None:
    await install(client)
    for name, every in (("short", 0.25), ("negative", -3.0)):
        await client.create(feed(name, every=every))
    calls = Calls()
    async with calls.manager(client, lambda feed: feed.spec.every).running():
        await asyncio.sleep(59.9)
        assert calls.names.count("short") == 240
        assert calls.names.count("negative") == 1
        await asyncio.sleep(1)
        assert calls.names.count("negative") == 2


@pytest.mark.parametrize("seed", range(4))
async def test_faults_cost_calls_but_no_two_overlap_and_no_object_is_left_out(
    server: ApiServer, client: Client, seed: int
) -> None:
    rng, network = clock.seeded(seed), Network(server)
    await install(client)
    calls = Calls(seconds=2.0)
    names = [f"f{number}" for number in range(5)]
    async with calls.manager(network.client, 10).running():
        for _ in range(12):
            name = rng.choice(names)
            if rng.random() < 0.5:
                network.cut()
            try:
                await client.create(feed(name))
            except Exception:
                await client.delete(Feed, name, SPACE)
            await asyncio.sleep(rng.choice([0.5, 7, 40]))
            network.mend(forgetful=rng.choice([0, 2]))
            await asyncio.sleep(rng.choice([1, 60]))
        await asyncio.sleep(120)
        calls.names.clear()
        await asyncio.sleep(100)
        present = {item.metadata.name for item in await client.list(Feed, SPACE)}
        assert {name: calls.names.count(name) for name in sorted(set(calls.names))} == dict.fromkeys(
            sorted(present), 10
        )


async def test_after_leadership_was_lost_no_timer_writes(server: ApiServer, client: Client) -> None:
    network, refusals = Network(server), []

    async def count(ctx: Context[Feed]) -> None:
        try:
            await asyncio.sleep(3)
        finally:  # also when it is cancelled
            ctx.obj.status.seen += 1
            try:
                await ctx.save_status()
            except LeadershipLost as error:
                refusals.append(error)

    await install(client)
    await client.create(feed("a"))
    election = LeaderElection(name="timers", namespace=SPACE)
    manager = Manager(network.client, leader_election=election).add(Controller(Feed, timers=[Every(4, count)]))

    async def live() -> None:
        async with manager.running():
            await asyncio.sleep(21)
            network.cut()
            await asyncio.sleep(1)
            network.mend()
            await client.delete(Lease, "timers", SPACE)
            taken = Lease(metadata=feed("timers").metadata)
            taken.spec.holder_identity, taken.spec.lease_duration_seconds = "another", 3600
            await client.create(taken)
            await asyncio.sleep(3600)

    with pytest.raises(LeadershipLost):
        await live()
    seen = (await client.get(Feed, "a", SPACE)).status.seen
    assert seen > 2
    await asyncio.sleep(100)
    assert (await client.get(Feed, "a", SPACE)).status.seen == seen
    assert refusals


def test_a_declaration_that_makes_no_sense_is_refused() -> None:
    async def call(ctx: Context[Feed]) -> None: ...

    for interval in (0, -1):
        with pytest.raises(ValueError, match="interval"):
            Every(interval, call)
    with pytest.raises(ValueError, match="idle"):
        Every(1, call, idle=-1)
    with pytest.raises(TypeError, match="cannot be called"):
        Every(1, 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="different names"):
        Controller(Feed, timers=[Every(1, call), Every(2, call)])
    assert Every(1, call).name == "call"
