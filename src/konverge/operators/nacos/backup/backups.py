"""The loop of a NacosBackup: one Job dumps the database, and the status says what was stored.

The status is written before each Job, so that a process that was killed finds the same Job again. A Job that others
deleted, or whose result was lost, is made again under another number: each number has a path of its own, so that no pod
of an earlier one writes what a later one has promised.
"""

from __future__ import annotations

from konverge.client import Forbidden
from konverge.objects import times
from konverge.objects.kinds.batch_v1 import Job
from konverge.operators.nacos import names
from konverge.operators.nacos.backup import conditions
from konverge.operators.nacos.backup.jobs import (
    MYSQL_IMAGE,
    backup_job,
    data_path,
    data_prefix,
    default_image,
)
from konverge.operators.nacos.backup.jobs import delete_job as data_deletion
from konverge.operators.nacos.backup.kinds import COMPLETED, FAILED, NacosBackup, NacosRestore
from konverge.operators.nacos.backup.pods import job_name
from konverge.operators.nacos.backup.runs import (
    Hopeless,
    Progress,
    WorkError,
    condition_of,
    create_job,
    delete_job,
    find_nacos,
    has_claim,
    progress_of,
    read_job,
    read_result,
    require_in_force,
    require_place,
    require_secrets,
    require_servers,
    runs_pods,
)
from konverge.operators.nacos.backup.storage import location_of, same_data
from konverge.operators.nacos.database.scripts import family_of
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.resource import AnyNacos
from konverge.runtime import Context, Reconciler, Result, find_condition

ATTEMPTS = 3
"""Jobs for one backup, when they are lost. A Job that fails is not made again: it has tried several times itself."""
LOOK = 15.0
"""Seconds between two looks at what is not watched: a claim, a pod that does not start."""
_AGAIN = "tries again: "
_RETRY_DELETION = 300.0
"""Seconds for which a failed Job is kept for users to look at."""


class BackupReconciler(Reconciler[NacosBackup]):
    """One reconcile."""

    async def reconcile(self, ctx: Context[NacosBackup]) -> Result | None:
        status, again = ctx.obj.status, None
        if status.phase == COMPLETED:
            await _end_jobs(ctx)
        elif status.phase != FAILED:
            try:
                again = await _advance(ctx)
            except Hopeless as error:
                conditions.failed(ctx, error.reason, error.message)
            except WorkError as error:
                status.phase, again = status.phase or "Pending", LOOK
                conditions.pending(ctx, error.reason, error.message, fault=error.fault)
        status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        return None if again is None else Result(requeue_after=again)

    async def cleanup(self, ctx: Context[NacosBackup]) -> Result | None:
        try:
            again = await _clean_up(ctx)
        except WorkError as error:
            conditions.pending(ctx, error.reason, f"{error.message}; deletionPolicy: Retain ends the wait")
            await ctx.save_status()
            return Result(requeue_after=LOOK)
        return None if again is None else Result(requeue_after=again)


# ------------------------------------------------------------------ the backup


async def _advance(ctx: Context[NacosBackup]) -> float | None:
    """Seconds until the next look; None: the backup is done, or its Job is watched."""
    status = ctx.obj.status
    if status.phase != "Running":
        await _begin(ctx)
    live = await read_job(ctx, status.job_name)
    if live is None and status.job_uid:
        await _next_attempt(ctx, f"Job {status.job_name} was deleted before its result was known")
    if live is None:
        _, desired = await _source(ctx)
        live = await create_job(ctx, backup_job(ctx.obj, status.attempt, desired, _prefix(ctx)))
    status.job_uid = live.metadata.uid
    return await _result(ctx, live, progress_of(ctx, live))


