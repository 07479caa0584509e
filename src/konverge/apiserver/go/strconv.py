"""Go's strconv: how texts are quoted, and how numbers are read and written."""

from __future__ import annotations

import re
from decimal import Decimal

from konverge.objects.int_or_string import atoi

_PLAIN = re.compile(r"[ !#-\[\]-~]*").fullmatch
"""Texts that are quoted as they are: nothing in them is escaped."""
_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"
}  # fmt: skip
_UINT64_DIGITS = 20


def quote(text: str) -> str:
    """A text as `strconv.Quote` and `%q` print it."""
    if _PLAIN(text):
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    """Upstream: appendEscapedRune. What cannot be printed is an escape, as short as it can be."""
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xD800 <= code < 0xE000:
        return "\\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class NumberError(ValueError):
    """Upstream: strconv.NumError."""

    def __init__(self, function: str, text: str, problem: str) -> None:
        super().__init__(f"strconv.{function}: parsing {quote(text)}: {problem}")


def parse_int(text: str, function: str = "ParseInt") -> int:
    """An int64 in base 10, as `strconv.ParseInt` and `strconv.Atoi` read it."""
    number = atoi(text)
    if isinstance(number, str):
        raise NumberError(function, text, number)
    return number


def parse_uint(text: str) -> int:
    """A uint64 in base 10, as `strconv.ParseUint` reads it."""
    if not (text.isascii() and text.isdigit()):
        raise NumberError("ParseUint", text, "invalid syntax")
    digits = text.lstrip("0")
    if len(digits) > _UINT64_DIGITS or int(digits or "0") >= 1 << 64:
        raise NumberError("ParseUint", text, "value out of range")
    return int(digits or "0")


def fixed(value: float) -> str:
    """`FormatFloat` with 'f' and the shortest precision that is exact."""
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def scientific(value: float) -> tuple[str, int]:
    """Mantissa and exponent of `FormatFloat` with 'e' and the shortest precision that is exact."""
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}", Decimal(repr(value)).adjusted()
