"""Limits of numbers: minimum, maximum, multipleOf, int32 and float."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from konverge.apiserver.crd.schema.structural import Schema
from konverge.apiserver.crd.schema.value_errors import Issue, plain
from konverge.apiserver.go.fmt import go_float

Issues = list[Issue]
_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_FLOAT32 = 3.4028234663852886e38


def is_whole(value: float) -> bool:
    """A float that counts as an integer: whole, and exact in JSON's sense."""
    return abs(value) <= 2**53 - 1 and abs(value - round(value)) < 1e-9 * max(1.0, abs(value))


def checks(raw: Schema, types: tuple[str, ...], form: str) -> list[Callable[[Any, str, Issues, Any], None]]:
    limits = {name: raw.get(name) for name in ("multipleOf", "maximum", "minimum")}
    kind = types[0] if len(types) == 1 and types[0] in ("integer", "number") else ""
    if not kind and all(limit is None for limit in limits.values()):
        return []
    return [partial(_check, raw, kind, form)]


def _check(raw: Schema, kind: str, form: str, value: Any, path: str, found: Issues, old: Any) -> None:
    _fits(value, kind, form, "Checked", path, found)
    factor, lowest, highest = raw.get("multipleOf"), raw.get("minimum"), raw.get("maximum")
    if factor is not None:
        _fits(factor, kind, form, "MultipleOf", path, found)
        _multiple(factor, value, kind, path, found)
    if lowest is not None:
        _fits(lowest, kind, form, "Minimum boundary", path, found)
        limit = _like(lowest, value, kind)
        if value < limit or (raw.get("exclusiveMinimum") and value == limit):
            words = "greater than" if raw.get("exclusiveMinimum") else "greater than or equal to"
            found.append(Issue("", path, value, f"{path} in body should be {words} {_text(limit)}"))
    if highest is not None:
        _fits(highest, kind, form, "Maximum boundary", path, found)
        limit = _like(highest, value, kind)
        if value > limit or (raw.get("exclusiveMaximum") and value == limit):
            words = "less than" if raw.get("exclusiveMaximum") else "less than or equal to"
            found.append(Issue("", path, value, f"{path} in body should be {words} {_text(limit)}"))


def _multiple(factor: Any, value: Any, kind: str, path: str, found: Issues) -> None:
    unit = _like(factor, value, kind)
    if unit <= 0:
        text = f"factor MultipleOf declared for {path} must be positive: {_text(unit)}"
        found.append(Issue("", path, unit, text))
    elif (value % unit != 0) if isinstance(unit, int) else not is_whole(1 / unit * value if unit < 1 else value / unit):
        found.append(Issue("", path, value, f"{path} in body should be a multiple of {_text(unit)}"))


def _like(limit: Any, value: Any, kind: str) -> Any:
    """A limit in the kind of the value: integers are compared with what is left of a limit without its fraction.

    Only for the type `integer` the API server sees that the fraction is lost, and compares as numbers.
    """
    whole = isinstance(value, int) and (kind != "integer" or float(limit).is_integer())
    return int(limit) if whole else float(limit)


def _text(value: Any) -> str:
    return go_float(value) if isinstance(value, float) else str(value)


def _fits(value: Any, kind: str, form: str, what: str, path: str, found: Issues) -> None:
    if kind == "integer":
        low, high = _INT32 if form == "int32" else _INT64
        fits = float(value).is_integer() and low <= value <= high
    else:
        fits = form != "float" or abs(value) <= _FLOAT32
    if not fits:
        tail = f"with format {form}" if form else "(default format)"
        found.append(plain(f"{what} value must be of type {kind} {tail} in {path}"))
