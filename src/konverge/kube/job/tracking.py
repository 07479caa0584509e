"""Counting pods that ended, each exactly once, whatever crashes in between.

A pod carries a finalizer from its creation. When it has ended, its uid is first written to the status
(`uncountedTerminatedPods`), then its finalizer goes, then it is counted and its uid leaves the status: after any of
these steps another controller can go on. Of an indexed Job's success the index is enough, since it counts once.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from konverge.client import ClientError, NotFound, StrategicPatch
from konverge.kube.job import indexes, job_pods, policies
from konverge.kube.job.verdict import Verdict
from konverge.kube.job.view import View
from konverge.kube.pod_control import first_refusal
from konverge.objects.kinds.batch_v1 import JobStatus, UncountedTerminatedPods
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Context

MOST_UNCOUNTED = 500
"""Uids in the status at a time: some 20 KB."""


def settle(status: JobStatus, tracked: set[str]) -> None:
    """Count the uids in the status whose pods are no longer tracked."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded = [uid for uid in uncounted.succeeded if uid in tracked]
    failed = [uid for uid in uncounted.failed if uid in tracked]
    status.succeeded = (status.succeeded or 0) + len(uncounted.succeeded) - len(succeeded) or None
    status.failed = (status.failed or 0) + len(uncounted.failed) - len(failed) or None
    status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded, failed=failed)


def note(view: View, verdict: Verdict | None) -> tuple[list[Pod], bool]:
    """Write into the status which pods have ended; those that may be let go, and whether that was all of them."""
    status = view.job.status
    indexed = job_pods.is_indexed(view.job)
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    fresh: set[int] = set()
    leaving: list[Pod] = []
    whole = True
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
            whole = False
            break
    status.uncounted_terminated_pods = uncounted
    if indexed:
        _note_indexes(view, fresh)
    return leaving, whole


def _note_indexes(view: View, fresh: set[int]) -> None:
    status = view.job.status
    done = view.counted_indexes | fresh
    status.completed_indexes = indexes.render(done) or None
    status.succeeded = len(done) or None
    status.failed_indexes = None if view.failed_indexes is None else indexes.render(view.failed_indexes)


def _may_leave(view: View, pod: Pod, verdict: Verdict | None) -> bool:
    over = view.job.metadata.deletion_timestamp is not None or verdict is not None
    if over or pod.status.phase == "Succeeded":
        return True
    if not job_pods.is_failed(pod, view.job):
        return False
    index = job_pods.index_of(pod)
    kept = view.last_failed.get(index) if index is not None else None
    return kept is None or kept.metadata.uid != pod.metadata.uid


def _fails(view: View, pod: Pod, verdict: Verdict | None) -> bool:
    """Counts as failed: when the Job has failed, so has everything that had not ended."""
    lost = verdict is not None and not verdict.success
    if not (job_pods.is_failed(pod, view.job) or lost) or not job_pods.is_valid(pod, view.job):
        return False
    return policies.rule_on(view.job.spec.pod_failure_policy, pod).counts


async def let_go(ctx: Context[Any], pods: list[Pod]) -> tuple[set[str], ClientError | None]:
    """Take the finalizer from pods; the uids of those that have none any more, and the first refusal."""
    gone: set[str] = set()

    async def one(pod: Pod) -> None:
        await release(ctx, pod)
        gone.add(pod.metadata.uid)

    return gone, first_refusal(await asyncio.gather(*(one(pod) for pod in pods), return_exceptions=True))


async def release(ctx: Context[Any], pod: Pod) -> None:
    """Others may add and take finalizers at the same time: only ours is named."""
    patch = StrategicPatch({"metadata": {"$deleteFromPrimitiveList/finalizers": [job_pods.TRACKING]}})
    with contextlib.suppress(NotFound):
        await ctx.client.patch(Pod, pod.metadata.name, patch, pod.metadata.namespace)
