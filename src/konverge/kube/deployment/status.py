"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure.

Upstream: calculateStatus (pkg/controller/deployment/sync.go), syncRolloutStatus (progress.go).
"""

from __future__ import annotations

from datetime import timedelta

from konverge import clock
from konverge.kube.deployment.replicasets import unavailable_allowed
from konverge.kube.pods import replicas_of
from konverge.objects.kinds.apps_v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from konverge.objects.times import now, parse_time
from konverge.runtime import find_condition

AVAILABLE = "NewReplicaSetAvailable"
UPDATED = "ReplicaSetUpdated"
CREATED = "NewReplicaSetCreated"
CREATE_FAILED = "ReplicaSetCreateError"
FOUND = "FoundNewReplicaSet"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
NO_DEADLINE = 2**31 - 1
"""The deadline that means none. Upstream: HasProgressDeadline."""


# upstream: SetDeploymentCondition
def put(
    conditions: list[DeploymentCondition], type: str, status: str, reason: str, message: str, *, fresh: bool = False
) -> list[DeploymentCondition]:
    """Set a condition; with the same status and reason it stays as it is, unless `fresh` renews its update time."""
    known = find_condition(conditions, type)
    if known is not None and known.status == status and known.reason == reason and not fresh:
        return conditions
    moved = now() if known is None or known.status != status else known.last_transition_time
    condition_ = DeploymentCondition(
        type=type, status=status, reason=reason, message=message, last_update_time=now(), last_transition_time=moved
    )
    return [*(condition for condition in conditions if condition.type != type), condition_]


def deadline(deployment: Deployment) -> int | None:
    seconds = deployment.spec.progress_deadline_seconds
    return None if seconds == NO_DEADLINE else seconds


def has_deadline(deployment: Deployment) -> bool:
    return deadline(deployment) is not None


def counts(deployment: Deployment, new: ReplicaSet | None, replicasets: list[ReplicaSet]) -> DeploymentStatus:
    """The new status with its numbers and Available; Progressing is decided afterwards, on these numbers."""
    total = sum(rs.status.replicas for rs in replicasets)
    available = sum(rs.status.available_replicas or 0 for rs in replicasets)
    ready = sum(rs.status.ready_replicas or 0 for rs in replicasets)
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=total or None,
        updated_replicas=(new.status.replicas if new else 0) or None,
        ready_replicas=ready or None,
        available_replicas=available or None,
        unavailable_replicas=max(0, sum(replicas_of(rs) for rs in replicasets) - available) or None,
        terminating_replicas=sum(rs.status.terminating_replicas or 0 for rs in replicasets),
        collision_count=deployment.status.collision_count,
        conditions=list(deployment.status.conditions),
    )
    if available >= replicas_of(deployment) - unavailable_allowed(deployment):
        condition = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        condition = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status.conditions = put(status.conditions, "Available", *condition)
    return status


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """All pods are of the present template and available, and no others are left. Upstream: DeploymentComplete."""
    wanted = replicas_of(deployment)
    return (
        (status.updated_replicas or 0) == wanted
        and (status.replicas or 0) == wanted
        and (status.available_replicas or 0) == wanted
        and (status.observed_generation or 0) >= deployment.metadata.generation
    )


def progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, replicasets: list[ReplicaSet]
) -> None:
    """Decide Progressing and ReplicaFailure of the new status."""
    current = find_condition(status.conditions, "Progressing")
    settled = (status.replicas or 0) == (status.updated_replicas or 0) and (
        current is not None and current.reason == AVAILABLE
    )
    if has_deadline(deployment) and not settled:
        whose = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
        if is_complete(deployment, status):
            condition = ("True", AVAILABLE, f"{whose} has successfully progressed.")
            status.conditions = put(status.conditions, "Progressing", *condition)
        elif _moved(deployment, status):
            condition = ("True", UPDATED, f"{whose} is progressing.")
            status.conditions = put(status.conditions, "Progressing", *condition, fresh=True)
        elif _timed_out(deployment, status):
            condition = ("False", TIMED_OUT, f"{whose} has timed out progressing.")
            status.conditions = put(status.conditions, "Progressing", *condition)
    _copy_failure(status, new, replicasets)


def _moved(deployment: Deployment, status: DeploymentStatus) -> bool:
    """More pods are new, fewer are old, or more are ready or available than before. Upstream: DeploymentProgressing."""
    before = deployment.status
    old_before = (before.replicas or 0) - (before.updated_replicas or 0)
    old_now = (status.replicas or 0) - (status.updated_replicas or 0)
    return (
        (status.updated_replicas or 0) > (before.updated_replicas or 0)
        or old_now < old_before
        or (status.ready_replicas or 0) > (before.ready_replicas or 0)
        or (status.available_replicas or 0) > (before.available_replicas or 0)
    )


# upstream: DeploymentTimedOut
def _timed_out(deployment: Deployment, status: DeploymentStatus) -> bool:
    current = find_condition(status.conditions, "Progressing")
    if current is None or current.reason == AVAILABLE:
        return False
    return current.reason == TIMED_OUT or (left(deployment, current) or 0.0) <= 0.0


def left(deployment: Deployment, current: DeploymentCondition | None) -> float | None:
    """Seconds until a rollout that makes no progress counts as failed; None when there is no deadline."""
    seconds = deadline(deployment)
    if seconds is None or current is None or not current.last_update_time:
        return None
    if current.reason in (AVAILABLE, TIMED_OUT):
        return None
    due = parse_time(current.last_update_time) + timedelta(seconds=seconds)
    return (due - clock.utc_now()).total_seconds()


def _copy_failure(status: DeploymentStatus, new: ReplicaSet | None, replicasets: list[ReplicaSet]) -> None:
    """ReplicaFailure of the new set, or else of any set. Upstream: getReplicaFailures."""
    order = [*([new] if new else []), *(rs for rs in replicasets if rs is not new)]
    failure = next((c for rs in order for c in rs.status.conditions if c.type == "ReplicaFailure"), None)
    if failure is None:
        status.conditions = [c for c in status.conditions if c.type != "ReplicaFailure"]
    else:
        condition = (failure.status or "True", failure.reason or "", failure.message or "")
        status.conditions = put(status.conditions, "ReplicaFailure", *condition)
