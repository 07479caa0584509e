"""Counting pods that ended, each exactly once, whatever crashes in between.

A pod has a finalizer from its creation. When it has ended, its uid is first written to the status
(`uncountedTerminatedPods`), then its finalizer is removed, then it is counted and its uid is removed from the status:
after any of these steps another controller can continue. For a success in an indexed Job the index is enough, since it
counts once.

Upstream: trackJobStatusAndRemoveFinalizers (pkg/controller/job/job_controller.go).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from konverge.client import ClientError, NotFound, StrategicPatch
from konverge.kube.job import job_pods, policies
from konverge.kube.job.verdict import Verdict
from konverge.kube.job.view import View
from konverge.kube.pod_control import first_refusal
from konverge.objects.kinds.batch_v1 import JobStatus, UncountedTerminatedPods
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Context

MOST_UNCOUNTED = 500
"""Uids in the status at a time: some 20 KB. Upstream: MaxUncountedPods."""


# upstream: cleanUncountedPodsWithoutFinalizers
def settle(status: JobStatus, tracked: set[str]) -> None:
    """Count the uids in the status whose pods have no finalizer any more."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded = [uid for uid in uncounted.succeeded if uid in tracked]
    failed = [uid for uid in uncounted.failed if uid in tracked]
    status.succeeded = (status.succeeded or 0) + len(uncounted.succeeded) - len(succeeded) or None
    status.failed = (status.failed or 0) + len(uncounted.failed) - len(failed) or None
    status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded, failed=failed)


def note(view: View, verdict: Verdict | None) -> tuple[list[Pod], bool]:
    """Put into the status which pods have ended; returns those that may be released, and whether these are all."""
    status = view.job.status
    indexed = job_pods.is_indexed(view.job)
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    fresh: set[int] = set()
    leaving: list[Pod] = []
    all_noted = True
    for pod in view.pods:
        if not job_pods.is_tracked(pod) or not _may_leave(view, pod, verdict):
            continue
        leaving.append(pod)
        uid, index = pod.metadata.uid, job_pods.index_of(pod)
        if pod.status.phase == "Succeeded" and uid not in uncounted.failed:
            if not indexed and uid not in uncounted.succeeded:
                uncounted.succeeded.append(uid)
            elif indexed and job_pods.is_valid(pod, view.job) and index not in view.counted_indexes:
                fresh.add(index or 0)
        elif _fails(view, pod, verdict) and uid not in uncounted.failed:
            uncounted.failed.append(uid)
        if len(fresh) + len(uncounted.succeeded) + len(uncounted.failed) >= MOST_UNCOUNTED:
            all_noted = False
            break
    status.uncounted_terminated_pods = uncounted
    if indexed:
        _note_indexes(view, fresh)
    return leaving, all_noted


def _note_indexes(view: View, fresh: set[int]) -> None:
    status = view.job.status
    done = view.counted_indexes | fresh
    status.completed_indexes = job_pods.render_indexes(done) or None
    status.succeeded = len(done) or None
    status.failed_indexes = None if view.failed_indexes is None else job_pods.render_indexes(view.failed_indexes)


# upstream: canRemoveFinalizer
def _may_leave(view: View, pod: Pod, verdict: Verdict | None) -> bool:
    finished = view.job.metadata.deletion_timestamp is not None or verdict is not None
    if finished or pod.status.phase == "Succeeded":
        return True
    if not job_pods.is_failed(pod, view.job):
        return False
    index = job_pods.index_of(pod)
    kept = view.last_failed.get(index) if index is not None else None
    return kept is None or kept.metadata.uid != pod.metadata.uid


def _fails(view: View, pod: Pod, verdict: Verdict | None) -> bool:
    """Whether a pod counts as failed: when the Job has failed, every pod that had not ended counts as failed."""
    job_failed = verdict is not None and not verdict.success
    if not (job_pods.is_failed(pod, view.job) or job_failed) or not job_pods.is_valid(pod, view.job):
        return False
    return policies.rule_on(view.job.spec.pod_failure_policy, pod).counts


# upstream: removeTrackingFinalizerFromPods
async def release_all(ctx: Context[Any], pods: list[Pod]) -> tuple[set[str], ClientError | None]:
    """Remove the finalizer of pods; returns the uids of those that have none any more, and the first refusal."""
    released: set[str] = set()

    async def release_pod(pod: Pod) -> None:
        await release(ctx, pod)
        released.add(pod.metadata.uid)

    return released, first_refusal(await asyncio.gather(*(release_pod(pod) for pod in pods), return_exceptions=True))


async def release(ctx: Context[Any], pod: Pod) -> None:
    """Other clients may change the finalizers at the same time: the patch names only ours."""
    patch = StrategicPatch({"metadata": {"$deleteFromPrimitiveList/finalizers": [job_pods.TRACKING]}})
    with contextlib.suppress(NotFound):
        await ctx.client.patch(Pod, pod.metadata.name, patch, pod.metadata.namespace)
