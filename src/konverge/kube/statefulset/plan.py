"""What a StatefulSet does next. Pure: from its spec and its pods.

Ordered sets take one step and wait for its effect: every ordinal exists and is available before the next is created,
before one is removed, before one is replaced. Parallel sets take all steps at once; only replacing by a newer template
observes maxUnavailable there too.

Upstream: updateStatefulSet (pkg/controller/statefulset/stateful_set_control.go).
"""

from __future__ import annotations

import msgspec

from konverge.kube import pods as podlib
from konverge.kube.revisions import POD_LABEL
from konverge.kube.statefulset.identity import ordinal_of, ordinals_of, start_of
from konverge.objects.int_or_string import scale
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Pod


class Plan(msgspec.Struct):
    """Steps in the order in which they are taken."""

    discard: list[Pod] = msgspec.field(default_factory=list)
    """Pods that have ended; their ordinals are created again."""
    create: list[int] = msgspec.field(default_factory=list)
    """Ordinals without a pod."""
    keep: list[Pod] = msgspec.field(default_factory=list)
    """Pods whose identity and claims are corrected where needed."""
    remove: list[Pod] = msgspec.field(default_factory=list)
    """Pods outside of the desired ordinals."""
    replace: list[Pod] = msgspec.field(default_factory=list)
    """Pods of an older template; their ordinals are created again once they are gone."""


class View(msgspec.Struct):
    """The pods of a set, sorted into desired ordinals and others."""

    statefulset: StatefulSet
    slots: dict[int, Pod | None]
    condemned: list[Pod]
    """Highest ordinal first."""

    @property
    def ordered(self) -> bool:
        return self.statefulset.spec.pod_management_policy != "Parallel"

    def available(self, pod: Pod | None) -> bool:
        """It exists, has been ready for long enough, and is not being deleted."""
        return (
            pod is not None
            and pod.metadata.deletion_timestamp is None
            and podlib.available_in(pod, self.statefulset.spec.min_ready_seconds) == 0
        )


def look_at(statefulset: StatefulSet, pods: list[Pod]) -> View:
    slots: dict[int, Pod | None] = dict.fromkeys(ordinals_of(statefulset))
    condemned = []
    for pod in pods:
        ordinal = ordinal_of(pod)
        if ordinal in slots:
            slots[ordinal] = pod
        elif ordinal >= 0:
            condemned.append(pod)
    return View(statefulset, slots, sorted(condemned, key=ordinal_of, reverse=True))


def is_running_and_ready(pod: Pod) -> bool:
    return pod.status.phase == "Running" and podlib.is_ready(pod)


def plan(view: View, update_revision: str) -> Plan:
    steps = Plan()
    if not _fill(view, steps) or not _shrink(view, steps):
        return steps
    strategy = view.statefulset.spec.update_strategy
    if strategy is None or strategy.type != "OnDelete":
        steps.replace = _outdated(view, update_revision)
    return steps


def _fill(view: View, steps: Plan) -> bool:
    """Every desired ordinal; returns whether to continue with removing and replacing. Upstream: processReplica."""
    for ordinal, pod in view.slots.items():
        if pod is None:
            steps.create.append(ordinal)
            blocked = True
        elif podlib.is_terminated(pod):
            if pod.metadata.deletion_timestamp is None:
                steps.discard.append(pod)
            blocked = True
        else:
            steps.keep.append(pod)
            blocked = not (is_running_and_ready(pod) and view.available(pod))
        if blocked and view.ordered:
            return False
    return True


def _shrink(view: View, steps: Plan) -> bool:
    """Pods outside of the ordinals, highest first; in an ordered set one at a time, and of unavailable pods only the
    first.

    Upstream: processCondemned.
    """
    first_unavailable = _first_unavailable(view)
    for pod in view.condemned:
        deleting = pod.metadata.deletion_timestamp is not None
        if view.ordered:
            healthy = is_running_and_ready(pod) and view.available(pod)
            if not deleting and (healthy or pod is first_unavailable):
                steps.remove.append(pod)
            return False
        if not deleting:
            steps.remove.append(pod)
    return True


def _first_unavailable(view: View) -> Pod | None:
    pods = [*view.slots.values(), *reversed(view.condemned)]
    return next((pod for pod in pods if pod is not None and not view.available(pod)), None)


def max_unavailable(statefulset: StatefulSet) -> int:
    """At least one, or nothing would ever be replaced. Upstream: getStatefulSetMaxUnavailable."""
    rolling = statefulset.spec.update_strategy.rolling_update if statefulset.spec.update_strategy else None
    value = rolling.max_unavailable if rolling is not None else None
    return max(1, scale(1 if value is None else value, podlib.replicas_of(statefulset), round_up=False))


def partition(statefulset: StatefulSet) -> int:
    """How many of the lowest ordinals keep the template that they have."""
    rolling = statefulset.spec.update_strategy.rolling_update if statefulset.spec.update_strategy else None
    return (rolling.partition or 0) if rolling is not None else 0


def _outdated(view: View, update_revision: str) -> list[Pod]:
    """Pods of an older template that may be replaced now, highest ordinal first.

    In a parallel set unavailable pods come first and do not count against the budget.

    Upstream: updateStatefulSetAfterInvariantEstablished.
    """
    lowest = start_of(view.statefulset) + partition(view.statefulset)
    budget = max_unavailable(view.statefulset) - sum(not view.available(pod) for pod in view.slots.values())
    old = [
        pod for ordinal, pod in sorted(view.slots.items(), reverse=True)
        if ordinal >= lowest and pod is not None and pod.metadata.deletion_timestamp is None
        and not podlib.is_terminated(pod) and pod.metadata.labels.get(POD_LABEL) != update_revision
    ]  # fmt: skip
    if view.ordered:
        return old[: max(0, budget)]
    unavailable = [pod for pod in old if not view.available(pod)]
    available = [pod for pod in old if view.available(pod)]
    return [*unavailable, *available[: max(0, budget)]]


def uses_current_revision(statefulset: StatefulSet, ordinal: int) -> bool:
    """Whether a missing ordinal is created with the template that is being replaced. Upstream:
    newVersionedStatefulSetPod.
    """
    strategy = statefulset.spec.update_strategy
    if strategy is not None and strategy.rolling_update is None and strategy.type == "RollingUpdate":
        return ordinal < start_of(statefulset) + (statefulset.status.current_replicas or 0)
    return ordinal < start_of(statefulset) + partition(statefulset)
