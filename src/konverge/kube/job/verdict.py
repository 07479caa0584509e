"""Whether a Job finishes, and why. Pure.

An earlier decision stands; then failure comes before success, since a Job may meet both at once.

Upstream: syncJob (pkg/controller/job/job_controller.go).
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge import clock
from konverge.kube.job import job_pods, policies
from konverge.kube.job.view import View
from konverge.objects.kinds.batch_v1 import Job, JobCondition
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import now, parse_time
from konverge.runtime import find_condition

DEFAULT_BACKOFF_LIMIT = 6  # upstream: the API default of backoffLimit


@dataclass(frozen=True, slots=True)
class Verdict:
    success: bool
    reason: str
    message: str

    @property
    def interim(self) -> str:
        """The condition that is set before the pods are released."""
        return "SuccessCriteriaMet" if self.success else "FailureTarget"

    @property
    def final(self) -> str:
        return "Complete" if self.success else "Failed"


COMPLETED = Verdict(True, "CompletionsReached", "Reached expected number of succeeded pods")


def is_true(job: Job, type: str) -> bool:
    condition = find_condition(job.status.conditions, type)
    return condition is not None and condition.status == "True"


def is_finished(job: Job) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


# upstream: ensureJobConditionStatus
def put(job: Job, type: str, status: str, reason: str, message: str) -> bool:
    """Set a condition; returns whether anything changed. A condition that never was true is not added as false."""
    known = find_condition(job.status.conditions, type)
    if known is None and status == "False":
        return False
    if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
        return False
    time = now()
    condition = JobCondition(
        type=type, status=status, reason=reason, message=message, last_probe_time=time, last_transition_time=time
    )
    rest = list(job.status.conditions)
    if known is None:
        rest.append(condition)
    else:
        rest[rest.index(known)] = condition
    job.status.conditions = rest
    return True


def judge(view: View) -> Verdict | None:
    """The verdict before any pod is created or deleted in this reconcile."""
    return _decided_before(view.job) or _failure_policy(view) or _limits(view) or _indexes(view)


def _decided_before(job: Job) -> Verdict | None:
    for type, success in (("SuccessCriteriaMet", True), ("FailureTarget", False)):
        condition = find_condition(job.status.conditions, type)
        if condition is not None and condition.status == "True":
            return Verdict(success, condition.reason or "", condition.message or "")
    return None


def _failure_policy(view: View) -> Verdict | None:
    for pod in view.pods:
        if job_pods.is_failed(pod, view.job):
            ruling = policies.rule_on(view.job.spec.pod_failure_policy, pod)
            if ruling.message:
                return Verdict(False, "PodFailurePolicy", ruling.message)
    return None


def _limits(view: View) -> Verdict | None:
    limit = DEFAULT_BACKOFF_LIMIT if view.job.spec.backoff_limit is None else view.job.spec.backoff_limit
    if view.failed > limit or _restarted_too_often(view, limit):
        return Verdict(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = deadline_in(view.job)
    if left is not None and left <= 0:
        return Verdict(False, "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


# upstream: pastBackoffLimitOnFailure
def _restarted_too_often(view: View, limit: int) -> bool:
    """Containers that the kubelet restarts never fail their pod; their restarts count instead."""
    if view.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = sum(_restarts(pod) for pod in view.pods if pod.status.phase in ("Running", "Pending"))
    return restarts > 0 if limit == 0 else restarts >= limit


def _restarts(pod: Pod) -> int:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return sum(status.restart_count for status in statuses)


def deadline_in(job: Job) -> float | None:
    """Seconds left; None when there is no deadline, or when it does not run. Upstream: pastActiveDeadline."""
    if job.spec.active_deadline_seconds is None or not job.status.start_time or job_pods.is_suspended(job):
        return None
    elapsed = (clock.utc_now() - parse_time(job.status.start_time)).total_seconds()
    return job.spec.active_deadline_seconds - elapsed


def _indexes(view: View) -> Verdict | None:
    failed, most = view.failed_indexes, view.job.spec.max_failed_indexes
    if failed and most is not None and len(failed) > most:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return Verdict(False, "MaxFailedIndexesExceeded", text)
    if failed and len(failed) + len(view.succeeded_indexes) >= view.completions:
        return Verdict(False, "FailedIndexes", "Job has failed indexes")
    message = policies.met(view.job.spec.success_policy, view.completions, view.succeeded_indexes)
    return Verdict(True, "SuccessPolicy", message) if message else None


def is_complete(view: View, active: int) -> bool:
    """Enough have succeeded and none runs; without a number of completions, the first success is enough."""
    wanted = view.job.spec.completions
    return active == 0 and (view.succeeded > 0 if wanted is None else view.succeeded >= wanted)
