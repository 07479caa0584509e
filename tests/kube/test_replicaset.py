"""ReplicaSets: counts, adoption, release, deletion order, failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.objects import LabelSelector
from konverge.objects.kinds.apps_v1 import ReplicaSet, ReplicaSetSpec
from konverge.objects.kinds.core_v1 import Namespace, Pod, ServiceAccount
from konverge.objects.meta import OwnerReference
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
        message = live.status.conditions[0].message or ""
        assert message.endswith("is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")
        failed = [event for event in await events(client) if event["reason"] == "FailedCreate"]
        assert {event["type"] for event in failed} == {"Warning"}
        assert message in {event["message"].removeprefix("Error creating: ") for event in failed}
        assert not any("/api/v1" in event["message"] for event in failed)
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


# ------------------------------------------------------------------ which pods go


async def events(client: Client) -> list[dict[str, Any]]:
    return list((await client.list("events", "default")).items)


def of_deployment(name: str, replicas: int, *, uid: str = "d" * 8) -> ReplicaSet:
    """A set of a Deployment; the second label tells its pods from those of its siblings."""
    labels = {"app": "web", "set": name}
    pod_template = template()
    pod_template.metadata.labels = labels
    owner = OwnerReference(api_version="apps/v1", kind="Deployment", name="web", uid=uid, controller=True)
    return ReplicaSet(
        metadata=ObjectMeta(name=name, namespace="default", owner_references=[owner]),
        spec=ReplicaSetSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=pod_template),
    )


async def place(client: Client, name: str, *nodes: str) -> list[Pod]:
    """Bind the pods of a set to nodes, and make them ready, all at one time."""
    made = await pods(client, f"set={name}")
    for pod, node in zip(made, nodes, strict=True):
        binding = {"metadata": {"name": pod.metadata.name}, "target": {"kind": "Node", "name": node}}
        await client.create_sub(Pod, pod.metadata.name, "binding", binding, "default")
        await make_ready(client, pod)
    return made


@pytest.mark.parametrize(("uid", "left"), [("d" * 8, ["empty"]), ("e" * 8, ["full"])])
async def test_the_pod_goes_whose_node_has_more_pods_of_the_deployment(
    client: Client, run: Run, uid: str, left: list[str]
) -> None:
    """The sets of one Deployment count together: here the old set's pods are on the node `full`."""
    async with run(replicaset):
        await client.create(of_deployment("old", 2, uid=uid))
        await client.create(of_deployment("new", 2))
        await asyncio.sleep(1)
        await place(client, "old", "full", "full")
        on_full, on_empty = await place(client, "new", "full", "empty")
        # Without the crowd the other pod would go: it has been restarted.
        restarted = {"name": "main", "restartCount": 3, "ready": True, "image": "", "imageID": ""}
        status = MergePatch({"status": {"containerStatuses": [restarted]}})
        await client.patch(Pod, on_empty.metadata.name, status, "default", subresource="status")
        await asyncio.sleep(1)
        await client.patch(ReplicaSet, "new", MergePatch({"spec": {"replicas": 1}}), "default")
        await asyncio.sleep(1)
        running = [pod for pod in await pods(client, "set=new") if pod.metadata.deletion_timestamp is None]
        assert [pod.spec.node_name for pod in running] == left
        assert on_full.metadata.uid != on_empty.metadata.uid


async def test_a_set_without_a_deployment_does_not_look_at_nodes(client: Client, run: Run) -> None:
    async with run(replicaset):
        alone = of_deployment("new", 3)
        alone.metadata.owner_references = []
        await client.create(alone)
        await asyncio.sleep(1)
        _, _, last = await place(client, "new", "full", "full", "empty")
        restarted = {"name": "main", "restartCount": 3, "ready": True, "image": "", "imageID": ""}
        status = MergePatch({"status": {"containerStatuses": [restarted]}})
        await client.patch(Pod, last.metadata.name, status, "default", subresource="status")
        await asyncio.sleep(1)
        await client.patch(ReplicaSet, "new", MergePatch({"spec": {"replicas": 2}}), "default")
        await asyncio.sleep(1)
        going = [pod for pod in await pods(client, "set=new") if pod.metadata.deletion_timestamp is not None]
        assert [pod.metadata.name for pod in going] == [last.metadata.name]


# ------------------------------------------------------------------ what is reported


async def test_each_pod_that_is_created_or_deleted_is_reported(client: Client, run: Run) -> None:
    async with run(replicaset):
        await client.create(web(2))
        await asyncio.sleep(5)
        made = {pod.metadata.name for pod in await pods(client)}
        assert {event["message"] for event in await events(client)} == {f"Created pod: {name}" for name in made}
        assert {event["reason"] for event in await events(client)} == {"SuccessfulCreate"}
        await client.patch(ReplicaSet, "web", MergePatch({"spec": {"replicas": 1}}), "default")
        await asyncio.sleep(5)
        (gone,) = made - {pod.metadata.name for pod in await pods(client)}
        deleted = [event["message"] for event in await events(client) if event["reason"] == "SuccessfulDelete"]
        assert deleted == [f"Deleted pod: {gone}"]


async def test_nothing_is_reported_in_a_namespace_that_is_being_deleted(client: Client, run: Run) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name="shop")))
    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="shop")))
    desired = web(2)
    desired.metadata.namespace = "shop"
    await client.create(desired)
    await client.delete(Namespace, "shop")
    async with run(replicaset):
        await asyncio.sleep(60)
        live = await client.get(ReplicaSet, "web", "shop")
        assert live.status.conditions == []
        assert live.status.observed_generation == live.metadata.generation
        assert not (await client.list("events", "shop")).items
