"""Where pods are placed, and the scheduler's message when there is no place."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from konverge.client import Client, MergePatch, Static
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Event, Node, Pod
from konverge.objects.kinds.scheduling_v1 import PriorityClass
from konverge.objects.meta import ObjectMeta
from konverge.sim.cluster import Cluster
from konverge.sim.scheduler import Scheduler
from konverge.wire.message import Headers, Request, Response, Stream, Transport
from tests.sim.conftest import SPACE, pod

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-16")]

ZONE = "topology.kubernetes.io/zone"
HELPLESS = "preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."
NO_VICTIMS = "preemption: 0/{0} nodes are available: {0} No preemption victims found for incoming pod."


def node(name: str, labels: dict[str, str] | None = None, **parts: Any) -> Node:
    capacity = {"cpu": "2", "memory": "4Gi", "pods": "10", **parts.pop("capacity", {})}
    body = {"metadata": {"name": name, "labels": labels or {}}, "spec": parts, "status": {"capacity": capacity}}
    return from_dict(Node, {"apiVersion": "v1", "kind": "Node", **body})


def asks(cpu: str, **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "a", "resources": {"requests": {"cpu": cpu}}}], **more}


async def place(cluster: Cluster, *pods: Pod) -> list[str]:
    """Create pods and tell where they went; a message where they did not."""
    for item in pods:
        await cluster.client.create(item)
        await cluster.settle()
    return [await where(cluster, item.metadata.name) for item in pods]


async def where(cluster: Cluster, name: str) -> str:
    result = await cluster.client.get(Pod, name, SPACE)
    reported = [condition.message or "" for condition in result.status.conditions if condition.type == "PodScheduled"]
    return result.spec.node_name or (reported[0] if reported else "not seen")


def cluster_of(*nodes: Node) -> Cluster:
    return Cluster(controllers=False, nodes=nodes)


async def test_requests_are_respected_and_a_place_that_becomes_free_is_used() -> None:
    async with cluster_of(node("a"), node("b")) as cluster:
        placed = await place(cluster, *(pod(f"p{n}", **asks("1500m")) for n in range(3)))
        assert placed == ["a", "b", "0/2 nodes are available: 2 Insufficient cpu. " + NO_VICTIMS.format(2)]
        events = await cluster.client.list(Event, SPACE, field_selector="reason=FailedScheduling")
        assert [event.message for event in events] == [placed[2]]
        await cluster.client.delete(Pod, "p0", SPACE)
        await cluster.settle()
        assert await where(cluster, "p2") == "a"


async def test_selectors_and_affinity() -> None:
    async with cluster_of(
        node("a", {"disk": "hdd"}), node("b", {"disk": "ssd"}), node("c", {"disk": "nvme"})
    ) as cluster:
        terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        desired = [
            {"weight": 10, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["nvme"]}]}}
        ]
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": desired}
        assert await place(
            cluster,
            pod("selects", nodeSelector={"disk": "ssd"}),
            pod("requires", affinity={"nodeAffinity": required}),
            pod("prefers", affinity={"nodeAffinity": {**required, **preferred}}),
            pod("nowhere", nodeSelector={"disk": "tape"}),
        ) == [
            "b",
            "c",
            "c",
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. " + HELPLESS.format(3),
        ]


async def test_taints_tolerations_and_cordons() -> None:
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    async with cluster_of(node("a", taints=[taint]), node("b", unschedulable=True)) as cluster:
        tolerant = [{"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}]
        placed = await place(cluster, pod("db", tolerations=tolerant), pod("web"))
        message = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. "
        assert placed == ["a", message + HELPLESS.format(2)]
        await cluster.client.patch(Node, "b", MergePatch({"spec": {"unschedulable": None, "taints": None}}))
        await cluster.settle()
        assert await where(cluster, "web") == "b"


async def test_pods_keep_away_from_their_like_and_stay_near_their_friends() -> None:
    async with cluster_of(node("a", {"host": "a"}), node("b", {"host": "b"})) as cluster:
        like = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "db"}}}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [like]}}
        near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [like]}}
        databases = [pod(f"db-{n}", labels={"app": "db"}, affinity=apart) for n in range(3)]
        placed = await place(cluster, *databases, pod("friend", affinity=near))
        assert placed[:2] == ["a", "b"]
        assert placed[2].startswith("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. ")
        assert placed[3] in ("a", "b")


async def test_an_existing_pods_anti_affinity_repels_others() -> None:
    async with cluster_of(node("a", {"host": "a"})) as cluster:
        term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "noisy"}}}
        shy = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        placed = await place(cluster, pod("shy", affinity=shy), pod("loud", labels={"app": "noisy"}))
        assert placed[0] == "a"
        assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in placed[1]


async def test_topology_spread() -> None:
    async with cluster_of(node("a", {ZONE: "1"}), node("b", {ZONE: "1"}), node("c", {ZONE: "2"})) as cluster:
        even = {
            "topologyKey": ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        pods = [pod(f"p{n}", labels={"app": "web"}, topologySpreadConstraints=[even]) for n in range(4)]
        zones = ["1" if name in "ab" else "2" for name in await place(cluster, *pods)]
        assert zones.count("1") == zones.count("2") == 2


async def test_a_full_node_and_taken_ports() -> None:
    async with cluster_of(node("a", capacity={"pods": "2"})) as cluster:
        port: dict[str, Any] = {
            "containers": [{"name": "main", "image": "a", "ports": [{"containerPort": 80, "hostPort": 80}]}]
        }
        placed = await place(cluster, pod("one", **port), pod("two", **port), pod("three"), pod("four"))
        assert placed[0] == "a"
        assert "1 node(s) didn't have free ports for the requested pod ports" in placed[1]
        assert placed[2] == "a"
        assert "1 Too many pods" in placed[3]


async def test_the_important_make_room_for_themselves() -> None:
    async with cluster_of(node("a"), node("b")) as cluster:
        for name, value in (("low", 10), ("middle", 50), ("high", 100)):
            await cluster.client.create(PriorityClass(metadata=ObjectMeta(name=name), value=value))
        await place(
            cluster, pod("m", **asks("2", priorityClassName="middle")), pod("l", **asks("2", priorityClassName="low"))
        )
        before = (await cluster.client.get(Pod, "l", SPACE)).metadata.resource_version
        await cluster.client.create(pod("h", **asks("2", priorityClassName="high")))
        await cluster.settle()
        async with aclosing(cluster.client.watch(Pod, SPACE, resource_version=before)) as events:
            victim = await anext(event.object async for event in events if event.type == "DELETED")
        assert victim.metadata.name == "l"
        target = next(item for item in victim.status.conditions if item.type == "DisruptionTarget")
        assert (target.status, target.reason) == ("True", "PreemptionByScheduler")
        assert target.message == "default-scheduler: preempting to accommodate a higher priority pod"
        left = {item.metadata.name: item.spec.node_name for item in await cluster.client.list(Pod)}
        assert left == {"m": "a", "h": "b"}


async def test_room_that_was_made_for_a_pod_is_kept_for_it() -> None:
    async with cluster_of(node("a")) as cluster:
        for name, value in (("low", 10), ("high", 100)):
            await cluster.client.create(PriorityClass(metadata=ObjectMeta(name=name), value=value))
        await place(
            cluster, pod("victim", **asks("2", priorityClassName="low")), pod("a", **asks("1", priorityClassName="low"))
        )
        await place(cluster, pod("preemptor", **asks("1500m", priorityClassName="high")))
        left = {item.metadata.name: item.spec.node_name for item in await cluster.client.list(Pod)}
        assert left == {"a": None, "preemptor": "a"}  # the one that waited longer was neither placed nor preempted
        await cluster.client.delete(Pod, "preemptor", SPACE)
        await cluster.settle()
        assert await where(cluster, "a") == "a"


async def test_gated_pods_and_those_of_other_schedulers_are_left_alone(cluster: Cluster) -> None:
    await cluster.client.create(pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    await cluster.client.create(pod("foreign", schedulerName="mine"))
    await cluster.settle()
    for name in ("gated", "foreign"):
        assert (await cluster.client.get(Pod, name, SPACE)).spec.node_name is None
    await cluster.client.patch(Pod, "gated", MergePatch({"spec": {"schedulingGates": None}}), SPACE)
    await cluster.settle()
    assert (await cluster.client.get(Pod, "gated", SPACE)).spec.node_name == "node-1"


async def test_without_nodes_there_is_nothing_to_choose_from() -> None:
    async with cluster_of() as cluster:
        assert await place(cluster, pod("web")) == ["no nodes available to schedule pods"]


class OneConflict:
    """A `Transport` that answers the first binding of a pod with a Conflict, as a server under contention may."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.refused = 0

    async def send(self, request: Request) -> Response:
        if request.target.endswith("/binding") and not self.refused:
            self.refused += 1
            body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}'
            return Response(409, Headers([(b"content-type", b"application/json")]), body)
        return await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        return await self._inner.stream(request)


async def test_a_conflict_on_binding_is_no_reason_to_give_a_pod_up() -> None:
    async with Cluster(controllers=False, scheduler=False) as cluster:
        transport = OneConflict(cluster.server.transport)
        client = Client(transport, credentials=Static.bearer(cluster.server.token))
        task = asyncio.create_task(Scheduler().run(client))
        await cluster.client.create(pod("web"))
        await cluster.clock.advance(5)
        assert transport.refused == 1
        assert (await cluster.client.get(Pod, "web", SPACE)).spec.node_name
        task.cancel()
