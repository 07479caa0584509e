"""Numbers that may be percentages: `maxUnavailable: 1` and `maxUnavailable: 25%`."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report
from konverge.objects.names import percent_errors


def percent(value: Any) -> int | None:
    """The number of a valid percentage, None for anything else."""
    return int(value[:-1]) if isinstance(value, str) and not percent_errors(value) else None


def count_of(value: Any) -> int:
    """The number of a count or of a percentage; a text that is neither counts as the number it begins as, or 0."""
    if isinstance(value, str):
        share = percent(value)
        return share if share is not None else int(value) if value.lstrip("-").isdigit() else 0
    return int(value or 0)


def within_hundred_percent(value: Any, path: str, report: Report) -> bool:
    share = percent(value)
    return share is None or share <= 100 or report.invalid(path, value, "must not be greater than 100%")
