"""Controllers in many clusters: they come, go, fall silent and change, and none holds up another."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import Any

import msgspec
import pytest

from konverge.client import Client, MergePatch, NotFound
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Secret
from konverge.objects.meta import ObjectMeta
from konverge.observe.exposition import render
from konverge.runtime import Context, Controller, Manager, Reconciler, Request, Use, Watches
from konverge.runtime.clusters import Connection, FixedClusters, UnknownCluster, Unusable
from konverge.runtime.clusters import fleet as loaded
from konverge.runtime.elector import LeadershipLost
from konverge.runtime.key_context import KeyContext
from konverge.runtime.manager import LeaderElection
from tests.runtime.clusters.places import Copying, Driven, places
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-83", "R-84")]

assert loaded  # before a loop runs
SELECTED = {"field_selector": "type=Opaque"}


def controller(reconcile: Any, clusters: Any = "all", **options: Any) -> Controller[Secret]:
    return Controller(Secret, reconcile, owns=[ConfigMap], clusters=clusters, **SELECTED, **options)


def manager(home: Client, provider: Any, *controllers: Controller[Any], **options: Any) -> Manager:
    made = Manager(home, name="copies", clusters=provider, **options)
    for declared in controllers:
        made.add(declared)
    return made


async def test_every_cluster_is_reconciled_with_its_own_client_and_caches() -> None:
    async with places("home", "a", "b") as [home, a, b]:
        for place in (home, a, b):
            await place.create("x")
        copying, provider = Copying(), Driven()
        provider.say(a, b)
        async with manager(home.client, provider, controller(copying)).running() as running:
            await settle()
            assert await home.maps() == {"x": "home"}
            assert (await a.maps(), await b.maps()) == ({"x": "a"}, {"x": "b"})
            assert sorted(copying.runs) == [("", "x"), ("a", "x"), ("b", "x")]
            await b.create("y")
            await settle()
            assert await b.maps() == {"x": "b", "y": "b"}
            assert copying.runs[3:] == [("b", "y")]
            assert running.health.remarks["clusters"]() == ""


@pytest.mark.parametrize(("where", "reached"), [("home", ["home"]), ("others", ["a"]), ("all", ["home", "a"])])
async def test_a_controller_says_where_it_runs(where: str, reached: list[str]) -> None:
    async with places("home", "a") as [home, a]:
        await home.create("x")
        await a.create("x")
        async with manager(home.client, FixedClusters({"a": a.connect()}), controller(Copying(), where)).running():
            await settle()
            assert [*(await home.maps()).values(), *(await a.maps()).values()] == reached


async def test_a_controller_of_other_clusters_needs_some() -> None:
    async with places("home") as [home]:
        with pytest.raises(ValueError, match=r"Manager\(clusters=…\)"):
            async with Manager(home.client).add(controller(Copying(), "others")).running():
                pass


async def test_clusters_come_and_go_while_it_runs() -> None:
    async with places("home", "a") as [home, a]:
        copying, provider = Copying(), Driven()
        await a.create("x")
        async with manager(home.client, provider, controller(copying, "others")).running() as running:
            await settle()
            assert copying.runs == []
            provider.say(a)
            await settle()
            assert await a.maps() == {"x": "a"}
            provider.say()
            await settle()
            assert running.fleet is not None
            assert running.fleet.members == {}
            assert running.numbers.controllers == []
            assert not [task for task in asyncio.all_tasks() if "cluster a" in task.get_name()]
            await a.create("y")
            await settle(60)
            assert await a.maps() == {"x": "a"}
            provider.say(a)
            await settle()
            assert await a.maps() == {"x": "a", "y": "a"}


async def test_a_removed_cluster_ends_its_reconciles_before_its_caches() -> None:
    ended: list[tuple[str, bool]] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            informers = [task for task in asyncio.all_tasks() if task.get_name().startswith("cluster a cache")]
            ended.append((ctx.request.name, bool(informers)))

    async with places("home", "a") as [home, a]:
        await a.create("x")
        provider = Driven()
        provider.say(a)
        async with manager(home.client, provider, controller(reconcile, "others")).running():
            await settle()
            assert ended == []
            provider.say()
            await settle()
            assert ended == [("x", True)]


async def test_changed_credentials_connect_it_again_and_never_twice_at_once() -> None:
    working: list[int] = []
    most = 0

    async def reconcile(ctx: Context[Secret]) -> None:
        nonlocal most
        working.append(1)
        most = max(most, len(working))
        try:
            await asyncio.sleep(30)
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(5)  # a reconcile that takes its time to end
            working.pop()

    async with places("home", "a") as [home, a]:
        await a.create("x")
        provider = Driven()
        provider.say(a)
        async with manager(home.client, provider, controller(reconcile, "others")).running() as running:
            await settle()
            assert running.fleet is not None
            before = running.fleet.members["a"]
            provider.say(a)
            await settle()
            assert running.fleet.members["a"] is before  # nothing changed
            provider.say(a, version=2)
            await settle(20)
            assert running.fleet.members["a"] is not before
            assert (len(working), most) == (1, 1)


async def test_one_that_is_away_holds_up_nothing_and_is_named() -> None:
    async with places("home", "a", "b") as [home, a, b]:
        copying, provider = Copying(), Driven()
        a.cut.away = True
        provider.say(a, b)
        await a.create("x")
        async with manager(home.client, provider, controller(copying)).running() as running:
            await b.create("x")
            await home.create("x")
            await settle()
            assert (await home.maps(), await a.maps(), await b.maps()) == ({"x": "home"}, {}, {"x": "b"})
            assert "a is away: the server is away" in running.health.remarks["clusters"]()
            assert not any(check() for check in running.health.ready.values())
            assert 'konverge_cluster_up{cluster="a"} 0.0' in render(running.numbers).decode()
            a.cut.away = False
            await settle(120)
            assert await a.maps() == {"x": "a"}
            assert running.health.remarks["clusters"]() == ""
            text = render(running.numbers).decode()
            assert 'konverge_cluster_up{cluster="a"} 1.0' in text
            assert 'controller="secret@a"' in text
            assert 'controller="secret"' in text


async def test_a_broken_description_is_a_remark_and_an_event_and_keeps_what_there_is() -> None:
    async with places("home", "a", "b") as [home, a, b]:
        provider = Driven()
        named = Secret(metadata=ObjectMeta(name="b", namespace=SPACE), type="fleet")
        named = await home.client.create(named)
        provider.say(a, b=Unusable("Secret default/b has no key", named))
        await a.create("x")
        async with manager(home.client, provider, controller(Copying(), "others")).running() as running:
            await settle()
            assert await a.maps() == {"x": "a"}
            assert running.health.remarks["clusters"]() == "b cannot be used: Secret default/b has no key"
            provider.say(b, a=Unusable("half-written"))
            await a.create("y")
            await b.create("x")
            await settle()
            assert (await a.maps(), await b.maps()) == ({"x": "a", "y": "a"}, {"x": "b"})
            assert running.health.remarks["clusters"]() == "a cannot be used: half-written"
        events = [(e.reason, e.involved_object.name) for e in (await home.client.list(Event, SPACE)).items]
        assert events == [("ClusterUnusable", "b")]


async def test_a_provider_that_fails_is_asked_again_and_the_clusters_stay() -> None:
    async with places("home", "a", "b") as [home, a, b]:
        provider = Driven()
        provider.say(a)
        async with manager(home.client, provider, controller(Copying(), "others")).running() as running:
            await settle()
            provider.fail(OSError("no such folder"))
            await settle(0.5)
            assert running.health.remarks["clusters"]() == "the provider: no such folder"
            await a.create("x")
            await settle(0.2)
            assert await a.maps() == {"x": "a"}
            provider.say(a, b)
            await b.create("x")
            await settle(30)
            assert await b.maps() == {"x": "b"}
            assert running.health.remarks["clusters"]() == ""


async def test_a_cluster_that_fails_for_good_is_tried_again_alone() -> None:
    async with places("home", "a", "b") as [home, a, b]:
        attempts: list[float] = []
        provider = Driven()

        def connect() -> Client:
            attempts.append(asyncio.get_running_loop().time())
            if len(attempts) < 4:
                raise ValueError("no such plugin")
            return a.connect()

        provider.say(b, a=Connection(connect, 1, keep_open=True))
        await a.create("x")
        await b.create("x")
        async with manager(home.client, provider, controller(Copying(), "others")).running() as running:
            await settle(0.5)
            assert await b.maps() == {"x": "b"}
            assert running.health.remarks["clusters"]() == "a is away: no such plugin"
            await settle(30)
            assert await a.maps() == {"x": "a"}
        waits = [round(later - earlier, 3) for earlier, later in itertools.pairwise(attempts)]
        assert waits == [1.0, 2.0, 4.0]


@pytest.mark.spec("R-85")
async def test_a_reconcile_may_ask_another_cluster() -> None:
    refused: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        if ctx.cluster:
            return
        for name in ("a", "b"):
            meta = ObjectMeta(name=f"for-{ctx.request.name}", namespace=SPACE)
            try:
                other = ctx.clusters[name]
            except UnknownCluster as error:
                refused.append(str(error))
                continue
            await other.apply(ConfigMap(metadata=meta, data={"from": "home"}))
            seen = await other.get(Secret, "x", SPACE)
            assert seen is None or seen.metadata.name == "x"
        assert list(ctx.clusters) == ["", "A", "a"]
        assert (await ctx.clusters.home.get(Secret, ctx.request.name, SPACE)) is not None

    async with places("home", "a", "A") as [home, a, first]:
        provider = Driven()
        provider.say(a, first)
        async with manager(home.client, provider, controller(reconcile)).running() as running:
            await settle()
            await home.create("x")
            await settle()
            assert await a.maps() == {"for-x": "home"}
            assert refused == ["there is no cluster 'b' (connected: A, a)"]
            # A write in another cluster is not waited for in the caches of this one.
            await home.client.patch(Secret, "x", MergePatch({"stringData": {"k": "v"}}), SPACE)
            await settle(0.2)
            assert len(refused) == 2
            assert running.engines["secret"].numbers.errors == 0


@pytest.mark.spec("R-85")
async def test_changes_in_other_clusters_lead_to_requests_at_home() -> None:
    """An object at home makes a child in each cluster, and repairs it there."""
    runs: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        assert ctx.cluster == ""
        runs.append(ctx.request.name)
        for name, cluster in ctx.clusters.items():
            if name:
                meta = ObjectMeta(name=ctx.request.name, namespace=SPACE, labels={"made-for": ctx.request.name})
                await cluster.apply(ConfigMap(metadata=meta, data={"from": "home"}))

    def made_for(child: ConfigMap) -> list[Request]:
        return [Request(SPACE, child.metadata.labels["made-for"])]

    spread = Controller(
        Secret,
        reconcile,
        watches=[Watches(ConfigMap, requests=made_for, label_selector="made-for", clusters="others")],
        uses=[Use(ConfigMap, "patch")],
        **SELECTED,
    )
    async with places("home", "a", "b") as [home, a, b]:
        await home.create("x")
        provider = Driven()
        provider.say(a)
        running = manager(home.client, provider, spread)
        async with running.running():
            await settle()
            assert await a.maps() == {"x": "home"}
            assert ConfigMap.resource not in {spec.resource for spec in running.caches.informers}
            await a.client.delete(ConfigMap, "x", SPACE)
            await settle()
            assert await a.maps() == {"x": "home"}
            await a.client.patch(ConfigMap, "x", MergePatch({"data": {"from": "another"}}), SPACE)
            await settle()
            assert await a.maps() == {"x": "home"}
            provider.say(a, b)
            await settle()
            assert await b.maps() == {"x": "home"}
            seen = len(runs)
            provider.say(b)
            await settle()
            assert len(runs) == seen + 1  # a cluster that goes is looked at once
            await a.client.delete(ConfigMap, "x", SPACE)
            await settle()
            assert len(runs) == seen + 1
            assert await home.maps() == {}


async def test_a_watch_that_leads_nowhere_is_refused() -> None:
    watch = Watches(ConfigMap, requests=lambda _: [], clusters="others")
    async with places("home") as [home]:
        lost = Controller(Secret, Copying(), watches=[watch], clusters="others")
        with pytest.raises(ValueError, match="does not run in the home cluster"):
            async with manager(home.client, Driven(), lost).running():
                pass


class Pair(msgspec.Struct, frozen=True):
    left: str


@pytest.mark.parametrize("where", ["home", "others"])
async def test_requests_that_are_no_objects_name_no_cluster(where: Any) -> None:
    async def reconcile(ctx: KeyContext[Pair]) -> None: ...

    watch = Watches(ConfigMap, requests=lambda child: [Pair(child.metadata.name)])
    keyed: Controller[Any] = Controller(Secret, reconcile, key=Pair, watches=[watch], clusters=where)
    async with places("home") as [home]:
        with pytest.raises(ValueError, match="has key=…"):
            async with manager(home.client, Driven(), keyed).running():
                pass


async def test_without_other_clusters_asking_for_one_says_what_to_do() -> None:
    errors: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        try:
            ctx.clusters["a"]
        except LookupError as error:
            errors.append(str(error))

    async with places("home") as [home]:
        await home.create("x")
        async with Manager(home.client).add(controller(reconcile, "home")).running():
            await settle()
    assert errors == ["this manager knows no other clusters: declare them with Manager(clusters=…)"]


@pytest.mark.spec("R-86")
async def test_only_the_leader_of_the_home_cluster_works_and_writes_anywhere() -> None:
    async with places("home", "a") as [home, a]:
        await a.create("x")
        kept: list[Context[Secret]] = []

        class Keeping(Copying):
            async def __call__(self, ctx: Context[Secret]) -> None:
                kept.append(ctx)
                await super().__call__(ctx)

        first, second = Keeping(), Copying()
        election = LeaderElection(name="copies", namespace=SPACE)
        leading = manager(home.client, FixedClusters({"a": a.connect()}), controller(first), leader_election=election)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(leading.running())
            await settle()
            assert await a.maps() == {"x": "a"}
            standby = manager(
                home.client, FixedClusters({"a": a.connect()}), controller(second), leader_election=election
            )
            stop = asyncio.Event()
            serving = asyncio.create_task(standby.serve(stop))
            await settle(30)
            assert second.runs == []
            assert standby.fleet is not None
            assert standby.fleet.members["a"].caches.unsynced == []  # it is warm
            await stack.aclose()
            await settle(30)
            assert second.runs == [("a", "x")]
            with pytest.raises(LeadershipLost):
                await kept[0].client.delete(ConfigMap, "x", SPACE)
            with pytest.raises(LeadershipLost):
                await kept[0].clusters.home.client.delete(Secret, "x", SPACE)
            stop.set()
            await serving
        with pytest.raises(NotFound):
            await a.client.get(Lease, "copies", SPACE)
        assert await a.maps() == {"x": "a"}


async def test_the_end_finishes_what_is_queued_in_every_cluster() -> None:
    done: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        await asyncio.sleep(2)
        done.append(ctx.cluster)

    async with places("home", "a", "b", "c") as [home, a, b, c]:
        c.cut.away = True
        provider = Driven()
        provider.say(a, b, c)
        for place in (a, b):
            await place.create("x")
        async with manager(home.client, provider, controller(reconcile, "others")).running():
            await settle(0.5)
        assert sorted(done) == ["a", "b"]


async def test_a_finalizer_has_one_name_in_all_clusters() -> None:
    class Cleaning(Reconciler[Secret]):
        async def reconcile(self, ctx: Context[Secret]) -> None:
            pass

        async def cleanup(self, ctx: Context[Secret]) -> None:
            pass

    async with places("home", "a") as [home, a]:
        await home.create("x")
        await a.create("x")
        async with manager(home.client, FixedClusters({"a": a.connect()}), controller(Cleaning())).running():
            await settle()
            names = [(await place.client.get(Secret, "x", SPACE)).metadata.finalizers for place in (home, a)]
            assert names == [["konverge.dev/secret"]] * 2
            await a.client.delete(Secret, "x", SPACE)
            await settle()
            assert "x" not in [item.metadata.name for item in (await a.client.list(Secret, SPACE)).items]


async def test_events_are_written_where_the_object_is() -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        ctx.event("Seen", "it was seen")

    async with places("home", "a") as [home, a]:
        await a.create("x")
        async with manager(home.client, FixedClusters({"a": a.connect()}), controller(reconcile, "others")).running():
            await settle()
        assert [event.reason for event in (await a.client.list(Event, SPACE)).items] == ["Seen"]
        assert (await home.client.list(Event, SPACE)).items == []


def test_a_manager_carries_its_clusters() -> None:
    provider = FixedClusters({})
    declared = Manager(name="m", clusters=provider)
    assert declared.bound_to(Client.__new__(Client)).cluster_provider is provider
    assert declared.bound_to(Client.__new__(Client), clusters=None).cluster_provider is None


@pytest.mark.parametrize("name", ["", "a/b", "a@b", "a b", "a\n"])
def test_names_that_would_confuse_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a cluster"):
        FixedClusters({name: Client.__new__(Client)})
