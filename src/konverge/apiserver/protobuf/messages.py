"""Messages: from the table of their fields to the function that reads them.

A message's fields are looked up by the key on the wire (number and wire type), so that the usual value costs one lookup
and one call. Any other key is an unknown field, which is skipped, or a known one of a wrong type, which is refused.
"""

from __future__ import annotations

import gzip
import struct
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from konverge.apiserver.protobuf.special import SPECIAL, Read, fields, schema_or
from konverge.apiserver.protobuf.wire import EndOfData, ProtobufError, length, signed, skip, varint
from konverge.apiserver.strategy import Obj
from konverge.objects.resource import Resource

_OMIT, _INLINE = 1, 2
_WIRE_TYPES = {"b": 0, "i": 0, "u": 0, "d": 1, "f": 5}
_LAST_FIELD = (1 << 29) - 1


class Tables(msgspec.Struct):
    """The data file (its form is described in tools/generate_protobuf.py)."""

    kinds: dict[str, int]
    messages: list[list[Any]]


@cache
def tables() -> Tables:
    packed = resources.files("konverge.apiserver").joinpath("data/protobuf.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=Tables)


def find(api_version: str, kind: str) -> Read | None:
    """The function that reads a kind, if it is a built-in kind."""
    kinds = tables().kinds
    number = kinds.get(f"{api_version}/{kind}", kinds.get(f"/{kind}"))
    return None if number is None else reader(number)


def is_known(api_version: str, kind: str) -> bool:
    """Whether a group has such a kind, also in a version that is not served any more."""
    return f"{api_version}/{kind}" in tables().kinds


# --- values


def _text(data: bytes, at: int, end: int) -> str:
    return data[at:end].decode("utf-8", "replace")


def _bytes(data: bytes, at: int, end: int) -> str:
    return b64encode(data[at:end]).decode()


_NUMBERS: dict[str, Callable[[int], Any]] = {"b": bool, "i": signed, "u": int}
_FLOATS = {"d": struct.Struct("<d"), "f": struct.Struct("<f")}


def _value_reader(kind: str) -> Read:
    """The function that reads a length-delimited value."""
    if kind == "s":
        return _text
    if kind == "y":
        return _bytes
    if kind[0] == "@":
        return reader(int(kind[1:]))
    if kind[0] == "!":
        name, _, schema = kind[1:].partition(" ")
        return schema_or(name, reader(int(schema[1:]))) if schema else SPECIAL[name]
    if kind[0] == "[":
        return _list_reader(kind[1:])
    return _packed_reader(kind)


def _list_reader(kind: str) -> Read:
    """A list that is a message of its own."""
    read = _value_reader(kind)

    def read_list(data: bytes, at: int, end: int) -> list[Any]:
        items = []
        while at < end:
            key, at = varint(data, at, end)
            if key == 10:
                start, at = length(data, at, end)
                items.append(read(data, start, at))
            else:
                at = skip(data, at, end, key & 7)
        return items

    return read_list


def _packed_reader(kind: str) -> Read:
    """Numbers in a row: the shorter way to write a list of them."""
    convert = _NUMBERS.get(kind)

    def read(data: bytes, at: int, end: int) -> list[Any]:
        numbers = []
        while at < end:
            if convert is None:
                value, at = _float(kind, data, at, end)
                numbers.append(value)
            else:
                number, at = varint(data, at, end)
                numbers.append(convert(number))
        return numbers

    return read


def _float(kind: str, data: bytes, at: int, end: int) -> tuple[float, int]:
    layout = _FLOATS[kind]
    if at + layout.size > end:
        raise EndOfData
    return layout.unpack_from(data, at)[0], at + layout.size


def _entry_reader(kind: str) -> Read:
    """An entry of a map: a small message of key and value."""
    number = kind in _NUMBERS
    read = _lazily("s" if number else kind)
    convert = _NUMBERS.get(kind)

    def read_entry(data: bytes, at: int, end: int) -> tuple[str, Any]:
        name, value = "", convert(0) if convert is not None else None
        while at < end:
            key, at = varint(data, at, end)
            if key == 10:
                start, at = length(data, at, end)
                name = _text(data, start, at)
            elif key == 18:
                start, at = length(data, at, end)
                value = read(data, start, at)
            elif key == 16 and convert is not None:
                raw, at = varint(data, at, end)
                value = convert(raw)
            else:
                at = skip(data, at, end, key & 7)
        return name, read(b"", 0, 0) if value is None else value

    return read_entry


# --- fields


class Field(NamedTuple):
    """How a field is read: `form` says what is done with the value."""

    form: str
    name: str
    read: Read
    convert: Callable[[int], Any] | None
    omit: bool


def _forms(entry: list[Any]) -> dict[int, Field]:
    """A line of the table as fields by their keys on the wire."""
    number, name, kind, flags = entry[:4]
    form = {"[]": "list", "{}": "map"}.get(kind[:2], "inline" if flags & _INLINE else "single")
    element = kind[2:] if form in ("list", "map") else kind
    read = _entry_reader(element) if form == "map" else _lazily(element)
    if form == "map" or element not in _WIRE_TYPES:
        return {number << 3 | 2: Field(form, name, read, None, bool(flags & _OMIT))}
    plain = Field(form, name, read, _NUMBERS.get(element), bool(flags & _OMIT))
    fields = {number << 3 | _WIRE_TYPES[element]: plain}
    if form == "list":
        fields[number << 3 | 2] = plain._replace(form="packed")
    return fields


def _lazily(kind: str) -> Read:
    """Messages refer to each other, also in circles: a reader is built when the first message comes."""
    if kind[0] not in "@!":
        return _value_reader(kind)
    built: list[Read] = []

    def read(data: bytes, at: int, end: int) -> Any:
        if not built:
            built.append(_value_reader(kind))
        return built[0](data, at, end)

    return read


@cache
def reader(number: int) -> Read:
    """The function that reads a message."""
    name, *entries = tables().messages[number]
    fields: dict[int, Field] = {}
    for entry in entries:
        fields |= _forms(entry)
    go_names = {entry[0]: entry[4] if len(entry) > 4 else entry[1][:1].upper() + entry[1][1:] for entry in entries}

    def read(data: bytes, at: int, end: int) -> dict[str, Any]:
        obj: dict[str, Any] = {}
        while at < end:
            key = data[at]
            at += 1
            if key > 127:
                key, at = varint(data, at - 1, end)
            field = fields.get(key)
            if field is None:
                at = _unknown(name, go_names, key, data, at, end)
            elif key & 7 == 2:
                size = data[at] if at < end else 128
                start = at + 1
                at = start + size
                if size > 127 or at > end:
                    start, at = length(data, start - 1, end)
                _set(obj, field, field.read(data, start, at))
            else:
                at = _number(obj, field, key & 7, data, at, end)
        return obj

    return read


def _set(obj: dict[str, Any], field: Field, value: Any) -> None:
    form, name = field.form, field.name
    if form == "single":
        if value or not field.omit or isinstance(value, dict):
            obj[name] = value
    elif form == "list":
        obj.setdefault(name, []).append(value)
    elif form == "map":
        obj.setdefault(name, {})[value[0]] = value[1]
    elif form == "packed":
        obj.setdefault(name, []).extend(value)
    else:
        obj.update(value)


def _number(obj: dict[str, Any], field: Field, wire_type: int, data: bytes, at: int, end: int) -> int:
    value: Any
    if field.convert is None:
        value, at = _float("d" if wire_type == 1 else "f", data, at, end)
    else:
        value, at = varint(data, at, end)
        value = field.convert(value)
    if field.form == "list":
        obj.setdefault(field.name, []).append(value)
    elif value or not field.omit:
        obj[field.name] = value
    return at


def _unknown(name: str, known: dict[int, str], key: int, data: bytes, at: int, end: int) -> int:
    """A key that is in no table: skipped, or refused."""
    number, wire_type = key >> 3, key & 7
    if wire_type == 4:
        raise ProtobufError(f"proto: {name}: wiretype end group for non-group")
    if not 0 < number <= _LAST_FIELD:
        raise ProtobufError(f"proto: {name}: illegal tag {number} (wire type {wire_type})")
    if number in known:
        raise ProtobufError(f"proto: wrong wireType = {wire_type} for field {known[number]}")
    return skip(data, at, end, wire_type)


# --- the frame around an object: a prefix of four bytes, its kind and version, its message (upstream: runtime.Unknown)

PREFIX = b"k8s\x00"
DEEPEST = 300
"""Levels of an object. Real ones have some thirty; the readers after this one need stack for each level."""
_TYPE_META, _RAW = 1, 2
_API_VERSION, _KIND = 1, 2


def decode(body: bytes, expected: Resource | None = None) -> Obj:
    """The object of a body; `expected` is its kind where it names none. An object of an unknown kind has only its kind
    and version: the next reader refuses it with the API's message."""
    api_version, kind, raw = _open(body)
    if not kind and expected is not None:
        api_version, kind = expected.api_version, expected.kind
    head: Obj = {"kind": kind, "apiVersion": api_version}
    read = find(api_version, kind)
    if read is None:
        return head
    version = api_version.rpartition("/")[2]
    try:
        obj = read(raw, 0, len(raw))
    except ProtobufError as error:
        raise ProtobufError(str(error), kind, version) from None
    except RecursionError:
        raise ProtobufError("proto: too many levels", kind, version) from None
    if _deeper_than(DEEPEST, obj):
        raise ProtobufError("proto: too many levels", kind, version)
    return {**obj, **head}


def _deeper_than(limit: int, value: Any) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _open(body: bytes) -> tuple[str, str, bytes]:
    """The version and kind that a body names, and the bytes of its object."""
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(PREFIX):
        shown = " ".join(map(str, PREFIX))
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{shown}]")
    if body == PREFIX:
        raise ProtobufError("empty body")
    frame = fields(body, len(PREFIX), len(body))
    meta = _bytes_of(frame, _TYPE_META)
    about = fields(meta, 0, len(meta))
    api_version, kind = (_bytes_of(about, number).decode("utf-8", "replace") for number in (_API_VERSION, _KIND))
    return api_version, kind, _bytes_of(frame, _RAW)


def _bytes_of(values: dict[int, Any], number: int) -> bytes:
    value = values.get(number, b"")
    return value if isinstance(value, bytes) else b""
