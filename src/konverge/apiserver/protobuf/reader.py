"""Messages into dicts, by the layout of their struct.

For each struct a table of functions is made once, by field number; reading a message is then a loop with one call for
each field. Zero values of fields that are no pointers are left out: there they say nothing, and Go's clients send
them all.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from konverge.apiserver.protobuf import layout, special
from konverge.apiserver.protobuf.varint import BYTES, FIXED64, VARINT, ProtobufError, Value, fields, signed, varint

Obj = dict[str, Any]
Read = Callable[[Any, int], Any]
"""(value, depth) -> what it is in JSON"""
Put = Callable[[Obj, Any, int, int], None]
"""(object, value, wire type, depth): writes one field."""

DEEPEST = 150
"""Levels of a body. Real objects have some thirty, and each level costs stack."""
_SCHEMA = "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps"


def message(name: str, data: bytes, depth: int = 0) -> Obj:
    """The object in a message of the struct `name`."""
    if depth > DEEPEST:
        raise ProtobufError(f"proto: more than {DEEPEST} levels")
    table, found = _table(name), Obj()
    for number, wire, value in fields(data):
        put = table.get(number)
        if put is not None:  # numbers that are not known are those of a newer client
            put(found, value, wire, depth)
    return found


@cache
def _table(name: str) -> dict[int, Put]:
    return {number: _put(number, field) for number, field in layout.fields_of(name).items()}


def _put(number: int, field: layout.Field) -> Put:
    read, expected = _reader(field.type)
    if field.form == "list":
        return _list(number, field.name, read, expected)
    if field.form == "map":
        return _map(field.name, read, field.type)
    if not field.name:
        return _inline(read)
    return _single(number, field, read, expected)


def _check(number: int, wire: int, expected: int) -> None:
    if wire != expected:
        raise ProtobufError(f"proto: wrong wireType = {wire} for field {number}")


def _single(number: int, field: layout.Field, read: Read, expected: int) -> Put:
    name, keep_zero = field.name, field.form == "pointer"

    def put(obj: Obj, value: Any, wire: int, depth: int) -> None:
        _check(number, wire, expected)
        made = read(value, depth)
        if made or keep_zero:
            obj[name] = made
        else:
            obj.pop(name, None)

    return put


def _inline(read: Read) -> Put:
    def put(obj: Obj, value: Any, wire: int, depth: int) -> None:
        _check(0, wire, BYTES)
        obj.update(read(value, depth))

    return put


def _list(number: int, name: str, read: Read, expected: int) -> Put:
    def put(obj: Obj, value: Any, wire: int, depth: int) -> None:
        found = obj.setdefault(name, [])
        if wire == BYTES and expected == VARINT:
            found.extend(read(one, depth) for one in _packed(value))
            return
        _check(number, wire, expected)
        found.append(read(value, depth))

    return put


def _packed(data: bytes) -> list[int]:
    """Numbers may come in one piece, one after the other."""
    found, position = [], 0
    try:
        while position < len(data):
            value, position = varint(data, position)
            found.append(value)
    except IndexError:
        raise ProtobufError("unexpected EOF") from None
    return found


def _map(name: str, read: Read, type_: str) -> Put:
    empty: Value = 0 if type_ in ("bool", "int", "uint") else b""

    def put(obj: Obj, value: Any, wire: int, depth: int) -> None:
        _check(0, wire, BYTES)
        entry = {number: part for number, _, part in fields(value)}
        key = entry.get(1, b"")
        if not isinstance(key, bytes) or type(entry.get(2, empty)) is not type(empty):
            raise ProtobufError("proto: wrong wireType in an entry of a map")
        obj.setdefault(name, {})[key.decode("utf-8", "replace")] = read(entry.get(2, empty), depth)

    return put


# ------------------------------------------------------------------ values


def _reader(type_: str) -> tuple[Read, int]:
    """How to read a value, and as which wire type it comes."""
    if type_ in _SCALARS:
        return _SCALARS[type_]
    if type_ in special.READERS:
        plain = special.READERS[type_]
        return (lambda value, depth: plain(value)), BYTES
    if type_ in _CHOICES:
        return _CHOICES[type_], BYTES
    return (lambda value, depth: message(type_, value, depth + 1)), BYTES


def _double(value: bytes, depth: int) -> float:
    number: float = struct.unpack("<d", value)[0]
    return number


_SCALARS: dict[str, tuple[Read, int]] = {
    "string": (lambda value, depth: value.decode("utf-8", "replace"), BYTES),
    "bytes": (lambda value, depth: base64.b64encode(value).decode(), BYTES),
    "bool": (lambda value, depth: bool(value), VARINT),
    "int": (lambda value, depth: signed(value), VARINT),
    "uint": (lambda value, depth: value, VARINT),
    "double": (_double, FIXED64),
}


# ------------------------------------------------------------------ a schema, or something simpler in its place


def _schema_or_bool(data: bytes, depth: int) -> Any:
    found = {number: value for number, _, value in fields(data)}
    inner = found.get(2)
    return message(_SCHEMA, inner, depth + 1) if isinstance(inner, bytes) else bool(found.get(1))


def _schema_or_array(data: bytes, depth: int) -> Any:
    found = [(number, value) for number, _, value in fields(data) if isinstance(value, bytes)]
    for number, value in found:
        if number == 1:
            return message(_SCHEMA, value, depth + 1)
    return [message(_SCHEMA, value, depth + 1) for _, value in found]


def _schema_or_strings(data: bytes, depth: int) -> Any:
    found = [(number, value) for number, _, value in fields(data) if isinstance(value, bytes)]
    for number, value in found:
        if number == 1:
            return message(_SCHEMA, value, depth + 1)
    return [value.decode("utf-8", "replace") for _, value in found]


_CHOICES: dict[str, Read] = {
    f"{_SCHEMA}OrBool": _schema_or_bool,
    f"{_SCHEMA}OrArray": _schema_or_array,
    f"{_SCHEMA}OrStringArray": _schema_or_strings,
}
