"""Timestamps and durations: sums, parts. Upstream: cel-go common/types/timestamp.go and duration.go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Any

from konverge.apiserver.cel.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp, zone
from konverge.apiserver.cel.values import EvalError

_LIMIT = 2**63


def _duration(ns: int) -> Duration:
    if not -_LIMIT <= ns < _LIMIT:
        raise EvalError("integer overflow")
    return Duration(ns)


def _timestamp(ns: int) -> Timestamp:
    if not MIN_TIMESTAMP <= ns <= MAX_TIMESTAMP:
        raise EvalError("timestamp overflow")
    return Timestamp(ns)


_PARTS: dict[str, Callable[[datetime], int]] = {
    "day_of_month_1_based": lambda moment: moment.day,
    "day_of_month": lambda moment: moment.day - 1,
    "day_of_week": lambda moment: moment.isoweekday() % 7,
    "day_of_year": lambda moment: moment.timetuple().tm_yday - 1,
    "hours": lambda moment: moment.hour,
    "minutes": lambda moment: moment.minute,
    "month": lambda moment: moment.month - 1,
    "seconds": lambda moment: moment.second,
}


def _zone(name: str) -> tzinfo:
    tz = UTC if name == "UTC" else zone(name)
    if tz is None:
        raise EvalError(f"unknown time zone {name}")
    return tz


def _part(part: Callable[[datetime], int]) -> Callable[..., int]:
    def get(value: Timestamp, name: str = "UTC") -> int:
        return part(value.at(_zone(name))[0])

    return get


def _year(value: Timestamp, name: str = "UTC") -> int:
    moment, years = value.at(_zone(name))
    return moment.year + years


def _milliseconds(value: Timestamp, name: str = "UTC") -> int:
    return value.ns % 10**9 // 10**6


def _whole(unit: int) -> Callable[[Duration], int]:
    return lambda value: value.ns // unit if value.ns >= 0 else -(-value.ns // unit)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add_duration_duration": lambda a, b: _duration(a.ns + b.ns),
    "add_duration_timestamp": lambda a, b: _timestamp(a.ns + b.ns),
    "add_timestamp_duration": lambda a, b: _timestamp(a.ns + b.ns),
    "subtract_duration_duration": lambda a, b: _duration(a.ns - b.ns),
    "subtract_timestamp_duration": lambda a, b: _timestamp(a.ns - b.ns),
    "subtract_timestamp_timestamp": lambda a, b: _duration(a.ns - b.ns),
    "timestamp_to_milliseconds": _milliseconds,
    "timestamp_to_milliseconds_with_tz": _milliseconds,
    "timestamp_to_year": _year,
    "timestamp_to_year_with_tz": _year,
    "duration_to_hours": _whole(3600 * 10**9),
    "duration_to_minutes": _whole(60 * 10**9),
    "duration_to_seconds": _whole(10**9),
    "duration_to_milliseconds": _whole(10**6),
}
for _name, _get in _PARTS.items():
    FUNCTIONS[f"timestamp_to_{_name}"] = _part(_get)
    FUNCTIONS[f"timestamp_to_{_name}_{'tz' if _name == 'seconds' else 'with_tz'}"] = _part(_get)
