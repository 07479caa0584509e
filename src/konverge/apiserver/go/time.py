"""RFC 3339 times as Go's `time.Parse` reads them, with its words when it cannot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from konverge.objects.times import format_micro_time, format_time

_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICROS = "2006-01-02T15:04:05.000000Z07:00"
ZERO = datetime(1, 1, 1, tzinfo=UTC)


class TimeError(ValueError):
    """A text that is not a time."""


def canonical_time(text: str) -> str | None:
    """A `Time` as the server writes it: whole seconds in UTC; None is Go's zero time."""
    moment = _Reader(_SECONDS, text).read()
    return None if moment == ZERO else format_time(moment)


def canonical_micro_time(text: str) -> str | None:
    """A `MicroTime` as the server writes it: exactly six decimals, in UTC."""
    moment = _Reader(_MICROS, text).read()
    return None if moment == ZERO else format_micro_time(moment)


def _quote(text: str) -> str:
    """As Go's time package quotes: bytes that are not plain ASCII in hexadecimal."""
    shown = []
    for character in text:
        if " " <= character < "\x80":
            shown.append(f"\\{character}" if character in '"\\' else character)
        else:
            shown += [f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass")]
    return '"' + "".join(shown) + '"'


class _Reader:
    """Reads `text` element by element of the layout, since the element that fails is part of the message."""

    def __init__(self, layout: str, text: str) -> None:
        self.layout = layout
        self.text = text
        self.rest = text

    def read(self) -> datetime:
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
        micros = self._fraction()
        offset = self._zone()
        if self.rest:
            raise self._error(f"extra text: {_quote(self.rest)}")
        try:
            return datetime(year, month, day, hour, minute, second, micros, UTC) - offset
        except ValueError:
            raise self._error("day out of range") from None
        except OverflowError:
            return ZERO

    def _error(self, message: str) -> TimeError:
        return TimeError(f"parsing time {_quote(self.text)}: {message}")

    def _cannot(self, element: str) -> TimeError:
        words = f"cannot parse {_quote(self.rest)} as {_quote(element)}"
        return TimeError(f"parsing time {_quote(self.text)} as {_quote(self.layout)}: {words}")

    def _literal(self, literal: str) -> None:
        if not self.rest.startswith(literal):
            raise self._cannot(literal)
        self.rest = self.rest[len(literal) :]

    def _number(self, element: str, digits: int, low: int = 0, high: int = 9999, name: str = "") -> int:
        found = self.rest[:digits]
        if len(found) < digits or not (found.isascii() and found.isdigit()):
            raise self._cannot(element)
        self.rest = self.rest[digits:]
        if not low <= int(found) <= high:
            raise self._error(f"{name} out of range")
        return int(found)

    def _hour(self) -> int:
        """The one element that may have a single digit."""
        digits = 2 if self.rest[1:2].isdigit() else 1
        return self._number("15", digits, 0, 23, "hour")

    def _fraction(self) -> int:
        if self.layout == _MICROS:
            found = self.rest[1:7]
            if self.rest[:1] not in (".", ",") or len(found) < 6 or not found.isdigit():
                raise self._cannot(".000000")
            self.rest = self.rest[7:]
            return int(found)
        if self.rest[:1] in (".", ",") and self.rest[1:2].isdigit():
            digits = 1
            while self.rest[digits + 1 : digits + 2].isdigit():
                digits += 1
            found = self.rest[1 : digits + 1]
            self.rest = self.rest[digits + 1 :]
            return int(found[:6].ljust(6, "0"))
        return 0

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
