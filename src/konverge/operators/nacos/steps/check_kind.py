"""Step 5.1, CheckKind: the StatefulSet has the wished size, and enough of its pods are ready."""

from __future__ import annotations

from konverge.operators.nacos.pods import trouble
from konverge.operators.nacos.steps.members import Workload
from konverge.operators.nacos.steps.round import PODS_READY, Round
from konverge.operators.nacos.steps.stop import NORMAL, UNKNOWN, Stop


def check_kind(round: Round, workload: Workload) -> None:
    """Standalone: one ready pod. Cluster: (replicas+1)/2. While the workload changes, all pods have to exist."""
    round.step = "CheckKind"
    stateful_set, wish = workload.stateful_set, round.now
    if stateful_set is None:
        raise Stop(UNKNOWN, "StatefulSetMissing", f"StatefulSet {wish.name} is not there yet")
    if stateful_set.spec.replicas != wish.replicas:
        message = f"StatefulSet {wish.name} has {stateful_set.spec.replicas} replicas, wished are {wish.replicas}"
        raise Stop(UNKNOWN, "ReplicasDiffer", message)
    if not workload.acted_upon:
        raise Stop(NORMAL, "ChangeUnseen", f"StatefulSet {wish.name} was changed and is not being acted upon yet")
    if not round.settled and len(workload.pods) != wish.replicas:
        message = f"{len(workload.pods)} pods, wished are {wish.replicas}"
        raise _short(round, Stop(UNKNOWN, "PodsMissing", message))
    if len(workload.ready) < wish.needed_ready:
        troubles = "; ".join(filter(None, (trouble(pod) for pod in workload.pods)))
        message = f"The number of ready pods is too less: {len(workload.ready)} of {wish.needed_ready} needed"
        raise _short(round, Stop(UNKNOWN, "PodsNotReady", f"{message}; {troubles}" if troubles else message))
    was_ready = round.is_true(PODS_READY)
    message = f"{len(workload.ready)} of {wish.replicas} pods are ready"
    round.condition(PODS_READY, True, "EnoughReady", message)
    if not was_ready:
        raise Stop(NORMAL, "PodsReady", message)


def _short(round: Round, stop: Stop) -> Stop:
    round.condition(PODS_READY, False, stop.reason, stop.message)
    round.condition("Available", False, stop.reason, stop.message)
    return stop
