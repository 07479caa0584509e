"""Pods that no kubelet will ever end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch, NotFound
from konverge.kube import podgc
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.runtime import Controller
from tests.kube.conftest import Run, make_ready, pods

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


async def test_the_oldest_of_too_many_ended_pods_are_collected(client: Client, run: Run) -> None:
    class Few:
        @staticmethod
        def controllers() -> list[Controller[Any]]:
            (usual,) = podgc.controllers()
            few = Controller(
                Pod, podgc.PodCollector(threshold=2), name="few", predicate=usual.predicate, watches=usual.watches,
                indexes=usual.indexes,
            )  # fmt: skip
            return [few]

    await client.create(Node(metadata=ObjectMeta(name="a")))
    async with run(Few):
        for number in range(4):
            await make_ready(client, await pod(client, f"p{number}", "a"), phase="Succeeded")
            await asyncio.sleep(2)
        await pod(client, "runs", "a")
        await asyncio.sleep(1)
        assert [pod_.metadata.name for pod_ in await pods(client)] == ["p2", "p3", "runs"]
