"""Which snapshots of a schedule have had their time; pure.

A snapshot is the schedule's own if it carries the schedule's uid, and the name of the start that it says it was made
for: a copy under another name is the user's. Never chosen: the newest that succeeded, whatever its age; the newest copy
of each disk that it had to leave out; one that is to be kept (`names.KEEP`); one that its machine is to go back to.

One that was taken and is lost may be whole again: it goes when it would go if it were, and counts as none meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from konverge.objects.times import parse_time
from konverge.operators.timetable import age_seconds
from konverge.operators.wukong import names
from konverge.operators.wukong.resource import WukongSnapshot, WukongSnapshotSchedule
from konverge.operators.wukong.spec_schedule import Retention
from konverge.operators.wukong.status import is_lost


def start_of(snapshot: WukongSnapshot) -> datetime | None:
    """The start that a snapshot was made for; None where it does not say that."""
    try:
        return parse_time(snapshot.metadata.annotations.get(names.SCHEDULED_AT, ""))
    except ValueError:
        return None


def is_made_by(schedule: WukongSnapshotSchedule, snapshot: WukongSnapshot) -> bool:
    """Whether this very schedule made it."""
    place, start = snapshot.metadata, start_of(snapshot)
    if start is None or place.namespace != schedule.metadata.namespace:
        return False
    named = place.name == names.scheduled(schedule.metadata.name, start)
    return named and place.annotations.get(names.SCHEDULED_BY) == schedule.metadata.uid


def own(schedule: WukongSnapshotSchedule, snapshots: Iterable[WukongSnapshot]) -> list[WukongSnapshot]:
    """The snapshots of a schedule that are to stay for now, the newest first."""
    staying = (snapshot for snapshot in snapshots if not snapshot.metadata.deletion_timestamp)
    return sorted((snapshot for snapshot in staying if is_made_by(schedule, snapshot)), key=_start, reverse=True)


def _start(snapshot: WukongSnapshot) -> datetime:
    """Of one of a schedule's own."""
    return parse_time(snapshot.metadata.annotations[names.SCHEDULED_AT])


def succeeded_of(snapshots: Sequence[WukongSnapshot]) -> list[WukongSnapshot]:
    return [snapshot for snapshot in snapshots if _is_whole(snapshot)]


def expired(
    snapshots: Sequence[WukongSnapshot], retention: Retention | None, now: datetime, *, named: str = ""
) -> list[tuple[WukongSnapshot, str]]:
    """What is to be deleted, each with the reason, the oldest first. `snapshots` are the schedule's own, the newest
    first; `named` is the one that the machine is to go back to."""
    succeeded = succeeded_of(snapshots)
    if retention is None or not succeeded:
        return []
    free, newest = _free(snapshots, named), succeeded[0]
    over = {
        snapshot.metadata.name: f"it failed, and {newest.metadata.name} succeeded since then"
        for snapshot in free
        if snapshot.status.phase == "Failed" and not is_lost(snapshot.status) and _start(snapshot) < _start(newest)
    }
    rank = 0
    for snapshot in _until(newest, free):
        if retention.max_age is not None and _age(snapshot, now) > age_seconds(retention.max_age):
            over[snapshot.metadata.name] = f"maxAge is {retention.max_age}"
        if retention.keep_last is not None and rank >= retention.keep_last:
            over[snapshot.metadata.name] = f"keepLast is {retention.keep_last}"
        rank += _is_whole(snapshot)
    for name in _needed(newest, snapshots):
        over.pop(name, None)
    return [(snapshot, why) for snapshot in reversed(free) if (why := over.get(snapshot.metadata.name))]


def _until(newest: WukongSnapshot, snapshots: Iterable[WukongSnapshot]) -> list[WukongSnapshot]:
    """Those that were taken, up to the newest that succeeded: a later one that is lost may be the newest again."""
    return [snapshot for snapshot in snapshots if _was_taken(snapshot) and _start(snapshot) <= _start(newest)]


def _needed(newest: WukongSnapshot, snapshots: Sequence[WukongSnapshot]) -> set[str]:
    """The names of the newest that succeeded, and of the newest copies of the disks that KubeVirt left out of it."""
    needed, left_out = {newest.metadata.name}, set(newest.status.excluded_volumes)
    for snapshot in _until(newest, snapshots):
        if not left_out.isdisjoint(snapshot.status.volumes):
            needed.add(snapshot.metadata.name)
            if _is_whole(snapshot):
                left_out -= set(snapshot.status.volumes)
    return needed


def next_expiry(snapshots: Sequence[WukongSnapshot], retention: Retention | None, now: datetime) -> float | None:
    """Seconds until another one is too old: a schedule may be rarer than that. None where none will be."""
    if retention is None or retention.max_age is None:
        return None
    limit = age_seconds(retention.max_age)
    waits = [limit - _age(snapshot, now) for snapshot in _free(snapshots, "") if _was_taken(snapshot)]
    return min((wait for wait in waits if wait >= 0), default=None)


def _is_whole(snapshot: WukongSnapshot) -> bool:
    return snapshot.status.phase == "Succeeded"


def _was_taken(snapshot: WukongSnapshot) -> bool:
    return _is_whole(snapshot) or is_lost(snapshot.status)


def _free(snapshots: Sequence[WukongSnapshot], named: str) -> list[WukongSnapshot]:
    return [
        snapshot
        for snapshot in snapshots
        if snapshot.metadata.name != named and snapshot.metadata.annotations.get(names.KEEP) != "true"
    ]


def _age(snapshot: WukongSnapshot, now: datetime) -> float:
    return (now - _start(snapshot)).total_seconds()
