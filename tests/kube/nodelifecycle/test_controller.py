"""Nodes that fall silent: conditions, taints, evictions, and what happens when they are back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.client import Client, MergePatch, NotFound
from konverge.kube.nodelifecycle import controller as nodelifecycle
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.objects.times import micro_now, now
from tests.kube.conftest import Run, make_ready

virtual = pytest.mark.virtual


pytestmark = [pytest.mark.spec("R-40")]


UNREACHABLE = {("node.kubernetes.io/unreachable", "NoExecute"), ("node.kubernetes.io/unreachable", "NoSchedule")}


NOT_READY = {("node.kubernetes.io/not-ready", "NoExecute"), ("node.kubernetes.io/not-ready", "NoSchedule")}


async def say(client: Client, name: str, ready: str = "True") -> None:
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": now(), "lastTransitionTime": now()}
    await client.patch(Node, name, MergePatch({"status": {"conditions": [condition]}}), subresource="status")


async def renew(client: Client, name: str) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": {"renewTime": micro_now()},
    }  # fmt: skip
    await client.apply(lease, field_manager="kubelet", force=True)


class Kubelets:
    """Heartbeats of some nodes."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.names: set[str] = set()

    async def join(self, *names: str) -> None:
        for name in names:
            labels = {"kubernetes.io/os": "linux"}
            await self.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
            await say(self.client, name)
            await renew(self.client, name)
        self.names |= set(names)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(10)
            for name in sorted(self.names):
                await renew(self.client, name)


@asynccontextmanager
async def cluster(client: Client, run: Run, *names: str) -> AsyncIterator[Kubelets]:
    kubelets = Kubelets(client)
    beating = asyncio.create_task(kubelets.run())
    async with run(nodelifecycle):
        await kubelets.join(*names)
        yield kubelets
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


async def marks(client: Client, name: str) -> set[tuple[str, str]]:
    return {(taint.key, taint.effect) for taint in (await client.get(Node, name)).spec.taints}


async def ready(client: Client, name: str) -> tuple[str, str | None]:
    conditions = (await client.get(Node, name)).status.conditions
    return next((condition.status, condition.reason) for condition in conditions if condition.type == "Ready")


async def pod(client: Client, name: str, node: str, tolerations: Any = None) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "m", "image": "i"}], "nodeName": node}
    spec["tolerations"] = tolerations or []
    made = await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, "default")
    await make_ready(client, await client.get(Pod, made["metadata"]["name"], "default"))


async def going(client: Client, name: str) -> bool:
    try:
        return (await client.get(Pod, name, "default")).metadata.deletion_timestamp is not None
    except NotFound:
        return True


@virtual
async def test_a_silent_node_becomes_unknown_and_comes_back(client: Client, run: Run) -> None:
    async with cluster(client, run, "a", "b") as kubelets:
        await asyncio.sleep(600)
        assert (await ready(client, "a"), await marks(client, "a")) == (("True", None), set())
        assert (await client.get(Node, "a")).metadata.labels["beta.kubernetes.io/os"] == "linux"
        kubelets.names.remove("a")
        await asyncio.sleep(38)
        assert (await ready(client, "a"))[0] == "True"
        await asyncio.sleep(15)
        conditions = {c.type: (c.status, c.reason) for c in (await client.get(Node, "a")).status.conditions}
        assert conditions["Ready"] == ("Unknown", "NodeStatusUnknown")
        assert conditions["MemoryPressure"] == ("Unknown", "NodeStatusNeverUpdated")
        assert await marks(client, "a") == UNREACHABLE
        assert await marks(client, "b") == set()
        kubelets.names.add("a")
        await renew(client, "a")
        await say(client, "a")
        await asyncio.sleep(300)
        assert (await ready(client, "a"), await marks(client, "a")) == (("True", None), set())


@virtual
async def test_a_node_that_never_reported_has_a_longer_grace_period(client: Client, run: Run) -> None:
    async with cluster(client, run, "a"):
        await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mute"}})
        await asyncio.sleep(55)
        assert (await client.get(Node, "mute")).status.conditions == []
        await asyncio.sleep(10)
        assert await ready(client, "mute") == ("Unknown", "NodeStatusNeverUpdated")


