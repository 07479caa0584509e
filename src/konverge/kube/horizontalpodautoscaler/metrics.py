"""What one metric of an autoscaler proposes.

Resource metrics come from the metrics API (`metrics.k8s.io`). Those of type Pods, Object and External need adapters,
which a cluster of ours does not have: they are reported as upstream reports them where no adapter is installed.

Upstream: computeReplicasForMetric (horizontal.go) and resourceMetricsClient (metrics/client.go).
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge import clock
from konverge.client import ApiStatusError, ClientError, NotFound
from konverge.kube.horizontalpodautoscaler.usage import (
    TOLERANCE,
    MetricsError,
    Proposal,
    Tolerances,
    average,
    pod_metrics,
    propose,
    requests_of,
    utilization,
)
from konverge.objects import labels
from konverge.objects.kinds.autoscaling_v2 import (
    ContainerResourceMetricStatus,
    HorizontalPodAutoscaler,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ResourceMetricStatus,
)
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.quantity import Format, Quantity
from konverge.objects.resource import Resource
from konverge.runtime import Context

POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")


class MetricFailed(Exception):
    """Reason and message of the event and the condition; `prefix` comes before the message in the summary."""

    def __init__(self, reason: str, message: str, prefix: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.prefix = prefix


async def propose_replicas(
    ctx: Context[HorizontalPodAutoscaler],
    spec: MetricSpec,
    current: int,
    selector: labels.Selector,
    pods: Sequence[Pod],
) -> tuple[Proposal, str, MetricStatus]:
    """The proposal of one metric, its name and its status. Upstream: computeReplicasForMetric."""
    if spec.resource_ is not None:
        name, target, container, kind = spec.resource_.name, spec.resource_.target, "", "resource"
        reason, prefix = "FailedGetResourceMetric", f"failed to get {name} resource metric value"
    elif spec.container_resource is not None:
        source = spec.container_resource
        name, target, container, kind = source.name, source.target, source.container, "container resource"
        reason, prefix = "FailedGetContainerResourceMetric", f"failed to get {container} container metric value"
    else:
        raise _unavailable(ctx, spec)
    try:
        proposal = await _resource_replicas(ctx, current, name, target, container, selector, pods)
    except MetricsError as error:
        what = "usage" if target.average_value is not None else "utilization"
        raise MetricFailed(reason, f"failed to get {name} {what}: {error}", prefix) from error
    value = MetricValueStatus(average_value=_quantity(name, proposal.average))
    metric = f"{name} resource"
    if target.average_value is None:
        value.average_utilization = proposal.utilization
        metric = f"{name} {kind} utilization (percentage of request)"
    if container:
        made = ContainerResourceMetricStatus(name=name, container=container, current=value)
        return proposal, metric, MetricStatus(type=spec.type, container_resource=made)
    return proposal, metric, MetricStatus(type=spec.type, resource_=ResourceMetricStatus(name=name, current=value))


def _unavailable(ctx: Context[HorizontalPodAutoscaler], spec: MetricSpec) -> MetricFailed:
    """Metrics of adapters, where none is installed."""
    custom = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
    if spec.pods is not None:
        message = f"unable to get metric {spec.pods.metric.name}: {custom}"
        return MetricFailed("FailedGetPodsMetric", message, "failed to get pods metric value")
    if spec.object is not None:
        target = spec.object.described_object
        message = f"unable to get metric {spec.object.metric.name}: {target.kind} on {ctx.request.namespace} "
        message += f"{target.name}/{custom}"
        return MetricFailed("FailedGetObjectMetric", message, "failed to get object metric value")
    name = spec.external.metric.name if spec.external is not None else ""
    message = (
        f"unable to get external metric {ctx.request.namespace}/{name}: unable to fetch metrics from external metrics "
        "API: no external metrics API (external.metrics.k8s.io) registered"
    )
    return MetricFailed("FailedGetExternalMetric", message, f"failed to get {name} external metric value")


async def _resource_replicas(
    ctx: Context[HorizontalPodAutoscaler],
    current: int,
    name: str,
    target: MetricTarget,
    container: str,
    selector: labels.Selector,
    pods: Sequence[Pod],
) -> Proposal:
    try:
        listed = await ctx.client.list(POD_METRICS, ctx.request.namespace, label_selector=str(selector))
    except ClientError as error:
        cause = f"unable to fetch metrics from resource metrics API: {error_text(error)}"
        raise MetricsError(f"unable to get metrics for resource {name}: {cause}") from error
    if not listed.items:
        raise MetricsError(f"unable to get metrics for resource {name}: no metrics returned from resource metrics API")
    if not pods:
        raise MetricsError("no pods returned by selector while calculating replica count")
    metrics, tolerances = pod_metrics(listed.items, name, container), _tolerances(ctx.obj)
    when = clock.utc_now()
    if target.average_value is not None:
        goal = target.average_value.milli
        return propose(current, metrics, pods, name, tolerances, when, average(goal), lambda _: goal)
    percent = target.average_utilization
    if percent is None:
        raise MetricsError(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) "
            "target was set"
        )
    asked = requests_of(pods, name, container)
    full = max(100, percent)
    return propose(
        current, metrics, pods, name, tolerances, when, utilization(asked, percent),
        lambda pod: asked[pod] * full // 100,
    )  # fmt: skip


def _tolerances(hpa: HorizontalPodAutoscaler) -> Tolerances:
    behavior = hpa.spec.behavior
    down = behavior.scale_down.tolerance if behavior is not None and behavior.scale_down is not None else None
    up = behavior.scale_up.tolerance if behavior is not None and behavior.scale_up is not None else None
    return Tolerances(
        TOLERANCE if down is None else float(down.fraction), TOLERANCE if up is None else float(up.fraction)
    )


def _quantity(resource: str, milli: int) -> Quantity:  # upstream: buildQuantity
    return Quantity.of(milli, -3, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI)


def error_text(error: ClientError) -> str:
    """What client-go would say."""
    if isinstance(error, NotFound) and error.kind_missing:
        return "the server could not find the requested resource (get pods.metrics.k8s.io)"
    return error.message if isinstance(error, ApiStatusError) else str(error)
