"""How clusters end, and what is said about them meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from konverge.client import Client, NotConnected
from konverge.client.call import Call
from konverge.client.errors import ConfigError
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Secret
from konverge.objects.meta import ObjectMeta
from konverge.observe.exposition import render
from konverge.runtime import Context, Controller, Request, Use, Watches
from konverge.runtime.clusters import Connection, FixedClusters, Unusable
from konverge.runtime.clusters import fleet as loaded
from konverge.runtime.clusters.member import Member
from konverge.runtime.clusters.providers import Known
from konverge.wire.message import Stream
from tests.runtime.clusters.places import Copying, Driven, Place, places
from tests.runtime.clusters.test_fleet import SELECTED, controller, manager
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-84")]

assert loaded  # before a loop runs


class Closing:
    """Something that a client owns."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


def closable(place: Place) -> tuple[Client, Closing]:
    client, closing = place.connect(), Closing()
    client._owns = (closing,)
    return client, closing


async def test_a_client_is_closed_unless_it_belongs_to_another() -> None:
    async with places("home", "a", "b") as [home, a, b]:
        ours, closed = closable(a)
        theirs, kept = closable(b)
        provider = Driven()
        provider.say(a=Connection(lambda: ours, 1), b=Connection(lambda: theirs, 1, keep_open=True))
        async with manager(home.client, provider, controller(Copying(), "others")).running():
            await settle()
            assert (closed.closed, kept.closed) == (0, 0)
            provider.say()
            await settle()
            assert (closed.closed, kept.closed) == (1, 0)
        fixed, left = closable(a)
        async with manager(home.client, FixedClusters({"a": fixed}), controller(Copying(), "others")).running():
            await settle()
        assert left.closed == 0


async def test_a_reconcile_that_hangs_is_cancelled_after_the_limit() -> None:
    ended: list[float] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(asyncio.get_running_loop().time())

    async with places("home", "a") as [home, a]:
        await a.create("x")
        declared = controller(reconcile, "others")
        async with manager(home.client, FixedClusters({"a": a.connect()}), declared, shutdown_timeout=7).running():
            await settle()
            stopped = asyncio.get_running_loop().time()
        assert [round(time - stopped, 1) for time in ended] == [7.0]


async def test_the_end_does_not_wait_for_one_that_is_not_connected() -> None:
    def connect() -> Client:
        raise ConfigError("no such plugin")

    async with places("home") as [home]:
        provider, loop = Driven(), asyncio.get_running_loop()
        provider.say(a=Connection(connect, 1))
        async with manager(home.client, provider, controller(Copying(), "others"), shutdown_timeout=20).running():
            await settle(32)  # it is tried again after 1, 2, 4, 8 and 16 seconds
            stopped = loop.time()
        assert loop.time() - stopped < 1


async def test_metrics_of_clusters_that_are_there_away_and_unusable() -> None:
    async with places("home", "a", "b") as [home, a, b]:
        await a.create("x")
        b.cut.away = True
        provider = Driven()
        provider.say(b, a, c=Unusable("broken"))
        async with manager(home.client, provider, controller(Copying(), "others")).running() as running:
            await settle()
            lines = render(running.numbers).decode().splitlines()
            cached = 1 + len((await a.client.list(ConfigMap)).items)  # the Secret, and all ConfigMaps
            assert running.health.remarks["clusters"]() == "c cannot be used: broken; b is away: the server is away"
        shown = {line for line in lines if line.startswith("konverge_cluster_") and 'method="GET"' not in line}
        assert shown == {
            'konverge_cluster_up{cluster="a"} 1.0',
            'konverge_cluster_up{cluster="b"} 0.0',
            'konverge_cluster_up{cluster="c"} 0.0',
            f'konverge_cluster_cached_objects{{cluster="a"}} {cached}.0',
            'konverge_cluster_cached_objects{cluster="b"} 0.0',
            'konverge_cluster_requests_total{cluster="a",code="201",method="PATCH"} 1.0',
        }