@virtual
async def test_taints_follow_the_conditions_and_leave_others_alone(client: Client, run: Run) -> None:
    async with cluster(client, run, "a", "b"):
        own = [{"key": "mine", "effect": "NoExecute"}]
        await client.patch(Node, "a", MergePatch({"spec": {"taints": own, "unschedulable": True}}))
        await asyncio.sleep(1)
        unschedulable = ("node.kubernetes.io/unschedulable", "NoSchedule")
        assert await marks(client, "a") == {("mine", "NoExecute"), unschedulable}
        await say(client, "a", "False")
        await asyncio.sleep(1)
        assert await marks(client, "a") == {("mine", "NoExecute"), unschedulable, *NOT_READY}
        await client.patch(Node, "a", MergePatch({"spec": {"unschedulable": None}}))
        await say(client, "a")
        await asyncio.sleep(1)
        assert await marks(client, "a") == {("mine", "NoExecute")}


@virtual
async def test_pods_of_a_lost_node_are_not_ready_and_evicted_after_their_toleration(client: Client, run: Run) -> None:
    async with cluster(client, run, "a", "b") as kubelets:
        await pod(client, "usual", "a")  # admission gives it 300 seconds
        await pod(client, "patient", "a", [{"operator": "Exists"}])
        await pod(client, "brief", "a", [{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                                          "effect": "NoExecute", "tolerationSeconds": 10}])  # fmt: skip
        await pod(client, "elsewhere", "b")
        kubelets.names.remove("a")
        await asyncio.sleep(52)
        conditions = (await client.get(Pod, "usual", "default")).status.conditions
        assert [(c.type, c.status) for c in conditions] == [("Ready", "False")]
        names = ("usual", "patient", "brief", "elsewhere")
        assert not any([await going(client, name) for name in names])
        await asyncio.sleep(15)
        assert [await going(client, name) for name in names] == [False, False, True, False]
        evicted = await client.get(Pod, "brief", "default")
        assert [c.type for c in evicted.status.conditions] == ["Ready", "DisruptionTarget"], (
            "a new condition comes last"
        )
        target = evicted.status.conditions[1]
        assert (target.status, target.reason) == ("True", "DeletionByTaintManager")
        await asyncio.sleep(300)
        assert [await going(client, name) for name in names] == [True, False, True, False]


@virtual
async def test_a_kubelet_that_says_it_is_not_ready_is_believed_about_its_pods(client: Client, run: Run) -> None:
    async with cluster(client, run, "a", "b"):
        await pod(client, "patient", "a", [{"operator": "Exists"}])
        await say(client, "a", "False")
        await asyncio.sleep(40)
        assert ("node.kubernetes.io/not-ready", "NoExecute") in await marks(client, "a")
        conditions = (await client.get(Pod, "patient", "default")).status.conditions
        assert [(c.type, c.status) for c in conditions] == [("Ready", "True")]
        events = (await client.list("events", "default")).items
        assert "Pod" not in {event["involvedObject"]["kind"] for event in events}


@virtual
async def test_a_node_that_is_back_in_time_keeps_its_pods(client: Client, run: Run) -> None:
    async with cluster(client, run, "a", "b") as kubelets:
        await pod(client, "usual", "a")
        kubelets.names.remove("a")
        await asyncio.sleep(200)
        assert await marks(client, "a") == UNREACHABLE
        kubelets.names.add("a")
        await renew(client, "a")
        await say(client, "a")
        await asyncio.sleep(600)
        assert not await going(client, "usual")


@virtual
async def test_no_pod_is_evicted_when_all_nodes_are_lost(client: Client, run: Run) -> None:
    async with cluster(client, run, "a", "b") as kubelets:
        await pod(client, "usual", "a")
        lost = set(kubelets.names)
        kubelets.names.clear()
        await asyncio.sleep(900)
        assert await marks(client, "a") == {("node.kubernetes.io/unreachable", "NoSchedule")}
        assert not await going(client, "usual")
        kubelets.names |= lost - {"a"}
        await renew(client, "b")
        await say(client, "b")
        await asyncio.sleep(320)
        assert await going(client, "usual")


@virtual
async def test_a_taint_set_by_a_user_evicts_at_once(client: Client, run: Run) -> None:
    async with cluster(client, run, "a"):
        await pod(client, "p", "a")
        await pod(
            client, "q", "a", [{"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
        )
        await client.patch(Node, "a", MergePatch({"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}))
        await asyncio.sleep(1)
        assert [await going(client, "p"), await going(client, "q")] == [True, False]
        await pod(client, "late", "a")
        await asyncio.sleep(58)
        assert [await going(client, "late"), await going(client, "q")] == [True, False]
        await asyncio.sleep(5)
        assert await going(client, "q")
