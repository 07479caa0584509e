"""Daemons of objects: when they run, what they see, how they end."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Event
from konverge.observe.exposition import render
from konverge.runtime import Context, Controller, LeadershipLost, Manager, Reconciler, TerminalError
from konverge.runtime.manager import LeaderElection
from konverge.runtime.tasks.daemon_context import DaemonContext
from konverge.runtime.tasks.declared import Daemon
from tests.runtime.objects import SPACE, config_map
from tests.runtime.tasks.feeds import Feed, feed, install, now, respec
from tests.runtime.tasks.network import Network

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-59")]


class Lives:
    """A daemon that notes its lives; `end` seconds pass between its cancellation and its end."""

    def __init__(self, *errors: Exception, end: float = 0.0) -> None:
        self.begun: list[str] = []
        self.running: dict[str, int] = {}
        self.uids: set[str] = set()
        self.ends: list[str] = []
        self.errors = list(errors)
        self.end = end
        self.starts: list[float] = []

    async def __call__(self, ctx: DaemonContext[Feed]) -> None:
        name = ctx.request.name
        self.starts.append(now())
        if self.errors:
            raise self.errors.pop(0)
        self.begun.append(f"{name} {ctx.obj.spec.url}".strip())
        self.running[name] = self.running.get(name, 0) + 1
        assert self.running[name] == 1, "two daemons for one object at a time"
        uid = ctx.obj.metadata.uid
        self.uids.add(uid)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ends.append(f"{name} {'asked' if ctx.stopped.is_set() else 'cancelled'}")
            await asyncio.sleep(self.end)
            raise
        finally:
            self.running[name] -= 1
            self.uids.discard(uid)

    @property
    def alive(self) -> list[str]:
        return sorted(name for name, count in self.running.items() if count)

    def manager(self, client: Client, reconciler: Any = None, **options: Any) -> Manager:
        manager = options.pop("manager", None) or Manager(client)
        return manager.add(Controller(Feed, reconciler, daemons=[Daemon(self, name="lives", **options)]))


async def is_gone(client: Client, name: str) -> bool:
    try:
        await client.get(Feed, name, SPACE)
    except NotFound:
        return True
    return False


async def test_it_lives_as_long_as_its_object(client: Client) -> None:
    await install(client)
    await client.create(feed("old"))
    lives = Lives()
    manager = lives.manager(client)
    async with manager.running():
        await asyncio.sleep(1)
        assert lives.alive == ["old"]
        await client.create(feed("new"))
        await asyncio.sleep(1)
        assert lives.alive == ["new", "old"]
        assert 'controller_daemons_running{controller="feed",task="lives"} 2.0' in render(manager.numbers).decode()
        await client.delete(Feed, "old", SPACE)
        await asyncio.sleep(1)
        assert lives.alive == ["new"]
        assert lives.ends == ["old asked"]
        await respec(client, "new", url="other")
        await asyncio.sleep(1)
    assert lives.alive == []
    assert lives.begun == ["old", "new"]
    async with lives.manager(client).running():  # another process
        await asyncio.sleep(1)
        assert lives.alive == ["new"]
    assert [task.get_name() for task in asyncio.all_tasks() if "lives" in task.get_name()] == []


async def test_another_object_of_the_same_name_has_its_own(client: Client) -> None:
    await install(client)
    lives = Lives(end=5)
    async with lives.manager(client).running():
        await client.create(feed("a", url="first"))
        await asyncio.sleep(1)
        await client.delete(Feed, "a", SPACE)
        await client.create(feed("a", url="second"))
        await asyncio.sleep(3)
        assert lives.begun == ["a first"], "the second waits for the end of the first"
        await asyncio.sleep(3)
        assert lives.begun == ["a first", "a second"]
        assert lives.alive == ["a"]


@pytest.mark.parametrize("restart", [True, False])
async def test_a_change_of_the_spec(client: Client, restart: bool) -> None:
    await install(client)
    await client.create(feed("a", url="1"))
    lives = Lives()
    async with lives.manager(client, restart_on_change=restart).running():
        await asyncio.sleep(1)
        await client.patch(Feed, "a", MergePatch({"metadata": {"labels": {"x": "y"}}}), SPACE)
        await client.patch(Feed, "a", MergePatch({"status": {"seen": 1}}), SPACE, subresource="status")
        await asyncio.sleep(1)
        assert lives.begun == ["a 1"]
        await respec(client, "a", url="2")
        await asyncio.sleep(1)
        assert lives.begun == (["a 1", "a 2"] if restart else ["a 1"])


async def test_only_while_the_object_matches(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    lives = Lives()
    async with lives.manager(client, when=lambda feed: bool(feed.spec.url)).running():
        await asyncio.sleep(1)
        assert lives.alive == []
        for url in ("1", "2", "", "3"):
            await respec(client, "a", url=url)
            await asyncio.sleep(1)
            assert lives.alive == (["a"] if url else [])
    assert lives.begun == ["a 1", "a 3"]


async def test_a_condition_that_raises_changes_nothing_and_is_reported(client: Client) -> None:
    def when(obj: Feed) -> bool:
        return bool(1 / len(obj.spec.url))

    await install(client)
    await client.create(feed("a", url="x"))
    await client.create(feed("b"))
    lives = Lives()
    manager = lives.manager(client, when=when)
    async with manager.running():
        await asyncio.sleep(1)
        assert lives.alive == ["a"]
        assert "default/b" in manager.health.remarks["quarantine"]()
        await respec(client, "a", url="")
        await asyncio.sleep(1)
        assert lives.alive == ["a"]
        await respec(client, "b", url="x")
        await asyncio.sleep(1)
        assert lives.alive == ["a", "b"]


async def test_it_sees_its_object_as_it_is_now(client: Client) -> None:
    seen: list[str] = []

    async def follow(ctx: DaemonContext[Feed]) -> None:
        seen.append(f"begins {ctx.obj.spec.url}")
        while True:
            changed = await ctx.changed()
            seen.append(f"{changed.spec.url} {ctx.obj.spec.url}")

    await install(client)
    await client.create(feed("a", url="1"))
    async with Manager(client).add(Controller(Feed, daemons=[Daemon(follow)])).running():
        await asyncio.sleep(1)
        await respec(client, "a", url="2")
        await asyncio.sleep(1)
        await respec(client, "a", url="3")
        await asyncio.sleep(1)
    assert seen == ["begins 1", "2 2", "3 3"]


async def test_its_writes(client: Client) -> None:
    reconciled: list[int] = []

    async def count(ctx: DaemonContext[Feed]) -> None:
        for _ in range(50):
            reading = await ctx.read()
            reading.obj.status.seen += 1
            await reading.save_status()
        assert await ctx.apply(config_map("child", a="1"))
        ctx.event("Counted", "to fifty")

    async def reconcile(ctx: Context[Feed]) -> None:
        reconciled.append(ctx.obj.status.seen)

    await install(client)
    await client.create(feed("a"))
    controller = Controller(Feed, reconcile, owns=[ConfigMap], daemons=[Daemon(count)])
    async with Manager(client).add(controller).running():
        await asyncio.sleep(5)
    assert (await client.get(Feed, "a", SPACE)).status.seen == 50
    assert reconciled[-1] == 50, "its writes wake the reconcile"
    child = await client.get(ConfigMap, "child", SPACE)
    assert [owner.name for owner in child.metadata.owner_references] == ["a"]


async def test_one_that_raises_begins_again_and_one_that_returns_has_ended(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    lives = Lives(OSError("away"), ValueError("defect"), OSError("away"))
    manager = lives.manager(client)
    async with manager.running():
        await asyncio.sleep(30)
        assert lives.alive == ["a"]
        text = render(manager.numbers).decode()
    gaps = [after - before for before, after in itertools.pairwise(lives.starts)]
    assert [1 <= gaps[0] <= 1.2, 2 <= gaps[1] <= 2.4, 4 <= gaps[2] <= 4.8] == [True] * 3
    assert 'controller_task_failures_total{controller="feed",task="lives"} 3.0' in text


@pytest.mark.parametrize("error", [None, TerminalError("never")])
async def test_one_that_has_ended_begins_again_for_another_spec_alone(client: Client, error: Exception | None) -> None:
    calls: list[str] = []

    async def once(ctx: DaemonContext[Feed]) -> None:
        calls.append(ctx.obj.spec.url)
        if error is not None:
            raise error

    await install(client)
    await client.create(feed("a", url="1"))
    async with Manager(client).add(Controller(Feed, daemons=[Daemon(once, restart_on_change=True)])).running():
        await asyncio.sleep(100)
        await client.patch(Feed, "a", MergePatch({"metadata": {"labels": {"x": "y"}}}), SPACE)
        await asyncio.sleep(100)
        assert calls == ["1"]
        await respec(client, "a", url="2")
        await asyncio.sleep(100)
    assert calls == ["1", "2"]


async def test_it_is_asked_then_cancelled_and_then_a_line_says_so(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    notes: list[tuple[float, str]] = []
    release = asyncio.Event()

    async def stubborn(ctx: DaemonContext[Feed]) -> None:
        await ctx.stopped.wait()
        notes.append((now(), "asked"))
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                notes.append((now(), "cancelled"))

    await install(client)
    await client.create(feed("a"))
    async with Manager(client).add(Controller(Feed, daemons=[Daemon(stubborn, grace=10)])).running() as manager:
        await asyncio.sleep(1)
        await client.delete(Feed, "a", SPACE)
        deleted = now()
        await asyncio.sleep(45)
        counted = manager.engines["feed"].numbers.daemons_running
        assert counted == {"stubborn": 1}
        release.set()
        await asyncio.sleep(1)
        assert counted == {"stubborn": 0}
    assert notes[:3] == [(deleted, "asked"), (deleted + 10, "cancelled"), (deleted + 40, "cancelled")]
    assert caplog.text.count("has not ended 30 s after it was cancelled") == 1


class Cleaning(Reconciler[Feed]):
    def __init__(self, lives: Lives) -> None:
        self.lives = lives
        self.cleaned: list[list[str]] = []

    async def reconcile(self, ctx: Context[Feed]) -> None: ...

    async def cleanup(self, ctx: Context[Feed]) -> None:
        self.cleaned.append(self.lives.alive)


@pytest.mark.parametrize("cleans", [True, False])
async def test_it_may_hold_the_deletion_of_its_object(client: Client, cleans: bool) -> None:
    await install(client)
    lives = Lives(end=7)
    cleaning = Cleaning(lives)
    manager = lives.manager(client, cleaning if cleans else None, holds_deletion=True)
    async with manager.running():
        await client.create(feed("a"))
        await asyncio.sleep(1)
        assert lives.alive == ["a"]
        assert (await client.get(Feed, "a", SPACE)).metadata.finalizers == ["tasks.konverge.dev/feed"]
        await client.delete(Feed, "a", SPACE)
        await asyncio.sleep(6)
        assert not await is_gone(client, "a")
        await asyncio.sleep(2)
        assert await is_gone(client, "a")
        causes = [cause.text for one in manager.story.reconciles(name="a") for cause in one.reasons]
        assert f"the end of lives: {SPACE}/a" in causes
    assert cleaning.cleaned == ([[]] if cleans else []), "the clean-up comes after the end of the daemon"


async def test_one_that_holds_nothing_does_not_delay_the_deletion(client: Client) -> None:
    await install(client)
    lives = Lives(end=7)
    async with lives.manager(client).running():
        await client.create(feed("a"))
        await asyncio.sleep(1)
        await client.delete(Feed, "a", SPACE)
        assert await is_gone(client, "a")
        await asyncio.sleep(1)
        assert lives.alive == ["a"]
        await asyncio.sleep(10)
        assert lives.alive == []


async def test_a_deletion_while_no_process_ran_needs_no_daemon(client: Client) -> None:
    await install(client)
    lives = Lives()
    async with lives.manager(client, holds_deletion=True).running():
        await client.create(feed("a"))
        await asyncio.sleep(1)
    await client.delete(Feed, "a", SPACE)
    assert not await is_gone(client, "a")
    async with lives.manager(client, holds_deletion=True).running():
        await asyncio.sleep(1)
    assert await is_gone(client, "a")
    assert lives.begun == ["a"]


async def test_the_end_of_the_manager_waits_for_daemons_within_its_limit(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    lives = Lives(end=3)
    async with lives.manager(client).running():
        await asyncio.sleep(1)
        stopped = now()
    assert now() == stopped + 3
    stuck = Lives(end=1e6)
    async with stuck.manager(client, manager=Manager(client, shutdown_timeout=20)).running():
        await asyncio.sleep(1)
        stopped = now()
    assert stopped + 20 <= now() <= stopped + 26


async def test_after_leadership_was_lost_no_daemon_writes(server: ApiServer, client: Client) -> None:
    network, refused = Network(server), []

    async def write(ctx: DaemonContext[Feed]) -> None:
        for number in itertools.count():
            try:
                await asyncio.sleep(0.5)
            finally:
                try:
                    await ctx.client.create(config_map(f"c{clock.new_uid()}", n=str(number)))
                except LeadershipLost as error:
                    refused.append(error)
                except Exception:
                    refused.clear()

    await install(client)
    for name in ("a", "b"):
        await client.create(feed(name))
    election = LeaderElection(name="daemons", namespace=SPACE)
    manager = Manager(network.client, leader_election=election).add(Controller(Feed, daemons=[Daemon(write)]))
    lives = Lives()
    second, stop = lives.manager(client, manager=Manager(client, leader_election=election)), asyncio.Event()

    async def live() -> None:
        async with manager.running():
            await asyncio.sleep(5)
            standing_by.append(asyncio.create_task(second.serve(stop)))
            await asyncio.sleep(5)
            assert lives.begun == []
            network.cut()
            await asyncio.sleep(3600)

    standing_by: list[asyncio.Task[None]] = []
    with pytest.raises(LeadershipLost):
        await live()
    network.mend()
    before = len((await client.list(ConfigMap, SPACE)).items)
    assert before > 10
    await asyncio.sleep(60)
    assert lives.alive == ["a", "b"], "the one who took over has them"
    assert len((await client.list(ConfigMap, SPACE)).items) == before
    assert refused
    stop.set()
    await standing_by[0]


@pytest.mark.parametrize("seed", range(6))
async def test_after_any_faults_exactly_the_present_objects_have_a_daemon(
    server: ApiServer, client: Client, seed: int
) -> None:
    rng, network = clock.seeded(seed), Network(server)
    await install(client)
    lives = Lives(end=rng.choice([0.0, 2.0]))
    options = {"holds_deletion": seed % 2 == 0, "restart_on_change": seed % 3 == 0}
    async with lives.manager(network.client, when=lambda feed: feed.spec.url != "off", **options).running():
        for _ in range(20):
            if rng.random() < 0.4:
                network.cut()
            name = f"f{rng.randint(0, 3)}"
            if await is_gone(client, name):
                await client.create(feed(name, url=rng.choice(["on", "off"])))
            elif rng.random() < 0.5:
                await client.delete(Feed, name, SPACE)
            else:
                await respec(client, name, url=rng.choice(["on", "off", "other"]))
            await asyncio.sleep(rng.choice([0.0, 0.5, 5, 40]))
            network.mend(forgetful=rng.choice([0, 0, 2]))
            await asyncio.sleep(rng.choice([0.0, 1, 60]))
        await asyncio.sleep(200)
        present = {item.metadata.uid for item in await client.list(Feed, SPACE) if item.spec.url != "off"}
        assert lives.uids == present
        assert not [item for item in await client.list(Feed, SPACE) if item.metadata.deletion_timestamp]


async def test_a_daemon_may_report_about_its_object_and_others(client: Client) -> None:
    async def follow(ctx: DaemonContext[Feed]) -> None:
        ctx.event("Lost", "the feed is away", type="Warning")
        ctx.event("Seen", "it was seen", about=other)

    await install(client)
    other = await client.create(config_map("other"))
    await client.create(feed("a"))
    async with Manager(client).add(Controller(Feed, daemons=[Daemon(follow)])).running():
        await asyncio.sleep(5)
    events = {(e.type, e.reason, e.involved_object.name) for e in (await client.list(Event, SPACE)).items}
    assert events == {("Warning", "Lost", "a"), ("Normal", "Seen", "other")}
