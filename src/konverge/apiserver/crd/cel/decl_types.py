"""Schemas as CEL sees them: types, how large values can get, and how JSON becomes CEL values.

A schema without a type, or whose items have none, is not visible to rules. Names that CEL cannot write are escaped
(`my-field` is `my__dash__field`, `namespace` is `__namespace__`). Upstream: SchemaDeclType (apiserver/pkg/cel/common/
schemas.go) and UnstructuredToVal (apiserver/pkg/cel/common/valuesunstructured.go).
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.cel_types import Type
from konverge.apiserver.cel.cost import Path
from konverge.apiserver.cel.timestamps import Duration, Timestamp
from konverge.apiserver.cel.values import EvalError, MapList, SetList
from konverge.apiserver.crd.schema.structural import Schema
from konverge.apiserver.go.fmt import go_type
from konverge.apiserver.go.strfmt import duration_nanoseconds
from konverge.objects.cel_names import RESERVED, escape

REQUEST_BYTES = 3 * 1024 * 1024  # upstream: MaxRequestSizeBytes (apiserver/pkg/apis/cel/config.go)
_NAME_BYTES = 253
"""The longest name of an object: its metadata may be read by rules."""

Convert = Callable[[Any], Any]


class Decl(msgspec.Struct):
    """What CEL knows of a schema."""

    type: Type
    most: int = 0
    """The greatest number of characters, items or members."""
    smallest: int = 0
    """The fewest bytes of JSON that a value takes: bounds how often one can occur in a request."""
    item: Decl | None = None
    key: Decl | None = None
    fields: dict[str, Decl] = msgspec.field(default_factory=dict)
    convert: Convert | None = None
    """How a JSON value becomes a CEL value; None where it is one already."""
    resource: bool = False
    """Kind, apiVersion and metadata were added to it."""

    def size(self, path: Path) -> int | None:
        """The greatest size at a path that begins with the variable's name."""
        node: Decl | None = self
        for step in path[1:]:
            if node is None:
                return None
            if step in ("@items", "@values"):
                node = node.item
            elif step == "@keys":
                node = node.key
            else:
                node = node.fields.get(step)
        return node.most if node is not None else None


_KEY = Decl(t.STRING, most=0, smallest=2)


def declare(raw: Schema, *, resource: bool = False, name: str = "selfType") -> Decl | None:
    """The declaration of a schema; `resource` adds kind, apiVersion and metadata."""
    if raw.get("x-kubernetes-int-or-string"):
        length = raw.get("maxLength")
        return Decl(t.DYN, most=max(length, 0) * 4 if length is not None else REQUEST_BYTES - 2, smallest=1)
    if resource:
        decl = declare(with_meta(raw), name=name)
        if decl is not None:
            decl.resource = True
        return decl
    kind = raw.get("type")
    if kind == "array":
        return _array(raw, name)
    if kind == "object":
        return _object(raw, name)
    if kind == "string":
        return _string(raw)
    if kind == "boolean":
        return Decl(t.BOOL, smallest=4)
    if kind == "number":
        return Decl(t.DOUBLE, smallest=1, convert=_nullable(float))
    if kind == "integer":
        return Decl(t.INT, smallest=1, convert=_whole)
    return None


def with_meta(raw: Schema) -> Schema:
    properties = raw.get("properties") or {}
    names = (properties.get("metadata") or {}).get("properties") or {}
    metadata = {
        "type": "object",
        "properties": {
            "name": _capped(names.get("name"), _NAME_BYTES),
            "generateName": _capped(names.get("generateName"), _NAME_BYTES - 1),
        },
    }
    text = {"type": "string"}
    return {**raw, "properties": {**properties, "kind": text, "apiVersion": text, "metadata": metadata}}


def _capped(schema: Schema | None, most: int) -> Schema:
    own = (schema or {}).get("maxLength")
    return {"type": "string", "maxLength": min(own, most) if own is not None else most}


def _is_resource(raw: Schema) -> bool:
    return bool(raw.get("x-kubernetes-embedded-resource"))


