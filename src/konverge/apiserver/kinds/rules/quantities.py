"""Quantities as numbers: what rules compare.

`amount` is the exact number of nano-units (Kubernetes keeps no finer ones) as an int, because comparing ints is what
validation does all day. Objects arrive here with quantities in canonical form, which the decoder sees to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.numbers import NEGATIVE, NOT_POSITIVE
from konverge.objects.amounts import plus
from konverge.objects.quantity import Quantity, QuantityError

NANO = 10**9
MILLI = 10**6
_ZERO = Quantity(0)
_BEYOND = 10**8200
"""Nano-units that stand for every amount that is too large to be counted in them: more than of any other."""


@lru_cache(maxsize=4096)
def _of_text(text: str) -> int:
    try:
        quantity = Quantity(text)
    except QuantityError:
        return 0
    try:
        return quantity.scaled(-9)
    except QuantityError:
        return _BEYOND if quantity > _ZERO else -_BEYOND


def amount(value: Any) -> int:
    """The quantity in nano-units; a number stands for itself, nothing is 0."""
    if isinstance(value, str):
        return _of_text(value)
    return _of_text(str(value)) if value else 0


def quotient(dividend: int, divisor: int) -> float:
    """Infinite where no float is large enough."""
    try:
        return dividend / divisor
    except OverflowError:
        return math.inf if (dividend > 0) == (divisor > 0) else -math.inf


def is_whole(value: Any) -> bool:
    """No fraction of a unit."""
    return amount(value) % NANO == 0


def quantity_not_negative(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNonnegativeQuantity
    return amount(value) >= 0 or report.invalid(path, shown(value), NEGATIVE)


def quantity_positive(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePositiveQuantityValue
    return amount(value) > 0 or report.invalid(path, shown(value), NOT_POSITIVE)


def shown(value: Any) -> str:
    """The quantity as messages show it."""
    return value if isinstance(value, str) else str(value)


def rounded_to_milli(value: Any) -> str:  # upstream: SetDefaults_ResourceList
    """The next whole number of thousandths."""
    quantity = Quantity(value)
    return str(Quantity.of(quantity.milli, -3, quantity.format))


def added(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, str]:
    """Two resource lists added up."""
    total = {name: str(value) for name, value in first.items()}
    for name, value in second.items():
        total[name] = str(plus(Quantity(total[name]), Quantity(value))) if name in total else str(value)
    return total


def largest(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, str]:
    """The larger amount of every resource in two lists."""
    maximum = {name: str(value) for name, value in first.items()}
    for name, value in second.items():
        if name not in maximum or amount(value) > amount(maximum[name]):
            maximum[name] = str(value)
    return maximum