async def _begin(ctx: Context[NacosBackup]) -> None:
    status, spec = ctx.obj.status, ctx.obj.spec
    nacos, desired = await _source(ctx)
    await require_place(ctx, spec.storage)
    status.phase, status.start_time = "Running", times.now()
    status.nacos_uid, status.engine = nacos.metadata.uid, desired.engine
    status.nacos_version = nacos.status.version or (str(desired.version) if desired.version.known else "")
    status.schema = family_of(status.nacos_version) if status.nacos_version else ""
    status.image = spec.image or default_image(spec.method, desired)
    _number(ctx, 1)
    conditions.pending(ctx, "Started", f"Job {status.job_name} is created", fault=False)
    await ctx.save_status()
    ctx.event("Started", f"Job {status.job_name} stores the data of Nacos {nacos.metadata.name}")


async def _source(ctx: Context[NacosBackup]) -> tuple[AnyNacos, Desired]:
    """Raises WorkError."""
    nacos, desired = await find_nacos(ctx, ctx.obj.spec.nacos_ref.name)
    known = ctx.obj.status.nacos_uid
    if known and known != nacos.metadata.uid:
        raise Hopeless(
            "NacosReplaced", f"Nacos {nacos.metadata.name} was deleted and created again; make another backup"
        )
    if ctx.obj.spec.method == "Configuration":
        require_servers(nacos)
    else:
        require_in_force(nacos, desired)
        _require_engine(ctx, desired)
    if restore := nacos.metadata.annotations.get(names.RESTORE):
        raise WorkError("Restoring", f"the restore {restore} of Nacos {nacos.metadata.name} is at work")
    return nacos, desired


def _require_engine(ctx: Context[NacosBackup], desired: Desired) -> None:
    """Raises Hopeless where there is nothing to dump, or something else than before."""
    engine, name = ctx.obj.status.engine, desired.name
    if engine and engine != desired.engine:  # the path and the manifest are of the one that was there first
        message = f"Nacos {name} has moved from {engine} to {desired.engine}; make another backup"
        raise Hopeless("EngineChanged", message)
    if desired.engine == "embedded":
        message = f"Nacos {name} keeps its data in its servers; choose method: Configuration"
        raise Hopeless("EmbeddedDatabase", message)


async def _next_attempt(ctx: Context[NacosBackup], why: str) -> None:
    """Raises Hopeless after the last one."""
    number = ctx.obj.status.attempt
    if number >= ATTEMPTS:
        raise Hopeless("JobLost", f"{why}; {number} Jobs were lost")
    ctx.warning("JobLost", f"{why}; it is made again")
    _number(ctx, number + 1)
    await ctx.save_status()


def _number(ctx: Context[NacosBackup], number: int) -> None:
    status = ctx.obj.status
    status.attempt, status.job_uid = number, ""
    status.job_name = job_name(ctx.obj, "backup", number)
    status.path = data_path(_prefix(ctx), number, ctx.obj.spec.method, status.engine)
    status.location = location_of(ctx.obj.spec.storage, status.path)


async def _result(ctx: Context[NacosBackup], job: Job, progress: Progress) -> float | None:
    status, name = ctx.obj.status, job.metadata.name
    if progress.state == "running":
        if progress.reason:
            conditions.pending(ctx, progress.reason, f"Job {name} {_AGAIN}{progress.message}")
        elif progress.message:
            conditions.pending(ctx, "PodWaiting", f"the pod of Job {name} does not run: {progress.message}")
        else:
            await require_secrets(ctx, job, ctx.obj.spec.storage.s3)
            conditions.pending(ctx, "Running", f"Job {name} is at work", fault=False)
        return LOOK
    if progress.state == "failed":
        raise Hopeless(*_failure(ctx, name, progress))
    stored = read_result(progress.message)
    if stored is None:
        await _next_attempt(ctx, f"the result of Job {name} cannot be read: its pod is gone")
        return 0.1
    status.size, status.sha256 = stored.size, stored.sha256
    conditions.completed(ctx, "Stored", f"{stored.size} bytes are at {status.location}")
    await ctx.save_status()
    await _end_jobs(ctx)
    return None


