"""Which backups of a schedule have had their time; pure.

A backup is the schedule's own if it carries the schedule's uid, and the name of the start that it says it was made for.
Never chosen: the newest that is complete, whatever its age; one that is still being made; one that is to be kept
(`KEEP`); one that a restore reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from konverge.objects.times import parse_time
from konverge.operators.nacos.backup.kinds import COMPLETED, FAILED, NacosBackup, NacosBackupSchedule, Retention
from konverge.operators.timetable import age_seconds

SCHEDULED_BY = "nacos.io/scheduled-by"
"""The annotation of a backup with the uid of its schedule."""
SCHEDULED_AT = "nacos.io/scheduled-at"
"""The annotation with the start that it was made for."""
KEEP = "nacos.io/keep"
"""The annotation by which a user keeps a backup of a schedule: `true`."""


def scheduled_name(schedule: str, start: datetime) -> str:
    return f"{schedule}-{start:%Y%m%d%H%M%S}"


def start_of(backup: NacosBackup) -> datetime | None:
    """The start that a backup was made for; None where it does not say that."""
    try:
        return parse_time(backup.metadata.annotations.get(SCHEDULED_AT, ""))
    except ValueError:
        return None


def is_made_by(schedule: NacosBackupSchedule, backup: NacosBackup) -> bool:
    """Whether this very schedule made it."""
    meta, start = backup.metadata, start_of(backup)
    if start is None or meta.namespace != schedule.metadata.namespace:
        return False
    named = meta.name == scheduled_name(schedule.metadata.name, start)
    return named and meta.annotations.get(SCHEDULED_BY) == schedule.metadata.uid


def own(schedule: NacosBackupSchedule, backups: Iterable[NacosBackup]) -> list[NacosBackup]:
    """The backups of a schedule that are to stay for now, the newest first."""
    staying = (backup for backup in backups if backup.metadata.deletion_timestamp is None)
    return sorted((backup for backup in staying if is_made_by(schedule, backup)), key=_start, reverse=True)


def complete(backups: Sequence[NacosBackup]) -> list[NacosBackup]:
    return [backup for backup in backups if backup.status.phase == COMPLETED]


def expired(
    backups: Sequence[NacosBackup],
    retention: Retention,
    now: datetime,
    *,
    read: Collection[str] = (),
) -> list[tuple[NacosBackup, str]]:
    """What is to be deleted, each with the reason, the oldest first. `backups` are the schedule's own, the newest
    first; `read` are the names of those that a restore reads."""
    free = [backup for backup in backups if backup.metadata.name not in read and not _is_kept(backup)]
    over: dict[str, str] = {}
    for rank, backup in enumerate(backup for backup in free if backup.status.phase == FAILED):
        if rank >= retention.failed_limit:
            over[backup.metadata.name] = f"it failed, and failedLimit is {retention.failed_limit}"
    good = complete(backups)
    for rank, backup in enumerate(complete(free)):
        if retention.max_age is not None and _age(backup, now) > age_seconds(retention.max_age):
            over[backup.metadata.name] = f"maxAge is {retention.max_age}"
        if retention.keep_last is not None and rank >= retention.keep_last:
            over[backup.metadata.name] = f"keepLast is {retention.keep_last}"
    if good:
        over.pop(good[0].metadata.name, None)
    return [(backup, why) for backup in reversed(free) if (why := over.get(backup.metadata.name))]


def next_expiry(backups: Sequence[NacosBackup], retention: Retention, now: datetime) -> float | None:
    """Seconds until another one is too old: a schedule may be rarer than that. None where none will be."""
    if retention.max_age is None:
        return None
    limit = age_seconds(retention.max_age)
    waits = [limit - _age(backup, now) for backup in complete(backups) if not _is_kept(backup)]
    return min((wait for wait in waits if wait >= 0), default=None)


def _is_kept(backup: NacosBackup) -> bool:
    return backup.metadata.annotations.get(KEEP) == "true"


def _start(backup: NacosBackup) -> datetime:
    """Of one of a schedule's own."""
    return parse_time(backup.metadata.annotations[SCHEDULED_AT])


def _age(backup: NacosBackup, now: datetime) -> float:
    return (now - _start(backup)).total_seconds()
