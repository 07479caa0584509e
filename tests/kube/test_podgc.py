"""Pods that no kubelet will ever end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch, NotFound
from konverge.kube import podgc
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.runtime import Controller
from konverge.wire.message import Response
from tests.kube.conftest import Run, make_ready, pods, running
from tests.kube.interposed import Interposed, reads
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-40")]


async def pod(client: Client, name: str, node: str = "", **meta: Any) -> Pod:
    spec = {"containers": [{"name": "m", "image": "i"}], "nodeName": node}
    await client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": spec}, "default"
    )
    return await client.get(Pod, name, "default")


async def test_pods_of_a_missing_node_are_collected_after_the_quarantine(client: Client, run: Run) -> None:
    async with run(podgc):
        await pod(client, "a", "nowhere", finalizers=["example.com/see"])
        await asyncio.sleep(35)
        assert (await client.get(Pod, "a", "default")).metadata.deletion_timestamp is None
        await asyncio.sleep(10)
        collected = await client.get(Pod, "a", "default")
        assert collected.metadata.deletion_timestamp is not None
        assert collected.status.phase == "Failed"
        (condition,) = [
            condition_ for condition_ in collected.status.conditions if condition_.type == "DisruptionTarget"
        ]
        assert (condition.reason, condition.message) == ("DeletionByPodGC", "PodGC: node no longer exists")


async def test_pods_of_a_deleted_node_are_collected_unless_it_is_back_in_time(client: Client, run: Run) -> None:
    for name in ("a", "b"):
        await client.create(Node(metadata=ObjectMeta(name=name)))
    async with run(podgc):
        await pod(client, "on-a", "a")
        await pod(client, "on-b", "b")
        await asyncio.sleep(300)
        await client.delete(Node, "a")
        await client.delete(Node, "b")
        await asyncio.sleep(20)
        await client.create(Node(metadata=ObjectMeta(name="b")))
        await asyncio.sleep(60)
        assert [pod_.metadata.name for pod_ in await pods(client)] == ["on-b"]


async def test_terminating_pods_of_a_node_out_of_service_are_collected(client: Client, run: Run) -> None:
    await client.create(Node(metadata=ObjectMeta(name="a")))
    async with run(podgc):
        await pod(client, "p", "a")
        await client.delete(Pod, "p", "default")
        await asyncio.sleep(60)
        await client.get(Pod, "p", "default")
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        await client.patch(Node, "a", MergePatch({"spec": {"taints": [taint]}}))
        await asyncio.sleep(1)
        with pytest.raises(NotFound):
            await client.get(Pod, "p", "default")


class Few:
    """A collector that keeps so many ended pods."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def controllers(self) -> list[Controller[Any]]:
        (usual,) = podgc.controllers()
        return [
            Controller(
                Pod, podgc.PodCollector(threshold=self._threshold), name="few", when=usual.when,
                watches=usual.watches, indexes=usual.indexes,
            )
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("threshold", "left"),
    [(0, "old evicted failed new"), (4, "old evicted failed new"), (3, "old failed new"), (1, "new")],
)
async def test_evicted_pods_are_collected_before_older_ones(
    client: Client, run: Run, threshold: int, left: str
) -> None:
    await client.create(Node(metadata=ObjectMeta(name="a")))
    names = ["old", "evicted", "failed", "new"]
    for name in names:
        made = await pod(client, name, "a")
        await make_ready(client, made, phase="Succeeded" if name in ("old", "new") else "Failed", ready=False)
        if name in ("evicted", "new"):  # one that succeeded was not evicted, whatever it says
            reason = MergePatch({"status": {"reason": "Evicted"}})
            await client.patch(Pod, name, reason, "default", subresource="status")
        await asyncio.sleep(2)
    await pod(client, "runs", "a")
    async with run(Few(threshold)):
        await asyncio.sleep(2)
        kept = [pod_.metadata.name for pod_ in await pods(client)]
    assert sorted(kept) == sorted([*left.split(), "runs"])


async def test_a_terminating_pod_that_was_never_bound_is_collected(client: Client, run: Run) -> None:
    """With a finalizer it stays, and has failed."""
    await pod(client, "p", finalizers=["example.com/see"])
    await pod(client, "waits")
    await client.delete(Pod, "p", "default")
    async with run(podgc):
        await asyncio.sleep(1)
        assert (await client.get(Pod, "p", "default")).status.phase == "Failed"
        assert (await client.get(Pod, "waits", "default")).metadata.deletion_timestamp is None


@pytest.mark.parametrize(
    ("ready", "tainted", "gone"), [("False", True, True), ("True", True, False), ("False", False, False)]
)
async def test_only_a_node_that_is_not_ready_is_out_of_service(
    client: Client, run: Run, ready: str, tainted: bool, gone: bool
) -> None:
    taints = [{"key": "node.kubernetes.io/out-of-service" if tainted else "other", "effect": "NoExecute"}]
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {"taints": taints}})
    status = {"conditions": [{"type": "Ready", "status": ready}, {"type": "Other", "status": "True"}]}
    await client.patch(Node, "a", MergePatch({"status": status}), subresource="status")
    await pod(client, "p", "a")
    await pod(client, "stays", "a")
    await client.delete(Pod, "p", "default")
    async with run(podgc):
        await asyncio.sleep(60)
        left = [pod_.metadata.name for pod_ in await pods(client)]
    assert left == (["stays"] if gone else ["p", "stays"])


async def test_a_pod_that_has_ended_is_collected_as_it_is(client: Client) -> None:
    made = await pod(client, "a", "nowhere", finalizers=["example.com/see"])
    await make_ready(client, made, phase="Succeeded", ready=False)
    interposed = Interposed(client)
    async with running(interposed, podgc):
        await asyncio.sleep(50)
        assert (await client.get(Pod, "a", "default")).status.phase == "Succeeded"
        assert set(interposed.writes()) - {("create", "")} == {("delete", "a")}


async def test_the_server_is_asked_before_a_pod_is_collected(client: Client) -> None:
    """The cache may be behind: the node is there."""
    await pod(client, "a", "late")
    interposed = Interposed(client)
    found = Response(200, body=b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"late"}}')
    interposed.rules.append(lambda call: found if reads(call, "late") else None)
    async with running(interposed, podgc):
        await asyncio.sleep(100)
        assert (await client.get(Pod, "a", "default")).metadata.deletion_timestamp is None
        interposed.rules.clear()
        await asyncio.sleep(50)
        with pytest.raises(NotFound):
            await client.get(Pod, "a", "default")


def test_which_nodes_concern_the_collector() -> None:
    trigger = Triggers(*podgc.controllers())

    def on(name: str, node: str) -> Pod:
        spec = {"containers": [], "nodeName": node}
        return from_dict(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    cached = [on("p", "a"), on("q", "b")]
    node = Node(metadata=ObjectMeta(name="a"))
    assert trigger.of(node, None, cached=cached) == {"pod-garbage-collector default/p"}
    assert trigger.of(None, node, cached=cached) == set()
    assert trigger.of(node, node, cached=cached) == set()
    tainted = from_dict(Node, {"metadata": {"name": "a"}, "spec": {"taints": [{"key": podgc.OUT_OF_SERVICE}]}})
    assert trigger.of(node, tainted, cached=cached) == {"pod-garbage-collector default/p"}
    assert trigger.of(None, on("r", "a")) == {"pod-garbage-collector default/r"}
    assert trigger.of(None, on("r", "")) == set()
