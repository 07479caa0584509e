"""The loop of a NacosRestore: stop the servers, let one Job replace the database, start them again.

    Pending     everything is checked, nothing is touched; data in a bucket, or without a NacosBackup, is read by a Job
    Stopping    an annotation of the Nacos puts its servers to sleep, as hibernation does
    Restoring   the Job works; servers cannot start meanwhile
    Starting    the data is in place; the annotation goes, and the servers come

Each step is in the status before it begins, so a process that was killed goes on with the same one. A Job is only made
while the Nacos says that it sleeps for this very restore; from Starting on there is never another one, since the
servers may have written since then.
"""

from __future__ import annotations

import msgspec

from konverge.objects import times
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos import names
from konverge.operators.nacos.backup import conditions
from konverge.operators.nacos.backup.backups import ATTEMPTS, LOOK
from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.jobs import (
    default_image,
    inspect_job,
    path_of,
    restore_job,
    storage_of,
)
from konverge.operators.nacos.backup.kinds import COMPLETED, FAILED, NacosBackup, NacosRestore, NacosRestoreStatus
from konverge.operators.nacos.backup.manifest import Manifest, read_manifest
from konverge.operators.nacos.backup.marks import ENDED, drop_mark, half_restored, hand_back, mark_of, take_mark
from konverge.operators.nacos.backup.pods import job_name
from konverge.operators.nacos.backup.runs import (
    Hopeless,
    Progress,
    WorkError,
    condition_of,
    create_job,
    delete_job,
    find_nacos,
    is_finished,
    progress_of,
    read_job,
    require_in_force,
    require_place,
    require_secrets,
    require_servers,
    runs_pods,
)
from konverge.operators.nacos.backup.storage import RestoreSource, Storage, location_of
from konverge.operators.nacos.database.scripts import family_of
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.resource import PAUSE, AnyNacos
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.operators.nacos.steps.state import HIBERNATED
from konverge.operators.nacos.versions import read_version
from konverge.runtime import Context, Reconciler, Result, find_condition, is_true

BY_NACOS = "restore-nacos"
"""The index of restores by their Nacos: namespace and name."""
BACKUPS = "backup-nacos"
"""That of backups."""
_TOUCHED = (3, 137)
"""Exit codes of a Job for MySQL that ended after the first change: its own, and that of a process that was killed."""


class RestoreReconciler(Reconciler[NacosRestore]):
    """One reconcile."""

    async def reconcile(self, ctx: Context[NacosRestore]) -> Result | None:
        status, again = ctx.obj.status, None
        if status.phase not in ENDED:
            try:
                again = await _advance(ctx)
            except Hopeless as error:
                await _give_up(ctx, error)
            except WorkError as error:
                status.phase, again = status.phase or "Pending", LOOK
                conditions.pending(ctx, error.reason, error.message, fault=error.fault)
        status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        return None if again is None else Result(requeue_after=again)

    async def cleanup(self, ctx: Context[NacosRestore]) -> Result | None:
        """A Job that works is waited for: half a restore is worse than one that is no longer wanted."""
        name = ctx.obj.status.job_name
        jobs = [job for job in await ctx.owned(Job) if not is_finished(job)]
        for job in jobs:
            if job.metadata.deletion_timestamp is None and not _changes(ctx, job.metadata.name):
                await delete_job(ctx, job)
        if jobs or (name and runs_pods(ctx, name)):
            conditions.pending(ctx, "Deleting", f"Job {name} has not ended", fault=False)
            await ctx.save_status()
            return Result(requeue_after=LOOK)
        await _leave(ctx)
        return None


async def _advance(ctx: Context[NacosRestore]) -> float | None:
    """Seconds until the next look; None: the restore is done."""
    status = ctx.obj.status
    nacos, desired = await find_nacos(ctx, ctx.obj.spec.nacos_ref.name)
    if status.nacos_uid and status.nacos_uid != nacos.metadata.uid:
        raise Hopeless("NacosReplaced", f"Nacos {nacos.metadata.name} was deleted and created again")
    if status.phase != "Running":
        await _begin(ctx, nacos, desired)
    if status.step == "Starting":
        return await _started(ctx, nacos)
    live = await read_job(ctx, status.job_name) if status.job_name else None
    if live is None:
        if status.method == "Database":
            require_in_force(nacos, desired)
            await _stop(ctx, nacos)
        live = await _start_job(ctx, desired)
    status.job_uid = live.metadata.uid
    return await _result(ctx, live, progress_of(ctx, live))


