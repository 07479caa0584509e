"""ReplicaSets: counts, adoption, release, deletion order, failures."""

from __future__ import annotations

import asyncio

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.objects.kinds.apps_v1 import ReplicaSet, ReplicaSetSpec
from konverge.objects.kinds.core_v1 import Pod
from tests.kube.conftest import Run, make_ready, pods
from tests.kube.objects import WEB, template

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-33")]


def web(replicas: int) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=ReplicaSetSpec(replicas=replicas, selector=WEB, template=template()),
    )


async def status_of(client: Client) -> tuple[int, int, int]:
    status = (await client.get(ReplicaSet, "web", "default")).status
    return status.replicas, status.ready_replicas or 0, status.available_replicas or 0


async def test_pods_are_created_counted_and_deleted(client: Client, run: Run) -> None:
    async with run(replicaset):
        await client.create(web(3))
        await asyncio.sleep(1)
        made = await pods(client)
        assert len(made) == 3
        assert all(pod.metadata.owner_references[0].controller for pod in made)
        assert await status_of(client) == (3, 0, 0)
        for pod in made[:2]:
            await make_ready(client, pod)
        await asyncio.sleep(1)
        assert await status_of(client) == (3, 2, 2)
        await client.patch(ReplicaSet, "web", MergePatch({"spec": {"replicas": 2}}), "default")
        await asyncio.sleep(1)
        left = {pod.metadata.name for pod in await pods(client)}
        assert left == {pod.metadata.name for pod in made[:2]}  # the one that was not ready went


async def test_a_lost_pod_is_replaced(client: Client, run: Run) -> None:
    async with run(replicaset):
        await client.create(web(2))
        await asyncio.sleep(1)
        lost = (await pods(client))[0]
        await client.delete(Pod, lost.metadata.name, "default", grace_period=0)
        await asyncio.sleep(1)
        assert len(await pods(client)) == 2


async def test_orphans_are_adopted_and_pods_that_no_longer_match_released(client: Client, run: Run) -> None:
    orphan = Pod(metadata=ObjectMeta(name="orphan", namespace="default", labels={"app": "web"}), spec=template().spec)
    await client.create(orphan)
    async with run(replicaset):
        await client.create(web(2))
        await asyncio.sleep(1)
        assert len(await pods(client, "app=web")) == 2
        adopted = await client.get(Pod, "orphan", "default")
        assert adopted.metadata.owner_references[0].name == "web"
        await client.patch(Pod, "orphan", MergePatch({"metadata": {"labels": {"app": "other"}}}), "default")
        await asyncio.sleep(1)
        released = await client.get(Pod, "orphan", "default")
        assert released.metadata.owner_references == []
        assert len(await pods(client, "app=web")) == 2
        second = Pod(metadata=ObjectMeta(name="late", namespace="default", labels={"app": "web"}), spec=template().spec)
        await client.create(second)
        await asyncio.sleep(1)
        assert len(await pods(client, "app=web")) == 2  # adopted, and one too many went


async def test_a_refused_pod_is_reported_in_the_status_and_retried(client: Client, run: Run) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
    await client.create(quota)
    status = MergePatch({"status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}})
    await client.patch("resourcequotas", "q", status, "default", subresource="status")
    async with run(replicaset):
        await client.create(web(3))
        await asyncio.sleep(1)
        live = await client.get(ReplicaSet, "web", "default")
        assert [(c.type, c.reason) for c in live.status.conditions] == [("ReplicaFailure", "FailedCreate")]
        assert len(await pods(client)) == 1
        await client.delete("resourcequotas", "q", "default")
        await asyncio.sleep(120)
        assert len(await pods(client)) == 3
        assert (await client.get(ReplicaSet, "web", "default")).status.conditions == []


async def test_availability_waits_for_min_ready_seconds(client: Client, run: Run) -> None:
    async with run(replicaset):
        desired = web(1)
        desired.spec.min_ready_seconds = 30
        await client.create(desired)
        await asyncio.sleep(1)
        (pod,) = await pods(client)
        await make_ready(client, pod)
        await asyncio.sleep(1)
        assert await status_of(client) == (1, 1, 0)
        await asyncio.sleep(40)
        assert await status_of(client) == (1, 1, 1)