def _array(raw: Schema, name: str) -> Decl | None:
    items = raw.get("items")
    if not isinstance(items, Mapping):
        return None
    item = declare(items, resource=_is_resource(items), name=f"{name}.@idx")
    if item is None:
        return None
    limit = _limit(raw.get("maxItems"), (REQUEST_BYTES - 2) // (item.smallest + 1))
    convert = _list_converter(item.convert, raw)
    return Decl(t.list_of(item.type), most=limit, smallest=2, item=item, convert=convert)


def _limit(declared: int | None, default: int) -> int:
    return default if declared is None else max(declared, 0)


def _list_converter(item: Convert | None, raw: Schema) -> Convert | None:
    kind = raw.get("x-kubernetes-list-type")
    keys = tuple(raw.get("x-kubernetes-list-map-keys") or ())
    if item is None and kind not in ("set", "map"):
        return None

    def convert(value: Any) -> Any:
        if value is None:
            return None
        items = [item(element) for element in value] if item is not None else value
        if kind == "set":
            return SetList(items)
        return MapList(items, keys) if kind == "map" else items

    return convert


def _object(raw: Schema, name: str) -> Decl | None:
    values = raw.get("additionalProperties")
    if isinstance(values, Mapping):
        return _map(raw, values, name)
    required = set(raw.get("required") or ())
    fields: dict[str, Decl] = {}
    converters: dict[str, tuple[str, Convert | None]] = {}
    smallest = 2
    for key, sub in (raw.get("properties") or {}).items():
        decl = declare(sub, resource=_is_resource(sub), name=f"{name}.{key}")
        if decl is None:
            continue
        escaped = escape(key)
        if escaped is not None:
            fields[escaped] = decl
            converters[key] = (escaped, decl.convert)
        if key in required and sub.get("default") is None:
            smallest += len(key.encode()) + decl.smallest + 4
    types = {key: sub.type for key, sub in fields.items()}
    # A reserved word may also stand as it is, behind a dot; but then its size is not known (`Decl.size`), as upstream.
    types |= {key: types[f"__{key}__"] for key in converters if key in RESERVED}
    return Decl(t.struct(name, types), smallest=smallest, fields=fields, convert=_object_converter(converters))


def _object_converter(converters: dict[str, tuple[str, Convert | None]]) -> Convert | None:
    changed = {key: pair for key, pair in converters.items() if pair[0] != key or pair[1] is not None}
    if not changed:
        return None

    def convert(value: Any) -> Any:
        if value is None:
            return None
        made = dict(value)
        for key, (escaped, inner) in changed.items():
            if key in made:
                item = made.pop(key) if escaped != key else made[key]
                made[escaped] = inner(item) if inner is not None else item
                if key in RESERVED:
                    made[key] = made[escaped]
        return made

    return convert


def _map(raw: Schema, values: Schema, name: str) -> Decl | None:
    item = declare(values, resource=_is_resource(values), name=f"{name}.@elem")
    if item is None:
        return None
    limit = _limit(raw.get("maxProperties"), (REQUEST_BYTES - 2) // (item.smallest + 6))
    decl = Decl(t.map_of(t.STRING, item.type), most=limit, smallest=2, item=item, key=_KEY)
    inner = item.convert
    if inner is not None:
        decl.convert = _nullable(lambda value: {key: inner(member) for key, member in value.items()})
    return decl


def _string(raw: Schema) -> Decl:
    form, length = raw.get("format"), raw.get("maxLength")
    if form == "byte":
        return Decl(t.BYTES, most=_limit(length, REQUEST_BYTES - 2), smallest=2, convert=_text(_bytes))
    if form == "duration":
        return Decl(t.DURATION, most=32, smallest=3, convert=_text(_duration))
    if form == "date":
        return Decl(t.TIMESTAMP, most=12, smallest=12, convert=_text(_date))
    if form == "date-time":
        return Decl(t.TIMESTAMP, most=32, smallest=21, convert=_text(_timestamp))
    if length is not None:
        most = max(length, 0) * 4
    elif raw.get("enum"):
        most = max((len(text.encode()) for text in raw["enum"] if isinstance(text, str)), default=0)
    else:
        most = REQUEST_BYTES - 2
    return Decl(t.STRING, most=most, smallest=2)


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _text(convert: Callable[[str], Any]) -> Convert:
    """The conversion of a text. Lists pass the check of a `format`, and only fail here. Upstream: UnstructuredToVal."""

    def converted(value: Any) -> Any:
        if not isinstance(value, str):
            raise EvalError(f"invalid data, expected string, got {go_type(value)}")
        return convert(value)

    return _nullable(converted)


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value


def _bytes(value: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (Base64Error, ValueError):
        raise EvalError("Invalid bytes") from None


def _duration(value: str) -> Duration:
    nanoseconds = duration_nanoseconds(value)
    if nanoseconds is None:
        raise EvalError(f"Invalid duration {value}")
    return Duration(nanoseconds)


def _timestamp(value: str) -> Timestamp:
    timestamp = Timestamp.parse(value)
    if timestamp is None:
        raise EvalError(f"Invalid date formatted string {value}")
    return timestamp


def _date(value: str) -> Timestamp:
    return _timestamp(f"{value}T00:00:00Z")
