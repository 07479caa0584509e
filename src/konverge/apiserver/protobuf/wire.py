"""The wire format of protobuf: numbers, and skipping unknown fields. Errors have the messages of Go's decoder."""

from __future__ import annotations

_MAX_SHIFT = 63
_NEGATIVE = 1 << 63


class ProtobufError(Exception):
    """Bytes that are no message; the text is the real server's. `kind` and `version` are those of the object, if that
    much could be read."""

    def __init__(self, why: str, kind: str = "", version: str = "") -> None:
        super().__init__(why)
        self.kind, self.version = kind, version


class EndOfData(ProtobufError):
    """A message that ends too early."""

    def __init__(self) -> None:
        super().__init__("unexpected EOF")


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A number, and where it ends."""
    result = shift = 0
    while True:
        if at >= end:
            raise EndOfData
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > _MAX_SHIFT:
            raise ProtobufError("proto: integer overflow")


def signed(value: int) -> int:
    """A number as the two's complement it stands for."""
    return value - (1 << 64) if value & _NEGATIVE else value


def length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where a length-delimited value begins and ends."""
    size, at = varint(data, at, end)
    if size > end - at:
        raise EndOfData
    return at, at + size


def skip(data: bytes, at: int, end: int, wire_type: int) -> int:
    """The end of a value of which only the wire type is known."""
    if wire_type == 0:
        return varint(data, at, end)[1]
    if wire_type == 2:
        return length(data, at, end)[1]
    if wire_type == 3:
        return _skip_group(data, at, end)
    size = {1: 8, 5: 4}.get(wire_type)
    if size is None:
        raise ProtobufError(
            "proto: unexpected end of group" if wire_type == 4 else f"proto: illegal wireType {wire_type}"
        )
    if at + size > end:
        raise EndOfData
    return at + size


def _skip_group(data: bytes, at: int, end: int) -> int:
    depth = 1
    while depth:
        key, at = varint(data, at, end)
        if key & 7 == 3:
            depth += 1
        elif key & 7 == 4:
            depth -= 1
        else:
            at = skip(data, at, end, key & 7)
    return at
