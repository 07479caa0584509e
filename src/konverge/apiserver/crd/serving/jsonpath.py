"""JSONPath as printer columns and selectable fields use it.

Fields, indices, slices, wildcards, recursive descent, unions, filters: `.status.conditions[?(@.type=="Ready")].status`.
A path is compiled to steps; each step maps a list of values to a list of values. Upstream: client-go/util/jsonpath.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from konverge.apiserver.go.strconv import NumberError, parse_int

Step = Callable[[list[Any]], list[Any]]

_NAME = re.compile(r"(?:\\.|[^\s.\[\]\\@()'\"|&<>=!?*,:{}$])+")
_SLICE = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?")
_FILTER = re.compile(r"\?\((.*)\)$", re.S)
_COMPARISON = re.compile(r"(==|!=|<=|>=|<|>)")
_NUMBER = re.compile(r"-|-?[0-9]*\.?[0-9]+")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class JSONPathError(ValueError):
    """The path cannot be parsed, or does not fit the data."""


class JSONPath:
    """A compiled path. `find` returns the values it leads to; a missing field is no error."""

    def __init__(self, path: str) -> None:
        self._steps = _compile(path)

    def find(self, obj: Any) -> list[Any]:
        values = [obj]
        for step in self._steps:
            values = step(values)
        return values


def _compile(path: str) -> list[Step]:
    steps: list[Step] = []
    at = 0
    while at < len(path):
        char = path[at]
        if path.startswith("..", at):
            steps.append(_recursive)
            at += 1 if path[at + 2 : at + 3] not in ("[", "") else 2
        elif char == ".":
            at, step = _dotted(path, at + 1)
            if step is not None:
                steps.append(step)
        elif char == "[":
            end = _closing(path, at)
            steps.append(_bracket(path[at + 1 : end]))
            at = end + 1
        elif char in "$@" and at == 0:
            at += 1
        else:
            match = _NAME.match(path, at)
            if match is None:
                raise JSONPathError(f"unrecognized character in action: {char!r}")
            steps.append(_field(match[0].replace("\\", "")))
            at = match.end()
    return steps


def _dotted(path: str, at: int) -> tuple[int, Step | None]:
    if path.startswith("*", at):
        return at + 1, _wildcard
    match = _NAME.match(path, at)
    if match is None:
        if path[at : at + 1] in ("", "["):
            return at, None
        raise JSONPathError(f"unrecognized character in action: {path[at]!r}")
    return match.end(), _field(re.sub(r"\\(.)", r"\1", match[0]))


def _closing(path: str, at: int) -> int:
    quote, depth = "", 0
    for index in range(at, len(path)):
        char = path[index]
        if quote:
            quote = "" if char == quote and path[index - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        else:
            depth += (char == "[") - (char == "]")
            if depth == 0:
                return index
    raise JSONPathError("unterminated array")


def _bracket(text: str) -> Step:
    text = text.strip()
    condition = _FILTER.match(text)
    if condition is not None:
        return _filter(condition[1])
    parts = re.findall(r"'(?:\\.|[^'])*'|\"(?:\\.|[^\"])*\"|[^,]+", text)
    if len(parts) > 1:
        steps = [_bracket(part) for part in parts]
        return lambda values: [value for step in steps for value in step(values)]
    if text == "*":
        return _wildcard
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return _field(re.sub(r"\\(.)", r"\1", text[1:-1]))
    match = _SLICE.fullmatch(text)
    if match is None or not text:
        raise JSONPathError(f"invalid array index {text}")
    return _slice(match)


def _field(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (value[key] for key in sorted(value))
    return value if isinstance(value, list) else ()


def _wildcard(values: list[Any]) -> list[Any]:
    return [member for value in values for member in _members(value)]


def _recursive(values: list[Any]) -> list[Any]:
    descendants: list[Any] = []
    for value in values:
        members = list(_members(value))
        if members:
            descendants += [value, *_recursive(members)]
    return descendants


def _slice(match: re.Match[str]) -> Step:
    start, end, step = (_index(text) if text else None for text in match.groups())
    single = match[2] is None

    def take(values: list[Any]) -> list[Any]:
        taken: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JSONPathError("is not array or slice")
            taken += _one(value, start or 0) if single else value[_bounds(value, start, end, step)]
        return taken

    return take


def _index(text: str) -> int:
    try:
        return parse_int(text)
    except NumberError:
        raise JSONPathError(f"array index {text} is not a number") from None


def _one(value: list[Any], index: int) -> list[Any]:
    if not -len(value) <= index < len(value):
        raise JSONPathError(f"array index out of bounds: index {index}, length {len(value)}")
    return [value[index]]


def _bounds(value: list[Any], start: int | None, end: int | None, step: int | None) -> slice:
    if step is not None and step <= 0:
        raise JSONPathError("step must be > 0")
    size = len(value)
    low, high = start or 0, size if end is None else end
    low, high = low + size * (low < 0), high + size * (high < 0)
    if low != high and not (0 <= low < size and 0 <= high <= size and low <= high):
        raise JSONPathError(f"array index out of bounds: index {low}, length {size}")
    return slice(low, high, step)


def _filter(text: str) -> Step:
    parts = _COMPARISON.split(text, maxsplit=1)
    left = _operand(parts[0].strip())
    if len(parts) == 1:
        return lambda values: [item for value in values for item in _items(value) if left(item)]
    compare, right = _OPERATORS[parts[1]], _operand(parts[2].strip())

    def passes(item: Any) -> bool:
        a, b = left(item), right(item)
        if not a or not b:
            return False
        if len(a) > 1 or len(b) > 1:
            raise JSONPathError("can only compare one element at a time")
        try:
            return compare(a[0], b[0])
        except TypeError:
            raise JSONPathError("incompatible types for comparison") from None

    return lambda values: [item for value in values for item in _items(value) if passes(item)]


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise JSONPathError("is not array or slice and cannot be filtered")
    return value


def _operand(text: str) -> Callable[[Any], list[Any]]:
    if text[:1] in ("'", '"'):
        literal: Any = re.sub(r"\\(.)", r"\1", text[1:-1])
    elif text in ("true", "false"):
        literal = text == "true"
    elif _NUMBER.fullmatch(text):
        literal = _number(text)
    else:
        return JSONPath(text).find
    return lambda item: [literal]


def _number(text: str) -> int | float:  # upstream: Parser.parseNumber
    try:
        return parse_int(text)
    except NumberError:
        value = math.inf if text == "-" else float(text)
    if math.isinf(value):
        raise JSONPathError(f"cannot parse number {text}")
    return value
