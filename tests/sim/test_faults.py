"""Faults: each does what it says, a plan can be written down and read, and a failing one is cut to its core."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client import (
    Client,
    ClientError,
    Conflict,
    ConnectionLost,
    InternalError,
    NotConnected,
    RetryPolicy,
    Static,
)
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.sim.cluster import Cluster
from konverge.sim.faults import Fault, Faulty, Kind, Plan, PlanError
from konverge.sim.invariants import Invariants, Violation
from konverge.sim.scenario import Outcome, run_seed, shortest
from tests.sim.conftest import SPACE, pod, shown

pytestmark = pytest.mark.spec("S-20")


def config(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=SPACE))


def faulty(cluster: Cluster, *faults: Fault) -> tuple[Client, Faulty]:
    transport = Faulty(cluster.server.transport, faults)
    credentials = Static.bearer(cluster.server.token)
    return Client(transport, credentials=credentials, retry=RetryPolicy(retries=0)), transport


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("kind", "error", "stored"),
    [
        (Kind.CONFLICT, Conflict, False),
        (Kind.ERROR, InternalError, False),
        (Kind.LOST_BEFORE, ConnectionLost, False),
        (Kind.LOST_AFTER, ConnectionLost, True),
    ],
)
async def test_a_write_fails_before_or_after_it_took_effect(
    cluster: Cluster, kind: Kind, error: type[ClientError], stored: bool
) -> None:
    client, transport = faulty(cluster, Fault(1, kind))
    await client.create(config("first"))
    with pytest.raises(error):
        await client.create(config("second"))
    await client.create(config("third"))
    result = [config_map.metadata.name for config_map in await cluster.client.list(ConfigMap, SPACE)]
    assert ("second" in result) == stored
    assert transport.happened == [f"{kind.value}@1 POST /api/v1/namespaces/default/configmaps"]


@pytest.mark.virtual
async def test_slow_answers_and_an_api_server_that_is_away(cluster: Cluster) -> None:
    client, transport = faulty(cluster, Fault(0, Kind.SLOW, 7.0))
    before = asyncio.get_running_loop().time()
    await client.list(ConfigMap, SPACE)
    assert asyncio.get_running_loop().time() - before == 7.0
    transport.away = True
    with pytest.raises(NotConnected):
        await client.list(ConfigMap, SPACE)


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("kind", "amount", "seen"), [(Kind.TWICE, 0, ["a", "a", "b", "b"]), (Kind.LATE, 3, ["a", "b"])]
)
async def test_events_of_a_watch_come_twice_or_late(
    cluster: Cluster, kind: Kind, amount: float, seen: list[str]
) -> None:
    client, _ = faulty(cluster, Fault(0, kind, amount))
    version = (await cluster.client.list(ConfigMap, SPACE)).metadata.resource_version
    names = []

    async def watch() -> None:
        async for event in client.watch(ConfigMap, SPACE, resource_version=version, bookmarks=False):
            names.append(event.object.metadata.name)

    task = asyncio.create_task(watch())
    for name in ("a", "b"):
        await asyncio.sleep(1)
        await cluster.client.create(config(name))
    await cluster.settle()
    assert names == (seen if kind is Kind.TWICE else [])
    await asyncio.sleep(10)
    assert names == seen
    task.cancel()


@pytest.mark.virtual
async def test_a_watch_that_breaks_off(cluster: Cluster) -> None:
    client, transport = faulty(cluster, Fault(0, Kind.CUT, 0))
    version = (await cluster.client.list(ConfigMap, SPACE)).metadata.resource_version
    names = []
    await cluster.client.create(config("a"))

    async def watch() -> None:
        async for event in client.watch(ConfigMap, SPACE, resource_version=version):
            names.append(event.object.metadata.name)

    with pytest.raises(ClientError):
        await watch()
    assert names == ["a"]
    assert transport.happened


@pytest.mark.virtual
@pytest.mark.parametrize(
    "plan",
    [
        "restart(10)@1",
        "leader@1",
        "clock(-120)@1",
        "clock(900)@1",
        "node(60)@1",
        "cut(0)@3 cut(1)@5 late(5)@6",
        "410@9",
    ],
)
async def test_a_cluster_comes_through_each_fault(plan: str) -> None:
    async with Cluster(controllers=False, faults=Plan.read(plan)) as cluster:
        assert cluster.chaos is not None
        await asyncio.sleep(2)
        await cluster.client.create(pod("web"))
        await cluster.chaos.over.wait()
        await cluster.settle(quiet=90, limit=3600)
        assert await shown(cluster.client, "web") == "Running True 0"
        Invariants(cluster).at_rest()


@pytest.mark.virtual
async def test_leadership_passes_on() -> None:
    async with Cluster(controllers=False, faults=Plan.read("leader@5")) as cluster:
        first = cluster.manager
        await asyncio.sleep(60)
        assert cluster.manager is not first
        await cluster.client.create(pod("web"))
        await cluster.settle()
        assert await shown(cluster.client, "web") == "Running True 0"


@given(seed=st.integers(0, 10_000))
def test_a_plan_can_be_written_down_and_read(seed: int) -> None:
    plan = Plan.of(seed)
    assert Plan.of(seed) == plan
    assert sorted(map(str, Plan.read(str(plan)).faults)) == sorted(map(str, plan.faults))


@pytest.mark.parametrize("text", ["explode@3", "409", "restart(x)@1"])
def test_a_plan_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="is no fault"):
        Plan.read(text)


def test_the_shortest_plan_is_the_reason_alone() -> None:
    def again(seed: int, plan: Plan) -> Outcome:
        kinds = {fault.kind for fault in plan.faults}
        return Outcome(seed, plan, "both" if {Kind.CUT, Kind.CLOCK} <= kinds else "")

    whole = Plan.read("409@1 cut(2)@5 500@7 restart(3)@9 clock(5)@11 late(1)@13 cut(1)@15")
    short = shortest(again(1, whole), again)
    assert {fault.kind for fault in short.plan.faults} == {Kind.CUT, Kind.CLOCK}
    assert len(short.plan.faults) == 2


@pytest.mark.virtual
async def test_violations_are_noticed(cluster: Cluster) -> None:
    watching = Invariants(cluster)
    watching.follow()
    await cluster.client.create(pod("web"))
    await cluster.settle()
    watching.at_rest()
    cluster.server.objects.delete("", "pods", SPACE, "web")
    await cluster.client.create(pod("web"))
    with pytest.raises(Violation, match="was recreated while the old one still runs"):
        watching.check()


@pytest.mark.virtual
async def test_an_orphan_is_noticed(cluster: Cluster) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "1-2-3", "controller": True}
    await cluster.client.create(pod("web", owner=owner))
    await cluster.settle()
    with pytest.raises(Violation, match="is an orphan: gone is gone"):
        Invariants(cluster).at_rest()


@pytest.mark.limit(300)
def test_a_story_with_faults_is_told_the_same_way_twice() -> None:
    first, second = run_seed(5), run_seed(5)
    assert first.happened
    assert first.happened == second.happened
