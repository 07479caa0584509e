"""Deployments: rolling, recreating, scaling, rolling back, pausing, deadlines, history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import Context, Controller, ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.kube.deployment import controller as deployment
from konverge.kube.deployment import rolling
from konverge.kube.deployment.replicasets import bounds, count, unavailable_allowed
from konverge.objects import LabelSelector
from konverge.objects.kinds.apps_v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from konverge.objects.kinds.core_v1 import Pod
from tests.kube.conftest import Run, make_ready, pods
from tests.kube.test_replicaset import template

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


def web(replicas: int = 3, image: str = "app:1", **spec: Any) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=template(image),
            **spec,
        ),
    )


async def sets_of(client: Client) -> dict[str, int]:
    """image -> wished replicas of every replica set."""
    found = (await client.list(ReplicaSet, "default")).items
    return {rs.spec.template.spec.containers[0].image or "": count(rs) for rs in found if rs.spec.template}


async def set_image(client: Client, image: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    await client.patch(Deployment, "web", MergePatch(patch), "default")


async def conditions(client: Client) -> dict[str, tuple[str, str]]:
    found = await client.get(Deployment, "web", "default")
    return {c.type or "": (c.status or "", c.reason or "") for c in found.status.conditions}


@virtual
async def test_a_new_image_rolls_through_and_the_old_set_stays_for_rolling_back(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web())
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 3}
        assert await conditions(client) == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }
        await set_image(client, "app:2")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 0, "app:2": 3}
        await set_image(client, "app:1")  # what kubectl rollout undo does
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 3, "app:2": 0}
        found = await client.get(Deployment, "web", "default")
        assert found.metadata.annotations["deployment.kubernetes.io/revision"] == "3"
        assert (found.status.updated_replicas, found.status.available_replicas) == (3, 3)


@virtual
async def test_a_broken_image_stops_within_availability_and_then_fails(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web(4, progress_deadline_seconds=60))
        await asyncio.sleep(5)
        await set_image(client, "broken")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 3, "broken": 2}  # 25 %: one more, one less
        assert (await conditions(client))["Progressing"] == ("True", "ReplicaSetUpdated")
        await asyncio.sleep(70)
        assert (await conditions(client))["Progressing"] == ("False", "ProgressDeadlineExceeded")
        await set_image(client, "app:1")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 4, "broken": 0}


@virtual
async def test_recreate_ends_the_old_before_the_new_begins(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web(strategy=DeploymentStrategy(type="Recreate")))
        await asyncio.sleep(5)
        most = 0

        async def watch() -> None:
            nonlocal most
            async for _ in client.watch(Pod, "default"):
                images = {pod.spec.containers[0].image for pod in await pods(client)}
                most = max(most, len(images))

        watching = asyncio.create_task(watch())
        await set_image(client, "app:2")
        await asyncio.sleep(5)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert await sets_of(client) == {"app:1": 0, "app:2": 3}
        assert most == 1


@virtual
async def test_scaling_pausing_and_history(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web(2, revision_history_limit=1))
        await asyncio.sleep(5)
        await client.patch(Deployment, "web", MergePatch({"spec": {"replicas": 5}}), "default")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 5}
        await client.patch(Deployment, "web", MergePatch({"spec": {"paused": True}}), "default")
        await set_image(client, "app:2")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 5}
        assert (await conditions(client))["Progressing"][1] == "DeploymentPaused"
        await client.patch(Deployment, "web", MergePatch({"spec": {"paused": False}}), "default")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:1": 0, "app:2": 5}
        await set_image(client, "app:3")
        await asyncio.sleep(5)
        assert await sets_of(client) == {"app:2": 0, "app:3": 5}  # one of the past is kept


# ------------------------------------------------------------------ the arithmetic


def sized(name: str, replicas: int, available: int) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name),
        spec=ReplicaSetSpec(replicas=replicas, selector=LabelSelector()),
        status=ReplicaSetStatus(replicas=replicas, available_replicas=min(available, replicas)),
    )


numbers = st.integers(0, 12)
amounts = st.one_of(st.integers(0, 5), st.sampled_from(["0%", "10%", "25%", "50%", "100%"]))


@given(st.integers(0, 12), amounts, amounts, numbers, numbers, st.lists(st.tuples(numbers, numbers), max_size=3))
def test_no_step_breaks_surge_or_availability(
    wanted: int, surge: Any, unavailable: Any, size: int, healthy: int, others: list[tuple[int, int]]
) -> None:
    strategy = DeploymentStrategy(
        type="RollingUpdate", rolling_update=RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    )
    wish = web(wanted, strategy=strategy)
    new = sized("new", size, healthy)
    old = [sized(f"old-{number}", *numbers) for number, numbers in enumerate(others)]
    total = size + sum(count(rs) for rs in old)
    up = rolling.scale_up(wish, new, old)
    if up.get("new", size) > size:
        assert total - size + up["new"] <= wanted + bounds(wish)[0]
    down = rolling.scale_down(wish, new, old)
    assert all(0 <= replicas <= count(rs) for rs in old if (replicas := down.get(rs.metadata.name)) is not None)
    # At worst, what goes was available: what is left must still be enough, if it was before.
    lost = sum(
        max(0, min(count(rs) - down.get(rs.metadata.name, count(rs)), rs.status.available_replicas or 0)
            - (count(rs) - (rs.status.available_replicas or 0)))
        for rs in old
    )  # fmt: skip
    available = sum(rs.status.available_replicas or 0 for rs in [new, *old])
    least = wanted - unavailable_allowed(wish)
    if available >= least:
        assert available - lost >= least
