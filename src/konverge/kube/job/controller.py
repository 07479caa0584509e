"""The Job controller: pods that run until enough of them have succeeded, or too many have failed.

A reconcile: the Job's pods; whether it has finished (`verdict`, pure); if so its pods are deleted, else pods are
created or deleted (`plan`, pure); then those that ended are counted (`tracking`). A second controller releases pods
whose Job was deleted.

Changes of pods within one second are handled together, as upstream: a Job whose pods end in a burst is counted once.

Upstream: pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.cache import Change, by_owner
from konverge.client import ClientError
from konverge.kube import pods as podlib
from konverge.kube.adoption import ORPHANS, adoptable, adopters, claim, orphans
from konverge.kube.job import job_pods, plan, tracking, verdict
from konverge.kube.job.job_pods import TRACKING
from konverge.kube.job.plan import Streak, Streaks
from konverge.kube.job.verdict import COMPLETED, Verdict
from konverge.kube.job.view import View, look_at
from konverge.kube.listers import declared
from konverge.kube.pod_control import create_pods, delete_pods
from konverge.objects import labels
from konverge.objects.kinds.batch_v1 import Job, UncountedTerminatedPods
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import now
from konverge.runtime import Context, Controller, Reason, Reconciler, Request, Result, Watches, controller_of
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate, deleted
from konverge.runtime.reasons import Changed

OURS = "kubernetes.io/job-controller"
BATCH = 1.0
"""Seconds for which changes of pods are collected. Upstream: SyncJobBatchPeriod."""
_AT_ONCE = 0.01  # seconds until the rest of the ended pods is counted


class Outcome(msgspec.Struct):
    """The outcome of a reconcile, before the counting."""

    active: int
    ready: int
    terminating: int
    verdict: Verdict | None = None
    failure: ClientError | None = None
    wait: float = 0.0


class JobReconciler(Reconciler[Job]):
    def __init__(self) -> None:
        self._streaks = Streaks()

    # upstream: syncJob
    async def reconcile(self, ctx: Context[Job]) -> Result | None:
        job = ctx.obj
        if _is_managed_by_another(job) or job.spec.selector is None:
            return None
        if verdict.is_finished(job):
            self._streaks.forget(job.metadata.uid)
            return None
        if ctx.reasons and all(_is_pod_change(reason) for reason in ctx.reasons):
            return Result(requeue_after=BATCH)
        view = look_at(job, await claim(ctx, Pod, labels.from_selector(job.spec.selector), finalizer=TRACKING))
        if job.status.start_time is None and not job_pods.is_suspended(job):
            job.status.start_time = now()
        streak = self._streaks.get(job.metadata.uid).after(view.new_succeeded, view.new_failed)
        finish = verdict.judge(view)
        outcome = await _stop(ctx, view, finish) if finish else await _manage(ctx, view, streak)
        all_counted = await self._count(ctx, view, outcome, streak)
        if outcome.failure is not None:
            raise outcome.failure
        waits = [outcome.wait, verdict.deadline_in(job) or 0.0, 0.0 if all_counted else _AT_ONCE]
        return Result(requeue_after=min((wait for wait in waits if wait > 0), default=0.0))

    # upstream: trackJobStatusAndRemoveFinalizers
    async def _count(self, ctx: Context[Job], view: View, outcome: Outcome, streak: Streak) -> bool:
        """Count pods that ended, and finish the Job when all are counted; False when more are left for the next
        reconcile.
        """
        job, status, finish = ctx.obj, ctx.obj.status, outcome.verdict
        status.active, status.ready, status.terminating = outcome.active or None, outcome.ready, outcome.terminating
        tracked = {pod.metadata.uid for pod in view.pods if job_pods.is_tracked(pod)}
        tracking.settle(status, tracked)
        leaving, all_counted = tracking.note(view, finish)
        if finish is not None:
            verdict.put(job, finish.interim, "True", finish.reason, finish.message)
        await ctx.save_status()
        self._streaks.put(job.metadata.uid, streak)
        released, refusal = await tracking.release_all(ctx, leaving)
        outcome.failure = outcome.failure or refusal
        tracking.settle(status, tracked - released)
        finished = finish is not None and all_counted and _nothing_uncounted(job) and outcome.terminating == 0
        if finish is not None and finished:
            verdict.put(job, finish.final, "True", finish.reason, finish.message)
            status.completion_time = now() if finish.success else None
        await ctx.save_status()
        if finish is not None and finished:
            _record_finished(ctx, finish)
        return all_counted


# upstream: managedByExternalController
def _is_managed_by_another(job: Job) -> bool:
    return job.spec.managed_by is not None and job.spec.managed_by != OURS


def _is_pod_change(reason: Reason) -> bool:
    return isinstance(reason, Changed) and reason.kind == "Pod" and not reason.change.initial


def _nothing_uncounted(job: Job) -> bool:
    uncounted = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    return not uncounted.succeeded and not uncounted.failed


# upstream: recordJobFinished
def _record_finished(ctx: Context[Job], finish: Verdict) -> None:
    if not finish.success:
        ctx.warning(finish.reason, finish.message)
        return
    wanted = ctx.obj.spec.completions
    if wanted is not None and (ctx.obj.status.succeeded or 0) > wanted:
        ctx.warning("TooManySucceededPods", "Too many succeeded pods running after completion count reached")
    ctx.event("Completed", "Job completed")


# ------------------------------------------------------------------ creating and deleting pods


# upstream: deleteActivePods
async def _stop(ctx: Context[Job], view: View, finish: Verdict) -> Outcome:
    """The Job finishes: pods that still run are deleted. Their finalizers stay until they have been counted."""
    _, failure = await delete_pods(ctx, view.active)
    if failure is not None:
        return Outcome(len(view.active), view.ready, view.terminating, failure=failure)
    return Outcome(0, 0, view.terminating + len(view.active), finish)


# upstream: manageJob
async def _manage(ctx: Context[Job], view: View, streak: Streak) -> Outcome:
    outcome = Outcome(len(view.active), view.ready, view.terminating)
    deleting = ctx.obj.metadata.deletion_timestamp is not None
    if not deleting:
        steps = plan.plan(view, streak)
        await _delete(ctx, steps.delete, outcome)
        created, refusal = await create_pods(ctx, steps.create)
        outcome.active += len(created)
        outcome.failure = outcome.failure or refusal
        # A failed pod of the same index is released once the cache shows its successor.
        outcome.wait = BATCH if created and view.last_failed else steps.wait
    if verdict.is_complete(view, outcome.active):
        outcome.verdict = COMPLETED
    elif not deleting:
        _note_suspension(ctx)
    return outcome


async def _delete(ctx: Context[Job], pods: list[Pod], outcome: Outcome) -> None:
    """Surplus pods. They are released first, so that they do not count as failed."""
    _, refusal = await tracking.release_all(ctx, [pod for pod in pods if job_pods.is_tracked(pod)])
    if refusal is None:
        _, refusal = await delete_pods(ctx, pods)
    outcome.failure = refusal
    if refusal is None:
        outcome.active -= len(pods)
        outcome.ready -= sum(podlib.is_ready(pod) for pod in pods)
        outcome.terminating += len(pods)


def _note_suspension(ctx: Context[Job]) -> None:
    """The time of the deadline starts again whenever a Job is resumed."""
    job = ctx.obj
    if job_pods.is_suspended(job):
        if verdict.put(job, "Suspended", "True", "JobSuspended", "Job suspended"):
            job.status.start_time = None
            ctx.event("Suspended", "Job suspended")
    elif verdict.put(job, "Suspended", "False", "JobResumed", "Job resumed"):
        job.status.start_time = now()
        ctx.event("Resumed", "Job resumed")


# ------------------------------------------------------------------ pods whose Job was deleted


# upstream: syncOrphanPod
async def release_orphan(ctx: Context[Pod]) -> None:
    """No Job will count this pod any more: remove its finalizer."""
    pod, owner = ctx.obj, controller_of(ctx.obj)
    if not job_pods.is_tracked(pod):
        return
    if owner is not None:
        if (owner.api_version, owner.kind) != ("batch/v1", "Job"):
            return
        job = await ctx.get(Job, owner.name)
        ours = job is not None and job.metadata.uid == owner.uid
        if job is not None and ours and (_is_managed_by_another(job) or not verdict.is_finished(job)):
            return
    await tracking.release(ctx, pod)


@ChangePredicate
def _may_be_tracked(change: Change) -> bool:
    """This is asked for every pod of the cluster, so the bytes are searched and not decoded."""
    return change.new is not None and TRACKING.encode() in change.new.raw


def _pods_of(job: Job, caches: Caches) -> list[Request]:
    return declared(caches, Pod).keys_by_index("owner", job.metadata.uid)


# ------------------------------------------------------------------ declaration


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            Job,
            JobReconciler(),
            component="job-controller",
            owns=[Pod],
            watches=[Watches(Pod, lookup=adopters(Job), when=adoptable)],
            indexes={Pod: {ORPHANS: orphans}},
        ),
        Controller(
            Pod,
            release_orphan,
            name="job-orphans",
            watches=[Watches(Job, lookup=_pods_of, when=deleted)],
            when=_may_be_tracked,
            indexes={Pod: {"owner": by_owner}},
        ),
    ]
