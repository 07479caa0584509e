"""The document of OpenAPI v2 as protobuf, in the messages of gnostic.

This is what kubectl asks for when OpenAPI v3 does not know a kind (an object whose definition does not exist yet):
without an answer it reports a fault of the server instead of the unknown kind.

A message is a table from JSON names to (number, type), which is data (`data/gnostic.txt`); lower-case types are the
functions below, for what is encoded otherwise than it looks in JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from konverge.apiserver import data_files

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_EXTENSIONS = "x-"


@cache
def _messages() -> dict[str, dict[str, tuple[int, str]]]:
    """The fields of each message, by their JSON names: number and type."""
    fields = {message: [line.split() for line in lines] for message, lines in data_files.read("gnostic.txt").items()}
    return {
        message: {name: (int(number), "".join(kind)) for name, number, *kind in split}
        for message, split in fields.items()
    }


# --- the wire


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def message(name: str, value: dict[str, Any]) -> bytes:
    """A JSON object as the message of this name."""
    table = _messages()[name]
    parts: list[bytes] = []
    for key, part in value.items():
        if key in table:
            parts.append(_encode(*table[key], part))
        elif key.startswith(_EXTENSIONS) and _EXTENSIONS in table:
            parts.append(_field(table[_EXTENSIONS][0], _text(1, key) + _field(2, _any_value(part))))
    return b"".join(parts)


def _encode(number: int, kind: str, value: Any) -> bytes:
    if kind == "s":
        return _text(number, value)
    if kind == "b":
        return _varint(number << 3) + b"\x01" if value else b""
    if kind == "i":
        return _varint(number << 3) + _varint(int(value) & 0xFFFFFFFFFFFFFFFF)
    if kind == "d":
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    if kind.startswith("[]"):
        return b"".join(_encode(number, kind[2:], item) for item in value)
    if kind.startswith("{}"):
        return _field(number, _named(1, kind[2:], value))
    return _field(number, _contents(kind, value))


def _contents(kind: str, value: Any) -> bytes:
    special = _SPECIAL.get(kind)
    return message(kind, value) if special is None else special(value)


def _named(number: int, kind: str, values: dict[str, Any]) -> bytes:
    return b"".join(_field(number, _text(1, name) + _encode(2, kind, value)) for name, value in values.items())


# --- what is encoded otherwise than it looks in JSON


def _any_value(value: Any) -> bytes:
    """Any value is YAML text, of which JSON is a part."""
    return _field(2, msgspec.json.encode(value) + b"\n")


def _parameter(value: dict[str, Any]) -> bytes:
    if value["in"] == "body":
        return _field(1, message("Body", value))
    number, kind = (4, "Path") if value["in"] == "path" else (3, "Query")
    return _field(2, _field(number, message(kind, value)))


def _parameter_item(value: dict[str, Any]) -> bytes:
    return _field(2, message("Reference", value)) if "$ref" in value else _field(1, _parameter(value))


def _additional(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    return _field(1, message("Schema", value))


def _requirement(value: dict[str, list[str]]) -> bytes:
    return b"".join(
        _field(1, _text(1, name) + _field(2, b"".join(_text(1, scope) for scope in scopes)))
        for name, scopes in value.items()
    )


_SPECIAL: dict[str, Callable[[Any], bytes]] = {
    "any_value": _any_value,
    "parameter": _parameter,
    "parameter_item": _parameter_item,
    "additional": _additional,
    "requirement": _requirement,
    "paths": lambda value: _named(2, "PathItem", value),
    "response": lambda value: _field(1, message("Response", value)),
    "schema_item": lambda value: _field(1, message("Schema", value)),
    "type_item": lambda value: _text(1, value),
    "items_item": lambda value: _field(1, message("Schema", value)),
    "security": lambda value: _field(2, message("ApiKey", value)),
}
