"""Values that are an integer or a string: ports by number or name, budgets by count or percentage."""

from __future__ import annotations

import re
from typing import TypeAlias

IntOrString: TypeAlias = int | str

_ATOI = re.compile(r"[+-]?[0-9]+").fullmatch


class PercentageError(ValueError):
    """The value is neither a number nor a percentage; the message is the API server's."""


def parse_int_or_string(text: str) -> IntOrString:
    """An integer where the text is one that fits 32 bits, else the text."""
    if len(text) <= 64 and _ATOI(text) and -(2**31) <= int(text) < 2**31:
        return int(text)
    return text


def scale(value: IntOrString, total: int, *, round_up: bool) -> int:
    """The count that `value` means of `total`: numbers stay, `"25%"` is taken of the total.

    >>> scale("25%", 10, round_up=True), scale("25%", 10, round_up=False), scale(3, 10, round_up=True)
    (3, 2, 3)
    """
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise PercentageError("invalid value for IntOrString: invalid type: string is not a percentage")
    number = value[:-1]
    if len(number) > 64 or not _ATOI(number):
        words = f'strconv.Atoi: parsing "{number}": invalid syntax'
        raise PercentageError(f'invalid value for IntOrString: invalid value "{value}": {words}')
    product = int(number) * total
    return -(-product // 100) if round_up else product // 100
