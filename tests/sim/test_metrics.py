"""The metrics API of a simulated cluster: what pods and nodes use, as `kubectl top` asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch, NotFound
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.resource import Resource
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, pod

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-44")]

PODS = Resource("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")
NODES = Resource("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False)


def using(name: str, cpu: str = "", memory: str = "", **spec: Any) -> Pod:
    notes = {"sim.konverge.dev/cpu": cpu, "sim.konverge.dev/memory": memory}
    return pod(name, annotations={key: value for key, value in notes.items() if value}, **spec)


async def used(cluster: Cluster, **options: Any) -> dict[str, str]:
    """By pod and container: CPU and memory."""
    listed = await cluster.client.list(PODS, SPACE, **options)
    return {
        f"{item['metadata']['name']}/{entry['name']}": f"{entry['usage']['cpu']} {entry['usage']['memory']}"
        for item in listed.items
        for entry in item["containers"]
    }


async def test_containers_use_what_their_annotation_says_and_little_without(cluster: Cluster) -> None:
    two = [{"name": "web", "image": "a"}, {"name": "proxy", "image": "b"}]
    await cluster.client.create(using("each", cpu="250m", memory="100Mi"))
    await cluster.client.create(using("some", cpu="web: 1; proxy: 20m", containers=two))
    await cluster.client.create(using("idle"))
    await cluster.client.create(using("wrong", cpu="plenty"))
    await cluster.settle()
    assert await used(cluster) == {
        "each/main": "250m 100Mi",
        "idle/main": "1m 16Mi",
        "some/web": "1 16Mi",
        "some/proxy": "20m 16Mi",
        "wrong/main": "1m 16Mi",
    }


async def test_a_changed_annotation_counts_at_once(cluster: Cluster) -> None:
    await cluster.client.create(using("web", cpu="100m"))
    await cluster.settle()
    notes = {"metadata": {"annotations": {"sim.konverge.dev/cpu": "900m"}}}
    await cluster.client.patch(Pod, "web", MergePatch(notes), SPACE)
    await cluster.settle()
    assert await used(cluster) == {"web/main": "900m 16Mi"}


async def test_a_total_is_shared_by_the_ready_pods_of_one_controller(cluster: Cluster) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    for name in ("a", "b", "c"):
        await cluster.client.create(using(name, cpu="total 3", memory="total 90Mi", owner=owner))
    late = using("late", cpu="total 3", owner=owner)
    late.metadata.annotations["sim.konverge.dev/behaviour"] = "never-ready"
    await cluster.client.create(late)
    await cluster.client.create(using("alone", cpu="total 3"))
    await cluster.settle()
    shares = await used(cluster)
    assert [shares[f"{name}/main"] for name in ("a", "b", "c")] == ["1 30Mi"] * 3
    assert shares["alone/main"] == "3 16Mi"


async def test_only_pods_that_run_have_metrics(cluster: Cluster) -> None:
    await cluster.client.create(pod("slow", "slow-start 1h"))
    await cluster.client.create(pod("done", "exit 0", restartPolicy="Never"))
    await cluster.client.create(pod("web"))
    await cluster.settle()
    assert list(await used(cluster)) == ["web/main"]
    cluster.lose_node((await cluster.client.get(Pod, "web", SPACE)).spec.node_name or "")
    assert await used(cluster) == {}


async def test_metrics_are_asked_for_by_name_label_and_namespace(cluster: Cluster) -> None:
    await cluster.client.create(using("web", labels={"app": "web"}))
    await cluster.client.create(using("api", labels={"app": "api"}))
    await cluster.settle()
    assert list(await used(cluster, label_selector="app=api")) == ["api/main"]
    single = await cluster.client.get(PODS, "web", SPACE)
    assert (single["kind"], single["window"], single["metadata"]["labels"]) == ("PodMetrics", "15s", {"app": "web"})
    assert (await cluster.client.list(PODS, "kube-system")).items == []
    assert len((await cluster.client.list(PODS)).items) == 2
    with pytest.raises(NotFound, match=r'pods\.metrics\.k8s\.io "nope" not found'):
        await cluster.client.get(PODS, "nope", SPACE)


async def test_a_node_uses_what_its_pods_use_and_a_little_more(cluster: Cluster) -> None:
    await cluster.client.create(using("web", cpu="400m", memory="100Mi", nodeName="node-2"))
    await cluster.settle()
    nodes = {item["metadata"]["name"]: item["usage"] for item in await cluster.client.list(NODES)}
    assert nodes["node-1"] == {"cpu": "100m", "memory": "512Mi"}
    assert nodes["node-2"] == {"cpu": "500m", "memory": "612Mi"}
    cluster.lose_node("node-2")
    assert sorted(item["metadata"]["name"] for item in await cluster.client.list(NODES)) == ["node-1", "node-3"]


async def test_discovery_has_the_group_and_pods_are_still_pods(cluster: Cluster) -> None:
    assert (await cluster.client.mapper.find("pods")).group == ""
    assert (await cluster.client.mapper.find("nodes")).group == ""
    assert (await cluster.client.mapper.find("pods.metrics.k8s.io")).kind == "PodMetrics"
