"""Where the servers run: spread over zones, with a priority, and without both when they are taken back."""

from __future__ import annotations

from collections import Counter

import pytest

from konverge.client import MergePatch
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import Node
from konverge.objects.kinds.scheduling_v1 import PriorityClass
from tests.operators.nacos.world import CLUSTER, World, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180), pytest.mark.spec("N-41")]
ZONE = "topology.kubernetes.io/zone"
SPREAD = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


async def zones_of(world: World, name: str = "nacos") -> Counter[str]:
    nodes = {node.metadata.name: node for node in await world.client.list(Node)}
    return Counter(nodes[pod.spec.node_name or ""].metadata.labels[ZONE] for pod in await world.pods(name))


async def test_servers_are_spread_over_zones() -> None:
    """One zone has four nodes, the others one each: by nodes alone, several servers would share the first."""
    async with a_world(nodes=6) as world, world.operating():
        for number, node in enumerate(await world.client.list(Node)):
            labels = {ZONE: f"zone-{max(0, number - 3)}"}
            await world.client.patch(Node, node.metadata.name, MergePatch({"metadata": {"labels": labels}}))
        await world.advance(1.0)
        await world.up("nacos", {**CLUSTER, "topologySpreadConstraints": [SPREAD]})
        assert await zones_of(world) == {"zone-0": 1, "zone-1": 1, "zone-2": 1}
        # Another Nacos counts its own servers only.
        await world.up("other", {**CLUSTER, "topologySpreadConstraints": [SPREAD]})
        assert await zones_of(world, "other") == {"zone-0": 1, "zone-1": 1, "zone-2": 1}


async def test_priority_is_that_of_the_class_and_can_be_taken_back() -> None:
    async with a_world() as world, world.operating():
        await world.client.create(PriorityClass(metadata=ObjectMeta(name="middleware"), value=1000))
        await world.up("nacos", {**CLUSTER, "priorityClassName": "middleware"})
        assert {pod.spec.priority for pod in await world.pods()} == {1000}
        uids = await world.uids()
        await world.change("nacos", priorityClassName=None, topologySpreadConstraints=[])
        await world.until_ready()
        assert sorted(await world.restarted(uids)) == ["nacos-0", "nacos-1", "nacos-2"]
        assert {pod.spec.priority for pod in await world.pods()} == {0}
        assert all(not pod.spec.topology_spread_constraints for pod in await world.pods())
