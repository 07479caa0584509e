"""Values of literals. Upstream: cel-go parser/unescape.go."""

from __future__ import annotations

import re

_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S)


class LiteralError(ValueError):
    """The message is cel-go's."""


class UInt(int):
    """An unsigned integer: another type than int, though equal numbers are equal."""

    __slots__ = ()


def parse_int(text: str) -> int:
    value = int(text.replace("0x", ""), 16) if "0x" in text else int(text)
    if not -(2**63) <= value < 2**63:
        raise LiteralError("invalid int literal")
    return value


def parse_uint(text: str) -> UInt:
    digits = text[:-1]
    value = int(digits[2:], 16) if digits.startswith("0x") else int(digits)
    if value >= 2**64:
        raise LiteralError("invalid uint literal")
    return UInt(value)


def parse_double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


def parse_string(text: str) -> str:
    raw, body = _strip(text)
    if raw:
        return body.replace("\r\n", "\n").replace("\r", "\n")
    return _ESCAPE.sub(_text_escape, body.replace("\r\n", "\n").replace("\r", "\n"))


def parse_bytes(text: str) -> bytes:
    raw, body = _strip(text[1:])
    if raw:
        return body.encode()
    data = bytearray()
    position = 0
    for match in _ESCAPE.finditer(body):
        data += body[position : match.start()].encode()
        data += _byte_escape(match[1])
        position = match.end()
    return bytes(data + body[position:].encode())


def _strip(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    size = 3 if text[:3] in ("'''", '"""') and len(text) >= 6 else 1
    return raw, text[size:-size]


def _text_escape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xXuU" and len(code) > 1:
        point = int(code[1:], 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise LiteralError("invalid unicode code point")
        return chr(point)
    if len(code) == 3:
        return chr(int(code, 8))
    return _SIMPLE.get(code, code)


def _byte_escape(code: str) -> bytes:
    if code[0] in "uU":
        raise LiteralError("unable to unescape string")
    if code[0] in "xX" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if len(code) == 3:
        return bytes([int(code, 8)])
    return _SIMPLE.get(code, code).encode()
