"""Arithmetic, comparison, conversion: the core of the language. Upstream: cel-go common/stdlib and common/types."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from konverge.apiserver.cel import values
from konverge.apiserver.cel.literals import UInt
from konverge.apiserver.cel.timestamps import Duration, Timestamp, parse_duration
from konverge.apiserver.cel.values import EvalError, TypeValue
from konverge.apiserver.go.fmt import go_float
from konverge.apiserver.go.regexp import RegexError, compile_pattern
from konverge.apiserver.go.strconv import parse_int, parse_uint

_MIN, _MAX, _UMAX = -(2**63), 2**63 - 1, 2**64 - 1
_FLOAT = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))")


def _int(value: int) -> int:
    if _MIN <= value <= _MAX:
        return value
    raise EvalError("integer overflow")


def _uint(value: int) -> UInt:
    if 0 <= value <= _UMAX:
        return UInt(value)
    raise EvalError("unsigned integer overflow")


def _checked(function: Callable[[int, int], int], check: Callable[[int], int]) -> Callable[[int, int], int]:
    return lambda a, b: check(function(int(a), int(b)))


def divide(a: int, b: int) -> int:
    """Rounds towards zero, as Go does."""
    if b == 0:
        raise EvalError("division by zero")
    quotient = abs(a) // abs(b)
    return _int(quotient if (a < 0) == (b < 0) else -quotient)


def modulo(a: int, b: int) -> int:
    if b == 0:
        raise EvalError("modulus by zero")
    return a - b * divide(a, b)


def _divide_double(a: float, b: float) -> float:
    if b == 0:
        if a == 0 or a != a:
            return float("nan")
        return float("inf") if (a > 0) == (str(b)[0] != "-") else float("-inf")
    return a / b


def _to_int(value: float) -> int:
    if value != value or not -(2.0**63) < value < 2.0**63:
        raise EvalError("integer overflow")
    return int(value)


def _to_uint(value: float) -> UInt:
    if value != value or not 0 <= value < 2.0**64:
        raise EvalError("unsigned integer overflow")
    return UInt(int(value))


def _from_text(parse: Callable[[str], Any], wanted: str) -> Callable[[str], Any]:
    """`parse` returns None, or raises a ValueError, for a text that is no such value."""

    def convert(text: str) -> Any:
        try:
            value = parse(text)
        except ValueError:
            value = None
        if value is None:
            raise EvalError(f"type conversion error from 'string' to '{wanted}'")
        return value

    return convert


def _duration(text: str) -> Duration | None:
    nanoseconds = parse_duration(text)
    return None if nanoseconds is None else Duration(nanoseconds)


_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None


def double_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return go_float(value)


def matches(text: str, pattern: str) -> bool:
    try:
        return compile_pattern(pattern).matches(text)
    except RegexError as error:
        raise EvalError(str(error)) from None


def type_of(value: Any) -> TypeValue:
    name = values.type_name(value)
    return TypeValue(name, {"list": "list(dyn)", "map": "map(dyn, dyn)"}.get(name, ""))


def is_key(value: Any, mapping: dict[Any, Any]) -> bool:
    try:
        return value in mapping
    except TypeError:
        return False


def index_list(items: list[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise EvalError(f"index out of bounds: {index}")
    return items[int(index)]


def index_map(mapping: dict[Any, Any], key: Any) -> Any:
    try:
        return mapping[key]
    except (KeyError, TypeError):
        raise EvalError(f"no such key: {key}") from None


def insert(mapping: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if key in mapping:
        raise EvalError(f"insert failed: key {key} already exists")
    return {**mapping, key: value}


def insert_all(mapping: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        mapping = insert(mapping, key, value)
    return mapping


def _same(value: Any) -> Any:
    return value


_CONVERTED = "bool bytes int64 uint64 double string duration timestamp"
_COMPARISONS = {"less": operator.lt, "less_equals": operator.le, "greater": operator.gt, "greater_equals": operator.ge}
_COMPARED = (
    "bool int64 int64_double int64_uint64 uint64 uint64_double uint64_int64 double double_int64 double_uint64 string "
    "bytes timestamp duration"
)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{word}_{kind}": compare for word, compare in _COMPARISONS.items() for kind in _COMPARED.split()
} | {
    "negate_int64": lambda a: _int(-a),
    "negate_double": operator.neg,
    "add_int64": _checked(operator.add, _int),
    "add_uint64": _checked(operator.add, _uint),
    "subtract_int64": _checked(operator.sub, _int),
    "subtract_uint64": _checked(operator.sub, _uint),
    "multiply_int64": _checked(operator.mul, _int),
    "multiply_uint64": _checked(operator.mul, _uint),
    "divide_int64": divide,
    "divide_uint64": lambda a, b: UInt(divide(int(a), int(b))),
    "modulo_int64": modulo,
    "modulo_uint64": lambda a, b: UInt(modulo(int(a), int(b))),
    "add_double": operator.add,
    "subtract_double": operator.sub,
    "multiply_double": operator.mul,
    "divide_double": _divide_double,
    "add_string": operator.add,
    "add_bytes": operator.add,
    "add_list": values.join,
    "equals": values.equal,
    "not_equals": lambda a, b: not values.equal(a, b),
    "in_list": lambda value, items: values.contains(items, value),
    "in_map": is_key,
    "index_list": index_list,
    "index_map": index_map,
    "@mapInsert_map_key_value": insert,
    "@mapInsert_map_map": insert_all,
    **{name: len for kind in ("string", "bytes", "list", "map") for name in (f"size_{kind}", f"{kind}_size")},
    "contains_string": operator.contains,
    "starts_with_string": str.startswith,
    "ends_with_string": str.endswith,
    "matches": matches,
    "matches_string": matches,
    "type": type_of,
    "to_dyn": _same,
    **{f"{kind}_to_{kind}": _same for kind in _CONVERTED.split()},
    "string_to_bool": _from_text(_BOOLS.get, "bool"),
    "string_to_bytes": str.encode,
    "uint64_to_int64": lambda value: _int(int(value)),
    "double_to_int64": _to_int,
    "string_to_int64": _from_text(parse_int, "int"),
    "duration_to_int64": lambda value: value.ns,
    "timestamp_to_int64": lambda value: value.ns // 10**9,
    "int64_to_uint64": _uint,
    "double_to_uint64": _to_uint,
    "string_to_uint64": _from_text(lambda text: UInt(parse_uint(text)), "uint"),
    "int64_to_double": float,
    "uint64_to_double": float,
    "string_to_double": _from_text(lambda text: float(text) if _FLOAT.fullmatch(text) else None, "double"),
    "bool_to_string": lambda value: "true" if value else "false",
    "bytes_to_string": _decode,
    "double_to_string": double_text,
    "int64_to_string": str,
    "uint64_to_string": str,
    "duration_to_string": str,
    "timestamp_to_string": str,
    "string_to_duration": _from_text(_duration, "google.protobuf.Duration"),
    "string_to_timestamp": _from_text(Timestamp.parse, "google.protobuf.Timestamp"),
    "int64_to_timestamp": Timestamp.at_second,
}
