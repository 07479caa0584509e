"""Requests and answers as bytes: one join per head, and no line break that a caller did not mean.

Header values often carry other people's text (names, warnings, user agents). A line break in one of them would let
that text write header fields or a whole second message, so each block is counted after it was joined: two scans by
the C library are cheaper than looking at each value.
"""

from __future__ import annotations

import re
import time
from http import HTTPStatus

from konverge import clock
from konverge.wire.message import Headers, Request

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"))
_BODY_EXPECTED = frozenset(("POST", "PUT", "PATCH"))
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
_OURS = _FRAMING | {b"connection"}
_REPLACING = {b"host": 0, b"accept-encoding": 1}
"""Fields of the caller's that stand in for ours, by their place among them."""
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_STATUS_LINES: dict[int, bytes] = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}

JOIN_LIMIT = 64 * 1024
"""A body up to this size travels in the same write as its head; copying a larger one costs more than a second write."""


def _joined(parts: list[bytes], lines: int) -> bytes:
    """The parts as one block of so many lines."""
    head = b"".join(parts)
    if head.count(b"\n") != lines or head.count(b"\r") != lines or b"\0" in head:
        raise ValueError("a header field contains a line break or a NUL byte; remove it before sending")
    return head


class RequestEncoder:
    """Turns requests for one server into bytes.

    A client sends the same few sets of fields over and over, so each set carries the bytes it became here last time.
    """

    __slots__ = ("_accept", "_extra", "_host", "_prefix")

    def __init__(self, host: str, *, prefix: str = "", gzip: bool = True, extra: bytes = b"") -> None:
        self._prefix = prefix
        self._host = b"host: %b\r\n" % host.encode("ascii")
        self._accept = b"accept-encoding: gzip\r\n" if gzip else b""
        self._extra = extra

    def encode(self, request: Request) -> bytes:
        """The request's head. Framing fields are ours; whatever else the caller set goes out as it is."""
        method, target, headers = request.method, self._prefix + request.target, request.headers
        if method not in _METHODS or not _is_target(target):
            path = target.partition("?")[0]  # a query may carry a token
            raise ValueError(f"{method!r} {path!r} is no request line; percent-encode the target")
        fields = headers.encoded_for(self)
        if fields is None:
            fields = self._fields(headers)
            headers.keep_encoded(self, fields)
        line = f"{method} {target} HTTP/1.1\r\n".encode("ascii")
        if request.body or method in _BODY_EXPECTED:
            return b"%b%bcontent-length: %d\r\n\r\n" % (line, fields, len(request.body))
        return b"%b%b\r\n" % (line, fields)

    def _fields(self, headers: Headers) -> bytes:
        """All lines between the request line and the framing."""
        parts = [self._host, self._accept, self._extra]
        lines = 0
        for name, value in headers.raw:
            lowered = name.lower()
            if lowered in _FRAMING:
                continue
            if not _TOKEN(name):
                raise ValueError(f"{name!r} is no name of a header field; use letters, digits and hyphens")
            if lowered in _REPLACING:
                parts[_REPLACING[lowered]] = b""
            parts += (name, b": ", value, b"\r\n")
            lines += 1
        return _joined(parts, lines + sum(part != b"" for part in parts[:3]))


def _is_target(target: str) -> bool:
    """Whether a target can stand on the request line: printable ASCII without a space."""
    return target != "" and target.isascii() and target.isprintable() and " " not in target


def response_head(status: int, headers: Headers, framing: bytes, connection: bytes) -> bytes:
    """An answer's head. `framing` and `connection` are whole lines, or empty, and win over the handler's fields."""
    line = _STATUS_LINES.get(status)
    if line is None:
        line = b"HTTP/1.1 %d Unknown\r\n" % status
    parts = [line, _date_line()]
    lines = 3 + (framing != b"") + (connection != b"")
    for name, value in headers.raw:
        if name.lower() in _OURS:
            continue
        parts += (name, b": ", value, b"\r\n")
        lines += 1
    parts += (framing, connection, b"\r\n")
    return _joined(parts, lines)


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_date: tuple[int, bytes] = (-1, b"")


def _date_line() -> bytes:
    """The date field, made once a second."""
    global _date
    second = int(clock.now())
    if _date[0] != second:
        t = time.gmtime(second)
        text = (
            f"date: {_DAYS[t.tm_wday]}, {t.tm_mday:02} {_MONTHS[t.tm_mon - 1]} {t.tm_year} "
            f"{t.tm_hour:02}:{t.tm_min:02}:{t.tm_sec:02} GMT\r\n"
        )
        _date = (second, text.encode("ascii"))
    return _date[1]
