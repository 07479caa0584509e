"""Numbers within the limits of a schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Schema = Mapping[str, Any]

_LIMITS = {"int32": (-(2**31), 2**31 - 1)}
_EXACT = (-(2**53) + 1, 2**53 - 1)
"""What every JSON reader takes for the same number."""


def integers(schema: Schema) -> SearchStrategy[int]:
    """
    >>> integers({"minimum": 3, "maximum": 4, "exclusiveMaximum": True}).example()   # doctest: +SKIP
    3
    """
    low, high = _LIMITS.get(schema.get("format") or "", _EXACT)
    if schema.get("minimum") is not None:
        least = schema["minimum"]
        low = max(low, math.floor(least) + 1 if schema.get("exclusiveMinimum") else math.ceil(least))
    if schema.get("maximum") is not None:
        most = schema["maximum"]
        high = min(high, math.ceil(most) - 1 if schema.get("exclusiveMaximum") else math.floor(most))
    unit = schema.get("multipleOf")
    if not unit or not float(unit).is_integer():
        return st.integers(low, high)
    step = int(unit)
    return st.integers(math.ceil(low / step), math.floor(high / step)).map(lambda count: count * step)


def floats(schema: Schema) -> SearchStrategy[float]:
    """Of the usual size: numbers at the end of what a float can hold say little about an operator."""
    bound = 3e38 if schema.get("format") == "float" else 1e100
    low, high = schema.get("minimum"), schema.get("maximum")
    unit = schema.get("multipleOf")
    if unit:
        counted = {"minimum": _in_units(low, unit), "maximum": _in_units(high, unit), "format": "int32"}
        return integers({**schema, **counted, "multipleOf": None}).map(lambda count: count * unit)
    return st.floats(
        min_value=-bound if low is None else float(low),
        max_value=bound if high is None else float(high),
        exclude_min=bool(low is not None and schema.get("exclusiveMinimum")),
        exclude_max=bool(high is not None and schema.get("exclusiveMaximum")),
        allow_nan=False,
        allow_infinity=False,
    ).map(lambda number: 0.0 if number == 0 else number)  # JSON of Go has no minus zero


def _in_units(limit: float | None, unit: float) -> float | None:
    return None if limit is None else limit / unit
