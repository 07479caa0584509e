"""Deployments: pauses, deadlines, history, recreating, and which changes concern them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch, NotFound
from konverge.kube import replicaset
from konverge.kube.deployment import controller as deployment
from konverge.objects.kinds.apps_v1 import Deployment, DeploymentStrategy, ReplicaSet, ReplicaSetSpec
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime.owners import controller_reference
from tests.kube.conftest import Run, make_ready, pods, running
from tests.kube.deployment.test_controller import Kubelet, conditions, sets_of
from tests.kube.interposed import Interposed
from tests.kube.objects import WEB, set_image, template
from tests.kube.objects import deployment as web_deployment
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-32")]


async def change(client: Client, **spec: Any) -> None:
    await client.patch(Deployment, "web", MergePatch({"spec": spec}), "default")


async def test_a_settled_deployment_writes_nothing(client: Client) -> None:
    interposed = Interposed(client)
    async with running(interposed, deployment, replicaset, Kubelet):
        await client.create(web_deployment(2))
        await asyncio.sleep(20)
        before = len(interposed.writes())
        await client.patch(Deployment, "web", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
        await asyncio.sleep(20)
        assert interposed.writes()[before:] == []


@pytest.mark.parametrize(("limit", "left"), [(0, ["app:4"]), (2, ["app:2", "app:3", "app:4"])])
async def test_only_the_latest_idle_sets_are_kept(client: Client, run: Run, limit: int, left: list[str]) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(1, revision_history_limit=limit))
        for number in range(2, 5):
            await asyncio.sleep(10)
            await set_image(client, Deployment, "web", f"app:{number}")
        await asyncio.sleep(10)
        assert sorted(await sets_of(client)) == left


async def test_a_set_that_still_has_pods_is_not_forgotten(client: Client, run: Run) -> None:
    """The pods of the old set have a finalizer, so its status counts them."""
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(1, revision_history_limit=0, image="broken"))
        await asyncio.sleep(5)
        (old,) = (await client.list(ReplicaSet, "default")).items
        finalizers = MergePatch({"metadata": {"finalizers": ["tests.konverge.dev/kept"]}})
        await client.patch(ReplicaSet, old.metadata.name, finalizers, "default")
        await set_image(client, Deployment, "web", "app:2")
        await asyncio.sleep(20)
        going = await client.get(ReplicaSet, old.metadata.name, "default")
        assert going.metadata.deletion_timestamp is not None
        await client.patch(ReplicaSet, old.metadata.name, MergePatch({"metadata": {"finalizers": None}}), "default")
        await asyncio.sleep(20)
        with pytest.raises(NotFound):
            await client.get(ReplicaSet, old.metadata.name, "default")


async def test_a_pause_stops_the_clock_and_a_resumed_rollout_goes_on(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(2, progress_deadline_seconds=60, paused=True))
        await asyncio.sleep(200)
        assert (await conditions(client))["Progressing"] == ("Unknown", "DeploymentPaused")
        assert await sets_of(client) == {}
        await change(client, paused=False)
        await asyncio.sleep(5)
        assert (await conditions(client))["Progressing"] == ("True", "NewReplicaSetAvailable")
        await set_image(client, Deployment, "web", "broken")
        await asyncio.sleep(100)
        assert (await conditions(client))["Progressing"] == ("False", "ProgressDeadlineExceeded")
        await change(client, paused=True)
        await asyncio.sleep(5)
        assert (await conditions(client))["Progressing"] == ("False", "ProgressDeadlineExceeded")
        await change(client, replicas=6)  # a paused rollout is still scaled
        await asyncio.sleep(5)
        assert sum((await sets_of(client)).values()) == 8


async def test_a_paused_deployment_whose_rollout_is_running_resumes(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(4, progress_deadline_seconds=600, image="broken"))
        await asyncio.sleep(5)
        await change(client, paused=True)
        await asyncio.sleep(5)
        assert (await conditions(client))["Progressing"] == ("Unknown", "DeploymentPaused")
        await change(client, paused=False)
        await asyncio.sleep(5)
        assert (await conditions(client))["Progressing"] == ("Unknown", "DeploymentResumed")
        await asyncio.sleep(610)
        assert (await conditions(client))["Progressing"] == ("False", "ProgressDeadlineExceeded")


async def test_without_a_deadline_nothing_is_said_about_progress(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(1, progress_deadline_seconds=2**31 - 1, paused=True))
        await asyncio.sleep(5)
        await change(client, paused=False)
        await asyncio.sleep(5)
        assert await conditions(client) == {"Available": ("True", "MinimumReplicasAvailable")}


async def test_an_adopted_set_is_reported_as_found(client: Client, run: Run) -> None:
    rs = ReplicaSet(
        metadata=ObjectMeta(name="mine", namespace="default", labels={"app": "web"}),
        spec=ReplicaSetSpec(replicas=1, selector=WEB, template=template()),
    )
    await client.create(rs)
    async with run(deployment):
        await client.create(web_deployment(1))
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 1}
        assert (await conditions(client))["Progressing"] == ("True", "FoundNewReplicaSet")
        (live,) = (await client.list(ReplicaSet, "default")).items
        assert live.metadata.owner_references[0].kind == "Deployment"


async def test_recreating_waits_for_the_last_old_pod_that_runs(client: Client, run: Run) -> None:
    async with run(deployment, replicaset):
        await client.create(web_deployment(2, strategy=DeploymentStrategy(type="Recreate")))
        await asyncio.sleep(5)
        one, two = await pods(client)
        for pod in (one, two):
            await client.bind_pod(pod.metadata.name, "node", "default")
            await make_ready(client, pod)
            kept = MergePatch({"metadata": {"finalizers": ["tests.konverge.dev/kept"]}})
            await client.patch(Pod, pod.metadata.name, kept, "default")
        await set_image(client, Deployment, "web", "app:2")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 0}
        await make_ready(client, one, phase="Succeeded", ready=False)
        await client.patch(Pod, two.metadata.name, MergePatch({"metadata": {"finalizers": None}}), "default")
        await client.delete(Pod, two.metadata.name, "default", grace_period=0)
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 0, "app:2": 2}  # one that has ended is not waited for


async def test_a_deployment_that_is_being_deleted_only_counts(client: Client, run: Run) -> None:
    desired = web_deployment(2)
    desired.metadata.finalizers = ["tests.konverge.dev/kept"]
    await client.create(desired)
    await client.delete(Deployment, "web", "default")
    async with run(deployment, replicaset):
        await asyncio.sleep(5)
        assert await sets_of(client) == {}
        live = await client.get(Deployment, "web", "default")
        assert live.status.observed_generation == live.metadata.generation


def test_a_deleted_pod_concerns_the_deployment_of_its_set() -> None:
    trigger = Triggers(*deployment.controllers())
    web = web_deployment()
    web.metadata.uid = "d"
    rs = ReplicaSet(metadata=ObjectMeta(name="web-1", namespace="default", uid="r"), spec=ReplicaSetSpec(selector=WEB))
    rs.metadata.owner_references = [controller_reference(web)]
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=template().spec)
    pod.metadata.owner_references = [controller_reference(rs)]
    assert trigger.of(pod, None, cached=[rs]) == {"deployment default/web"}
    assert trigger.of(None, pod, cached=[rs]) == set()
    assert trigger.of(pod, None) == set()
    rs.metadata.owner_references[0].kind = "Other"
    assert trigger.of(pod, None, cached=[rs]) == set()
    rs.metadata.owner_references = []
    assert trigger.of(pod, None, cached=[rs]) == set()
    pod.metadata.owner_references = []
    assert trigger.of(pod, None, cached=[rs]) == set()
