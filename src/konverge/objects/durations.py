"""Durations as Go writes them: `1h30m`, `60s`, `1.5s`, `250ms`. Exact, in nanoseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_NUMBER = re.compile(r"([0-9]*)(?:\.([0-9]*))?")
_UNIT = re.compile(r"[^.0-9]*")
_MAX: Final = 2**63
_MAX_DIGITS: Final = 19


class DurationError(ValueError):
    """The text is not a duration; the message is Go's."""


def parse_duration(text: str) -> int:
    """The nanoseconds of a duration. Upstream: time.ParseDuration.

    >>> parse_duration("1.5s")
    1500000000
    """
    negative, rest = text[:1] == "-", text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f"time: invalid duration {quote(text)}")
    total, position = 0, 0
    while position < len(rest):
        nanoseconds, position = _component(text, rest, position)
        total += nanoseconds
        if total > _MAX:
            raise DurationError(f"time: invalid duration {quote(text)}")
    if total == _MAX and not negative:
        raise DurationError(f"time: invalid duration {quote(text)}")
    return -total if negative else total


def _component(text: str, rest: str, position: int) -> tuple[int, int]:
    """One number with its unit, and where the next one begins."""
    number = _NUMBER.match(rest, position)
    assert number is not None
    whole, decimals = number[1].lstrip("0"), number[2] or ""
    if not (number[1] or decimals) or len(whole) > _MAX_DIGITS or int(whole or "0") > _MAX:
        raise DurationError(f"time: invalid duration {quote(text)}")
    unit = _UNIT.match(rest, number.end())
    assert unit is not None
    if not unit[0]:
        raise DurationError(f"time: missing unit in duration {quote(text)}")
    if unit[0] not in _UNITS:
        raise DurationError(f"time: unknown unit {quote(unit[0])} in duration {quote(text)}")
    size = _UNITS[unit[0]]
    return int(whole or "0") * size + _fraction(decimals, size), unit.end()


def _fraction(decimals: str, size: int) -> int:
    """The nanoseconds of a fraction: floats, and as many digits as 63 bits hold. Upstream: leadingFraction."""
    digits = 0
    for count, digit in enumerate(decimals):
        if digits > (_MAX - 1) // 10 or digits * 10 + int(digit) > _MAX:
            return int(digits * (size / 10.0**count))
        digits = digits * 10 + int(digit)
    return int(digits * (size / 10.0 ** len(decimals)))


def duration_seconds(text: str) -> float:
    """The seconds of a duration, for asyncio's timers."""
    return parse_duration(text) / 1_000_000_000


def seconds(count: int) -> timedelta:
    """`time.Second * time.Duration(count)`: nanoseconds beyond 64 bits wrap around, as they do in Go.

    >>> seconds(30)
    datetime.timedelta(seconds=30)
    >>> seconds(2**63 - 1)
    datetime.timedelta(days=-1, seconds=86399)
    """
    return timedelta(microseconds=((count * _UNITS["s"] + _MAX) % (2 * _MAX) - _MAX) // 1000)


def format_duration(duration: int | timedelta) -> str:
    """Nanoseconds (or a timedelta) as Go prints them.

    >>> format_duration(5_400_000_000_000), format_duration(1_500_000)
    ('1h30m0s', '1.5ms')
    """
    if isinstance(duration, timedelta):
        duration = duration // timedelta(microseconds=1) * 1000
    if not duration:
        return "0s"
    sign, size = ("-", -duration) if duration < 0 else ("", duration)
    if size < _UNITS["s"]:
        unit = "ns" if size < 1_000 else "µs" if size < 1_000_000 else "ms"
        return f"{sign}{_decimal(size, _UNITS[unit])}{unit}"
    hours, rest = divmod(size, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, _UNITS['s'])}s"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1)}".rstrip("0")


def quote(text: str) -> str:
    """As the errors of Go's time package quote: not as strconv.Quote does."""
    quoted = []
    for character in text:
        if character in '"\\':
            quoted.append("\\" + character)
        elif " " <= character <= "\x7f":
            quoted.append(character)
        else:
            quoted.extend(f"\\x{byte:02x}" for byte in character.encode(errors="surrogatepass"))
    return '"' + "".join(quoted) + '"'
