"""Timestamps and durations with the nanosecond precision, the texts and the limits of CEL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DURATION = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000_000
MIN_TIMESTAMP = -62_135_596_800 * _SECOND
MAX_TIMESTAMP = 253_402_300_799 * _SECOND + 999_999_999


@dataclass(frozen=True, slots=True, order=True)
class Duration:
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
        found = parse_timestamp(text)
        return None if found is None else cls(found, _offset(text[-6:] if text[-1] not in "Zz" else "Z"))

    @classmethod
    def at_second(cls, seconds: int) -> Timestamp:
        return cls(seconds * _SECOND)

    def __str__(self) -> str:
        fraction = f".{self.ns % _SECOND:09d}".rstrip("0").rstrip(".")
        moment = self.at(self.written)
        zone_text = "Z" if self.written is UTC else moment.strftime("%z")
        if zone_text != "Z":
            zone_text = f"{zone_text[:3]}:{zone_text[3:]}"
        return f"{moment.year:04d}{moment.strftime('-%m-%dT%H:%M:%S')}{fraction}{zone_text}"

    def at(self, zone: tzinfo) -> datetime:
        return (_EPOCH + timedelta(seconds=self.ns // _SECOND)).astimezone(zone)


def parse_duration(text: str) -> int | None:
    """Go's time.ParseDuration in nanoseconds; None where Go has an error."""
    sign = -1 if text[:1] == "-" else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        match = _DURATION.match(rest, position)
        if match is None or not (match[1] or match[2]):
            return None
        scale = _UNITS[match[3]]
        total += int(match[1] or 0) * scale
        if match[2]:
            total += int(match[2]) * scale // 10 ** len(match[2])
        position = match.end()
    if position == 0 or total > (1 << 63) - (sign > 0):
        return None
    return sign * total


def parse_timestamp(text: str) -> int | None:
    """RFC 3339 as nanoseconds since 1970; None for anything else."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=_offset(match[8]))
    except ValueError:
        return None
    delta = moment - _EPOCH
    nanos = int((match[7] or "0")[:9].ljust(9, "0"))
    return (delta.days * 86_400 + delta.seconds) * _SECOND + nanos


def _offset(text: str) -> tzinfo:
    if text in ("Z", "z"):
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError("time zone offset out of range")
    delta = timedelta(hours=hours, minutes=minutes)
    return timezone(-delta if text[0] == "-" else delta)


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
