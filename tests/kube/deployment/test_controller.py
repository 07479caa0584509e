"""Deployments: rolling, recreating, scaling, rolling back, pausing, deadlines, history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import Context, Controller
from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.kube.deployment import controller as deployment
from konverge.kube.pods import replicas_of
from konverge.objects.kinds.apps_v1 import (
    Deployment,
    DeploymentStrategy,
    ReplicaSet,
)
from konverge.objects.kinds.core_v1 import Pod
from tests.kube.conftest import Run, make_ready, pods
from tests.kube.objects import deployment as web_deployment
from tests.kube.objects import set_image

pytestmark = pytest.mark.spec("R-32")


virtual = pytest.mark.virtual


class Kubelet:
    """Makes every pod ready, unless its image says otherwise."""

    @staticmethod
    def controllers() -> list[Controller[Any]]:
        async def reconcile(ctx: Context[Pod]) -> None:
            pod = ctx.obj
            going = pod.metadata.deletion_timestamp is not None
            if not going and pod.spec.containers[0].image != "broken" and pod.status.phase != "Running":
                await make_ready(ctx.client, pod)

        return [Controller(Pod, reconcile, name="kubelet")]


async def sets_of(client: Client) -> dict[str, int]:
    """image -> desired replicas of every replica set."""
    replicasets = (await client.list(ReplicaSet, "default")).items
    return {rs.spec.template.spec.containers[0].image or "": replicas_of(rs) for rs in replicasets if rs.spec.template}


async def conditions(client: Client) -> dict[str, tuple[str, str]]:
    live = await client.get(Deployment, "web", "default")
    return {c.type or "": (c.status or "", c.reason or "") for c in live.status.conditions}


@virtual
async def test_a_new_image_is_rolled_out_and_the_old_set_is_kept_for_rolling_back(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment())
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 3}
        assert await conditions(client) == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }
        await set_image(client, Deployment, "web", "app:2")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 0, "app:2": 3}
        await set_image(client, Deployment, "web", "app:1")  # what kubectl rollout undo does
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 3, "app:2": 0}
        live = await client.get(Deployment, "web", "default")
        assert live.metadata.annotations["deployment.kubernetes.io/revision"] == "3"
        assert (live.status.updated_replicas, live.status.available_replicas) == (3, 3)


@virtual
async def test_a_rollout_of_a_broken_image_keeps_availability_and_then_fails(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(4, progress_deadline_seconds=60))
        await asyncio.sleep(5)
        await set_image(client, Deployment, "web", "broken")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 3, "broken": 2}  # 25 %: one more, one less
        assert (await conditions(client))["Progressing"] == ("True", "ReplicaSetUpdated")
        await asyncio.sleep(70)
        assert (await conditions(client))["Progressing"] == ("False", "ProgressDeadlineExceeded")
        await set_image(client, Deployment, "web", "app:1")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 4, "broken": 0}


@virtual
async def test_recreate_deletes_all_old_pods_before_it_creates_new_ones(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(strategy=DeploymentStrategy(type="Recreate")))
        await asyncio.sleep(5)
        most = 0

        async def watch() -> None:
            nonlocal most
            async for _ in client.watch(Pod, "default"):
                images = {pod.spec.containers[0].image for pod in await pods(client)}
                most = max(most, len(images))

        watching = asyncio.create_task(watch())
        await set_image(client, Deployment, "web", "app:2")
        await asyncio.sleep(5)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert await sets_of(client) == {"app:1": 0, "app:2": 3}
        assert most == 1


@virtual
async def test_a_deployment_is_scaled_paused_and_limits_its_history(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(2, revision_history_limit=1))
        await asyncio.sleep(5)
        await client.patch(Deployment, "web", MergePatch({"spec": {"replicas": 5}}), "default")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 5}
        await client.patch(Deployment, "web", MergePatch({"spec": {"paused": True}}), "default")
        await set_image(client, Deployment, "web", "app:2")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 5}
        assert (await conditions(client))["Progressing"][1] == "DeploymentPaused"
        await client.patch(Deployment, "web", MergePatch({"spec": {"paused": False}}), "default")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 0, "app:2": 5}
        await set_image(client, Deployment, "web", "app:3")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:2": 0, "app:3": 5}  # one of the past is kept
