"""The CronJob controller: Jobs at the times of a schedule.

A reconcile: delete finished Jobs beyond the limits; update the list of active ones; if a start is due (`due`, pure),
create its Job; come back at the next time. The name of a Job contains the minute of its start, so that each start
creates one Job however often it is tried.

Upstream: pkg/controller/cronjob/cronjob_controllerv2.go.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

from konverge import clock
from konverge.client import AlreadyExists, ClientError, Forbidden, NotFound
from konverge.kube.cronjob.schedule import MANY_MISSED, PADDING, Due, due, stamp, zone_of
from konverge.kube.job.verdict import is_finished, is_true
from konverge.kube.messages import message_of
from konverge.objects import cron
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.cron import Schedule, ScheduleError
from konverge.objects.kinds.batch_v1 import CronJob, Job, JobSpec
from konverge.objects.kinds.core_v1 import ObjectReference
from konverge.objects.meta import ObjectMeta
from konverge.objects.times import format_time, parse_time
from konverge.runtime import Context, Controller, Reconciler, Result, set_controller_reference
from konverge.runtime.owners import is_controlled_by

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobReconciler(Reconciler[CronJob]):
    # upstream: syncCronJob
    async def reconcile(self, ctx: Context[CronJob]) -> Result | None:
        jobs = list(await ctx.owned(Job))
        await _clean_up_finished(ctx, jobs)
        _note_finished(ctx, jobs)
        await _note_missing(ctx, jobs)
        schedule = None if ctx.obj.metadata.deletion_timestamp or ctx.obj.spec.suspend else _schedule(ctx)
        if schedule is None:
            await ctx.save_status()
            return None
        now = clock.utc_now()
        due_start = due(ctx.obj, schedule, now)
        if due_start.next is None:  # a day that no month has
            why = "time difference between two schedules is less than 1 second"
            ctx.warning("InvalidSchedule", f"invalid schedule: {ctx.obj.spec.schedule} : {why}")
            await ctx.save_status()
            return None
        try:
            await _start(ctx, due_start)
        finally:
            await ctx.save_status()
        return Result(requeue_after=(due_start.next - now).total_seconds() + PADDING)


def _schedule(ctx: Context[CronJob]) -> Schedule | None:
    """The schedule in its time zone; None, and a warning, when one of them is invalid."""
    text = ctx.obj.spec.schedule
    if "TZ" in text:
        where = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
        message = f"CRON_TZ or TZ used in schedule {_quoted(text)} is not officially supported"
        ctx.warning("UnsupportedSchedule", f"{message}, see {where} for more details")
    try:
        return cron.parse(text, zone_of(ctx.obj))
    except ScheduleError as error:
        ctx.warning("UnparseableSchedule", f"unparseable schedule: {_quoted(text)} : {error}")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        ctx.warning("UnknownTimeZone", f"invalid timeZone: {_quoted(ctx.obj.spec.time_zone or '')}: {error}")
    return None


def _quoted(text: str) -> str:
    return f'"{text}"'


# ------------------------------------------------------------------ earlier Jobs


# upstream: cleanupFinishedJobs
async def _clean_up_finished(ctx: Context[CronJob], jobs: list[Job]) -> None:
    """Delete finished Jobs beyond the limits, oldest first."""
    spec = ctx.obj.spec
    for outcome, limit in (
        ("Complete", spec.successful_jobs_history_limit),
        ("Failed", spec.failed_jobs_history_limit),
    ):
        if limit is None:
            continue
        finished = sorted((job for job in jobs if is_true(job, outcome)), key=_started)
        for job in finished[: max(0, len(finished) - limit)]:
            await _delete(ctx, job.metadata.name, job.metadata.uid)


def _started(job: Job) -> tuple[str, str]:
    return job.status.start_time or "", job.metadata.name


async def _delete(ctx: Context[CronJob], name: str, uid: str) -> None:
    try:
        with contextlib.suppress(NotFound):
            await ctx.client.delete(Job, name, ctx.request.namespace, uid=uid, propagation="Background")
    except ClientError as error:
        ctx.warning("FailedDelete", f"Deleted job: {message_of(error)}")
        raise
    _drop(ctx, uid)
    ctx.event("SuccessfulDelete", f"Deleted job {name}")


def _drop(ctx: Context[CronJob], uid: str) -> None:
    ctx.obj.status.active = [reference for reference in ctx.obj.status.active if reference.uid != uid]


def _note_finished(ctx: Context[CronJob], jobs: list[Job]) -> None:
    status = ctx.obj.status
    active = {reference.uid for reference in status.active}
    for job in jobs:
        listed = job.metadata.uid in active
        if not is_finished(job):
            if not listed:
                message = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
                ctx.warning("UnexpectedJob", message)
            continue
        if listed:
            _drop(ctx, job.metadata.uid)
            outcome = "Complete" if is_true(job, "Complete") else "Failed"
            ctx.event("SawCompletedJob", f"Saw completed job: {job.metadata.name}, condition: {outcome}")
        if job.status.completion_time is not None:
            status.last_successful_time = max(job.status.completion_time, status.last_successful_time or "")


async def _note_missing(ctx: Context[CronJob], jobs: list[Job]) -> None:
    known = {job.metadata.uid for job in jobs}
    for reference in ctx.obj.status.active:
        if reference.uid in known:
            continue
        try:
            await ctx.client.get(Job, reference.name or "", ctx.request.namespace)
        except NotFound:
            _drop(ctx, reference.uid or "")
            ctx.event("MissingJob", f"Active job went missing: {reference.name}")


# ------------------------------------------------------------------ the next start


async def _start(ctx: Context[CronJob], due_start: Due) -> None:
    cronjob, start = ctx.obj, due_start.start
    if start is None:
        return
    if due_start.missed > MANY_MISSED:
        message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        ctx.warning("TooManyMissedTimes", message)
    name = job_name(cronjob, start)
    if any(reference.name == name for reference in cronjob.status.active) or _is_last(cronjob, start):
        return
    if cronjob.spec.concurrency_policy == "Forbid" and cronjob.status.active:
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        ctx.event("JobAlreadyActive", message)
        return
    if cronjob.spec.concurrency_policy == "Replace":
        for reference in list(cronjob.status.active):
            await _delete(ctx, reference.name or "", reference.uid or "")
    job = await _create(ctx, start)
    if job is not None:
        cronjob.status.active = [*cronjob.status.active, _reference(job)]
        cronjob.status.last_schedule_time = format_time(start)


def _is_last(cronjob: CronJob, start: datetime) -> bool:
    last = cronjob.status.last_schedule_time
    return last is not None and parse_time(last) == start


async def _create(ctx: Context[CronJob], start: datetime) -> Job | None:
    """Create the Job of a start; one that we created before counts, another object of that name does not."""
    desired = job_for(ctx.obj, start)
    try:
        job = await ctx.client.create(desired)
    except AlreadyExists:
        live = await ctx.client.get(Job, desired.metadata.name, ctx.request.namespace)
        return live if is_controlled_by(live, ctx.obj) else None
    except ClientError as error:
        if not (isinstance(error, Forbidden) and error.namespace_terminating):
            ctx.warning("FailedCreate", f"Error creating job: {message_of(error)}")
        raise
    ctx.event("SuccessfulCreate", f"Created job {job.metadata.name}")
    return job


# upstream: getJobName
def job_name(cronjob: CronJob, start: datetime) -> str:
    return f"{cronjob.metadata.name}-{int(start.timestamp()) // 60}"


# upstream: getJobFromTemplate2
def job_for(cronjob: CronJob, start: datetime) -> Job:
    template = cronjob.spec.job_template
    job = Job(
        metadata=ObjectMeta(
            name=job_name(cronjob, start),
            namespace=cronjob.metadata.namespace,
            labels=dict(template.metadata.labels),
            annotations={**template.metadata.annotations, SCHEDULED: stamp(start, zone_of(cronjob))},
        ),
        spec=from_dict(JobSpec, to_dict(template.spec)),
    )
    set_controller_reference(cronjob, job)
    return job


def _reference(job: Job) -> ObjectReference:
    return ObjectReference(
        api_version=job.api_version,
        kind=job.kind,
        name=job.metadata.name,
        namespace=job.metadata.namespace,
        uid=job.metadata.uid,
        resource_version=job.metadata.resource_version,
    )


def controllers() -> list[Controller[Any]]:
    return [Controller(CronJob, CronJobReconciler(), owns=[Job], component="cronjob-controller")]
