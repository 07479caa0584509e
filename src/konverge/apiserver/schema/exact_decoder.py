"""Decoding as sigs.k8s.io/json does it, with its errors: slow, and only for bodies that the compiled decoder refuses.

There are two kinds of errors. *Strict* ones (undeclared and repeated fields) are collected in document order and
reported as warnings or as one error, as the request's fieldValidation says. The others end the request: the first wrong
JSON type is kept while decoding goes on, but a value that its own type refuses (a quantity, a time, an int-or-string)
ends the decoding at once and so hides the former. This order decides which of several errors a client sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from konverge.apiserver.go import json as go_json
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.base64 import Base64Error, canonical_base64
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.go.time import TimeError, canonical_micro_time, canonical_time
from konverge.apiserver.schema.builtin import definition_schema
from konverge.apiserver.schema.compiled_decoder import INT32, INT64, canonical_quantity, float64
from konverge.apiserver.schema.node import Field, Kind, TypeNode
from konverge.apiserver.schema.zero_values import OMITTED, absent, keeps_empty, zero
from konverge.objects.quantity import QuantityError

MOST_STRICT_ERRORS = 100  # upstream: saveStrictError (sigs.k8s.io/json kubernetes_patch.go)
UNSET = OMITTED
"""A value that leaves Go's zero in its place: null, or one of the wrong type."""


class DecodeError(Exception):
    """The body cannot be decoded; the text is the codec's."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object with its repetitions."""


class Literal(float):
    """A JSON number that is not an integer, with its text."""

    text: str

    def __new__(cls, text: str) -> Literal:
        self = super().__new__(cls, text)
        self.text = text
        return self


def parse(body: bytes) -> Any:
    """JSON with repetitions and with the text of its numbers."""
    return json_pieces.cut(body, _loads) if json_pieces.is_long(body) else _loads(body)


def _loads(text: bytes) -> Any:
    return json.loads(text, object_pairs_hook=Pairs, parse_float=Literal)


def plain(value: Any) -> Any:
    """`parse`d JSON as ordinary values."""
    if isinstance(value, Pairs):
        return {key: plain(member) for key, member in value}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return float(value) if isinstance(value, Literal) else value


def json_type(value: Any) -> str:
    return "object" if type(value) is Pairs else go_json.json_type(value)


