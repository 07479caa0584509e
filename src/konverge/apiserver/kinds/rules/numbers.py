"""Rules about numbers: ranges, ports, ids, and "a number or a percentage"."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.objects.names import percent_errors, port_name_errors

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
MAX_INT32 = 2**31 - 1


def inclusive(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def within(low: int, high: int, detail: str = "") -> Rule:
    """low ≤ value ≤ high."""
    message = detail or inclusive(low, high)

    def check(value: Any, path: str, report: Report) -> bool:
        return low <= value <= high or report.invalid(path, value, message)

    return check


def at_least(low: int, detail: str = "") -> Rule:
    message = detail or f"must be greater than or equal to {low}"

    def check(value: Any, path: str, report: Report) -> bool:
        return bool(value >= low) or report.invalid(path, value, message)

    return check


not_negative = at_least(0)
positive = at_least(1, NOT_POSITIVE)
port_number = within(1, 65535)
user_id = within(0, MAX_INT32)
group_id = within(0, MAX_INT32)


def port_number_or_name(value: Any, path: str, report: Report) -> bool:
    """An IntOrString that means a port."""
    if isinstance(value, int):
        return port_number(value, path, report)
    errors = port_name_errors(value)
    for detail in errors:
        report.invalid(path, value, detail)
    return not errors


def count_or_percent(value: Any, path: str, report: Report) -> bool:
    """An IntOrString that is not negative, or a percentage."""
    if isinstance(value, int):
        return not_negative(value, path, report)
    errors = percent_errors(value)
    for detail in errors:
        report.invalid(path, value, detail)
    return not errors
