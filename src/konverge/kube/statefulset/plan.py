"""What a StatefulSet does next: pure, from its wish and its pods.

Ordered sets take one step and wait until it has come true: every ordinal is there and available before the next is
made, before one is removed, before one is replaced. Parallel sets take all steps at once; only replacing by a newer
template keeps to maxUnavailable there too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from konverge.kube import pods as podlib
from konverge.kube.revisions import POD_LABEL
from konverge.kube.statefulset.identity import ordinal_of, ordinals_of, replicas_of, start_of
from konverge.objects.int_or_string import scale
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Pod


@dataclass(slots=True)
class Plan:
    """Steps in the order in which they are taken."""

    discard: list[Pod] = field(default_factory=list)
    """Pods that have ended: they make room for their successors."""
    create: list[int] = field(default_factory=list)
    """Ordinals without a pod."""
    keep: list[Pod] = field(default_factory=list)
    """Pods whose identity and claims are put right where they are not."""
    remove: list[Pod] = field(default_factory=list)
    """Pods outside of the wished ordinals."""
    replace: list[Pod] = field(default_factory=list)
    """Pods of an older template; their ordinals are made anew when they have gone."""


@dataclass(slots=True)
class View:
    """The pods of a set, sorted into wished ordinals and others."""

    statefulset: StatefulSet
    slots: dict[int, Pod | None]
    condemned: list[Pod]
    """Highest ordinal first."""

    @property
    def ordered(self) -> bool:
        return self.statefulset.spec.pod_management_policy != "Parallel"

    def available(self, pod: Pod | None) -> bool:
        """There, ready for long enough, and not about to go."""
        return (
            pod is not None
            and pod.metadata.deletion_timestamp is None
            and podlib.available_in(pod, self.statefulset.spec.min_ready_seconds or 0) == 0
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
    """Every wished ordinal; whether one may go on to removing and replacing."""
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
    """Those outside, from the highest; in order one at a time, and none that is ill before the first that is ill."""
    first_ill = _first_unavailable(view)
    for pod in view.condemned:
        going = pod.metadata.deletion_timestamp is not None
        if view.ordered:
            healthy = is_running_and_ready(pod) and view.available(pod)
            if not going and (healthy or pod is first_ill):
                steps.remove.append(pod)
            return False
        if not going:
            steps.remove.append(pod)
    return True


def _first_unavailable(view: View) -> Pod | None:
    there = [*view.slots.values(), *reversed(view.condemned)]
    return next((pod for pod in there if pod is not None and not view.available(pod)), None)


def max_unavailable(statefulset: StatefulSet) -> int:
    """At least one, or nothing would ever be replaced."""
    rolling = statefulset.spec.update_strategy.rolling_update if statefulset.spec.update_strategy else None
    wished = rolling.max_unavailable if rolling is not None else None
    return max(1, scale(1 if wished is None else wished, replicas_of(statefulset), round_up=False))


def partition(statefulset: StatefulSet) -> int:
    """How many of the lowest ordinals keep the template that they have."""
    rolling = statefulset.spec.update_strategy.rolling_update if statefulset.spec.update_strategy else None
    return (rolling.partition or 0) if rolling is not None else 0


def _outdated(view: View, update_revision: str) -> list[Pod]:
    """Pods of an older template that may go now, highest ordinal first.

    In a parallel set those that serve nobody anyway go first and cost nothing of the budget.
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
    useless = [pod for pod in old if not view.available(pod)]
    serving = [pod for pod in old if view.available(pod)]
    return [*useless, *serving[: max(0, budget)]]


def uses_current_revision(statefulset: StatefulSet, ordinal: int) -> bool:
    """Whether a missing ordinal comes back with the template that is being replaced."""
    strategy = statefulset.spec.update_strategy
    if strategy is not None and strategy.rolling_update is None and strategy.type == "RollingUpdate":
        return ordinal < start_of(statefulset) + (statefulset.status.current_replicas or 0)
    return ordinal < start_of(statefulset) + partition(statefulset)
