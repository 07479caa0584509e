"""Heartbeats on virtual time are written when a client looks, and look like those that are written on time."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from konverge.cache import CacheSpec, Informer
from konverge.client import Client, MergePatch
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import Node
from konverge.objects.times import parse_time
from konverge.sim.cluster import Cluster
from konverge.sim.faults import Plan
from konverge.sim.nodes import HEARTBEAT, NAMESPACE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-19")]


async def renewed(client: Client, name: str = "node-1") -> float:
    """How long ago a Lease was renewed, as it says itself."""
    lease = await client.get(Lease, name, NAMESPACE)
    assert lease.spec.renew_time
    return parse_time(lease.spec.renew_time).timestamp()


async def readiness(client: Client, name: str) -> str:
    node = await client.get(Node, name)
    return next(condition.status for condition in node.status.conditions if condition.type == "Ready")


async def test_an_idle_cluster_writes_nothing() -> None:
    async with Cluster() as cluster:
        await cluster.clock.advance(7200)  # until the events of the start are forgotten
        before = cluster.server.store.revision
        await cluster.clock.advance(3600)
        assert cluster.server.store.revision == before


async def test_a_lease_that_is_read_was_renewed_within_the_last_ten_seconds(cluster: Cluster) -> None:
    versions = []
    for seconds in (0.5, 9.4, 0.2, 3600, 1234.5):
        await cluster.clock.advance(seconds)
        leases = await cluster.client.list(Lease, NAMESPACE)
        versions.append(max(int(lease.metadata.resource_version) for lease in leases))
        assert 0 <= cluster.clock.now() - await renewed(cluster.client) < HEARTBEAT
    assert versions == sorted(versions)
    before = await cluster.client.get(Lease, "node-1", NAMESPACE)
    assert await cluster.client.get(Lease, "node-1", NAMESPACE) == before


async def test_who_watches_leases_sees_every_heartbeat_at_its_time(cluster: Cluster) -> None:
    await cluster.clock.advance(333)
    seen: list[tuple[float, str]] = []

    async def watch() -> None:
        async for event in cluster.client.watch(
            Lease, NAMESPACE, field_selector="metadata.name=node-1", bookmarks=False
        ):
            seen.append((cluster.clock.now(), event.object.spec.renew_time or ""))

    task = asyncio.create_task(watch())
    await cluster.clock.advance(40)
    task.cancel()
    times = [parse_time(text).timestamp() for _, text in seen]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [HEARTBEAT] * 4
    assert [at for at, _ in seen[1:]] == times[1:]
    await cluster.clock.advance(15)
    before = cluster.server.store.revision
    await cluster.clock.advance(600)
    assert cluster.server.store.revision == before, "no client watches any more"


async def test_a_watch_of_metadata_alone_is_no_reason_to_write(cluster: Cluster) -> None:
    informer = Informer(cluster.client.caller, CacheSpec(resource=Lease.resource, metadata_only=True))
    task = asyncio.create_task(informer.run())
    await cluster.clock.advance(1)
    before = cluster.server.store.revision
    await cluster.clock.advance(600)
    assert cluster.server.store.revision == before
    task.cancel()


@pytest.mark.spec("R-40")
@pytest.mark.parametrize("faults", [None, Plan()], ids=["when a client looks", "every ten seconds"])
async def test_a_lost_node_is_noticed_at_the_same_time_either_way(faults: Plan | None) -> None:
    async with Cluster(faults=faults) as cluster:
        await cluster.clock.advance(1003)
        cluster.lose_node("node-2")
        last = await renewed(cluster.client, "node-2")
        assert cluster.clock.now() - last == pytest.approx(3.0, abs=0.01)
        await cluster.clock.advance(46.9)
        assert await readiness(cluster.client, "node-2") == "True"
        await cluster.clock.advance(0.2)
        assert await readiness(cluster.client, "node-2") == "Unknown"
        assert await renewed(cluster.client, "node-2") == last
        assert await readiness(cluster.client, "node-1") == "True"
        await cluster.recover_node("node-2")
        await cluster.clock.advance(300)
        assert await readiness(cluster.client, "node-2") == "True"


async def test_a_lease_that_somebody_deleted_is_there_again_with_the_next_heartbeat(cluster: Cluster) -> None:
    await cluster.clock.advance(100)
    await cluster.client.delete(Lease, "node-1", NAMESPACE)
    assert len(await cluster.client.list(Lease, NAMESPACE)) == 2
    await cluster.clock.advance(HEARTBEAT)
    assert len(await cluster.client.list(Lease, NAMESPACE)) == 3


@pytest.mark.spec("S-48")
async def test_an_extended_resource_that_a_node_is_said_to_have_is_offered(cluster: Cluster) -> None:
    async def announce(amount: str | None) -> dict[str, str]:
        patch = MergePatch({"status": {"capacity": {"example.com/dongle": amount}}})
        await cluster.client.patch(Node, "node-1", patch, subresource="status")
        await cluster.settle()
        node = await cluster.client.get(Node, "node-1")
        assert str(node.status.allocatable["cpu"]) == "32"
        return {name: str(value) for name, value in node.status.allocatable.items() if "/" in name}

    assert await announce("4") == {"example.com/dongle": "4"}
    assert await announce("6") == {"example.com/dongle": "6"}
    assert await announce(None) == {}