# ------------------------------------------------------------------ Pending


class _Data(msgspec.Struct, frozen=True):
    """What is restored: as a NacosBackup says, or a manifest."""

    name: str
    """For people."""
    uid: str
    storage: Storage
    path: str
    manifest: Manifest


async def _begin(ctx: Context[NacosRestore], nacos: AnyNacos, desired: Desired) -> None:
    """Nothing is touched before everything is known to fit."""
    source = ctx.obj.spec.source
    data = await _backup(ctx) if source is None else await _orphan(ctx, source, desired)
    manifest = data.manifest
    if manifest.method == "Database":
        require_in_force(nacos, desired)
        _require_fitting(data, nacos, desired)
    else:
        require_servers(nacos)
    await require_place(ctx, data.storage)
    _require_alone(ctx)
    if source is None and data.storage.s3 is not None:
        await _require_stored(ctx, data, desired)
    if nacos.metadata.annotations.get(PAUSE, "").lower() == "true":
        message = f"Nacos {nacos.metadata.name} is paused, so its servers would not stop; remove the annotation {PAUSE}"
        raise WorkError("NacosPaused", message)
    status, volume = ctx.obj.status, data.storage.volume
    status.phase, status.start_time = "Running", times.now()
    status.method = "Database" if manifest.method == "Database" else "Configuration"
    status.step = "Stopping" if status.method == "Database" else "Restoring"
    status.nacos_uid, status.backup_uid = nacos.metadata.uid, data.uid
    status.claim_name, status.s3 = volume.claim_name if volume is not None else "", data.storage.s3
    status.path, status.sha256 = data.path, manifest.sha256
    status.engine = desired.engine
    status.image = ctx.obj.spec.image or default_image(status.method, desired)
    conditions.pending(ctx, "Started", "everything fits", fault=False)
    await ctx.save_status()
    ctx.event("Started", f"Nacos {nacos.metadata.name} is restored from {data.name}")


async def _backup(ctx: Context[NacosRestore]) -> _Data:
    ref = ctx.obj.spec.backup_ref
    if ref is None:  # it got past an older definition
        raise Hopeless("NoSource", "the spec names neither backupRef nor source")
    backup = await ctx.get(NacosBackup, ref.name)
    if backup is None or backup.metadata.deletion_timestamp is not None:
        message = f"there is no NacosBackup {ctx.request.namespace}/{ref.name}, or it is being deleted"
        raise WorkError("BackupNotFound", message)
    spec, status = backup.spec, backup.status
    if status.phase == FAILED:
        raise Hopeless("BackupFailed", f"NacosBackup {ref.name} failed; choose another one")
    if status.phase != COMPLETED:
        raise WorkError("BackupNotComplete", f"NacosBackup {ref.name} is not complete yet")
    manifest = Manifest(
        method=spec.method,
        engine=status.engine,
        nacos_version=status.nacos_version,
        schema=status.schema,
        sha256=status.sha256,
    )
    return _Data(f"NacosBackup {ref.name}", backup.metadata.uid, spec.storage, status.path, manifest)


async def _orphan(ctx: Context[NacosRestore], source: RestoreSource, desired: Desired) -> _Data:
    """Data without a NacosBackup."""
    storage, path = storage_of(source), path_of(source)
    manifest = await _inspected(ctx, storage, path, desired)
    return _Data(location_of(storage, path), "", storage, path, manifest)


async def _require_stored(ctx: Context[NacosRestore], data: _Data, desired: Desired) -> None:
    """A bucket that cannot be read, or holds something else, is refused while the servers still run."""
    found = await _inspected(ctx, data.storage, data.path, desired)
    if found.sha256 != data.manifest.sha256:
        message = f"{location_of(data.storage, data.path)} is not what {data.name} stored: it was overwritten"
        raise Hopeless("ChecksumMismatch", message)


