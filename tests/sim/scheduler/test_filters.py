"""Preemption and volumes: for a pod that could not use the room, nobody has to go."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.kinds.scheduling_v1 import PriorityClass
from konverge.objects.meta import ObjectMeta
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, pod
from tests.sim.scheduler.test_retries import HOST, hosts
from tests.sim.scheduler.test_scheduler import HELPLESS, asks, cluster_of, place

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-74")]

PRIORITIES = {"low": 10, "middle": 50, "high": 100, "highest": 200}


async def create_priorities(cluster: Cluster) -> None:
    for name, value in PRIORITIES.items():
        await cluster.client.create(PriorityClass(metadata=ObjectMeta(name=name), value=value))


async def create_volume(cluster: Cluster, host: str) -> None:
    """A claim `data`, bound to a volume that one node has."""
    expression = {"key": HOST, "operator": "In", "values": [host]}
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    volume = {
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    claim = {"resources": {"requests": {"storage": "1Gi"}}}
    core = {"apiVersion": "v1"}
    await cluster.client.create(
        {**core, "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {**spec, **volume}}
    )
    meta = {"name": "data", "namespace": SPACE}
    await cluster.client.create({**core, "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {**spec, **claim}})
    await cluster.settle()


def ranked(name: str, priority: str, cpu: str = "2", claim: str = "", **spec: Any) -> Pod:
    """A pod of a priority that fills a node, with a claim or without."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return pod(name, **asks(cpu, priorityClassName=priority, volumes=volumes, **spec))


async def left(cluster: Cluster) -> dict[str, str | None]:
    return {item.metadata.name: item.spec.node_name for item in await cluster.client.list(Pod)}


async def test_no_pod_has_to_go_from_a_node_that_does_not_have_the_volume() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        await create_priorities(cluster)
        await create_volume(cluster, "a")
        await place(cluster, ranked("there", "highest"), ranked("elsewhere", "low"))
        placed = await place(cluster, ranked("web", "high", claim="data"))
        assert placed == [
            "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
            "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
        ]
        assert await left(cluster) == {"there": "a", "elsewhere": "b", "web": None}
        assert (await cluster.client.get(Pod, "web", SPACE)).status.nominated_node_name is None


async def test_who_has_to_go_is_on_the_node_of_the_volume() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        await create_priorities(cluster)
        await create_volume(cluster, "a")
        await place(cluster, ranked("there", "middle"), ranked("elsewhere", "low"))
        await place(cluster, ranked("web", "high", claim="data"))
        assert await left(cluster) == {"elsewhere": "b", "web": "a"}


async def test_a_node_with_room_but_without_the_volume_is_not_helped_by_preemption() -> None:
    async with cluster_of(*hosts("b")) as cluster:
        await create_priorities(cluster)
        await create_volume(cluster, "a")
        conflict = "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity. "
        assert await place(cluster, ranked("web", "high", claim="data")) == [conflict + HELPLESS.format(1)]
