"""Cron schedules and time zones: what is wrong with them, as the cron library of the real server reports it.

Upstream: github.com/robfig/cron/v3/parser.go.
"""

from __future__ import annotations

import re
import zoneinfo
from typing import Any

from konverge.apiserver.go.strconv import NumberError, parse_int
from konverge.apiserver.kinds.framework.declare import Report
from konverge.objects.durations import DurationError, parse_duration
from konverge.objects.text_cache import remembered

_MONTHS = dict(zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True))  # noqa: SIM905
_DAYS = dict(zip("sun mon tue wed thu fri sat".split(), range(7), strict=True))  # noqa: SIM905
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS = {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class _Bad(ValueError):
    """A schedule that cannot be parsed; the text is the message."""


def schedule_error(text: str) -> str:  # upstream: ParseStandard
    """What is wrong with a schedule, or an empty text."""
    try:
        _parse(text)
    except _Bad as bad:
        return str(bad)
    return ""


def _parse(text: str) -> None:  # upstream: Parse
    if not text:
        raise _Bad("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, space, text = text.partition("=")[2].partition(" ")
        if not space:
            raise _Bad("invalid schedule format: runtime error: slice bounds out of range")
        if not _zone_exists(zone):
            raise _Bad(f"provided bad location {zone}: unknown time zone {zone}")
        text = text.strip()
    if text.startswith("@"):
        _descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise _Bad(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, field.split(",")):
            _range(expression, low, high, names)


def _descriptor(text: str) -> None:  # upstream: parseDescriptor
    if text in _DESCRIPTORS:
        return
    every = text.removeprefix("@every ")
    if every == text:
        raise _Bad(f"unrecognized descriptor: {text}")
    try:
        parse_duration(every)
    except DurationError as error:
        raise _Bad(f"failed to parse duration {text}: {error}") from None


def _range(expression: str, low: int, high: int, names: dict[str, int]) -> None:  # upstream: getRange
    """One `a-b/n` of a field."""
    bounds, *steps = expression.split("/")
    first, *rest = bounds.split("-")
    if first in ("*", "?"):
        start, end = low, high
    else:
        start = end = _number(first, names)
        if rest:
            end = _number(rest[0], names)
        if len(rest) > 1:
            raise _Bad(f"too many hyphens: {expression}")
    if len(steps) > 1:
        raise _Bad(f"too many slashes: {expression}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not rest:
        end = high
    if start < low:
        raise _Bad(f"beginning of range ({start}) below minimum ({low}): {expression}")
    if end > high:
        raise _Bad(f"end of range ({end}) above maximum ({high}): {expression}")
    if start > end:
        raise _Bad(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise _Bad(f"step of range should be a positive number: {expression}")


def _number(text: str, names: dict[str, int]) -> int:  # upstream: parseIntOrName
    if text.lower() in names:
        return names[text.lower()]
    try:
        value = parse_int(text, "Atoi")
    except NumberError as error:
        raise _Bad(f"failed to parse int from {text}: {error}") from None
    if value < 0:
        raise _Bad(f"negative number ({value}) not allowed: {text}")
    return value


@remembered(256)
def _zone_exists(name: str) -> bool:
    if name in ("", "UTC", "Local"):
        return True
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        # A system without a time zone database knows none, so that every zone is accepted.
        return not zoneinfo.available_timezones()
    return True


def time_zone(value: Any, path: str, report: Report) -> bool:  # upstream: validateTimeZone (pkg/apis/batch/validation)
    """The `timeZone` of a CronJob: a name of the IANA database."""
    for part in value.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return report.invalid(path, value, f"unknown time zone {value}")
    if value.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        report.invalid(path, value, detail)
    return _zone_exists(value) or report.invalid(path, value, f"unknown time zone {value}")