class Exact:
    """One decoding. `strict` holds the strict errors when it is done."""

    def __init__(self) -> None:
        self.strict: list[str] = []
        self._seen: set[str] = set()
        self._path: list[str] = []
        self._first: str = ""
        self._struct = ""
        self._fields: list[str] = []
        self._quiet = False

    def decode(self, node: TypeNode, value: Any) -> Any:
        decoded = self._value(node, value)
        if self._first:
            raise DecodeError(self._first)
        return zero(node) if decoded is UNSET else decoded

    def duplicates(self, value: Any) -> None:
        """Collect the repeated fields of a value that has no type (a patch)."""
        if isinstance(value, Pairs):
            seen = set()
            for key, member in value:
                if key in seen:
                    self._report("duplicate", key)
                seen.add(key)
                self._path.append(f".{key}" if self._path else key)
                self.duplicates(member)
                self._path.pop()
        elif isinstance(value, list):
            for index, member in enumerate(value):
                self._path.append(f"[{index}]")
                self.duplicates(member)
                self._path.pop()

    def _report(self, what: str, name: str) -> None:
        path = "".join(self._path) + f".{name}" if self._path else name
        text = f"{what} field {quote(path)}"
        if not self._quiet and text not in self._seen and len(self.strict) < MOST_STRICT_ERRORS:
            self._seen.add(text)
            self.strict.append(text)

    def _mismatch(self, what: str, go: str) -> str:
        into = f"struct field {self._struct}.{'.'.join(self._fields)}" if self._fields else "value"
        return f"json: cannot unmarshal {what} into Go {into} of type {go}"

    def _wrong(self, what: str, go: str) -> Any:
        self._first = self._first or self._mismatch(what, go)
        return UNSET

    def _value(self, node: TypeNode, value: Any) -> Any:
        if value is None:
            return UNSET
        if node.kind is Kind.STRUCT:
            return self._object(node, value)
        if node.scalar:
            return self._scalar(node, value)
        if node.kind is Kind.MAP:
            return self._map(node, value)
        return self._list(node, value)

    def _members(self, value: Any) -> Iterator[tuple[str, Any]]:
        return iter(value if isinstance(value, Pairs) else value.items())

    def _object(self, node: TypeNode, value: Any) -> Any:
        if json_type(value) != "object":
            return self._wrong(json_type(value), node.go)
        outer = self._struct, self._fields
        values: dict[str, Any] = {}
        for key, member in self._members(value):
            field = node.fields.get(key)
            if field is None:
                self._report("unknown", key)
                continue
            if key in values:
                self._report("duplicate", key)
            self._struct, self._fields = node.struct_name, [*outer[1], field.embedded + key]
            self._path.append(f".{key}" if self._path else key)
            values[key] = self._value(field.node, member)
            self._path.pop()
        self._struct, self._fields = outer
        written = {key: _written(field, values.get(key, UNSET)) for key, field in node.fields.items()}
        return {key: written[key] for key in (*values, *written) if written[key] is not OMITTED}

    def _map(self, node: TypeNode, value: Any) -> Any:
        if json_type(value) != "object":
            return self._wrong(json_type(value), node.go)
        assert node.element is not None
        members: dict[str, Any] = {}
        for key, member in self._members(value):
            if key in members:
                self._report("duplicate", key)
            self._path.append(f".{key}" if self._path else key)
            members[key] = self._element(node.element, member)
            self._path.pop()
        return members

    def _list(self, node: TypeNode, value: Any) -> Any:
        if json_type(value) != "array":
            return self._wrong(json_type(value), node.go)
        assert node.element is not None
        items = []
        for index, member in enumerate(value):
            self._path.append(f"[{index}]")
            items.append(self._element(node.element, member))
            self._path.pop()
        return items

    def _element(self, node: TypeNode, value: Any) -> Any:
        decoded = self._value(node, value)
        if decoded is not UNSET:
            return decoded
        return "" if node.scalar == "bytes" else zero(node)  # storage, which is protobuf, knows no bytes that are null

    def _scalar(self, node: TypeNode, value: Any) -> Any:
        what = json_type(value)
        match node.scalar:
            case "string" | "bool" as scalar:
                return value if what == scalar else self._wrong(what, node.go)
            case "int32" | "int64" | "float64":
                return self._number(node, value, what)
            case "bytes":
                return self._bytes(node, value, what)
            case "quantity":
                return self._quantity(value, what)
            case "time" | "microtime":
                return self._time(node, value, what)
            case "intOrString":
                return value if what == "string" else self._inner_int32(value, what)
            case "schemaOrArray" | "schemaOrBool" | "schemaOrStrings":
                return self._schema_or(node.scalar, value, what)
        return plain(value)

    def _number(self, node: TypeNode, value: Any, what: str) -> Any:
        if what != "number":
            return self._wrong(what, node.go)
        if node.scalar == "float64":
            return float64(float(value) if isinstance(value, Literal) else value)
        limit = INT32 if node.scalar == "int32" else INT64
        if not isinstance(value, int) or not -limit <= value < limit:
            return self._wrong(f"number {_text(value)}", node.go)
        return value

    def _inner_int32(self, value: Any, what: str) -> Any:
        """An int-or-string decodes its number itself, so an error ends the decoding."""
        if what != "number":
            raise DecodeError(self._mismatch(what, "int32"))
        if not isinstance(value, int) or not -INT32 <= value < INT32:
            raise DecodeError(self._mismatch(f"number {_text(value)}", "int32"))
        return value

    def _bytes(self, node: TypeNode, value: Any, what: str) -> Any:
        if what == "array":
            return canonical_base64(bytes(self._byte(byte) for byte in value))
        if what != "string":
            return self._wrong(what, node.go)
        try:
            return canonical_base64(value)
        except Base64Error as error:
            self._first = self._first or str(error)
            return UNSET

    def _byte(self, value: Any) -> int:
        """Bytes may come as a list of numbers too."""
        what = json_type(value)
        if what == "number" and isinstance(value, int) and 0 <= value < 256:
            return value
        if value is not None:
            self._wrong(f"number {_text(value)}" if what == "number" else what, "uint8")
        return 0

    def _quantity(self, value: Any, what: str) -> Any:
        text = value.strip() if what == "string" else _text(value) if what == "number" else "{}"
        try:
            return canonical_quantity(text)
        except QuantityError as error:
            raise DecodeError(str(error)) from None

    def _time(self, node: TypeNode, value: Any, what: str) -> Any:
        if what != "string":
            raise DecodeError(self._mismatch(what, "string"))
        try:
            time = canonical_time(value) if node.scalar == "time" else canonical_micro_time(value)
        except TimeError as error:
            raise DecodeError(str(error)) from None
        return UNSET if time is None else time

    def _schema_or(self, scalar: str, value: Any, what: str) -> Any:
        """Parts of a CRD's schema: they decode themselves, without strictness."""
        node = definition_schema()
        outer, self._quiet = self._quiet, True
        try:
            if what == "object":
                return self._value(node, value)
            if scalar == "schemaOrBool":
                if what != "bool":
                    raise DecodeError("boolean or JSON schema expected")
                return value
            if what == "array" and scalar == "schemaOrArray":
                return [self._element(node, member) for member in value] or None
            if what == "array":
                return [plain(member) for member in value] or None
            return None
        finally:
            self._quiet = outer


