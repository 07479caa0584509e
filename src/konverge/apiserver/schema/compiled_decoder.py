"""Decoders compiled from types: the path of every well-formed body.

A decoder takes the parsed JSON of a value and returns a new one as Go would write it back: empty values left out or
filled in, quantities and times in canonical form. At the first thing that is unusual (an undeclared field, a wrong
type, a value that does not parse) it raises `Odd`; then `exact_decoder` decodes the body again, slowly, and finds the
exact message. Decoders are compiled field by field when a body first uses the field.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

from konverge.apiserver.schema.builtin import definition_schema
from konverge.apiserver.schema.node import Field, Kind, TypeNode
from konverge.apiserver.schema.zero_values import OMITTED, keeps_empty, maker
from konverge.objects.quantity import Quantity, QuantityError

Decoder = Callable[[Any], Any]
INT32, INT64 = 2**31, 2**63


class Odd(Exception):
    """Something for the exact decoder."""


def decoder(node: TypeNode) -> Decoder:
    compiled: Decoder | None = node.compiled
    if compiled is None:
        compiled = node.compiled = _compile(node)
    return compiled


def _compile(node: TypeNode) -> Decoder:
    if node.kind is Kind.STRUCT:
        return _struct(node)
    if node.scalar in _SCALARS:
        return _SCALARS[node.scalar]
    if node.kind is Kind.ANY or node.scalar:
        raise AssertionError(f"no decoder for {node}")
    assert node.element is not None
    if node.kind is Kind.MAP:
        return _string_map if node.element.scalar == "string" else _map(node.element)
    return _string_list if node.element.scalar == "string" else _list(node.element)


def _struct(node: TypeNode) -> Decoder:
    # Most fields are plain strings that are left out when empty: those need no call.
    strings = frozenset(name for name, field in node.fields.items() if _is_plain_string(field))
    decoders: dict[str, Decoder] = {}
    for name, field in node.fields.items():
        if name not in strings:
            decoders[name] = _on_first_use(decoders, name, field)
    makers = [(name, make) for name, field in node.fields.items() if (make := maker(field)) is not None]

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise Odd
        out = {}
        for name, member in value.items():
            if member is None:
                if name not in node.fields:
                    raise Odd
            elif name in strings:
                if type(member) is not str:
                    raise Odd
                if member:
                    out[name] = member
            else:
                field_decoder = decoders.get(name)
                if field_decoder is None:
                    raise Odd
                decoded = field_decoder(member)
                if decoded is not OMITTED:
                    out[name] = decoded
        for name, make in makers:
            if name not in out:
                out[name] = make()
        return out

    return decode


def _is_plain_string(field: Field) -> bool:
    return field.node.scalar == "string" and not keeps_empty(field)


def _on_first_use(decoders: dict[str, Decoder], name: str, field: Field) -> Decoder:
    def compile_and_decode(value: Any) -> Any:
        decoders[name] = _member(field)
        return decoders[name](value)

    return compile_and_decode


def _member(field: Field) -> Decoder:
    inner = decoder(field.node)
    if keeps_empty(field):
        return inner

    def decode(value: Any) -> Any:
        return inner(value) or OMITTED

    return decode


def _map(element: TypeNode) -> Decoder:
    inner = decoder(element)

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise Odd
        return {key: inner(member) for key, member in value.items()}

    return decode


def _list(element: TypeNode) -> Decoder:
    inner = decoder(element)

    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise Odd
        return [inner(member) for member in value]

    return decode


def _string_map(value: Any) -> Any:
    if type(value) is not dict:
        raise Odd
    for member in value.values():
        if type(member) is not str:
            raise Odd
    return value.copy()


def _string_list(value: Any) -> Any:
    if type(value) is not list:
        raise Odd
    for member in value:
        if type(member) is not str:
            raise Odd
    return value.copy()


def _of_type(wanted: type) -> Decoder:
    def decode(value: Any) -> Any:
        if type(value) is not wanted:
            raise Odd
        return value

    return decode


def _integer(limit: int) -> Decoder:
    def decode(value: Any) -> Any:
        if type(value) is not int or not -limit <= value < limit:
            raise Odd
        return value

    return decode


_int32 = _integer(INT32)


def float64(value: Any) -> Any:
    """Go writes a whole float without a point."""
    if type(value) is int:
        return value
    if type(value) is not float:
        raise Odd
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _bytes(value: Any) -> Any:
    if type(value) is not str:
        raise Odd
    try:
        return b2a_base64(a2b_base64(value, strict_mode=True), newline=False).decode()
    except (Base64Error, ValueError):
        raise Odd from None


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    return str(Quantity(text))


def _quantity(value: Any) -> Any:
    if type(value) is not str:
        raise Odd
    try:
        return canonical_quantity(value)
    except QuantityError:
        raise Odd from None


def _time(size: int) -> Decoder:
    """The one usual form; everything else Go can read is left to the exact decoder."""

    def decode(value: Any) -> Any:
        if type(value) is not str or len(value) != size or value[-1] != "Z" or value[7] != "-" or value[10] != "T":
            raise Odd
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise Odd from None
        if moment.year == 1:
            raise Odd
        return value

    return decode


def _int_or_string(value: Any) -> Any:
    return value if type(value) is str else _int32(value)


def _anything(value: Any) -> Any:
    return value


def _schema(value: Any) -> Any:
    return decoder(definition_schema())(value)


def _schema_or_bool(value: Any) -> Any:
    return value if type(value) is bool else _schema(value)


_SCALARS: dict[str, Decoder] = {
    "string": _of_type(str),
    "bool": _of_type(bool),
    "int32": _int32,
    "int64": _integer(INT64),
    "float64": float64,
    "bytes": _bytes,
    "quantity": _quantity,
    "time": _time(len("2006-01-02T15:04:05Z")),
    "microtime": _time(len("2006-01-02T15:04:05.000000Z")),
    "intOrString": _int_or_string,
    "rawExtension": _anything,
    "fieldsV1": _anything,
    "json": _anything,
    "schemaOrArray": _schema,
    "schemaOrBool": _schema_or_bool,
    "schemaOrStrings": _schema,
}
