"""A Job and its pods during one reconcile: which are active, which ended and are not counted yet, which indexes are
done.

Upstream: the syncJobCtx of pkg/controller/job/job_controller.go, indexed_job_utils.go.
"""

from __future__ import annotations

import msgspec

from konverge.kube import pods as podlib
from konverge.kube.job import job_pods, policies
from konverge.kube.job.job_pods import (
    FAILURES,
    IGNORED_FAILURES,
    finished_at,
    index_of,
    is_failed,
    is_tracked,
    is_valid,
)
from konverge.objects.kinds.batch_v1 import Job, UncountedTerminatedPods
from konverge.objects.kinds.core_v1 import Pod


class View(msgspec.Struct):
    job: Job
    pods: list[Pod]
    active: list[Pod]
    ready: int
    terminating: int
    new_succeeded: list[Pod]
    new_failed: list[Pod]
    succeeded: int
    failed: int
    counted_indexes: set[int] = msgspec.field(default_factory=set)
    """Succeeded indexes that are already in the status."""
    succeeded_indexes: set[int] = msgspec.field(default_factory=set)
    failed_indexes: set[int] | None = None
    """None without a back-off limit per index."""
    last_failed: dict[int, Pod] = msgspec.field(default_factory=dict)
    """By index, the failed pod that is kept until its successor has taken over its count of failures.

    Upstream: getPodsWithDelayedDeletionPerIndex.
    """

    @property
    def completions(self) -> int:
        return self.job.spec.completions or 0


def look_at(job: Job, pods: list[Pod]) -> View:
    uncounted = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    fresh = [pod for pod in pods if is_tracked(pod) and is_valid(pod, job)]
    succeeded = [p for p in fresh if p.status.phase == "Succeeded" and p.metadata.uid not in uncounted.succeeded]
    failed = [p for p in fresh if is_failed(p, job) and p.metadata.uid not in uncounted.failed]
    counting = [pod for pod in failed if policies.rule_on(job.spec.pod_failure_policy, pod).counts]
    active = [pod for pod in pods if podlib.is_active(pod)]
    view = View(
        job=job,
        pods=sorted(pods, key=_by_index) if job_pods.is_indexed(job) else pods,
        active=active,
        ready=sum(podlib.is_ready(pod) for pod in active),
        terminating=sum(job_pods.is_terminating(pod) for pod in pods),
        new_succeeded=succeeded,
        new_failed=failed,
        succeeded=(job.status.succeeded or 0) + len(succeeded) + len(uncounted.succeeded),
        failed=(job.status.failed or 0) + len(counting) + len(uncounted.failed),
    )
    if job_pods.is_indexed(job):
        _look_at_indexes(view, fresh)
    return view


def _by_index(pod: Pod) -> int:
    index = index_of(pod)
    return -1 if index is None else index


def _look_at_indexes(view: View, fresh: list[Pod]) -> None:
    job = view.job
    view.counted_indexes = job_pods.parse_indexes(job.status.completed_indexes or "", view.completions)
    done = {_by_index(pod) for pod in fresh if pod.status.phase == "Succeeded"}
    view.succeeded_indexes = view.counted_indexes | done
    view.succeeded = len(view.succeeded_indexes)
    if job.spec.backoff_limit_per_index is None:
        return
    known = job_pods.parse_indexes(job.status.failed_indexes or "", view.completions)
    view.failed_indexes = known | {_by_index(pod) for pod in fresh if _index_failed(job, pod)}
    taken = view.succeeded_indexes | view.failed_indexes | {_by_index(pod) for pod in view.active}
    for pod in fresh:
        index = _by_index(pod)
        if is_failed(pod, job) and index not in taken and _is_later(pod, view.last_failed.get(index)):
            view.last_failed[index] = pod


def _index_failed(job: Job, pod: Pod) -> bool:
    """Whether the failure of this pod is the failure of its index. Upstream: isIndexFailed."""
    if not is_failed(pod, job):
        return False
    ruling = policies.rule_on(job.spec.pod_failure_policy, pod)
    limit = job.spec.backoff_limit_per_index or 0
    return ruling.action == "FailIndex" or (ruling.counts and job_pods.number(pod, FAILURES) >= limit)


def failures_of_index(pod: Pod) -> int:
    return job_pods.number(pod, FAILURES) + job_pods.number(pod, IGNORED_FAILURES)


def _is_later(pod: Pod, known: Pod | None) -> bool:
    if known is None:
        return True
    return failures_of_index(pod) >= failures_of_index(known) and finished_at(pod) >= finished_at(known)
