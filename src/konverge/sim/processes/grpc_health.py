"""Asks a server for its health by gRPC (grpc.health.v1.Health/Check): one call on a connection of its own.

Just what one call needs of HTTP/2 (RFC 9113) and its headers (RFC 7541): ours are written without compression, those
of the answer are not read, since the answer itself says enough. A server that refuses the call sends none.
"""

from __future__ import annotations

import asyncio
import struct

PATH = "/grpc.health.v1.Health/Check"
STATES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
SERVING = STATES[1]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY = 0, 1, 3, 4, 6, 7
_END_STREAM = _ACK = 1
_END_HEADERS, _PADDED = 4, 8
_CALL = 1
"""The number of our only stream."""
_LARGEST = 16384
_POST, _HTTP, _PATH, _AUTHORITY, _CONTENT_TYPE, _USER_AGENT = 3, 6, 4, 1, 31, 58
"""Places in the table of headers that every implementation has."""


class NoAnswer(Exception):
    """The server did not answer the call; the message says how it went."""


async def check(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, authority: str, service: str, agent: str
) -> str:
    """What the server says of a service: one of STATES. Raises NoAnswer and OSError."""
    message = _field(service.encode()) if service else b""
    call = _frame(_HEADERS, _END_HEADERS, _CALL, _headers(authority, agent))
    body = _frame(_DATA, _END_STREAM, _CALL, struct.pack(">BI", 0, len(message)) + message)
    writer.write(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + call + body)
    answer = b""
    while True:
        kind, flags, stream, payload = await _read_frame(reader)
        if kind == _DATA and stream == _CALL:
            answer += _without_padding(payload, flags)
        elif kind in (_SETTINGS, _PING) and not flags & _ACK:
            writer.write(_frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind == _GO_AWAY or (kind == _RESET and stream == _CALL):
            raise NoAnswer("the server broke the call off")
        if kind in (_DATA, _HEADERS) and stream == _CALL and flags & _END_STREAM:
            return _state(answer)


def _state(answer: bytes) -> str:
    if len(answer) < 5:
        raise NoAnswer("the server refused the call: it does not know the service, or nothing of health")
    message = answer[5 : 5 + int.from_bytes(answer[1:5], "big")]
    number = message[1] if message[:1] == b"\x08" and len(message) > 1 else 0  # the first field; 0 is left out
    return STATES[number] if number < len(STATES) else str(number)


async def _read_frame(reader: asyncio.StreamReader) -> tuple[int, int, int, bytes]:
    try:
        head = await reader.readexactly(9)
        size, (kind, flags, stream) = int.from_bytes(head[:3], "big"), struct.unpack(">BBI", head[3:])
        if size > _LARGEST:
            raise NoAnswer("the server does not speak HTTP/2")
        return kind, flags, stream & 0x7FFFFFFF, await reader.readexactly(size)
    except asyncio.IncompleteReadError:
        raise NoAnswer("the server closed the connection") from None


def _without_padding(payload: bytes, flags: int) -> bytes:
    return payload[1 : len(payload) - payload[0]] if flags & _PADDED and payload else payload


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def _headers(authority: str, agent: str) -> bytes:
    known = ((_PATH, PATH), (_AUTHORITY, authority), (_CONTENT_TYPE, "application/grpc"), (_USER_AGENT, agent))
    literal = b"".join(_number(index, 4) + _text(value) for index, value in known)
    return bytes((0x80 | _POST, 0x80 | _HTTP)) + literal + b"\0" + _text("te") + _text("trailers")


def _text(value: str) -> bytes:
    data = value.encode()
    return _number(len(data), 7) + data


def _number(value: int, bits: int) -> bytes:
    """In the lowest bits of the first byte, and what has no room there in those that follow."""
    most = (1 << bits) - 1
    return bytes((value,)) if value < most else bytes((most,)) + _varint(value - most)


def _field(data: bytes) -> bytes:
    """Field 1 of a message, a text."""
    return b"\x0a" + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    rest = bytearray()
    while value >= 0x80:
        rest.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*rest, value))
