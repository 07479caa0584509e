"""From what pods use to how many there should be. Pure.

Pods without metrics and pods that are not ready only ever damp a change: they count as idle when replicas would be
added, and as fully used when some would be removed.

Upstream: replica_calculator.go and metrics/utilization.go (pkg/controller/podautoscaler).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Any

import msgspec

from konverge.objects.durations import duration_seconds
from konverge.objects.kinds.core_v1 import Container, Pod
from konverge.objects.quantity import Quantity
from konverge.objects.times import parse_time

CPU = "cpu"
CPU_INITIALIZATION = timedelta(minutes=5)
"""How long after its start a pod's use of CPU may be that of its start. Upstream: CPUInitializationPeriod."""
INITIAL_READINESS_DELAY = timedelta(seconds=30)
"""A pod that became unready so soon after its start has never been ready. Upstream: InitialReadinessDelay."""
TOLERANCE = 0.1


class MetricsError(Exception):
    """Replicas cannot be computed; the message is upstream's."""


class PodMetric(msgspec.Struct, frozen=True):
    """What a pod uses, in thousandths."""

    value: int
    timestamp: datetime
    window: timedelta = timedelta()


Metrics = dict[str, PodMetric]
"""By the name of the pod."""
Measure = Callable[[Mapping[str, PodMetric]], tuple[float, int, int]]
"""The ratio of use to the target, the use in percent of the requests, and the average use."""


class Tolerances(msgspec.Struct, frozen=True):
    """How far a ratio may be from 1 without a change."""

    down: float = TOLERANCE
    up: float = TOLERANCE

    def allow(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Proposal(msgspec.Struct, frozen=True):
    replicas: int
    utilization: int
    average: int


# ------------------------------------------------------------------ reading


def pod_metrics(items: Iterable[Mapping[str, Any]], resource: str, container: str = "") -> Metrics:
    """From PodMetrics objects: of one container, or of all. Upstream: getPodMetrics, getContainerMetrics."""
    metrics: Metrics = {}
    for item in items:
        uses = {entry["name"]: entry.get("usage") or {} for entry in item.get("containers") or ()}
        wanted = [uses[container]] if container and container in uses else [] if container else list(uses.values())
        if wanted and all(resource in use for use in wanted):
            total = sum(Quantity(use[resource]).milli for use in wanted)
            window = timedelta(seconds=float(duration_seconds(item.get("window") or "0s")))
            metrics[item["metadata"]["name"]] = PodMetric(total, parse_time(item["timestamp"]), window)
    return metrics


def requests_of(pods: Iterable[Pod], resource: str, container: str = "") -> dict[str, int]:
    """What the pods ask for, in thousandths. Upstream: calculateRequests."""
    return {pod.metadata.name: _request(pod, resource, container) for pod in pods}


def _request(pod: Pod, resource: str, container: str) -> int:
    whole = pod.spec.resources
    if whole is not None and whole.requests and not container:
        if resource not in whole.requests:
            raise MetricsError(f"missing pod-level request for {resource} in Pod {pod.metadata.name}")
        return whole.requests[resource].milli
    sidecars = [spec for spec in pod.spec.init_containers if spec.restart_policy == "Always"]
    counted = [spec for spec in (*pod.spec.containers, *sidecars) if container in ("", spec.name)]
    if not counted:
        raise MetricsError(f"container {container} not found in Pod {pod.metadata.name}")
    return sum(_container_request(pod, spec, resource) for spec in counted)


def _container_request(pod: Pod, spec: Container, resource: str) -> int:
    asked = spec.resources.requests if spec.resources is not None else {}
    if resource not in asked:
        raise MetricsError(f"missing request for {resource} in container {spec.name} of Pod {pod.metadata.name}")
    return asked[resource].milli


# ------------------------------------------------------------------ measuring


def utilization(requests: Mapping[str, int], target: int) -> Measure:
    """Against a target in percent of the requests. Upstream: GetResourceUtilizationRatio."""

    def measure(metrics: Mapping[str, PodMetric]) -> tuple[float, int, int]:
        known = [name for name in metrics if name in requests]
        asked = sum(requests[name] for name in known)
        if asked == 0:
            raise MetricsError("no metrics returned matched known pods")
        used = sum(metrics[name].value for name in known)
        percent = used * 100 // asked
        return percent / target, percent, used // len(known)

    return measure


def average(target: int) -> Measure:
    """Against a target for the average pod. Upstream: GetMetricUsageRatio."""

    def measure(metrics: Mapping[str, PodMetric]) -> tuple[float, int, int]:
        use = sum(metric.value for metric in metrics.values()) // len(metrics)
        return use / target, 0, use

    return measure


class _Groups(msgspec.Struct):
    ready: int = 0
    unready: set[str] = msgspec.field(default_factory=set)
    missing: set[str] = msgspec.field(default_factory=set)
    ignored: set[str] = msgspec.field(default_factory=set)


def _grouped(pods: Iterable[Pod], metrics: Metrics, resource: str, now: datetime) -> _Groups:  # upstream: groupPods
    groups = _Groups()
    for pod in pods:
        name = pod.metadata.name
        if pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed":
            groups.ignored.add(name)
        elif pod.status.phase == "Pending":
            groups.unready.add(name)
        elif name not in metrics:
            groups.missing.add(name)
        elif resource == CPU and _is_starting(pod, metrics[name], now):
            groups.unready.add(name)
        else:
            groups.ready += 1
    return groups


def _is_starting(pod: Pod, metric: PodMetric, now: datetime) -> bool:
    """Its use of CPU says nothing yet."""
    condition = next((item for item in pod.status.conditions if item.type == "Ready"), None)
    if condition is None or pod.status.start_time is None or condition.last_transition_time is None:
        return True
    started, turned = parse_time(pod.status.start_time), parse_time(condition.last_transition_time)
    unready = condition.status == "False"
    if started + CPU_INITIALIZATION > now:
        return unready or metric.timestamp < turned + metric.window
    return unready and started + INITIAL_READINESS_DELAY > turned


# ------------------------------------------------------------------ replicas


def propose(
    current: int,
    metrics: Metrics,
    pods: Sequence[Pod],
    resource: str,
    tolerances: Tolerances,
    now: datetime,
    measure: Measure,
    full: Callable[[str], int],
) -> Proposal:
    """How many replicas there should be; `full` is what a pod without metrics counts as when some would be removed.

    Upstream: GetResourceReplicas, calcPlainMetricReplicas.
    """
    groups = _grouped(pods, metrics, resource, now)
    counted = {
        name: metric for name, metric in metrics.items() if name not in groups.ignored and name not in groups.unready
    }
    if not counted:
        raise MetricsError("did not receive metrics for targeted pods (pods might be unready)")
    ratio, percent, use = measure(counted)
    waits = bool(groups.unready) and ratio > 1.0
    if not waits and not groups.missing:
        replicas = current if tolerances.allow(ratio) else ceil(ratio * groups.ready)
        return Proposal(replicas, percent, use)
    if ratio != 1.0:
        counted |= {name: PodMetric(0 if ratio > 1.0 else full(name), now) for name in groups.missing}
    if waits:
        counted |= {name: PodMetric(0, now) for name in groups.unready}
    damped = measure(counted)[0]
    replicas = ceil(damped * len(counted))
    turned = (ratio < 1.0 < damped) or (damped < 1.0 < ratio)
    overshot = (damped < 1.0 and replicas > current) or (damped > 1.0 and replicas < current)
    if tolerances.allow(damped) or turned or overshot:
        replicas = current
    return Proposal(replicas, percent, use)
