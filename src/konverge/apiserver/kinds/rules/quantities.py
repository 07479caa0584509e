"""Quantities as numbers: what rules compare.

`amount` reads the text of a quantity as an exact number of nano-units (Kubernetes keeps no more precision). Objects
arrive here with quantities in canonical form, which the decoder sees to.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from konverge.apiserver.kinds.declare import Report
from konverge.apiserver.kinds.rules.numbers import NEGATIVE, NOT_POSITIVE

NANO = 10**9

_SHAPE = re.compile(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@lru_cache(maxsize=4096)
def _of_text(text: str) -> int:
    match = _SHAPE.fullmatch(text)
    if not match:
        return 0
    number, exponent, suffix = match.groups()
    scale = Fraction(10) ** int(exponent[1:]) if exponent else _scale(suffix or "")
    exact = Fraction(number) * scale * NANO
    return -(-exact.numerator // exact.denominator)


def _scale(suffix: str) -> Fraction:
    if suffix in _BINARY:
        return Fraction(1 << _BINARY[suffix])
    return Fraction(10) ** _DECIMAL[suffix]


def amount(value: Any) -> int:
    """The quantity in nano-units; a number stands for itself, nothing is 0."""
    if isinstance(value, str):
        return _of_text(value)
    return int(value * NANO) if value else 0


def is_whole(value: Any) -> bool:
    """No fraction of a unit (the API looks at thousandths)."""
    return amount(value) % NANO == 0


def quantity_not_negative(value: Any, path: str, report: Report) -> bool:
    return amount(value) >= 0 or report.invalid(path, shown(value), NEGATIVE)


def quantity_positive(value: Any, path: str, report: Report) -> bool:
    return amount(value) > 0 or report.invalid(path, shown(value), NOT_POSITIVE)


def shown(value: Any) -> str:
    """The quantity as messages show it."""
    return value if isinstance(value, str) else str(value)


def written(nano: int) -> str:
    """A decimal quantity in canonical form: the largest unit in which it is whole."""
    for suffix, exponent in reversed(_DECIMAL.items()):
        unit = 10 ** (exponent + 9)
        if nano % unit == 0 and (nano or not suffix):
            return f"{nano // unit}{suffix}"
    return str(nano)
