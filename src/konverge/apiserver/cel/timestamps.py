"""Timestamps and durations of CEL: nanoseconds, their texts and their limits.

Upstream: cel-go common/types/timestamp.go and duration.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from konverge.apiserver.go.time import Moment, TimeError, parse
from konverge.objects import durations

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000_000
_CYCLE = 146_097 * 86_400 * _SECOND
"""400 years of the Gregorian calendar."""
# Upstream: minUnixTime, maxUnixTime: the years 1 to 9999.
MIN_TIMESTAMP = -62_135_596_800 * _SECOND
MAX_TIMESTAMP = 253_402_300_799 * _SECOND + 999_999_999


class Duration(msgspec.Struct, frozen=True, order=True):
    ns: int

    def __str__(self) -> str:
        """Decimal seconds, shortest form: what `string(duration)` gives."""
        sign, rest = ("-" if self.ns < 0 else ""), abs(self.ns)
        text = f"{rest // _SECOND}.{rest % _SECOND:09d}".rstrip("0").rstrip(".")
        return f"{sign}{text}s"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    ns: int
    """Nanoseconds since 1970 in UTC."""
    written: tzinfo = field(default=UTC, compare=False)
    """The offset with which it was written: its text keeps it."""

    @classmethod
    def parse(cls, text: str) -> Timestamp | None:
        try:
            # Python's calendar has no year 0: 400 years later every date is on the same day of the week.
            moment = parse(f"0400{text[4:]}" if text.startswith("0000") else text)
            before = _CYCLE if text.startswith("0000") else 0
            return cls(_nanoseconds(moment) - before, timezone(moment.offset) if moment.offset else UTC)
        except ValueError:  # not a time, or an offset of 24 hours, which Python does not take
            return None

    @classmethod
    def at_second(cls, seconds: int) -> Timestamp:
        return cls(seconds * _SECOND)

    def __str__(self) -> str:
        fraction = f".{self.ns % _SECOND:09d}".rstrip("0").rstrip(".")
        moment, years = self.at(self.written)
        zone_text = "Z" if self.written is UTC else moment.strftime("%z")
        if zone_text != "Z":
            zone_text = f"{zone_text[:3]}:{zone_text[3:]}"
        return f"{moment.year + years:04d}{moment.strftime('-%m-%dT%H:%M:%S')}{fraction}{zone_text}"

    def at(self, zone: tzinfo) -> tuple[datetime, int]:
        """The local time, and how many years to add to it: an offset may lead out of Python's years 1 to 9999."""
        seconds = self.ns // _SECOND
        for years in (0, -400, 400):
            try:
                return (_EPOCH + timedelta(seconds=seconds - years * _CYCLE // 400 // _SECOND)).astimezone(zone), years
            except OverflowError:
                continue
        raise AssertionError(f"{self.ns} ns is farther away than an offset can lead")


def parse_duration(text: str) -> int | None:
    """The nanoseconds of a Go duration; None where Go has an error."""
    try:
        return durations.parse_duration(text)
    except durations.DurationError:
        return None


def parse_timestamp(text: str) -> int | None:
    """RFC 3339 as nanoseconds since 1970; None for anything else."""
    try:
        return _nanoseconds(parse(text))
    except TimeError:
        return None


def _nanoseconds(moment: Moment) -> int:
    delta = moment.local - _EPOCH - moment.offset
    return (delta.days * 86_400 + delta.seconds) * _SECOND + moment.nanoseconds


def zone(name: str) -> tzinfo | None:
    """A time zone by IANA name or as [+-]hh:mm; None when unknown."""
    if name in ("", "UTC", "Z"):
        return UTC
    match = re.fullmatch(r"([+-]?)(\d{1,2}):(\d{1,2})", name, re.ASCII)
    if match is not None:
        delta = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-delta if match[1] == "-" else delta) if delta < timedelta(hours=24) else None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
