"""The loop of a NacosBackupSchedule: a NacosBackup for each start, and the end of those that are too old.

The name of a backup contains its start, so that each start makes one backup however often it is tried. A start waits
while the backup before it is still being made.

The backups have no owner: they stay when the schedule goes, and when the Nacos goes. What a schedule deletes is in
`retention.py`; while it is suspended it deletes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from konverge import clock
from konverge.client import AlreadyExists, BadRequest, Forbidden, Invalid
from konverge.objects import ObjectMeta, cron
from konverge.objects.times import format_time, parse_time
from konverge.operators.nacos.backup.backups import reads
from konverge.operators.nacos.backup.kinds import (
    COMPLETED,
    FAILED,
    BackupSettings,
    NacosBackup,
    NacosBackupSchedule,
    NacosBackupSpec,
    NacosRestore,
)
from konverge.operators.nacos.backup.retention import (
    SCHEDULED_AT,
    SCHEDULED_BY,
    complete,
    expired,
    is_made_by,
    next_expiry,
    own,
    scheduled_name,
    start_of,
)
from konverge.operators.timetable import PADDING, Due, due, parsed, sooner
from konverge.runtime import Context, Reconciler, Result, find_condition, set_condition

BY_SCHEDULE = "schedule"
"""The index of backups by the uid of the schedule that made them."""
READY = "Ready"
_RETRY = 60.0
_LONGEST = 1024


class ScheduleReconciler(Reconciler[NacosBackupSchedule]):
    """One reconcile."""

    async def reconcile(self, ctx: Context[NacosBackupSchedule]) -> Result | None:
        if ctx.deleting:
            return None
        backups = own(ctx.obj, ctx.indexed(NacosBackup, BY_SCHEDULE, ctx.obj.metadata.uid))
        _note(ctx, backups)
        again = await _run(ctx, backups)
        ctx.obj.status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        return None if again is None else Result(requeue_after=again)


async def _run(ctx: Context[NacosBackupSchedule], backups: list[NacosBackup]) -> float | None:
    """Seconds until the next look; None when only a change can lead to anything."""
    spec = ctx.obj.spec
    ctx.obj.status.next_schedule_time = ""
    try:
        timetable = parsed(spec.schedule, spec.time_zone)
    except ValueError as error:
        _refuse(ctx, "InvalidSchedule", str(error))
        return None
    if spec.suspend:
        _say(ctx, False, "Suspended", "spec.suspend is true")
        return None
    now = clock.utc_now()
    looked = _due(ctx, timetable, backups, now)
    start, following = looked.start, looked.following
    if following is None and start is None:
        _refuse(ctx, "InvalidSchedule", f"{spec.schedule} never occurs")
        return None
    wait = None
    if following is not None:
        ctx.obj.status.next_schedule_time = format_time(following)
        wait = (following - now).total_seconds() + PADDING
    restores = await ctx.list(NacosRestore)
    read = {backup.metadata.name for backup in backups if any(reads(restore, backup) for restore in restores)}
    for backup, why in expired(backups, spec.retention, now, read=read):
        if await ctx.delete(NacosBackup, backup.metadata.name):  # by its uid
            ctx.event("BackupExpired", f"NacosBackup {backup.metadata.name} deleted: {why}")
    if start is not None and not await _start(ctx, backups, start):
        return _RETRY
    if start is None:
        _judge(ctx, backups)
    return sooner(wait, next_expiry(backups, spec.retention, now))


def _due(
    ctx: Context[NacosBackupSchedule], timetable: cron.Schedule, backups: Sequence[NacosBackup], now: datetime
) -> Due:
    spec = ctx.obj.spec
    return due(
        timetable,
        created=ctx.obj.metadata.creation_timestamp,
        last=_last_start(ctx.obj, backups),
        deadline=spec.starting_deadline_seconds,
        immediate=spec.immediate,
        now=now,
    )


async def _start(ctx: Context[NacosBackupSchedule], backups: Sequence[NacosBackup], start: datetime) -> bool:
    """Make the backup of a start, unless the one before is still being made. False: try again before long."""
    if backups and backups[0].status.phase not in (COMPLETED, FAILED):
        _wait(ctx, backups[0])
        return True
    backup = backup_at(ctx.obj, start)
    name = backup.metadata.name
    try:
        await ctx.client.create(backup)
        ctx.event("BackupScheduled", f"NacosBackup {name} made")
    except AlreadyExists:
        live = await ctx.client.get(NacosBackup, name, ctx.request.namespace)
        if not is_made_by(ctx.obj, live):
            _refuse(
                ctx, "NotOwned", f"NacosBackup {name} is there already, and not by this schedule; delete or rename it"
            )
            return False
    except (Invalid, Forbidden, BadRequest) as error:
        if isinstance(error, Forbidden) and error.namespace_terminating:
            raise
        _refuse(ctx, "Refused", f"the API server refuses: {error}")
        return False
    status = ctx.obj.status
    status.last_schedule_time, status.last_backup = format_time(start), name
    _say(ctx, True, "Scheduled", f"the next one is at {status.next_schedule_time or 'no time'}")
    return True


def backup_at(schedule: NacosBackupSchedule, start: datetime) -> NacosBackup:
    """For one start. It has no owner, and says where it is from."""
    meta, spec = schedule.metadata, schedule.spec
    settings = {name: getattr(spec, name) for name in BackupSettings.__struct_fields__}
    return NacosBackup(
        metadata=ObjectMeta(
            name=scheduled_name(meta.name, start),
            namespace=meta.namespace,
            annotations={SCHEDULED_BY: meta.uid, SCHEDULED_AT: format_time(start)},
        ),
        spec=NacosBackupSpec(**settings, deletion_policy=spec.deletion_policy),
    )


def _last_start(schedule: NacosBackupSchedule, backups: Sequence[NacosBackup]) -> datetime | None:
    """The last start that has its backup: by the status, or by the backups where the status is behind."""
    starts = [start for backup in backups if (start := start_of(backup)) is not None]
    if schedule.status.last_schedule_time:
        starts.append(parse_time(schedule.status.last_schedule_time))
    return max(starts, default=None)


# ------------------------------------------------------------------ what is said


def _note(ctx: Context[NacosBackupSchedule], backups: Sequence[NacosBackup]) -> None:
    status, good = ctx.obj.status, complete(backups)
    status.backups = len(good)
    last = _last_start(ctx.obj, backups)
    if last is not None:
        status.last_schedule_time = format_time(last)
    if backups:
        status.last_backup = backups[0].metadata.name
    if good:
        status.last_successful_time = good[0].status.completion_time


def _wait(ctx: Context[NacosBackupSchedule], backup: NacosBackup) -> None:
    """A Job ends by its timeout; a backup that cannot begin waits without end, and so does its schedule."""
    name, ready = backup.metadata.name, find_condition(backup.status.conditions, READY)
    if backup.status.job_uid or ready is None or ready.reason == "NacosHibernated":
        _say(ctx, True, "Waiting", f"NacosBackup {name} is still being made")
    else:
        _refuse(ctx, "BackupWaiting", f"NacosBackup {name} has not begun: {ready.message}")


def _judge(ctx: Context[NacosBackupSchedule], backups: Sequence[NacosBackup]) -> None:
    """By the last one that ended."""
    ended = next((backup for backup in backups if backup.status.phase in (COMPLETED, FAILED)), None)
    if ended is not None and ended.status.phase == FAILED:
        failure = find_condition(ended.status.conditions, FAILED)
        why = failure.message if failure is not None else "no reason given"
        _refuse(ctx, "BackupFailed", f"NacosBackup {ended.metadata.name}: {why}")
    else:
        _say(ctx, True, "Scheduled", f"the next one is at {ctx.obj.status.next_schedule_time or 'no time'}")


def _say(ctx: Context[NacosBackupSchedule], value: bool, reason: str, message: str) -> None:
    conditions, generation = ctx.obj.status.conditions, ctx.obj.metadata.generation
    set_condition(conditions, READY, value, reason, message[:_LONGEST], observed_generation=generation)


def _refuse(ctx: Context[NacosBackupSchedule], reason: str, message: str) -> None:
    """Say what keeps the schedule from its work, with one event for each."""
    before = find_condition(ctx.obj.status.conditions, READY)
    if before is None or (before.reason, before.message) != (reason, message[:_LONGEST]):
        ctx.warning(reason, message)
    _say(ctx, False, reason, message)
