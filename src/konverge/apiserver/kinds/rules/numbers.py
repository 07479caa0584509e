"""Rules about numbers: ranges, ports, ids, and "a number or a percentage"."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.apiserver.kinds.rules.names import format_rule, port_name
from konverge.objects.names import percent_errors

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
MAX_INT32 = 2**31 - 1


def inclusive(low: int, high: int) -> str:  # upstream: InclusiveRangeError
    return f"must be between {low} and {high}, inclusive"


def within(low: int, high: int, detail: str = "") -> Rule:  # upstream: IsInRange
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


not_negative = at_least(0)  # upstream: ValidateNonnegativeField
positive = at_least(1, NOT_POSITIVE)  # upstream: ValidatePositiveField
port_number = within(1, 65535)  # upstream: IsValidPortNum
user_id = within(0, MAX_INT32)  # upstream: IsValidUserID
group_id = within(0, MAX_INT32)  # upstream: IsValidGroupID
_percentage = format_rule(percent_errors)


def token_expiration(value: Any, path: str, report: Report) -> bool:
    """The seconds for which a token is asked for. Upstream: validateTokenRequests, validateProjectionSources."""
    if value < 600:
        return report.invalid(path, value, "may not specify a duration less than 10 minutes")
    return value <= 1 << 32 or report.invalid(path, value, "may not specify a duration larger than 2^32 seconds")


def port_number_or_name(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePortNumOrName
    """An IntOrString that means a port."""
    return (port_number if isinstance(value, int) else port_name)(value, path, report)


def count_or_percent(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePositiveIntOrPercent
    """An IntOrString that is not negative, or a percentage."""
    return (not_negative if isinstance(value, int) else _percentage)(value, path, report)


def percent(value: Any) -> int | None:  # upstream: getPercentValue
    """The number of a valid percentage, None for anything else."""
    return int(value[:-1]) if isinstance(value, str) and not percent_errors(value) else None


def count_of(value: Any) -> int:  # upstream: getIntOrPercentValue
    """The number of a count or of a percentage; a text that is neither counts as the number it begins as, or 0."""
    if isinstance(value, str):
        share = percent(value)
        return share if share is not None else int(value) if value.lstrip("-").isdigit() else 0
    return int(value or 0)


def within_hundred_percent(value: Any, path: str, report: Report) -> bool:  # upstream: IsNotMoreThan100Percent
    share = percent(value)
    return share is None or share <= 100 or report.invalid(path, value, "must not be greater than 100%")
