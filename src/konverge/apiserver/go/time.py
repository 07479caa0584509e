"""Go's time: RFC 3339 as `time.Parse` reads it, with its errors. Durations are in `konverge.objects.durations`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from konverge.objects.durations import quote
from konverge.objects.times import format_micro_time, format_time

_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICROS = "2006-01-02T15:04:05.000000Z07:00"
_FRACTION = re.compile(r"[.,]([0-9]+)").match
_MICRO_FRACTION = re.compile(r"[.,]([0-9]{6})").match
ZERO = datetime(1, 1, 1, tzinfo=UTC)


class TimeError(ValueError):
    """A text that is not a time."""


class Moment(NamedTuple):
    """A time as it was written."""

    local: datetime
    nanoseconds: int
    offset: timedelta

    def utc(self) -> datetime:
        try:
            return self.local + timedelta(microseconds=self.nanoseconds // 1000) - self.offset
        except OverflowError:
            return ZERO


def parse(text: str) -> Moment:
    """RFC 3339. Raises TimeError."""
    return _Reader(_SECONDS, text).read()


def canonical_time(text: str) -> str | None:
    """A `Time` as the server writes it: whole seconds in UTC; None is Go's zero time."""
    moment = parse(text).utc()
    return None if moment == ZERO else format_time(moment)


def canonical_micro_time(text: str) -> str | None:
    """A `MicroTime` as the server writes it: exactly six decimals, in UTC."""
    moment = _Reader(_MICROS, text).read().utc()
    return None if moment == ZERO else format_micro_time(moment)


class _Reader:
    """Reads `text` element by element of the layout, since the element that fails is part of the message."""

    def __init__(self, layout: str, text: str) -> None:
        self.layout = layout
        self.text = text
        self.rest = text

    def read(self) -> Moment:
        year = self._number("2006", 4)
        self._literal("-")
        month = self._number("01", 2, 1, 12, "month")
        self._literal("-")
        day = self._number("02", 2)
        self._literal("T")
        hour = self._hour()
        self._literal(":")
        minute = self._number("04", 2, 0, 59, "minute")
        self._literal(":")
        second = self._number("05", 2, 0, 59, "second")
        nanoseconds = self._fraction()
        offset = self._zone()
        if self.rest:
            raise self._error(f"extra text: {quote(self.rest)}")
        try:
            return Moment(datetime(year, month, day, hour, minute, second, tzinfo=UTC), nanoseconds, offset)
        except ValueError:
            raise self._error("day out of range") from None

    def _error(self, message: str) -> TimeError:
        return TimeError(f"parsing time {quote(self.text)}: {message}")

    def _cannot(self, element: str) -> TimeError:
        problem = f"cannot parse {quote(self.rest)} as {quote(element)}"
        return TimeError(f"parsing time {quote(self.text)} as {quote(self.layout)}: {problem}")

    def _literal(self, literal: str) -> None:
        if not self.rest.startswith(literal):
            raise self._cannot(literal)
        self.rest = self.rest[len(literal) :]

    def _number(self, element: str, digits: int, low: int = 0, high: int = 9999, name: str = "") -> int:
        text = self.rest[:digits]
        if len(text) < digits or not (text.isascii() and text.isdigit()):
            raise self._cannot(element)
        self.rest = self.rest[digits:]
        if not low <= int(text) <= high:
            raise self._error(f"{name} out of range")
        return int(text)

    def _hour(self) -> int:
        """The one element that may have a single digit."""
        digits = 2 if self.rest[1:2].isdigit() else 1
        return self._number("15", digits, 0, 23, "hour")

    def _fraction(self) -> int:
        if self.layout == _MICROS:
            match = _MICRO_FRACTION(self.rest)
            if match is None:
                raise self._cannot(".000000")
            self.rest = self.rest[7:]
            return int(match[1]) * 1000
        match = _FRACTION(self.rest)
        if match is None:
            return 0
        self.rest = self.rest[match.end() :]
        return int(match[1][:9].ljust(9, "0"))

    def _zone(self) -> timedelta:
        rest = self.rest
        if rest.startswith("Z"):
            self.rest = rest[1:]
            return timedelta()
        hours, minutes = rest[1:3], rest[4:6]
        if rest[:1] not in ("+", "-") or rest[3:4] != ":" or not (len(minutes) == 2 and (hours + minutes).isdigit()):
            raise self._cannot("Z07:00")
        self.rest = rest[6:]
        if int(hours) > 24:
            raise self._error("time zone offset hour out of range")
        if int(minutes) > 60:
            raise self._error("time zone offset minute out of range")
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return offset if rest[0] == "+" else -offset
