"""When a Job of a CronJob is due.

Upstream: mostRecentScheduleTime and nextScheduleTime (pkg/controller/cronjob/utils.go).
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import msgspec

from konverge.objects.cron import Schedule, last_time
from konverge.objects.durations import seconds
from konverge.objects.kinds.batch_v1 import CronJob
from konverge.objects.times import parse_time

MANY_MISSED = 100
"""Missed starts after which a warning asks to check for clock skew. Upstream: mostRecentScheduleTime."""
PADDING = 0.1
"""Seconds added to the wait, so that a clock that is slightly behind does not wake us early. Upstream:
nextScheduleDelta.
"""


class Due(msgspec.Struct, frozen=True):
    """What the schedule says at a given time."""

    start: datetime | None
    """The latest start that has not been made; None when none is due."""
    missed: int
    """Roughly how many starts were missed up to then."""
    next: datetime | None
    """The next start."""


def zone_of(cronjob: CronJob) -> tzinfo:
    """Raises the errors of zoneinfo when the zone is unknown."""
    return ZoneInfo(cronjob.spec.time_zone) if cronjob.spec.time_zone else UTC


def due(cronjob: CronJob, schedule: Schedule, now: datetime) -> Due:
    """Starts older than startingDeadlineSeconds are skipped."""
    since = parse_time(cronjob.status.last_schedule_time or cronjob.metadata.creation_timestamp or "")
    following = schedule.next(last_time(schedule, since, now) or since)
    deadline = cronjob.spec.starting_deadline_seconds
    oldest = since if deadline is None else max(since, now - seconds(deadline))
    start = last_time(schedule, oldest, now)
    return Due(start, _missed(schedule, oldest, now), following)


def _missed(schedule: Schedule, since: datetime, now: datetime) -> int:
    """Estimated by the distance of the first two starts, as a schedule may be irregular."""
    first = schedule.next(since)
    second = schedule.next(first) if first is not None else None
    if first is None or first > now:
        return 0
    return 1 if second is None else int((now - first) / (second - first)) + 1


def stamp(time: datetime, zone: tzinfo) -> str:
    """RFC 3339 in a time zone, with Z where the offset is zero."""
    text = time.astimezone(zone).isoformat(timespec="seconds")
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
