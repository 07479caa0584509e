"""ReplicaSets: all counts of the status, refused deletions, and what is not written."""

from __future__ import annotations

import asyncio

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.objects.kinds.apps_v1 import ReplicaSet
from konverge.objects.kinds.core_v1 import Event, Pod
from konverge.objects.times import now
from tests.kube.conftest import Run, make_ready, pods, running
from tests.kube.interposed import Interposed, refusing
from tests.kube.objects import template
from tests.kube.test_replicaset import web

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-33")]


async def test_every_count_of_the_status(client: Client, run: Run) -> None:
    async with run(replicaset):
        desired = web(4)
        assert desired.spec.template is not None
        desired.spec.template.metadata.labels = {"app": "web", "tier": "front"}
        await client.create(desired)
        await asyncio.sleep(1)
        first, second, third, fourth = await pods(client)
        await make_ready(client, first)
        await make_ready(client, second)
        await client.patch(Pod, second.metadata.name, MergePatch({"metadata": {"labels": {"tier": None}}}), "default")
        for pod in (third, fourth):
            await client.bind_pod(pod.metadata.name, "node", "default")
            await client.delete(Pod, pod.metadata.name, "default")
        await make_ready(client, fourth, ready=False, phase="Failed")
        await asyncio.sleep(1)
        live = await client.get(ReplicaSet, "web", "default")
        assert (live.status.replicas, live.status.fully_labeled_replicas) == (4, 3)
        assert (live.status.ready_replicas, live.status.available_replicas) == (2, 2)
        assert live.status.terminating_replicas == 1  # one that has ended does not count
        assert live.status.observed_generation == live.metadata.generation


async def test_a_refused_deletion_is_reported_until_it_succeeds(client: Client) -> None:
    interposed = Interposed(client)
    async with running(interposed, replicaset):
        await client.create(web(3))
        await asyncio.sleep(1)
        doomed = [pod.metadata.name for pod in await pods(client)]
        interposed.rules += [refusing(doomed[0], 500, verb="delete")]
        other = {"type": "Other", "status": "True", "reason": "kept"}
        status = MergePatch({"status": {"conditions": [other]}})
        await client.patch(ReplicaSet, "web", status, "default", subresource="status")
        await client.patch(ReplicaSet, "web", MergePatch({"spec": {"replicas": 0}}), "default")
        await asyncio.sleep(2)
        live = await client.get(ReplicaSet, "web", "default")
        assert live.status.replicas == 1  # the others went
        kept, failure = live.status.conditions
        assert kept.type == "Other"
        assert (failure.type, failure.status, failure.reason) == ("ReplicaFailure", "True", "FailedDelete")
        since = failure.last_transition_time
        assert since
        assert since <= now()
        await asyncio.sleep(60)
        live = await client.get(ReplicaSet, "web", "default")
        assert live.status.conditions[1].last_transition_time == since
        reasons = {event.reason for event in (await client.list(Event, "default")).items}
        assert {"FailedDelete", "SuccessfulDelete"} <= reasons
        interposed.rules.clear()
        await asyncio.sleep(120)
        live = await client.get(ReplicaSet, "web", "default")
        assert (live.status.replicas, [c.type for c in live.status.conditions]) == (0, ["Other"])


async def test_a_pod_that_is_gone_already_is_no_failure(client: Client) -> None:
    interposed = Interposed(client)
    async with running(interposed, replicaset):
        await client.create(web(1))
        await asyncio.sleep(1)
        (pod,) = await pods(client)
        interposed.rules.append(refusing(pod.metadata.name, 404, verb="delete"))
        await client.patch(ReplicaSet, "web", MergePatch({"spec": {"replicas": 0}}), "default")
        await asyncio.sleep(1)
        live = await client.get(ReplicaSet, "web", "default")
        assert (live.status.replicas, live.status.conditions) == (0, [])
        assert not any(event.reason == "SuccessfulDelete" for event in (await client.list(Event, "default")).items)


async def test_a_set_that_is_being_deleted_creates_and_deletes_nothing(client: Client, run: Run) -> None:
    desired = web(2)
    desired.metadata.finalizers = ["tests.konverge.dev/kept"]
    await client.create(desired)
    await client.delete(ReplicaSet, "web", "default")
    async with run(replicaset):
        await asyncio.sleep(2)
        assert await pods(client) == []


async def test_pods_that_ended_are_replaced_and_others_of_the_namespace_left_alone(client: Client, run: Run) -> None:
    stranger = Pod(metadata=ObjectMeta(name="stranger", namespace="default", labels={"app": "x"}), spec=template().spec)
    await client.create(stranger)
    async with run(replicaset):
        await client.create(web(1))
        await asyncio.sleep(1)
        (pod,) = await pods(client, "app=web")
        await make_ready(client, pod, ready=False, phase="Failed")
        await asyncio.sleep(1)
        assert len(await pods(client, "app=web")) == 2
        await client.patch(ReplicaSet, "web", MergePatch({"spec": {"replicas": 0}}), "default")
        await asyncio.sleep(1)
        left = {item.metadata.name for item in await pods(client) if item.metadata.deletion_timestamp is None}
        assert left == {"stranger", pod.metadata.name}


async def test_a_settled_set_is_not_written(client: Client) -> None:
    interposed = Interposed(client)
    async with running(interposed, replicaset):
        await client.create(web(2))
        await asyncio.sleep(5)
        before = len(interposed.writes())
        await client.patch(ReplicaSet, "web", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
        await asyncio.sleep(5)
        assert interposed.writes()[before:] == []
