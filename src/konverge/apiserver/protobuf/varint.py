"""The lowest level of protobuf: numbers of variable length, and the fields of a message without their types."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = int | bytes
_LONGEST = 10


class ProtobufError(ValueError):
    """A body that is no protobuf message of its kind. `kind` and `version` are set if that much could be read."""

    kind = ""
    version = ""


def varint(data: bytes, position: int) -> tuple[int, int]:
    """(number, position after it)"""
    result = shift = 0
    for _ in range(_LONGEST):
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
    raise ProtobufError("proto: integer overflow")


def signed(value: int) -> int:
    """Negative numbers are sent as their 64-bit complement."""
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes) -> Iterator[tuple[int, int, Value]]:
    """(number, wire type, value) of each field, in order."""
    position, end = 0, len(data)
    try:
        while position < end:
            key = data[position]
            position += 1
            if key >= 0x80:  # most fields have small numbers: one byte
                key, position = varint(data, position - 1)
            wire = key & 7
            if wire == BYTES:
                size = data[position]
                position += 1
                if size >= 0x80:
                    size, position = varint(data, position - 1)
                start, position = position, position + size
                if position > end:
                    raise ProtobufError("unexpected EOF")
                yield key >> 3, wire, data[start:position]
            elif wire == VARINT:
                value, position = varint(data, position)
                yield key >> 3, wire, value
            elif wire in (FIXED64, FIXED32):
                start, position = position, position + (8 if wire == FIXED64 else 4)
                if position > end:
                    raise ProtobufError("unexpected EOF")
                yield key >> 3, wire, data[start:position]
            else:
                raise ProtobufError(f"proto: illegal wireType {wire}")
    except IndexError:
        raise ProtobufError("unexpected EOF") from None
