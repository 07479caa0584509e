"""Autoscalers on a simulated cluster: pods use what their annotation says, and replicas follow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.client import Client, MergePatch
from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.autoscaling_v2 import HorizontalPodAutoscaler
from konverge.objects.kinds.core_v1 import Event
from konverge.sim.cluster import Cluster

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-44")]

CONTROLLERS = ("deployment", "replicaset", "horizontalpodautoscaler")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Cluster(controllers=CONTROLLERS) as cluster:
        yield cluster


def deployment(name: str = "web", *, replicas: int = 2, request: str = "1", **load: str) -> Deployment:
    notes = {f"sim.konverge.dev/{kind}": text for kind, text in load.items()}
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": request, "memory": "100Mi"}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels, "annotations": notes}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return from_dict(Deployment, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def autoscaler(name: str = "web", target: str = "web", metrics: Any = None, **spec: Any) -> HorizontalPodAutoscaler:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    reference = {"apiVersion": "apps/v1", "kind": spec.pop("kind", "Deployment"), "name": target}
    whole = {"scaleTargetRef": reference, "maxReplicas": 10, "metrics": [cpu] if metrics is None else metrics, **spec}
    return from_dict(HorizontalPodAutoscaler, {"metadata": {"name": name, "namespace": "default"}, "spec": whole})


async def replicas(client: Client, name: str = "web") -> int:
    return (await client.get(Deployment, name, "default")).spec.replicas or 0


async def conditions(client: Client, name: str = "web") -> dict[str, tuple[str, str]]:
    status = (await client.get(HorizontalPodAutoscaler, name, "default")).status
    return {item.type: (item.status, item.reason or "") for item in status.conditions}


async def events(client: Client, reason: str) -> list[str]:
    return [event.message or "" for event in await client.list(Event, "default", field_selector=f"reason={reason}")]


async def test_replicas_grow_until_a_shared_load_is_at_the_target(cluster: Cluster) -> None:
    await cluster.client.create(deployment(replicas=2, cpu="total 3"))
    await cluster.client.create(autoscaler())
    await cluster.clock.advance(120)
    assert await replicas(cluster.client) == 6
    assert await conditions(cluster.client) == {
        "AbleToScale": ("True", "ReadyForNewScale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }
    status = (await cluster.client.get(HorizontalPodAutoscaler, "web", "default")).status
    assert (status.current_replicas, status.desired_replicas, status.observed_generation) == (6, 6, 1)
    assert status.current_metrics[0].resource_ is not None
    assert status.current_metrics[0].resource_.current.average_utilization == 50
    assert str(status.current_metrics[0].resource_.current.average_value) == "500m"
    assert status.last_scale_time is not None
    reason = "cpu resource utilization (percentage of request) above target"
    assert await events(cluster.client, "SuccessfulRescale") == [
        f"New size: 4; reason: {reason}",
        f"New size: 6; reason: {reason}",
    ]


async def test_replicas_shrink_after_five_minutes_of_less_load(cluster: Cluster) -> None:
    await cluster.client.create(deployment(replicas=4, cpu="100m"))
    await cluster.client.create(autoscaler(minReplicas=2))
    await cluster.clock.advance(200)
    assert await replicas(cluster.client) == 4
    assert (await conditions(cluster.client))["AbleToScale"] == ("True", "ScaleDownStabilized")
    await cluster.clock.advance(200)
    assert await replicas(cluster.client) == 2
    assert (await conditions(cluster.client))["ScalingLimited"] == ("True", "TooFewReplicas")
    assert await events(cluster.client, "SuccessfulRescale") == ["New size: 2; reason: All metrics below target"]


async def test_the_maximum_limits_and_says_so(cluster: Cluster) -> None:
    await cluster.client.create(deployment(replicas=2, cpu="2"))
    await cluster.client.create(autoscaler(maxReplicas=3))
    await cluster.clock.advance(60)
    assert await replicas(cluster.client) == 3
    assert (await conditions(cluster.client))["ScalingLimited"] == ("True", "TooManyReplicas")


@pytest.mark.parametrize(("before", "bounds", "after"), [(9, (1, 4), 4), (1, (3, 5), 3)])
async def test_replicas_outside_of_the_bounds_are_brought_in_without_metrics(
    cluster: Cluster, before: int, bounds: tuple[int, int], after: int
) -> None:
    await cluster.client.create(deployment(replicas=before, cpu="500m"))
    await cluster.client.create(autoscaler(minReplicas=bounds[0], maxReplicas=bounds[1]))
    await cluster.settle()
    assert await replicas(cluster.client) == after
    side = "above Spec.MaxReplicas" if after < before else "below Spec.MinReplicas"
    assert await events(cluster.client, "SuccessfulRescale") == [
        f"New size: {after}; reason: Current number of replicas {side}"
    ]


async def test_a_target_at_zero_is_left_alone(cluster: Cluster) -> None:
    await cluster.client.create(deployment(replicas=0))
    await cluster.client.create(autoscaler())
    await cluster.clock.advance(30)
    assert await replicas(cluster.client) == 0
    assert (await conditions(cluster.client))["ScalingActive"] == ("False", "ScalingDisabled")


async def test_without_a_metrics_api_it_says_so_and_changes_nothing(cluster: Cluster) -> None:
    for plural in ("pods", "nodes"):
        cluster.server.registry.remove("metrics.k8s.io", "v1beta1", plural)
    await cluster.client.create(deployment(replicas=2))
    await cluster.client.create(autoscaler())
    await cluster.clock.advance(60)
    assert await replicas(cluster.client) == 2
    assert (await conditions(cluster.client))["ScalingActive"] == ("False", "FailedGetResourceMetric")
    message = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource "
        "metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
    )
    assert await events(cluster.client, "FailedGetResourceMetric") == [message]
    assert await events(cluster.client, "FailedComputeMetricsReplicas") == [
        f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {message}"
    ]


async def test_metrics_of_adapters_fail_and_others_still_make_it_grow(cluster: Cluster) -> None:
    packets = {"metric": {"name": "packets"}, "target": {"type": "AverageValue", "averageValue": "1k"}}
    cpu = autoscaler().spec.metrics[0]
    await cluster.client.create(deployment(replicas=2, cpu="750m"))
    await cluster.client.create(autoscaler(metrics=[{"type": "Pods", "pods": packets}, cpu]))
    await cluster.clock.advance(40)
    assert await replicas(cluster.client) >= 3
    assert len(await events(cluster.client, "FailedGetPodsMetric")) == 1
    assert (await conditions(cluster.client))["ScalingActive"] == ("True", "ValidMetricFound")


async def test_where_a_metric_fails_it_does_not_shrink(cluster: Cluster) -> None:
    packets = {"metric": {"name": "packets"}, "target": {"type": "AverageValue", "averageValue": "1k"}}
    cpu = autoscaler().spec.metrics[0]
    await cluster.client.create(deployment(replicas=4, cpu="10m"))
    await cluster.client.create(autoscaler(metrics=[{"type": "Pods", "pods": packets}, cpu]))
    await cluster.clock.advance(600)
    assert await replicas(cluster.client) == 4
    assert (await conditions(cluster.client))["ScalingActive"] == ("False", "FailedGetPodsMetric")


async def test_memory_by_value_and_the_cpu_of_one_container(cluster: Cluster) -> None:
    target = {"type": "AverageValue", "averageValue": "100Mi"}
    await cluster.client.create(deployment(replicas=2, memory="150Mi"))
    await cluster.client.create(
        autoscaler(metrics=[{"type": "Resource", "resource": {"name": "memory", "target": target}}], maxReplicas=3)
    )
    main = {"name": "cpu", "container": "main", "target": {"type": "Utilization", "averageUtilization": 50}}
    await cluster.client.create(deployment("api", replicas=2, cpu="main: 700m"))
    await cluster.client.create(
        autoscaler("api", "api", metrics=[{"type": "ContainerResource", "containerResource": main}], maxReplicas=3)
    )
    await cluster.clock.advance(30)
    assert [await replicas(cluster.client), await replicas(cluster.client, "api")] == [3, 3]
    status = (await cluster.client.get(HorizontalPodAutoscaler, "web", "default")).status.current_metrics[0]
    assert status.resource_ is not None
    assert str(status.resource_.current.average_value) == "150Mi"


async def test_a_target_that_is_not_there_and_one_of_an_unknown_kind(cluster: Cluster) -> None:
    await cluster.client.create(autoscaler("missing", "nothing"))
    await cluster.client.create(autoscaler("strange", "x", kind="Nope"))
    await cluster.settle()
    for name in ("missing", "strange"):
        assert (await conditions(cluster.client, name))["AbleToScale"] == ("False", "FailedGetScale")
    assert sorted(await events(cluster.client, "FailedGetScale")) == [
        'deployments.apps "nothing" not found',
        'no matches for kind "Nope" in group "apps"',
    ]


async def test_two_autoscalers_of_the_same_pods_do_nothing(cluster: Cluster) -> None:
    await cluster.client.create(deployment(replicas=2, cpu="500m"))
    await cluster.client.create(autoscaler("a"))
    await cluster.client.create(autoscaler("b"))
    await cluster.clock.advance(40)
    for name in ("a", "b"):
        assert (await conditions(cluster.client, name))["ScalingActive"] == ("False", "AmbiguousSelector")
    await cluster.client.delete(HorizontalPodAutoscaler, "a", "default")
    await cluster.clock.advance(40)
    assert (await conditions(cluster.client, "b"))["ScalingActive"] == ("True", "ValidMetricFound")


async def test_a_changed_spec_is_followed_at_once_and_status_writes_are_not(cluster: Cluster) -> None:
    await cluster.client.create(deployment(replicas=4, cpu="500m"))
    await cluster.client.create(autoscaler())
    await cluster.clock.advance(40)
    before = (await cluster.client.get(HorizontalPodAutoscaler, "web", "default")).metadata.resource_version
    await cluster.clock.advance(60)
    after = (await cluster.client.get(HorizontalPodAutoscaler, "web", "default")).metadata.resource_version
    assert after == before  # nothing has changed, so nothing is written
    await cluster.client.patch(HorizontalPodAutoscaler, "web", MergePatch({"spec": {"maxReplicas": 3}}), "default")
    await cluster.settle()
    assert await replicas(cluster.client) == 3