def _failure(ctx: Context[NacosBackup], job: str, progress: Progress) -> tuple[str, str]:
    """The reason and the message. A Job whose time is over takes its pods with it: what they said last is known."""
    before = find_condition(ctx.obj.status.conditions, conditions.READY)
    if progress.code is None and before is not None and _AGAIN in before.message:
        said = before.message.partition(_AGAIN)[2]
        return before.reason, f"Job {job} failed: {progress.message}: {said}"
    return progress.reason or "JobFailed", f"Job {job} failed: {progress.message}"


async def _end_jobs(ctx: Context[NacosBackup]) -> None:
    """Their results are in the status. Those of a backup that failed stay: their logs say why."""
    for job in await ctx.owned(Job):
        if job.metadata.deletion_timestamp is None:
            await delete_job(ctx, job)


def reads(restore: NacosRestore, backup: NacosBackup) -> bool:
    """Whether a restore reads the data of a backup, or is about to."""
    if restore.status.phase in (COMPLETED, FAILED):
        return False
    ref, source = restore.spec.backup_ref, restore.spec.source
    if ref is not None and ref.name == backup.metadata.name:
        return True
    return source is not None and same_data(backup.spec.storage, backup.status.path, source)


def _prefix(ctx: Context[NacosBackup]) -> str:
    return data_prefix(ctx.obj, ctx.obj.spec.nacos_ref.name, ctx.obj.spec.storage)


# ------------------------------------------------------------------ deletion


async def _clean_up(ctx: Context[NacosBackup]) -> float | None:
    """Seconds until the next look; None: nothing holds the resource any more. Raises WorkError."""
    status, spec = ctx.obj.status, ctx.obj.spec
    if not status.attempt:
        return None  # nothing was ever written
    if spec.deletion_policy == "Retain":
        if status.phase == COMPLETED:
            ctx.event("Retained", f"the data stays at {status.location}")
        return None
    if reader := next((restore for restore in await ctx.list(NacosRestore) if reads(restore, ctx.obj)), None):
        raise WorkError("InUse", f"NacosRestore {reader.metadata.name} reads the data")
    name = job_name(ctx.obj, "delete", 1)
    if await _still_writes(ctx, name):
        return 1.0
    volume = spec.storage.volume
    if volume is not None and not await has_claim(ctx, volume.claim_name):
        ctx.event("Released", f"PersistentVolumeClaim {volume.claim_name} is gone, and the data with it")
        return None
    live = await read_job(ctx, name)
    if live is None:
        image = status.image or MYSQL_IMAGE
        try:
            live = await create_job(ctx, data_deletion(ctx.obj, image, _prefix(ctx)))
        except Forbidden as error:
            if not error.namespace_terminating:
                raise
            ctx.warning("Released", f"the data stays at {status.location}: the namespace is being deleted")
            return None
    return await _deletion_result(ctx, live)


async def _still_writes(ctx: Context[NacosBackup], deletion: str) -> bool:
    """Whether a Job or a pod may still write; Jobs are ended, and their pods go after them."""
    writers = [job for job in await ctx.owned(Job) if job.metadata.name != deletion]
    for job in writers:
        if job.metadata.deletion_timestamp is None:
            await delete_job(ctx, job)
    jobs = (job_name(ctx.obj, "backup", number + 1) for number in range(ctx.obj.status.attempt))
    return bool(writers) or any(runs_pods(ctx, job) for job in jobs)


async def _deletion_result(ctx: Context[NacosBackup], job: Job) -> float | None:
    progress = progress_of(ctx, job)
    if progress.state == "complete":
        ctx.event("DataDeleted", f"the data at {ctx.obj.status.location} was deleted")
        return None
    if progress.state == "failed":
        failure = condition_of(job, "Failed")
        if failure is not None and times.seconds_since(failure.last_transition_time) >= _RETRY_DELETION:
            await delete_job(ctx, job)
        raise WorkError("DeletionFailed", f"Job {job.metadata.name} failed: {progress.message}")
    if progress.message and not progress.reason:
        raise WorkError("PodWaiting", f"the pod of Job {job.metadata.name} does not run: {progress.message}")
    await require_secrets(ctx, job, ctx.obj.spec.storage.s3)
    return LOOK
