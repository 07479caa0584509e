"""Go's fmt: decoded JSON as its verbs print it in messages."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.strconv import fixed, quote, scientific


def go_value(value: Any) -> str:
    """`%v`: `map[a:1 b:[x y]]`."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_value, value)) + "]"
    return go_float(value) if isinstance(value, float) else str(value)


def go_float(value: float) -> str:
    """`%v` of a float64: with an exponent from 1e6 on and below 1e-4."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return fixed(value)
    mantissa, exponent = scientific(value)
    return f"{mantissa}e{exponent:+03d}"


def go_type(value: Any) -> str:
    """`%T`."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "int64", float: "float64", dict: "map[string]interface {}", list: "[]interface {}"}
    return names[type(value)]


def go_syntax(value: Any) -> str:
    """`%#v`."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        members = ", ".join(f"{quote(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(go_syntax, value)) + "}"
    return go_value(value)
