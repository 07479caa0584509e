"""Cron schedules: five fields, names, steps, `@hourly` and the like, `@every 90m`, time zones.

A time is due when its local month, day, hour and minute all match. So a time that a change of the clocks leaves out
does not occur on that day, and one that it repeats occurs twice. Of day-of-month and day-of-week one match is enough,
unless one of them is `*`: that is the rule of crontab.

Upstream: github.com/robfig/cron/v3 (parser.go, spec.go, constantdelay.go).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

import msgspec

from konverge.objects.durations import DurationError, duration_seconds

_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MINUTE = timedelta(minutes=1)
_HORIZON = 5
"""Years after which the search ends for a schedule that never occurs (31 February). Upstream: SpecSchedule.Next."""


class ScheduleError(ValueError):
    """The schedule is not valid."""


class Schedule(Protocol):
    def next(self, after: datetime) -> datetime | None:
        """The first time after this one, in UTC; None when there is none."""
        ...

    def latest(self, first: datetime, until: datetime) -> datetime:
        """The last time until this one; `first` is one of the schedule's times and not after it."""
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """`@every 90m`: counted from the last time, not from midnight."""

    seconds: int

    def next(self, after: datetime) -> datetime:
        return after.replace(microsecond=0) + timedelta(seconds=self.seconds)

    def latest(self, first: datetime, until: datetime) -> datetime:
        return first + (until - first) // timedelta(seconds=self.seconds) * timedelta(seconds=self.seconds)


class Cron(msgspec.Struct, frozen=True):
    """Five fields as sets of numbers."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Neither day field is `*`: then a match of one of the two is enough."""
    zone: tzinfo = UTC

    def next(self, after: datetime) -> datetime | None:
        time = after.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        last_year = time.year + _HORIZON
        while time.year <= last_year:
            local = time.astimezone(self.zone)
            if not self._day_matches(local):
                time = self._next_day(time, local)
            elif local.hour not in self.hours:
                time += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                time += _MINUTE
            else:
                return time
        return None

    def latest(self, first: datetime, until: datetime) -> datetime:
        span = _MINUTE
        while until - span > first:
            time = self.next(until - span)
            if time is not None and time <= until:
                return self._last_from(time, until)
            span *= 2
        return self._last_from(first, until)

    def _last_from(self, time: datetime, until: datetime) -> datetime:
        while (following := self.next(time)) is not None and following <= until:
            time = following
        return time

    def _day_matches(self, local: datetime) -> bool:
        if local.month not in self.months:
            return False
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return day or weekday if self.either_day else day and weekday

    def _next_day(self, time: datetime, local: datetime) -> datetime:
        """The next local midnight, or that of the next month when this month does not match."""
        if local.month in self.months:
            date = local.date() + timedelta(days=1)
        else:
            date = (local.date().replace(day=1) + timedelta(days=32)).replace(day=1)
        midnight = datetime(date.year, date.month, date.day, tzinfo=self.zone).astimezone(UTC)
        return max(midnight, time + _MINUTE)


@lru_cache(maxsize=1024)
def parse(text: str, zone: tzinfo = UTC) -> Schedule:
    """Raises ScheduleError, or the errors of zoneinfo for a `TZ=` in front that is unknown."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, _, text = text.partition("=")[2].partition(" ")
        zone, text = ZoneInfo(name), text.strip()
    if text.startswith("@every "):
        return _every(text.removeprefix("@every "))
    fields = _NAMED.get(text, text).split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields or a name such as @hourly, found {text!r}")
    minutes, hours, days, months, weekdays = (_field(*pair) for pair in zip(fields, _FIELDS, strict=True))
    either = not (_is_star(fields[2]) or _is_star(fields[4]))
    return Cron(minutes, hours, days, months, weekdays, either, zone)


def _every(text: str) -> Every:
    # upstream: cron.Every rounds down to whole seconds, one at least
    try:
        return Every(max(1, int(duration_seconds(text))))
    except DurationError as error:
        raise ScheduleError(f"{text!r} is not a duration such as 1h30m") from error


def _is_star(field: str) -> bool:
    """`*` and `*/1`; a step above one restricts the field, so that it is no star any more."""
    return any(part in ("*", "?", "*/1", "?/1") for part in field.split(","))


def _field(text: str, bounds: tuple[int, int, dict[str, int]]) -> frozenset[int]:
    return frozenset(number for part in text.split(",") if part for number in _range(part, *bounds))


def _range(text: str, low: int, high: int, names: dict[str, int]) -> range:
    """`*`, `3`, `mon-fri`, each with an optional `/step`; a lone number with a step runs to the end."""
    bounds, slash, step_text = text.partition("/")
    first, dash, last = bounds.partition("-")
    step = _number(step_text, {}) if slash else 1
    if first in ("*", "?"):
        start, end = low, high
    else:
        start = _number(first, names)
        end = _number(last, names) if dash else (high if slash else start)
    if not low <= start <= end <= high or step < 1:
        raise ScheduleError(f"{text!r} is not within {low}-{high}")
    return range(start, end + 1, step)


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not text.isdecimal():
        raise ScheduleError(f"{text!r} is not a number")
    return int(text)


def last_time(schedule: Schedule, since: datetime, until: datetime) -> datetime | None:
    """The last time of a schedule after `since` and not after `until`; None when there is none."""
    first = schedule.next(since)
    return None if first is None or first > until else schedule.latest(first, until)
