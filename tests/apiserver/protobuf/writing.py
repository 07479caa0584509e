"""Writes protobuf by hand, so that the reader is tested against the format and not against itself."""

from __future__ import annotations


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def data(field: int, *parts: bytes | str) -> bytes:
    joined = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(joined)) + joined


def envelope(api_version: str, kind: str, *message: bytes) -> bytes:
    return b"k8s\x00" + data(1, data(1, api_version), data(2, kind)) + data(2, *message)
