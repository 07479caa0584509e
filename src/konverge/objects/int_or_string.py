"""Values that are an integer or a string: ports by number or name, budgets by count or percentage."""

from __future__ import annotations

import re
from typing import TypeAlias

IntOrString: TypeAlias = int | str

_ATOI = re.compile(r"([+-]?)0*([0-9]*)").fullmatch
_LONGEST = 19  # digits of an int64


class PercentageError(ValueError):
    """The value is neither a number nor a percentage; the message is the API server's."""


def parse_int_or_string(text: str) -> IntOrString:
    """An integer where the text is one that fits 32 bits, else the text."""
    number = atoi(text)
    return text if isinstance(number, str) or not -(2**31) <= number < 2**31 else number


def atoi(text: str) -> int | str:
    """The int64 in a text, or what Go's strconv.Atoi says is wrong with it."""
    match = _ATOI(text)
    if match is None or text in ("", "+", "-"):
        return "invalid syntax"
    if len(match[2]) > _LONGEST:
        return "value out of range"
    number = int(match[1] + (match[2] or "0"))
    return number if -(2**63) <= number < 2**63 else "value out of range"


def scale(value: IntOrString, total: int, *, round_up: bool) -> int:
    """The count that `value` means of `total`: numbers stay, `"25%"` is taken of the total.

    Upstream: GetScaledValueFromIntOrPercent.

    >>> scale("25%", 10, round_up=True), scale("25%", 10, round_up=False), scale(3, 10, round_up=True)
    (3, 2, 3)
    """
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise PercentageError("invalid value for IntOrString: invalid type: string is not a percentage")
    number = atoi(value[:-1])
    if isinstance(number, str):
        problem = f'strconv.Atoi: parsing "{value[:-1]}": {number}'
        raise PercentageError(f'invalid value for IntOrString: invalid value "{value}": {problem}')
    product = number * total
    return -(-product // 100) if round_up else product // 100
