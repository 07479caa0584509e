"""Values as Go prints them in messages (`%v`) and inside path elements (JSON)."""

from __future__ import annotations

import json
import re
from typing import Any

from konverge.apiserver.field_errors import quote

# Go's encoder writes these as escapes so that JSON may stand inside HTML and JavaScript.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})

_plain = re.compile(r"[ !#-%'-;=?-\[\]-~]*").fullmatch
"""Texts that are written as they are: nothing in them is escaped."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def html_safe(text: str) -> str:
    """JSON text with the escapes that Go's encoder adds."""
    return text.translate(_ESCAPES)


def go_json(value: Any) -> str:
    """A scalar as Go's JSON encoder writes it."""
    if isinstance(value, str):
        if _plain(value):
            return f'"{value}"'
        text = html_safe(_encode(value))
        return text.replace("\\b", "\\u0008").replace("\\f", "\\u000c") if "\\" in text else text
    if isinstance(value, float):
        return go_float(value, fixed_below=21)
    return _encode(value)


def go_scalar(value: Any) -> str:
    """A scalar inside a path in a message."""
    if isinstance(value, str):
        return quote(value)
    return go_value(value) if value is not None else "null"


def go_value(value: Any) -> str:
    """`%v` of decoded JSON: `map[a:1 b:[x y]]`."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_value, value)) + "]"
    return go_float(value, fixed_below=21) if isinstance(value, float) else str(value)


def go_float(value: float, *, fixed_below: int) -> str:
    """The shortest text of a float64; with an exponent from 1e21 on and below 1e-4."""
    if value.is_integer() and abs(value) < 10**fixed_below:
        return str(int(value))
    return repr(value)


def go_type(value: Any) -> str:
    """`%T` of decoded JSON."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "int64", float: "float64", dict: "map[string]interface {}", list: "[]interface {}"}
    return names[type(value)]


def go_syntax(value: Any) -> str:
    """`%#v` of decoded JSON."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        inside = ", ".join(f"{quote(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(go_syntax, value)) + "}"
    return go_value(value)
