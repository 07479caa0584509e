"""Controllers held and let go one reconcile at a time; pods of a StatefulSet made when the test says so."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, Pod
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Request
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, condition, pod

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-18")]


async def copy(ctx: Context[ConfigMap]) -> None:
    """Every ConfigMap has a twin."""
    if not ctx.request.name.endswith("-twin"):
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=f"{ctx.request.name}-twin"), data=ctx.obj.data))


def config(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=SPACE, labels={"copy": "me"}), data={"a": "1"})


async def test_each_round_is_run_and_seen_alone(cluster: Cluster) -> None:
    controller = Controller(ConfigMap, copy, name="copier", label_selector="copy=me")
    operator = Manager(cluster.client, name="operator", paused=["copier"], check_permissions=False).add(controller)
    async with operator.running():
        await cluster.client.create(config("one"))
        await cluster.client.create(config("two"))
        await cluster.settle()
        assert len(await cluster.client.list(ConfigMap, SPACE)) == 2
        first = await cluster.step("copier", manager=operator)
        assert first is not None
        assert first.request == Request(SPACE, "one")
        assert [(call.verb, call.name) for call in first.writes] == [("patch", "one-twin")]
        assert str(first) == "default/one: patch /api/v1/namespaces/default/configmaps/one-twin"
        second = await cluster.step("copier", manager=operator)
        assert second is not None
        assert second.request.name == "two"
        assert await cluster.step("copier", manager=operator) is None
        cluster.release("copier", manager=operator)
        await cluster.client.create(config("three"))
        await cluster.settle()
        assert len(await cluster.client.list(ConfigMap, SPACE)) == 6


async def test_the_scheduler_and_the_kubelet_can_be_held(cluster: Cluster) -> None:
    cluster.hold("scheduler", "kubelet")
    await cluster.client.create(pod("web"))
    await cluster.settle()
    assert (await cluster.client.get(Pod, "web", SPACE)).spec.node_name is None
    cluster.release("scheduler")
    await cluster.settle()
    web = await cluster.client.get(Pod, "web", SPACE)
    assert (web.spec.node_name, web.status.phase) == ("node-1", "Pending")
    done = await cluster.step("kubelet")
    assert done is not None
    assert [(call.verb, call.subresource) for call in done.writes] == [("patch", "status")]
    assert (await cluster.client.get(Pod, "web", SPACE)).status.phase == "Running"
    with pytest.raises(LookupError, match="kubelet"):
        cluster.hold("nobody")


def stateful_set(replicas: int) -> dict[str, Any]:
    labels = {"app": "nacos"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nacos:3"}]}}
    spec = {"replicas": replicas, "serviceName": "nacos", "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "nacos", "namespace": SPACE}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}


async def test_pods_of_a_stateful_set_come_and_become_ready_when_the_test_says_so(cluster: Cluster) -> None:
    await cluster.client.create(stateful_set(3))
    await cluster.settle()
    assert not await cluster.client.list(Pod, SPACE)
    for ready in range(4):
        pods = await cluster.simulate_stateful_set_pods("nacos", ready=ready, ip="127.0.0.1")
        assert [item.metadata.name for item in pods] == ["nacos-0", "nacos-1", "nacos-2"]
        assert [condition(item, "Ready")[0] for item in pods] == ["True"] * ready + ["False"] * (3 - ready)
    assert {item.status.pod_ip for item in pods} == {"127.0.0.1"}
    assert {item.spec.hostname for item in pods} == {"nacos-0", "nacos-1", "nacos-2"}
    await cluster.client.patch(StatefulSet, "nacos", MergePatch({"spec": {"replicas": 1}}), SPACE)
    await cluster.simulate_stateful_set_pods("nacos")
    await cluster.settle()
    assert [item.metadata.name for item in await cluster.client.list(Pod, SPACE)] == ["nacos-0"]