async def _inspected(ctx: Context[NacosRestore], storage: Storage, path: str, desired: Desired) -> Manifest:
    """What a Job has read in the manifest, and compared with the data. Raises WorkError until it has."""
    name = job_name(ctx.obj, "inspect", 1)
    job = await read_job(ctx, name)
    if job is None:
        await require_place(ctx, storage)
        job = await create_job(ctx, inspect_job(ctx.obj, storage, path, desired))
    place, progress = location_of(storage, path), progress_of(ctx, job)
    if progress.state == "failed":
        raise Hopeless(progress.reason or "InspectionFailed", f"{place} is not restored: {progress.message}")
    if progress.state == "running":
        if progress.reason:
            raise WorkError(progress.reason, f"Job {name} tries again: {progress.message}")
        if progress.message:
            raise WorkError("PodWaiting", f"the pod of Job {name} does not run: {progress.message}")
        await require_secrets(ctx, job, storage.s3)
        raise WorkError("Inspecting", f"Job {name} reads the manifest of {place}", fault=False)
    if not progress.message:  # its pod is gone, and nothing was changed: once more
        await delete_job(ctx, job)
        raise WorkError("Inspecting", f"the result of Job {name} was lost", fault=False)
    try:
        return read_manifest(progress.message.encode(), place)
    except Failure as failure:
        raise Hopeless(failure.reason, failure.message) from None


def _require_fitting(data: _Data, nacos: AnyNacos, desired: Desired) -> None:
    """Raises Hopeless where the servers could not work with the data."""
    stored, name = data.manifest, nacos.metadata.name
    if stored.engine != desired.engine:
        message = f"{data.name} is of {stored.engine}, and Nacos {name} uses {desired.engine}"
        raise Hopeless("EngineMismatch", message)
    version, there = read_version(stored.nacos_version), desired.version
    if not version.known or not there.known:
        raise Hopeless("VersionUnknown", "the version of Nacos is not known: set spec.version of the Nacos")
    if there[:2] < version[:2] or stored.schema != family_of(there.line):
        message = (
            f"{data.name} is of Nacos {version} (schema {stored.schema}), and Nacos {name} is "
            f"{there} (schema {family_of(there.line)}): restore into version {version.line}, and upgrade it then"
        )
        raise Hopeless("VersionMismatch", message)


def _require_alone(ctx: Context[NacosRestore]) -> None:
    """Raises WorkError while another restore or a backup of this Nacos is at work."""
    place = f"{ctx.request.namespace}/{ctx.obj.spec.nacos_ref.name}"
    for other in ctx.indexed(NacosRestore, BY_NACOS, place):
        running = other.status.phase == "Running"
        first = other.status.phase not in ENDED and _rank(other) < _rank(ctx.obj)
        if other.metadata.uid != ctx.obj.metadata.uid and (running or first):
            raise WorkError("AnotherRestore", f"NacosRestore {other.metadata.name} comes first")
    for backup in ctx.indexed(NacosBackup, BACKUPS, place):
        if backup.status.phase == "Running":
            raise WorkError("BackupRunning", f"NacosBackup {backup.metadata.name} is being made")


def _rank(restore: NacosRestore) -> tuple[str, str]:
    return restore.metadata.creation_timestamp or "", restore.metadata.uid


# ------------------------------------------------------------------ Stopping


async def _stop(ctx: Context[NacosRestore], nacos: AnyNacos) -> None:
    """Returns when no server runs, nor will before the annotation goes. Raises WorkError until then."""
    await take_mark(ctx, nacos)
    mark = mark_of(ctx.obj)
    asleep = find_condition(nacos.status.kube_conditions, HIBERNATED)
    pods = ctx.indexed(Pod, BY_APP, f"{ctx.request.namespace}/{nacos.metadata.name}")
    if asleep is None or asleep.status != "True" or mark not in asleep.message or pods:
        raise WorkError("Stopping", f"the servers of Nacos {nacos.metadata.name} have not ended", fault=False)
    _require_no_dump(ctx)


def _require_no_dump(ctx: Context[NacosRestore]) -> None:
    """A backup may have begun before it saw the annotation: it would hold half of the old data and half of the new. One
    without a Job waits for the annotation to go."""
    for backup in ctx.indexed(NacosBackup, BACKUPS, f"{ctx.request.namespace}/{ctx.obj.spec.nacos_ref.name}"):
        made = backup.status
        dumps = made.phase == "Running" and backup.spec.method == "Database"
        if dumps and (made.job_uid or runs_pods(ctx, made.job_name)):
            raise WorkError("BackupRunning", f"NacosBackup {backup.metadata.name} is being made", fault=False)


# ------------------------------------------------------------------ Restoring


