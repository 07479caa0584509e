"""Controllers that do what they must not are found out, each by the rule that it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from konverge.client import Client, MergePatch
from konverge.kube import deletion_order, replicaset
from konverge.kube import pods as podlib
from konverge.kube.deployment import rolling
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.cluster import Cluster
from konverge.sim.faults import Plan
from konverge.sim.invariants import Invariants, Violation
from konverge.sim.kubelet.behaviour import ANNOTATION
from tests.sim.conftest import SPACE

pytestmark = [pytest.mark.spec("S-20", "R-32", "R-33"), pytest.mark.virtual]


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Cluster(faults=Plan()) as cluster:
        yield cluster


async def made(client: Client) -> None:
    """A Deployment of four pods that take their time to become ready."""
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {ANNOTATION: "ready after 10s"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    meta = {"name": "web", "namespace": SPACE}
    await client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    await asyncio.sleep(60)


async def change(client: Client, seconds: float = 120, **spec: Any) -> None:
    await client.patch(Deployment, "web", MergePatch({"spec": spec}), SPACE)
    await asyncio.sleep(seconds)


async def roll_out(cluster: Cluster) -> Invariants:
    """A rollout, a scale-up, and a scale-down before all of it is ready."""
    watching = Invariants(cluster)
    watching.follow()
    await made(cluster.client)
    await change(cluster.client, template={"spec": {"containers": [{"name": "main", "image": "app:2"}]}})
    await change(cluster.client, 5, replicas=6)
    await change(cluster.client, replicas=4)
    return watching


async def test_controllers_that_do_it_right_are_left_alone(cluster: Cluster) -> None:
    watching = await roll_out(cluster)
    watching.at_rest()
    web = await cluster.client.get(Deployment, "web", SPACE)
    assert web.status.ready_replicas == web.status.updated_replicas == 4


def _one_more_deleted(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ctx, form, active, missing: real(ctx, form, active, missing - 1 if missing < 0 else missing)


def _one_more_created(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ctx, form, active, missing: real(ctx, form, active, missing + 1 if missing > 0 else missing)


def _backwards(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: real(*args)[::-1]


@pytest.mark.parametrize(
    ("where", "name", "wrong", "rule"),
    [
        (rolling, "bounds", lambda real: lambda deployment: (3, 0), r"asks for 7 pods, 5 are allowed"),
        (rolling, "unavailable_allowed", lambda real: lambda deployment: 2, r"has 2 pods ready, 3 are needed"),
        (replicaset, "_manage_replicas", _one_more_deleted, r"is deleted although only 1 were seen to be too much"),
        (deletion_order, "scale_down_order", _backwards, r"which is ready, is deleted before .*, which is not"),
        (podlib, "available_in", lambda real: lambda pod, seconds: 0.0, r"reports 4 available pods, .* saw 0"),
        (replicaset, "_manage_replicas", _one_more_created, r"is one too many: ReplicaSet .* has 5 of 4"),
    ],
    ids=["surge", "availability", "too much", "order", "report", "surplus"],
)
async def test_a_rollout_that_breaks_the_arithmetic_is_reported(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    name: str,
    wrong: Callable[[Callable[..., Any]], Callable[..., Any]],
    rule: str,
) -> None:
    monkeypatch.setattr(where, name, wrong(getattr(where, name)))
    watching = await roll_out(cluster)
    with pytest.raises(Violation, match=rule):
        watching.check()


async def test_only_its_replicaset_deletes_a_pod(cluster: Cluster) -> None:
    watching = Invariants(cluster)
    watching.follow()
    await made(cluster.client)
    pods = await cluster.client.list(Pod, SPACE)
    await cluster.client.delete(Pod, pods[0].metadata.name, SPACE)
    with pytest.raises(Violation, match="is deleted by another than its set"):
        watching.check()


async def test_who_empties_a_node_or_removes_all_of_it_may(cluster: Cluster) -> None:
    watching = Invariants(cluster)
    watching.follow()
    await made(cluster.client)
    cluster.lose_node(cluster.node_names[0])
    await asyncio.sleep(600)
    await cluster.client.delete(Deployment, "web", SPACE, propagation="Background")
    await cluster.settle()
    await cluster.recover_node(cluster.node_names[0])
    await asyncio.sleep(60)
    assert not await cluster.client.list(Pod, SPACE)
    watching.check()
