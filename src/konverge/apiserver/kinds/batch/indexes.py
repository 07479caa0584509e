"""Lists of indexes as text: `1,3-5,7`. Upstream: pkg/apis/batch/validation."""

from __future__ import annotations

import math
import re

from konverge.apiserver.go.strconv import quote


class BadIndexes(ValueError):
    """The text is the message."""


def _index(text: str, completions: int) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise BadIndexes(f"cannot convert string to integer for index: {quote(text)}")
    if int(text) >= completions:
        raise BadIndexes(f"too large index: {quote(text)}")
    return int(text)


def interval(text: str, completions: int) -> tuple[int, int]:  # upstream: parseIndexInterval
    """(first, last) of one part."""
    parts = text.split("-")
    if len(parts) > 2:
        detail = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise BadIndexes(f"the fragment {quote(text)} {detail}")
    first = _index(parts[0], completions)
    if len(parts) == 1:
        return first, first
    last = _index(parts[1], completions)
    if first >= last:
        raise BadIndexes(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def count(text: str, completions: int) -> int:  # upstream: validateIndexesFormat
    """How many indexes the list has; it must be increasing."""
    total, previous = 0, None
    for part in text.split(",") if text else ():
        first, last = interval(part, completions)
        if previous is not None and previous >= first:
            raise BadIndexes(f"non-increasing order, previous: {previous}, current: {first}")
        total += last - first + 1
        previous = last
    return total


# upstream: validateFailedIndexesNotOverlapCompleted
def overlap(first: str, second: str, completions: int) -> int | None:
    """The first index that both lists have; parts that cannot be read are passed over."""
    intervals = [(*part, 0) for part in _readable(first, completions)]
    intervals += [(*part, 1) for part in _readable(second, completions)]
    ends = [-math.inf, -math.inf]  # the last index of each list's intervals so far
    for begin, end, whose in sorted(intervals):
        ends[whose] = max(ends[whose], end)
        if ends[1 - whose] >= begin:
            return begin
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    intervals = []
    for part in text.split(",") if text else ():
        try:
            intervals.append(interval(part, completions))
        except BadIndexes:
            continue
    return intervals
