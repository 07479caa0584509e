"""What one metric of an autoscaler leads to: names, statuses, and what is said where it cannot be read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from konverge.client.errors import error_from_answer
from konverge.kube.horizontalpodautoscaler.metrics import MetricFailed, propose_replicas
from konverge.objects import labels
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.autoscaling_v2 import HorizontalPodAutoscaler, MetricSpec
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import now

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-44")]


def pod(name: str) -> Pod:
    requests = {"requests": {"cpu": "1", "memory": "100Mi"}}
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}
    status = {"phase": "Running", "startTime": "2025-01-01T00:00:00Z", "conditions": [condition]}
    spec = {"containers": [{"name": "main", "resources": requests}]}
    return from_dict(Pod, {"metadata": {"name": name}, "spec": spec, "status": status})


class Context:
    """An autoscaler, and the metrics of two pods: each uses so much."""

    def __init__(self, *, behavior: Any = None, items: Any = None, **usage: str) -> None:
        spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 9, "behavior": behavior}
        self.obj = from_dict(HorizontalPodAutoscaler, {"metadata": {"name": "web"}, "spec": spec})
        self.request = SimpleNamespace(namespace="shop", name="web")
        self.client = self
        self.asked: list[tuple[str, str]] = []
        containers = [{"name": "main", "usage": usage}]
        made = [{"metadata": {"name": name}, "timestamp": now(), "containers": containers} for name in ("a", "b")]
        self._items = made if items is None else items

    async def list(self, resource: Any, namespace: str, *, label_selector: str) -> Any:
        self.asked.append((namespace, label_selector))
        if isinstance(self._items, Exception):
            raise self._items
        return SimpleNamespace(items=self._items)


async def proposed(ctx: Context, spec: dict[str, Any], current: int = 2, pods: Any = None) -> tuple[int, str, Any]:
    made = [pod("a"), pod("b")] if pods is None else pods
    metric = from_dict(MetricSpec, spec)
    result = await propose_replicas(ctx, metric, current, labels.parse("app=web"), made)  # type: ignore[arg-type]
    return result[0].replicas, result[1], to_dict(result[2])


def resource(name: str = "cpu", container: str = "", **target: Any) -> dict[str, Any]:
    kind = "AverageValue" if "averageValue" in target else "Utilization"
    body = {"name": name, "target": {"type": kind, **target}}
    if container:
        return {"type": "ContainerResource", "containerResource": {**body, "container": container}}
    return {"type": "Resource", "resource": body}


async def test_a_resource_by_utilization() -> None:
    ctx = Context(cpu="750m")
    assert await proposed(ctx, resource(averageUtilization=50)) == (
        3,
        "cpu resource utilization (percentage of request)",
        {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageUtilization": 75, "averageValue": "750m"}},
        },
    )
    assert ctx.asked == [("shop", "app=web")]


async def test_a_resource_by_value() -> None:
    replicas, metric, status = await proposed(Context(memory="150Mi"), resource("memory", averageValue="100Mi"))
    assert (replicas, metric) == (3, "memory resource")
    assert status == {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "150Mi"}}}


async def test_the_resource_of_one_container() -> None:
    replicas, metric, status = await proposed(Context(cpu="1"), resource("cpu", "main", averageUtilization=50))
    assert (replicas, metric) == (4, "cpu container resource utilization (percentage of request)")
    current = {"averageUtilization": 100, "averageValue": "1"}
    assert status == {
        "type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "current": current},
    }  # fmt: skip


async def test_the_tolerances_of_a_behavior_have_two_sides() -> None:
    for behavior, up, down in (
        (None, 2, 1),
        ({"scaleUp": {"tolerance": "50m"}}, 3, 1),
        ({"scaleDown": {"tolerance": "600m"}}, 2, 2),
    ):
        target = resource(averageUtilization=50)
        assert (await proposed(Context(cpu="540m", behavior=behavior), target))[0] == up
        assert (await proposed(Context(cpu="250m", behavior=behavior), target))[0] == down


async def test_pods_without_metrics_count_by_the_target() -> None:
    """Fully used when some would be removed: at the request, or at a higher target."""
    one = [{"metadata": {"name": "a"}, "timestamp": now(), "containers": [{"name": "main", "usage": {"cpu": "0"}}]}]
    assert (await proposed(Context(items=one), resource(averageUtilization=50), current=2))[0] == 2
    assert (await proposed(Context(items=one), resource(averageUtilization=200), current=2))[0] == 1
    assert (await proposed(Context(items=one), resource(averageValue="1"), current=2))[0] == 1


async def failure(ctx: Context, spec: dict[str, Any], **more: Any) -> tuple[str, str, str]:
    with pytest.raises(MetricFailed) as caught:
        await proposed(ctx, spec, **more)
    return caught.value.reason, caught.value.message, caught.value.prefix


async def test_what_cannot_be_read_is_said() -> None:
    cpu, reason = resource(averageUtilization=50), "FailedGetResourceMetric"
    prefix = "failed to get cpu resource metric value"
    begin = "failed to get cpu utilization: unable to get metrics for resource cpu: "
    refused = error_from_answer(403, b'{"kind":"Status","message":"no"}')
    fetch = "unable to fetch metrics from resource metrics API: no"
    assert await failure(Context(items=refused), cpu) == (reason, begin + fetch, prefix)
    empty = "no metrics returned from resource metrics API"
    assert await failure(Context(items=[]), cpu) == (reason, begin + empty, prefix)
    none = "failed to get cpu utilization: no pods returned by selector while calculating replica count"
    assert await failure(Context(cpu="1"), cpu, pods=[]) == (reason, none, prefix)
    value = await failure(Context(items=[]), resource(averageValue="1"))
    assert value[1].startswith("failed to get cpu usage: ")
    container = await failure(Context(items=[]), resource("cpu", "main", averageUtilization=50))
    assert (container[0], container[2]) == (
        "FailedGetContainerResourceMetric", "failed to get main container metric value",
    )  # fmt: skip
    untold = await failure(Context(cpu="1"), resource())
    assert "neither an average utilization target nor an average value" in untold[1]


async def test_metrics_of_adapters_are_not_there() -> None:
    target = {"type": "Value", "value": "1"}
    custom = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
    assert await failure(Context(), {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": target}}) == (
        "FailedGetPodsMetric", f"unable to get metric m: {custom}", "failed to get pods metric value",
    )  # fmt: skip
    described = {"kind": "Service", "name": "s"}
    body = {"metric": {"name": "m"}, "target": target, "describedObject": described}
    assert await failure(Context(), {"type": "Object", "object": body}) == (
        "FailedGetObjectMetric", f"unable to get metric m: Service on shop s/{custom}",
        "failed to get object metric value",
    )  # fmt: skip
    external = await failure(Context(), {"type": "External", "external": {"metric": {"name": "m"}, "target": target}})
    assert (external[0], external[2]) == ("FailedGetExternalMetric", "failed to get m external metric value")
    assert external[1].startswith("unable to get external metric shop/m: ")
