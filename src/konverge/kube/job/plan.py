"""Which pods a Job creates or deletes next. Pure.

Upstream: manageJob (pkg/controller/job/job_controller.go).
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from konverge import clock
from konverge.kube.deletion_order import removal_order
from konverge.kube.job import job_pods, policies
from konverge.kube.job.job_pods import FAILURES, IGNORED_FAILURES, finished_at, index_of
from konverge.kube.job.view import View, failures_of_index
from konverge.kube.pod_control import BURST
from konverge.objects.kinds.core_v1 import Pod

FIRST, LONGEST = 10.0, 600.0  # upstream: DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff
_MOST_JOBS = 10_000  # a bound on memory


class Plan(msgspec.Struct):
    delete: list[Pod] = msgspec.field(default_factory=list)
    create: list[Pod] = msgspec.field(default_factory=list)
    wait: float = 0.0
    """Seconds until more may be created."""


def plan(view: View, streak: Streak) -> Plan:
    """Deleting comes first: while there are pods to delete, none is created."""
    if job_pods.is_suspended(view.job):
        return Plan(delete=view.active)
    wanted = _wanted(view)
    surplus = _surplus(view, max(0, len(view.active) - wanted))
    if surplus:
        return Plan(delete=surplus[:BURST])
    terminating = view.terminating if job_pods.replaces_failed_only(view.job) else 0
    missing = min(wanted - terminating - len(view.active), BURST)
    return _create(view, missing, streak) if missing > 0 else Plan()


def _wanted(view: View) -> int:
    """How many pods should run: no more than completions are missing; without completions, none is added after the
    first
    success."""
    parallelism = 1 if view.job.spec.parallelism is None else view.job.spec.parallelism
    if view.job.spec.completions is None:
        return len(view.active) if view.succeeded else parallelism
    return max(0, min(view.job.spec.completions - view.succeeded, parallelism))


def _surplus(view: View, count: int) -> list[Pod]:
    """At least `count` pods; of an indexed Job also all that no index needs. Upstream: activePodsForRemoval."""
    unneeded: list[Pod] = []
    needed = view.active
    if job_pods.is_indexed(view.job):
        kept: dict[int, Pod] = {}
        for pod in removal_order(view.active):
            if job_pods.is_valid(pod, view.job):
                kept[index_of(pod) or 0] = pod
        needed = list(kept.values())
        unneeded = [pod for pod in view.active if pod not in needed]
    return [*unneeded, *removal_order(needed)[: max(0, count - len(unneeded))]]


def _create(view: View, count: int, streak: Streak) -> Plan:
    job = view.job
    per_index = job.spec.backoff_limit_per_index is not None
    wait = 0.0 if per_index else remaining(streak.failures, streak.last)
    if wait > 0:
        return Plan(wait=wait)
    if not job_pods.is_indexed(job):
        return Plan(create=[job_pods.pod_for(job, None, None) for _ in range(count)])
    pending = _pending_indexes(view, count)
    if not per_index:
        return Plan(create=[job_pods.pod_for(job, index, None) for index in pending])
    failed = {index: view.last_failed[index] for index in pending if index in view.last_failed}
    waits = {index: remaining(failures_of_index(last) + 1, finished_at(last)) for index, last in failed.items()}
    now = [index for index in pending if waits.get(index, 0.0) <= 0]
    created = [job_pods.pod_for(job, index, _failures(view, index)) for index in now]
    return Plan(create=created, wait=min((wait for wait in waits.values() if wait > 0), default=0.0))


def _pending_indexes(view: View, count: int) -> list[int]:
    """The lowest indexes without a pod. Upstream: firstPendingIndexes."""
    taken = view.succeeded_indexes | (view.failed_indexes or set())
    taken |= {index for pod in view.active if (index := index_of(pod)) is not None}
    if job_pods.replaces_failed_only(view.job):
        terminating = [pod for pod in view.pods if job_pods.is_terminating(pod)]
        taken |= {index for pod in terminating if (index := index_of(pod)) is not None}
    pending: list[int] = []
    for index in range(view.completions):
        if len(pending) == count:
            break
        if index not in taken:
            pending.append(index)
    return pending


def _failures(view: View, index: int) -> tuple[int, int]:
    """(counted, ignored) failures of an index, including that of the pod being replaced. Upstream:
    getNewIndexFailureCounts.
    """
    last = view.last_failed.get(index)
    counted, ignored = job_pods.number(last, FAILURES), job_pods.number(last, IGNORED_FAILURES)
    if last is None:
        return 0, 0
    if policies.rule_on(view.job.spec.pod_failure_policy, last).counts:
        return counted + 1, ignored
    return counted, ignored + 1


# ------------------------------------------------------------------ waiting after failures

# A Job waits before it replaces failed pods: 10 s, doubled up to 10 min. The count of failures in a row is kept in
# memory, as upstream (backoff_utils.go): after a restart of the controller it starts from zero.


def remaining(failures: int, last: datetime | None) -> float:
    """Seconds until the next attempt. Upstream: getRemainingTimeForFailuresCount."""
    if not failures or last is None:
        return 0.0
    delay = min(FIRST * 2.0 ** min(failures - 1, 30), LONGEST)
    return max(0.0, delay - (clock.utc_now() - last).total_seconds())


class Streak(msgspec.Struct, frozen=True):
    """Failures since the last success, and when the last of them was."""

    failures: int = 0
    last: datetime | None = None

    def after(self, succeeded: list[Pod], failed: list[Pod]) -> Streak:
        times = sorted(finished_at(pod) for pod in failed)
        if succeeded:
            success = max(finished_at(pod) for pod in succeeded)
            later = [time for time in times if time > success]
            return Streak(len(later), later[-1] if later else None)
        return Streak(self.failures + len(times), times[-1]) if times else self


class Streaks:
    """By the uid of the Job. Entries of Jobs that were deleted before they finished remain; the oldest are dropped."""

    def __init__(self) -> None:
        self._known: dict[str, Streak] = {}

    def get(self, uid: str) -> Streak:
        return self._known.get(uid, Streak())

    def put(self, uid: str, streak: Streak) -> None:
        self._known[uid] = streak
        while len(self._known) > _MOST_JOBS:
            del self._known[next(iter(self._known))]

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)