async def test_reconciles_of_all_clusters_are_observed_with_their_reasons() -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        for name, cluster in ctx.clusters.items():
            assert cluster.name == name

    declared = Controller(
        Secret,
        reconcile,
        watches=[Watches(ConfigMap, requests=lambda _: [], clusters="others")],
        uses=[Use(ConfigMap, "get")],
        clusters="all",
        **SELECTED,
    )
    async with places("home", "a") as [home, a]:
        await home.create("x")
        await a.create("y")
        provider = Driven()
        running = manager(home.client, provider, declared)
        seen: list[tuple[str, str, list[str]]] = []
        running.on_reconciled.append(lambda r: seen.append((r.controller, r.key.name, [*map(str, r.reasons)])))
        async with running.running():
            await settle()
            provider.say(a)
            await settle()
        assert seen == [
            ("secret", "x", ["Secret default/x listed"]),
            ("secret", "x", ["cluster a: default/x"]),
            ("secret@a", "y", ["Secret default/y listed"]),
        ]


class Slow:
    """A reconciler that works for long, and takes its time to end."""

    def __init__(self) -> None:
        self.working = self.most = 0

    async def __call__(self, ctx: Context[Secret]) -> None:
        self.working += 1
        self.most = max(self.most, self.working)
        try:
            await asyncio.sleep(1000)
        finally:
            try:
                await asyncio.sleep(5)
            finally:
                self.working -= 1


@pytest.mark.parametrize("change", ["removed and added", "changed twice", "changed, removed and added"])
async def test_a_cluster_that_comes_again_waits_for_all_of_its_ends(change: str) -> None:
    slow, provider = Slow(), Driven()
    async with places("home", "a") as [home, a]:
        await a.create("x")
        provider.say(a)
        async with manager(home.client, provider, controller(slow, "others"), shutdown_timeout=1).running():
            await settle()
            assert slow.working == 1
            if "changed" in change:
                provider.say(a, version=2)
                await settle(1)
            if "removed" in change:
                provider.say()
                await settle(1)
            provider.say(a, version=3)
            await settle(2)
            assert (slow.working, slow.most) == (1, 1)
            await settle(20)
            assert (slow.working, slow.most) == (1, 1)


async def test_a_cluster_whose_end_fails_has_ended_all_the_same() -> None:
    class Failing:
        async def aclose(self) -> None:
            raise OSError("the socket is broken")

    def connect() -> Client:
        client = a.connect()
        client._owns = (Failing(),)
        return client

    async with places("home", "a") as [home, a]:
        await a.create("x")
        copying, provider = Copying(), Driven()
        provider.say(a=Connection(connect, 1))
        async with manager(home.client, provider, controller(copying, "others")).running() as running:
            await settle()
            assert copying.runs == [("a", "x")]
            provider.say()
            await settle(120)
            assert copying.runs == [("a", "x")]
            assert running.fleet is not None
            assert running.fleet._ending == {}


async def test_a_cluster_that_is_removed_leaves_no_back_off_behind() -> None:
    def connect() -> Client:
        raise ConfigError("no such plugin")

    async with places("home") as [home]:
        provider = Driven()
        provider.say(a=Connection(connect, 1))
        async with manager(home.client, provider, controller(Copying(), "others")).running() as running:
            await settle(30)
            assert running.fleet is not None
            assert running.fleet._backoff.failures("a") > 0
            provider.say()
            await settle()
            assert running.fleet._backoff.failures("a") == 0
            assert (running.fleet._ending, running.fleet._slots) == ({}, {})


async def test_the_story_of_a_cluster_goes_with_it() -> None:
    async with places("home", "a", "b") as [home, a, b]:
        for place in (home, a, b):
            await place.create("x")
        provider = Driven()
        provider.say(a, b)
        async with manager(home.client, provider, controller(Copying(), "all")).running() as running:
            await settle()
            assert {entry.controller for entry in running.story.reconciles()} == {"secret", "secret@a", "secret@b"}
            provider.say(b)
            await settle()
            assert {entry.controller for entry in running.story.reconciles()} == {"secret", "secret@b"}
            assert set(running.story._rings) == {"secret", "secret@b"}
            provider.say(a, b, version=2)
            await settle()
            assert {entry.controller for entry in running.story.reconciles()} == {"secret", "secret@a", "secret@b"}