async def _start_job(ctx: Context[NacosRestore], desired: Desired) -> Job:
    status = ctx.obj.status
    number = status.attempt + 1 if status.job_uid or not status.attempt else status.attempt
    if number > ATTEMPTS:
        status.touched = _may_leave_half(status)
        raise Hopeless("JobLost", f"{status.attempt} Jobs were deleted before they ended")
    if status.job_uid and runs_pods(ctx, status.job_name):  # two must not write at once
        raise WorkError("PodEnding", f"a pod of Job {status.job_name}, which was deleted, has not ended")
    if status.job_uid:
        ctx.warning("JobLost", f"Job {status.job_name} was deleted before its result was known; it is made again")
    status.step, status.attempt, status.job_uid = "Restoring", number, ""
    status.job_name = job_name(ctx.obj, "restore", number)
    conditions.pending(ctx, "Restoring", f"Job {status.job_name} is created", fault=False)
    await ctx.save_status()
    return await create_job(ctx, restore_job(ctx.obj, number, desired))


def _may_leave_half(status: NacosRestoreStatus) -> bool:
    """MySQL does not take back what a Job that breaks off has done to its tables. Configurations are written one by one
    to servers that run."""
    return status.method == "Database" and status.engine == "mysql"


async def _result(ctx: Context[NacosRestore], job: Job, progress: Progress) -> float | None:
    name, status = job.metadata.name, ctx.obj.status
    if progress.state == "running":
        if progress.message:
            conditions.pending(ctx, "PodWaiting", f"the pod of Job {name} does not run: {progress.message}")
        else:
            await require_secrets(ctx, job, status.s3)
            conditions.pending(ctx, "Restoring", f"Job {name} is at work", fault=False)
        return LOOK
    if progress.state == "failed":
        changed = _may_leave_half(status) and progress.prepared and progress.code in (None, *_TOUCHED)
        status.touched = status.touched or changed
        raise Hopeless(progress.reason or "JobFailed", f"Job {name} failed: {progress.message}")
    status.step, status.touched = "Starting", False
    conditions.pending(ctx, "Starting", "the data is in place; the servers start", fault=False)
    await ctx.save_status()
    return 0.1


def _changes(ctx: Context[NacosRestore], name: str) -> bool:
    """Whether a Job may be changing data, or has changed it and does not say yet how it ended."""
    if name != ctx.obj.status.job_name:
        return False  # it reads a manifest
    pods = ctx.indexed(Pod, BY_APP, f"{ctx.request.namespace}/{name}")
    return any(pod.status.phase != "Pending" for pod in pods)


# ------------------------------------------------------------------ the end


async def _started(ctx: Context[NacosRestore], nacos: AnyNacos) -> float | None:
    await drop_mark(ctx)
    ready = nacos.status.phase == "Running" and is_true(nacos.status.kube_conditions, "Ready")
    if names.RESTORE in nacos.metadata.annotations or not (ready or nacos.spec.get("hibernate") is True):
        conditions.pending(ctx, "Starting", "the data is in place; the servers start", fault=False)
        return LOOK
    conditions.completed(ctx, "Restored", f"Nacos {nacos.metadata.name} has the data of {_named(ctx.obj)}")
    return None


def _named(restore: NacosRestore) -> str:
    ref, source = restore.spec.backup_ref, restore.spec.source
    if ref is not None:
        return ref.name
    return location_of(source, path_of(source)) if source is not None else ""


async def _leave(ctx: Context[NacosRestore]) -> None:
    """What has failed is deleted to start the servers; what did not come to its end leaves them as it found them."""
    jobs = [job for job in await ctx.owned(Job) if job.metadata.name == ctx.obj.status.job_name]
    repaired = any(condition_of(job, "Complete") is not None for job in jobs)
    first = None
    if ctx.obj.status.touched and ctx.obj.status.phase not in ENDED and not repaired:
        near = ctx.indexed(NacosRestore, BY_NACOS, f"{ctx.request.namespace}/{ctx.obj.spec.nacos_ref.name}")
        first = half_restored(near)
    if first is not None:
        await hand_back(ctx, first)
    else:
        await drop_mark(ctx)


async def _give_up(ctx: Context[NacosRestore], error: Hopeless) -> None:
    message = error.message
    if ctx.obj.status.touched:
        message += (
            "; the database is half restored, and the servers stay away: restore it again with overwrite: true, "
            "or delete this resource to start them"
        )
    else:
        await drop_mark(ctx)
    conditions.failed(ctx, error.reason, message)
