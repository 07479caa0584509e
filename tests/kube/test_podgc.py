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


async def test_pods_of_a_node_that_never_was_go_after_a_while(client: Client, run: Run) -> None:
    async with run(podgc):
        await pod(client, "a", "nowhere", finalizers=["example.com/see"])
        await asyncio.sleep(35)
        assert (await client.get(Pod, "a", "default")).metadata.deletion_timestamp is None
        await asyncio.sleep(10)
        found = await client.get(Pod, "a", "default")
        assert found.metadata.deletion_timestamp is not None
        assert found.status.phase == "Failed"
        (condition,) = [one for one in found.status.conditions if one.type == "DisruptionTarget"]
        assert (condition.reason, condition.message) == ("DeletionByPodGC", "PodGC: node no longer exists")


async def test_pods_of_a_deleted_node_go_and_those_of_one_that_is_back_stay(client: Client, run: Run) -> None:
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
        assert [one.metadata.name for one in await pods(client)] == ["on-b"]


async def test_going_pods_of_a_node_out_of_service_are_ended(client: Client, run: Run) -> None:
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


async def test_of_too_many_pods_that_are_over_the_oldest_go(client: Client, run: Run) -> None:
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
        assert [one.metadata.name for one in await pods(client)] == ["p2", "p3", "runs"]
