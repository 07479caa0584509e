"""`string.format`: the clauses of a format string; a literal one is checked when the expression is compiled.

Upstream: cel-go ext/formatting.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from konverge.apiserver.cel import values
from konverge.apiserver.cel.library.standard import double_text
from konverge.apiserver.cel.nodes import Call, ListExpr, MapExpr, Node, children
from konverge.apiserver.cel.source import Problem
from konverge.apiserver.cel.timestamps import Duration, Timestamp
from konverge.apiserver.cel.values import EvalError, TypeValue
from konverge.apiserver.go.strconv import quote

_PRECISION = re.compile(r"\.([0-9]*)")
_MOST_DIGITS = 1000
"""Of a precision: a limit of ours."""


class ClauseError(ValueError):
    """What is wrong with a clause, or with its argument."""


def clauses(text: str) -> Iterator[str | tuple[str, int | None]]:
    """The parts of a format string: literal text, and clauses as (letter, precision)."""
    at = 0
    while at < len(text):
        percent = text.find("%", at)
        if percent < 0:
            yield text[at:]
            return
        if percent > at:
            yield text[at:percent]
        if text.startswith("%%", percent):
            yield "%"
            at = percent + 2
            continue
        at, clause = _clause(text, percent + 1)
        yield clause


def _clause(text: str, at: int) -> tuple[int, tuple[str, int | None]]:
    if at >= len(text):
        raise ClauseError("unexpected end of string")
    precision: int | None = None
    match = _PRECISION.match(text, at)
    if match is not None:
        at = match.end()
        head = "could not parse formatting clause: error while parsing precision: "
        if at >= len(text):
            raise ClauseError(f"{head}could not find end of precision specifier")
        if not match[1]:
            raise ClauseError(
                f'{head}error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            )
        precision = min(int(match[1]), _MOST_DIGITS)
    if text[at] not in "sdfebxXo":
        raise ClauseError(f'could not parse formatting clause: unrecognized formatting clause "{text[at]}"')
    return at + 1, (text[at], precision)


# What each clause takes: (types, what the error says).
_NUMBERS = ("int", "uint")
_TAKES = {
    "d": (_NUMBERS, "decimal clause can only be used on integers, was given {}"),
    "f": (("double", "string"), "fixed-point clause can only be used on doubles, was given {}"),
    "e": (("double", "string"), "scientific clause can only be used on doubles, was given {}"),
    "b": ((*_NUMBERS, "bool"), "only integers and bools can be formatted as binary, was given {}"),
    "o": (_NUMBERS, "octal clause can only be used on integers, was given {}"),
    "x": (
        (*_NUMBERS, "string", "bytes"),
        "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    ),
}
_TAKES["X"] = _TAKES["x"]
_TAKES["s"] = (
    (*_NUMBERS, "double", "bool", "string", "bytes", "timestamp", "duration", "list", "map", "type", "null", "dyn"),
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given {}",
)


def check(call: Call, text: str, args: ListExpr) -> Iterator[Problem]:
    """A literal format string with a literal list."""
    count = 0
    try:
        for part in clauses(text):
            if isinstance(part, str):
                continue
            if count >= len(args.items):
                raise ClauseError(f"index {count} out of range")
            problem = _argument(part[0], args.items[count])
            if problem is not None:
                yield problem
                return
            count += 1
    except ClauseError as error:
        message = str(error)
        if message.startswith("could not parse") and count >= len(args.items):
            message = f"index {count} out of range"
        yield Problem(call.offset, message)
        return
    if count < len(args.items):
        too_many = f"too many arguments supplied to string.format (expected {count}, got {len(args.items)})"
        yield Problem(call.offset, too_many)


def _argument(letter: str, node: Node) -> Problem | None:
    takes, message = _TAKES[letter]
    bad = _unfit(node, takes, members=letter == "s")
    if bad is None or bad.type is None:
        return None
    names = {"null": "null_type", "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
    named = names.get(bad.type.kind, bad.type.name or bad.type.kind)
    return Problem(bad.offset, f"error during formatting: {message.format(named)}")


def _unfit(node: Node, takes: tuple[str, ...], *, members: bool) -> Node | None:
    """The argument, or one of its `members`, whose type a clause does not take."""
    if node.type is not None and node.type.kind != "dyn" and node.type.kind not in takes:
        return node
    inner = children(node) if members and isinstance(node, (ListExpr, MapExpr)) else []
    return next((bad for child in inner if (bad := _unfit(child, takes, members=True)) is not None), None)


def format_string(text: str, args: list[Any]) -> str:
    """The format string with its arguments."""
    texts: list[str] = []
    count = 0
    try:
        for part in clauses(text):
            if isinstance(part, str):
                texts.append(part)
                continue
            if count >= len(args):
                raise ClauseError(f"index {count} out of range")
            texts.append(_FORMATTERS[part[0]](args[count], part[1]))
            count += 1
    except ClauseError as error:
        raise EvalError(str(error)) from None
    return "".join(texts)


def _wrong(letter: str, value: Any) -> ClauseError:
    return ClauseError(f"error during formatting: {_TAKES[letter][1].format(values.type_name(value))}")


def shown(value: Any, precision: int | None = None) -> str:
    """%s"""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | Duration() | Timestamp():
            return str(value)
        case float():
            return double_text(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case None:
            return "null"
        case TypeValue():
            return value.name
        case list():
            return "[" + ", ".join(_member(item) for item in value) + "]"
        case dict():
            entries = sorted((_member(key), _member(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}"
    raise _wrong("s", value)


def _member(value: Any) -> str:
    """A value inside a list or a map: as it would be written in an expression."""
    match value:
        case str():
            return quote(value)
        case bytes():
            return "b" + quote(value.decode("utf-8", "replace"))
        case float():
            return f"{value:.6f}"
        case Timestamp():
            return f"timestamp({quote(str(value))})"
        case Duration():
            return f"duration({quote(str(value))})"
    return shown(value)


def _integer(letter: str) -> Callable[[Any, int | None], str]:
    """Python's own formats have the letters of these clauses."""

    def render(value: Any, precision: int | None) -> str:
        if letter in "xX" and isinstance(value, (str, bytes)):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if letter == "X" else text
        if not isinstance(value, int) or (isinstance(value, bool) and letter != "b"):
            raise _wrong(letter, value)
        return format(int(value), letter)

    return render


def _double(letter: str, value: Any) -> float:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if not isinstance(value, float):
        raise _wrong(letter, value)
    return value


def _special(value: float) -> str:
    if value != value:
        return "NaN"
    return "" if abs(value) != float("inf") else "∞" if value > 0 else "-∞"


def _fixed(value: Any, precision: int | None) -> str:
    number = _double("f", value)
    return _special(number) or f"{number:,.{6 if precision is None else precision}f}"


def _scientific(value: Any, precision: int | None) -> str:
    number = _double("e", value)
    if _special(number):
        return _special(number)
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    raised = exponent.replace("+", "").translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}×10{raised}"


_FORMATTERS: dict[str, Callable[[Any, int | None], str]] = {
    "s": shown,
    "f": _fixed,
    "e": _scientific,
    **{letter: _integer(letter) for letter in "dboxX"},
}
