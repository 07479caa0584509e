"""BSON and MongoDB's messages, as far as commands of operators need them: documents in, documents out.

Integers become int32 where they fit, and int64 else; bytes are binary data. Types without a counterpart in JSON (object
ids, times) are read as texts.
"""

from __future__ import annotations

import struct
from typing import Any

Document = dict[str, Any]
OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
LONGEST = 1024 * 1024
_DEPTH = 64


class BsonError(ValueError):
    """Bytes that are no message of MongoDB's."""


def encode(document: Document) -> bytes:
    """
    >>> decode(encode({"ok": 1.0, "n": 3, "hosts": ["a"]}))
    {'ok': 1.0, 'n': 3, 'hosts': ['a']}
    """
    body = b"".join(_element(name, value) for name, value in document.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def _element(name: str, value: Any) -> bytes:
    kind, data = _value(value)
    return bytes((kind,)) + name.encode() + b"\0" + data


def _value(value: Any) -> tuple[int, bytes]:
    match value:
        case bool():
            return 0x08, bytes((value,))
        case float():
            return 0x01, struct.pack("<d", value)
        case int() if -(2**31) <= value < 2**31:
            return 0x10, struct.pack("<i", value)
        case int():
            return 0x12, struct.pack("<q", value)
        case str():
            data = value.encode()
            return 0x02, struct.pack("<i", len(data) + 1) + data + b"\0"
        case bytes():
            return 0x05, struct.pack("<iB", len(value), 0) + value
        case dict():
            return 0x03, encode(value)
        case list() | tuple():
            return 0x04, encode({str(number): item for number, item in enumerate(value)})
        case None:
            return 0x0A, b""
    raise TypeError(f"{type(value).__name__} has no form in BSON here")


def decode(data: bytes) -> Document:
    """The document at the beginning of some bytes. Raises BsonError."""
    try:
        return _decode(data, 0, 0)[0]
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise BsonError(f"a document cannot be read: {error}") from error


def _decode(data: bytes, place: int, depth: int) -> tuple[Document, int]:
    (size,) = struct.unpack_from("<i", data, place)
    end = place + size
    if depth > _DEPTH or size < 5 or end > len(data):
        raise ValueError("it is cut off, or too deep")
    document: Document = {}
    place += 4
    while data[place]:
        kind = data[place]
        stop = data.index(b"\0", place + 1)
        name = data[place + 1 : stop].decode()
        document[name], place = _read(kind, data, stop + 1, depth)
    return document, end


_FIXED = {0x01: "<d", 0x08: "<?", 0x09: "<q", 0x10: "<i", 0x11: "<Q", 0x12: "<q"}


def _read(kind: int, data: bytes, place: int, depth: int) -> tuple[Any, int]:
    if kind in _FIXED:
        (value,) = struct.unpack_from(_FIXED[kind], data, place)
        return value, place + struct.calcsize(_FIXED[kind])
    if kind in (0x02, 0x0D, 0x0E):
        (size,) = struct.unpack_from("<i", data, place)
        return data[place + 4 : place + 3 + size].decode(), place + 4 + size
    if kind in (0x03, 0x04):
        document, place = _decode(data, place, depth + 1)
        return (document if kind == 0x03 else list(document.values())), place
    if kind == 0x05:
        (size,) = struct.unpack_from("<i", data, place)
        return data[place + 5 : place + 5 + size], place + 5 + size
    if kind == 0x07:
        return data[place : place + 12].hex(), place + 12
    if kind in (0x0A, 0x06):
        return None, place
    raise ValueError(f"type 0x{kind:02x} is not known here")


# ------------------------------------------------------------------ messages


def command(operation: int, body: bytes) -> Document:
    """The command of a message's body. Raises BsonError."""
    if operation == OP_QUERY:
        return decode(body[body.index(b"\0", 4) + 9 :])
    if operation == OP_MSG and len(body) > 5 and body[4] == 0:
        return decode(body[5:])
    raise BsonError(f"operation {operation} is not known here")


def answer(number: int, operation: int, document: Document) -> bytes:
    """The whole message that answers a request."""
    if operation == OP_QUERY:
        body, kind = struct.pack("<iqii", 8, 0, 0, 1) + encode(document), OP_REPLY
    else:
        body, kind = struct.pack("<IB", 0, 0) + encode(document), OP_MSG
    return struct.pack("<iiii", len(body) + 16, 0, number, kind) + body