async def test_what_comes_and_goes_while_the_manager_ends_changes_nothing() -> None:
    ended: list[float] = []
    connected: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(asyncio.get_running_loop().time())

    async with places("home", "a", "b") as [home, a, b]:
        await a.create("x")

        def connect() -> Client:
            connected.append("b")
            return b.connect()

        provider, loop = Driven(), asyncio.get_running_loop()
        provider.say(a)
        async with manager(home.client, provider, controller(reconcile, "others"), shutdown_timeout=7).running():
            await settle()
            stopped = loop.time()
            loop.call_later(2, lambda: provider.say(b=Connection(connect, 1)))
        assert ([round(time - stopped, 1) for time in ended], connected) == ([7.0], [])


async def test_a_cluster_that_worked_for_long_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only failures in a row make the pauses longer: 1, 2, 4, and after ten minutes of work 1 again."""
    worked = iter([0.0, 0.0, 0.0, 600.0, 0.0, 3600.0])
    attempts: list[float] = []

    async def run(member: Member) -> None:
        await asyncio.sleep(next(worked))
        raise OSError("no file descriptor is left")

    def connect() -> Client:
        attempts.append(asyncio.get_running_loop().time())
        return a.connect()

    monkeypatch.setattr(Member, "run", run)
    async with places("home", "a") as [home, a]:
        provider = Driven()
        provider.say(a=Connection(connect, 1))
        async with manager(home.client, provider, controller(Copying(), "others")).running():
            await settle(630)
        waits = [round(later - earlier, 3) for earlier, later in itertools.pairwise(attempts)]
        assert waits == [1.0, 2.0, 4.0, 601.0, 2.0]


async def test_a_cluster_that_cannot_be_connected_is_no_member() -> None:
    def connect() -> Client:
        raise ConfigError("no such plugin")

    seen: list[list[str]] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        seen.append(list(ctx.clusters))

    async with places("home", "a") as [home, a]:
        await home.create("x")
        provider = Driven()
        provider.say(a, b=Connection(connect, 1))
        declared = Controller(
            Secret, reconcile, watches=[Watches(ConfigMap, requests=lambda _: [], clusters="others")], **SELECTED
        )
        async with manager(home.client, provider, declared).running() as running:
            await settle()
            assert running.fleet is not None
            assert list(running.fleet.members) == ["a"]
            assert running.health.remarks["clusters"]() == "b is away: no such plugin"
    assert seen[-1] == ["", "a"]


async def test_of_several_errors_of_a_cluster_the_same_is_always_named() -> None:
    async with places("home", "a") as [home, a]:

        async def refused(call: Call) -> Stream:
            assert call.resource is not None
            raise NotConnected(f"no {call.resource.plural} here")

        a.cut.stream = refused  # type: ignore[method-assign]
        provider = Driven()
        provider.say(a)
        async with manager(home.client, provider, controller(Copying(), "others")).running() as running:
            await settle()
            assert running.health.remarks["clusters"]() == "a is away: no configmaps here"


async def test_an_object_that_cannot_be_read_is_reported_in_its_own_cluster() -> None:
    async def reconcile(ctx: Context[Secret]) -> None: ...

    def requests(obj: ConfigMap) -> list[Request]:
        if obj.metadata.name == "bad":
            raise RuntimeError("not this one")
        return []

    declared = Controller(
        Secret, reconcile, watches=[Watches(ConfigMap, requests=requests)], clusters="others", **SELECTED
    )
    async with places("home", "a") as [home, a]:
        provider = Driven()
        provider.say(a)
        async with manager(home.client, provider, declared).running():
            await settle()
            bad = await a.client.create(ConfigMap(metadata=ObjectMeta(name="bad", namespace=SPACE)))
            await settle()
        events = (await a.client.list(Event, SPACE)).items
        assert (await home.client.list(Event, SPACE)).items == []
    (event,) = events
    about = event.involved_object
    assert (event.type, event.reason) == ("Warning", "ObjectQuarantined")
    assert (about.kind, about.name, about.uid) == ("ConfigMap", "bad", bad.metadata.uid)
    assert about.resource_version == bad.metadata.resource_version
    assert event.message == "cannot be mapped to requests of secret@a: not this one"


async def test_nothing_is_wrong_before_the_provider_has_said_anything() -> None:
    class Silent:
        async def clusters(self, home: Client) -> AsyncIterator[Known]:
            await asyncio.Event().wait()
            yield {}

    async with places("home") as [home], manager(home.client, Silent(), controller(Copying())).running() as running:
        await settle()
        assert running.health.remarks["clusters"]() == ""
