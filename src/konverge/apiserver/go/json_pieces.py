"""JSON texts of very many values, decoded piece by piece.

One call of a decoder cannot be interrupted, and takes 330 ns for a member of an object: a tenth of a second for 3 MB
of short ones, in which no other thread runs, and so no other request. Here a text is cut between two members into
pieces of some milliseconds. What is decoded is the same; only texts for which it matters are cut (`is_long`).

Cutting needs no more than strings and brackets, which regular expressions find. Whatever they let pass that is not
JSON, the decoder of the piece refuses.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from konverge.apiserver import nesting
from konverge.apiserver.go import json_scanner

_FROM = 256 * 1024
"""Shorter texts take 10 ms at most."""
_MANY = 30_000
"""Values that take about 10 ms."""
_WINDOW = 64 * 1024
"""Bytes of a piece, at most."""
_DEEPEST = nesting.MOST_STORED
"""Levels at which this gives up, as decoders do: what has more is refused."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_INNER = rb'[^"\[\]{}]++|' + _STRING


@cache
def _patterns() -> tuple[Match, Match]:
    """A list or object that is not nested too deeply to be stored; and as many members as there are, each with the
    comma behind it. Compiling such a pattern takes 40 ms, and few servers need it."""
    small = rb"[\[{](?:" + _INNER + rb")*+[\]}]"
    for _ in range(nesting.MOST_STORED):
        small = rb"[\[{](?:" + _INNER + rb"|" + small + rb")*+[\]}]"
    members = rb'(?:(?:[^"\[\]{},]++|' + _STRING + rb"|" + small + rb")*+,)++"
    return re.compile(small, re.DOTALL).match, re.compile(members, re.DOTALL).match


_scalar = re.compile(_STRING + rb'|[^"\[\]{},: \t\r\n]++', re.DOTALL).match
_key = re.compile(rb"(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL).match
_space = re.compile(rb"[ \t\r\n]*+").match
_CLOSING = {b"{": b"}", b"[": b"]"}

Loads = Callable[[bytes], Any]
Match = Callable[[bytes, int, int], re.Match[bytes] | None]


def is_long(text: bytes) -> bool:
    """Whether the decoder would hold up others: pieces help on a thread, and only there."""
    if len(text) < _FROM or asyncio._get_running_loop() is not None:
        return False
    return text.count(b",") + text.count(b"[") + text.count(b"{") >= _MANY


def decode(text: bytes) -> Any:
    """As `msgspec.json.decode`, with the same exceptions.

    >>> decode(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    return cut(text) if is_long(text) else msgspec.json.decode(text)


def whole(value: float) -> int | float:
    """A number as Go writes it: a whole one without fraction and exponent, so that integers can be read from it.

    >>> whole(3.0), whole(2.5), whole(1e21)
    (3, 2.5, 1e+21)
    """
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _number(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("Number out of range")
    return whole(value)


_as_go = msgspec.json.Decoder(float_hook=_number).decode


def decode_as_go(text: bytes) -> Any:
    """As `decode`, for objects that are stored as they are decoded: 3.0 and 1e3 become 3 and 1000."""
    return cut(text, _as_go) if is_long(text) else _as_go(text)


def cut(text: bytes, loads: Loads = msgspec.json.decode) -> Any:
    """The value of a text, decoded in pieces by `loads`. Its objects are dicts, or lists of pairs."""
    return _Cut(text, loads).whole()


def problem(text: bytes) -> str:
    """What Go says about a long text that is not JSON, or ""; only the broken piece is looked at closely."""
    cutting = _Cut(text, msgspec.json.decode)
    try:
        cutting.whole()
    except (ValueError, RecursionError):
        return json_scanner.problem(text, *cutting.good)
    return ""


class _Cut:
    def __init__(self, text: bytes, loads: Loads) -> None:
        self._text = text
        self._loads = loads
        self._small, self._members = _patterns()
        self._inside = bytearray()
        """What closes the lists and objects around the present place."""
        self.good = (0, b"")
        """The begin of a member (or of the text) up to which all is well, and what closes those around it."""

    def whole(self) -> Any:
        value, end = self._value(self._skip(0))
        if end != len(self._text):
            raise msgspec.DecodeError("there is more behind the value")
        return value

    def _skip(self, at: int) -> int:
        match = _space(self._text, at)
        assert match is not None
        return match.end()

    def _value(self, at: int) -> tuple[Any, int]:
        """A value, and where the next thing begins."""
        text = self._text
        opening = text[at : at + 1]
        is_container = opening in _CLOSING
        match = self._small(text, at, at + _WINDOW) if is_container else _scalar(text, at)
        if match is not None:
            return self._loads(match[0]), self._skip(match.end())
        if not is_container:
            raise msgspec.DecodeError("a value is missing")
        if len(self._inside) > _DEEPEST:
            raise RecursionError
        return self._container(self._skip(at + 1), opening, _CLOSING[opening])

    def _container(self, at: int, opening: bytes, closing: bytes) -> tuple[Any, int]:
        text = self._text
        container = self._loads(opening + closing)
        if text[at : at + 1] == closing:
            return container, self._skip(at + 1)
        self._inside += closing
        while True:
            self.good = at, bytes(self._inside)
            run = self._members(text, at, at + _WINDOW)
            if run is not None:
                if not text[at : run.end() - 1].strip():
                    raise msgspec.DecodeError("a value is missing")
                piece = self._loads(opening + text[at : run.end() - 1] + closing)
                container.update(piece) if isinstance(container, dict) else container.extend(piece)
                at = self._skip(run.end())
                continue
            at = self._member(at, container, is_object=opening == b"{")
            if text[at : at + 1] == closing:
                self._inside.pop()
                return container, self._skip(at + 1)
            if text[at : at + 1] != b",":
                raise msgspec.DecodeError("a comma is missing")
            at = self._skip(at + 1)

    def _member(self, at: int, container: Any, *, is_object: bool) -> int:
        """One member that is large, deep or the last."""
        if not is_object:
            value, end = self._value(at)
            container.append(value)
            return end
        match = _key(self._text, at)
        if match is None:
            raise msgspec.DecodeError("a key is missing")
        name = self._loads(match[1])
        value, end = self._value(match.end())
        if isinstance(container, dict):
            container[name] = value
        else:
            container.append((name, value))
        return end