def _written(field: Field, value: Any) -> Any:
    """A field's value as Go writes it, or OMITTED."""
    if value is UNSET:
        return absent(field)
    return value if value or keeps_empty(field) else OMITTED


def _text(value: Any) -> str:
    return value.text if isinstance(value, Literal) else str(value)


_INTEGERS = {"int32": 32, "int64": 64}


class Conversion(Exact):
    """The result of a merge as a built-in type; `strict` holds the undeclared fields, sorted, when it is done.

    The API server does not read JSON text here but sets Go's fields by reflection, in the order of the struct, and
    stops at the first value that does not fit; so the messages differ from those for a body. Upstream: FromUnstructured
    (apimachinery/pkg/runtime/converter.go).
    """

    def convert(self, node: TypeNode, obj: dict[str, Any]) -> Any:
        converted = self.decode(node, obj)
        self.strict.sort()
        return converted

    def _value(self, node: TypeNode, value: Any) -> Any:
        if value is not None:
            self._check(node, _go_kind(value))
        return super()._value(node, value)

    def _check(self, node: TypeNode, kind: str) -> None:
        if node.kind is Kind.STRUCT and kind != "map":
            raise DecodeError(f"cannot restore struct from: {kind}")
        if node.kind is Kind.MAP and not node.scalar and kind != "map":
            raise DecodeError(f"cannot restore map from {kind}")
        if node.kind is Kind.LIST and kind != "slice":
            raise DecodeError(f"cannot restore slice from {kind}")

    def _object(self, node: TypeNode, value: Any) -> Any:
        in_order = {name: value[name] for name in node.fields if name in value}
        return super()._object(node, {**in_order, **value})

    def _mismatch(self, what: str, go: str) -> str:
        return f"json: cannot unmarshal {what} into Go value of type {go}"

    def _scalar(self, node: TypeNode, value: Any) -> Any:
        kind = _go_kind(value)
        match node.scalar:
            case "string" | "bool" as scalar if kind != scalar:
                # Go can turn an integer into a string (as a code point), so it gets as far as refusing that.
                refused = f"cannot convert {kind} to {node.go}" if (kind, scalar) == ("int64", "string") else ""
                raise DecodeError(refused or f"unrecognized type: {scalar}")
            case "int32" | "int64":
                return _integer(node, value, kind)
            case "float64":
                if kind not in ("int64", "float64"):
                    raise DecodeError("unrecognized type: float64")
                return float64(value)
            case "bytes":
                return _bytes(value, kind)
        return super()._scalar(node, value)


def _integer(node: TypeNode, value: Any, kind: str) -> int:
    if kind == "float64":
        if not value.is_integer():
            raise DecodeError(f"cannot convert float64 to {node.go}")
    elif kind != "int64":
        raise DecodeError(f"unrecognized type: {node.scalar}")
    bits = _INTEGERS[node.scalar]
    half: int = 1 << (bits - 1)
    return (int(value) + half) % (2 * half) - half


def _bytes(value: Any, kind: str) -> str:
    if kind != "string":
        raise DecodeError(f"cannot restore slice from {kind}")
    try:
        return canonical_base64(value)
    except Base64Error as error:
        raise DecodeError(f"error decoding from json: {error}") from None


def _go_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {str: "string", int: "int64", float: "float64", dict: "map", list: "slice"}[type(value)]
