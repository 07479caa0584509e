"""What a StatefulSet says of itself."""

from __future__ import annotations

from konverge.kube import pods as podlib
from konverge.kube.revisions import POD_LABEL
from konverge.kube.statefulset.identity import replicas_of
from konverge.kube.statefulset.plan import is_running_and_ready
from konverge.objects.kinds.apps_v1 import StatefulSet, StatefulSetStatus
from konverge.objects.kinds.core_v1 import Pod


def status_of(
    statefulset: StatefulSet, pods: list[Pod], going: set[str], current: str, update: str, collisions: int | None
) -> StatefulSetStatus:
    """The numbers; `going` has the uids of pods that were deleted in this round."""
    staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None and pod.metadata.uid not in going]
    ready = [pod for pod in pods if is_running_and_ready(pod)]
    minimum = statefulset.spec.min_ready_seconds or 0
    status = StatefulSetStatus(
        observed_generation=statefulset.metadata.generation,
        replicas=len(pods),
        ready_replicas=len(ready) or None,
        available_replicas=sum(podlib.available_in(pod, minimum) == 0 for pod in ready),
        current_replicas=_of(staying, current),
        updated_replicas=_of(staying, update),
        current_revision=current,
        update_revision=update,
        collision_count=collisions or 0,
        conditions=statefulset.status.conditions,
    )
    if _is_complete(statefulset, status):
        status.current_revision, status.current_replicas = update, status.updated_replicas
    return status


def _of(pods: list[Pod], revision: str) -> int | None:
    return sum(pod.metadata.labels.get(POD_LABEL) == revision for pod in pods) or None


def _is_complete(statefulset: StatefulSet, status: StatefulSetStatus) -> bool:
    """Everything wished for is there, ready, and of the newest template."""
    wanted = replicas_of(statefulset)
    return (status.updated_replicas or 0) == (status.ready_replicas or 0) == status.replicas == wanted


def available_after(statefulset: StatefulSet, pods: list[Pod]) -> float:
    """Seconds until another pod becomes available by age alone; 0 when none will."""
    minimum = statefulset.spec.min_ready_seconds or 0
    ages = [age for pod in pods if (age := podlib.available_in(pod, minimum))]
    return min(ages, default=0.0)
