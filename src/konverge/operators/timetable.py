"""When the next start of a schedule is due, for operators that make an object for each start; and ages.

Starts that were missed make one, for the last of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import msgspec

from konverge.objects import MaxLength, Pattern, cron
from konverge.objects.times import format_time, parse_time

PADDING = 0.1
"""Seconds added to a wait, so that a clock that is slightly behind does not wake us early."""
NO_ZONE = "write the time zone into timeZone, not into the schedule"
_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}

Age = Annotated[str, Pattern(r"^[1-9][0-9]{0,4}[mhdw]$"), MaxLength(6)]
"""A number of minutes, hours, days or weeks: `36h`, `30d`."""


def age_seconds(age: str) -> int:
    """
    >>> age_seconds("36h"), age_seconds("2w")
    (129600, 1209600)
    """
    return int(age[:-1]) * _SECONDS[age[-1]]


def parsed(schedule: str, time_zone: str | None) -> cron.Schedule:
    """Raises ValueError, with what is wrong."""
    if "TZ=" in schedule:
        raise ValueError(NO_ZONE)
    try:
        zone = ZoneInfo(time_zone) if time_zone else UTC
    except (LookupError, ValueError, OSError):
        raise ValueError(f"there is no time zone {time_zone}") from None
    return cron.parse(schedule, zone)


class Due(msgspec.Struct, frozen=True):
    """What a schedule says at a given time."""

    start: datetime | None
    """The last start that has nothing yet; None where none is due."""
    following: datetime | None
    """The next start; None where there will be none."""


def due(
    timetable: cron.Schedule,
    *,
    created: str | None,
    last: datetime | None,
    deadline: int | None,
    immediate: bool,
    now: datetime,
) -> Due:
    """Starts are counted since the one that was made `last`; one that is older than the deadline is left out.

    With `immediate` the creation is a start too. An `@every` is counted from what came before, so that counting begins
    neither at the deadline nor at this look: the starts would move, and never be due.
    """
    made = parse_time(created or format_time(now))
    since = last or made
    start = cron.last_time(timetable, since, now)
    following = timetable.next(start or since)
    if start is not None and deadline is not None and (now - start).total_seconds() > deadline:
        start = None
    return Due(made if start is None and immediate and last is None else start, following)


def sooner(start: float | None, expiry: float | None) -> float | None:
    """Seconds until the first of two: the next start, and the next expiry."""
    waits = [wait for wait in (start, None if expiry is None else expiry + PADDING) if wait is not None]
    return min(waits, default=None)
