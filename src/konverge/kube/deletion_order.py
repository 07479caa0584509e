"""Which of several pods is deleted first: the one that is missed least.

Upstream: ActivePods and ActivePodsWithRanks (pkg/controller/controller_utils.go).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cmp_to_key

from konverge import clock
from konverge.kube.pods import is_active, ready_since
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import parse_time

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = re.compile(r"(-[0-9]+|0|[1-9][0-9]*)", re.ASCII)

Compare = Callable[[Pod, Pod], int]
"""Negative when the first pod is deleted before the second."""


# upstream: ActivePods
def removal_order(pods: Iterable[Pod]) -> list[Pod]:
    """Not scheduled before scheduled, Pending before Unknown before Running, not ready before ready; then those that
    are ready for a shorter time, those with more restarts, the younger ones."""
    rules = (_by_progress, _by_time(_ready_time), _by_restarts, _by_time(_created))
    return _sorted(pods, rules)


# upstream: ActivePodsWithRanks, getPodsRankedByRelatedPodsOnSameNode
def scale_down_order(pods: Iterable[Pod], related: Iterable[Pod]) -> list[Pod]:
    """As `removal_order`; but after readiness the pod with the lower deletion cost (an annotation) comes first, then
    the pod whose node has more of the related pods. Ages are compared by their order of magnitude, and pods of one
    magnitude by their uids, so that not always the youngest goes."""
    crowd = Counter(pod.spec.node_name or "" for pod in related if is_active(pod))
    now = clock.utc_now()

    def by_cost(first: Pod, second: Pod) -> int:
        return _cost(first) - _cost(second)

    def by_crowd(first: Pod, second: Pod) -> int:
        return crowd[second.spec.node_name or ""] - crowd[first.spec.node_name or ""]

    rules = (_by_progress, by_cost, by_crowd, _by_time(_ready_time, now), _by_restarts, _by_time(_created, now))
    return _sorted(pods, rules)


def _sorted(pods: Iterable[Pod], rules: tuple[Compare, ...]) -> list[Pod]:
    def compare(first: Pod, second: Pod) -> int:
        return next((difference for rule in rules if (difference := rule(first, second))), 0)

    return sorted(pods, key=cmp_to_key(compare))


def _by_progress(first: Pod, second: Pod) -> int:
    progress = [
        (bool(pod.spec.node_name), _PHASES.get(pod.status.phase or "", 0), ready_since(pod) is not None)
        for pod in (first, second)
    ]
    return (progress[0] > progress[1]) - (progress[0] < progress[1])


# upstream: compareMaxContainerRestarts
def _by_restarts(first: Pod, second: Pod) -> int:
    before, after = _restarts(first), _restarts(second)
    return (before < after) - (before > after)


def _restarts(pod: Pod) -> tuple[int, int]:
    """The most restarts of a container, and of a sidecar."""
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    containers = (status.restart_count for status in pod.status.container_statuses)
    restarted = (status.restart_count for status in pod.status.init_container_statuses if status.name in sidecars)
    return max(containers, default=0), max(restarted, default=0)


# upstream: GetDeletionCostFromPodAnnotations (pkg/apis/core/helper)
def _cost(pod: Pod) -> int:
    """The cost in the annotation; 0 without one, or if it is no 32-bit number in its shortest form."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


# ------------------------------------------------------------------ times


def _ready_time(pod: Pod) -> str | None:
    """When a ready pod became ready; None if it is not ready, and this rule says nothing about it."""
    return ready_since(pod)


def _created(pod: Pod) -> str | None:
    return pod.metadata.creation_timestamp or ""


# upstream: afterOrZero, logarithmicRankDiff
def _by_time(time_of: Callable[[Pod], str | None], now: datetime | None = None) -> Compare:
    """The later time comes first, and no time before any; with `now`, ages of one magnitude are ordered by uid."""

    def compare(first: Pod, second: Pod) -> int:
        before, after = time_of(first), time_of(second)
        if before is None or after is None or before == after:
            return 0
        if not before or not after:
            return -1 if not before else 1
        times = parse_time(before), parse_time(after)
        if now is None:
            return -1 if times[0] > times[1] else 1
        difference = _magnitude(now, times[0]) - _magnitude(now, times[1])
        return difference or (-1 if first.metadata.uid < second.metadata.uid else 1)

    return compare


def _magnitude(now: datetime, then: datetime) -> int:
    """The whole part of the logarithm of an age in nanoseconds."""
    nanoseconds = (now - then).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1
