"""Timestamps. On the wire and in the model they are text; here are the ways to and from `datetime`.

Why text: see docs/adr/0003-timestamps-are-text.md. `Time` has whole seconds, `MicroTime` has exactly six decimals, and
the API server refuses a MicroTime without them. Texts of one kind in UTC sort by time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from konverge import clock

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch


def parse_time(text: str) -> datetime:
    """The moment that an RFC 3339 text means, in UTC.

    >>> parse_time("2026-01-02T03:04:05Z").isoformat()
    '2026-01-02T03:04:05+00:00'
    """
    if not _RFC_3339(text):  # Python reads other forms of ISO 8601 as well, which no server would take
        raise ValueError(f"{text!r} is not an RFC 3339 time: write it as 2026-01-02T03:04:05Z")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is beyond the years 1 to 9999") from None


def format_time(moment: datetime) -> str:
    """A `Time`: whole seconds, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def format_micro_time(moment: datetime) -> str:
    """A `MicroTime`: six decimals, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def now() -> str:
    """This second, as a `Time`."""
    return format_time(clock.utc_now())


def micro_now() -> str:
    """This microsecond, as a `MicroTime`."""
    return format_micro_time(clock.utc_now())


def seconds_since(text: str | None) -> float:
    """How long ago a time of the API was; 0 where there is none."""
    return clock.now() - parse_time(text).timestamp() if text else 0.0
