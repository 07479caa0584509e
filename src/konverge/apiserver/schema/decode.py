"""Decoding of bodies by type.

The usual body goes through a compiled decoder (`compiled_decoder`); a body with anything unusual in it goes through
`exact_decoder`, which knows the codec's messages. Whether a field is repeated cannot be seen after parsing, so the
number of members is compared with the number of colons in the text first, which costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from konverge.apiserver import status
from konverge.apiserver.go import json_pieces
from konverge.apiserver.schema import compiled_decoder, exact_decoder
from konverge.apiserver.schema.exact_decoder import Conversion, DecodeError
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Obj

__all__ = [
    "DecodeError",
    "Decoded",
    "duplicates",
    "from_json",
    "from_obj",
    "from_patched",
    "may_repeat",
    "normalise",
    "strict",
]


class Decoded(NamedTuple):
    obj: Obj
    strict: Sequence[str]
    """Undeclared and repeated fields: `unknown field "spec.foo"`."""


def from_json(node: TypeNode, body: bytes, parsed: Any = None) -> Decoded:
    """A body that is known to be a JSON object (or null); `parsed` is what it holds, if that has been done already.

    Raises DecodeError with the codec's text.
    """
    try:
        value = json_pieces.decode(body) if parsed is None else parsed
    except msgspec.DecodeError as error:
        raise DecodeError(str(error)) from None
    if not may_repeat(body, value):
        try:
            return Decoded(compiled_decoder.decoder(node)(value), ())
        except compiled_decoder.Odd:
            pass
    return _exactly(node, exact_decoder.parse(body))


def from_obj(node: TypeNode, value: Any) -> Decoded:
    """Parsed JSON; the value given stays as it is."""
    try:
        return Decoded(compiled_decoder.decoder(node)(value), ())
    except compiled_decoder.Odd:
        return _exactly(node, value)


def from_patched(node: TypeNode, value: Obj) -> Decoded:
    """The result of a merge (strategic merge, apply), with the messages for those."""
    try:
        return Decoded(compiled_decoder.decoder(node)(value), ())
    except compiled_decoder.Odd:
        conversion = Conversion()
        return Decoded(conversion.convert(node, value), conversion.strict)


def normalise(node: TypeNode, value: Obj) -> Obj:
    """An object as Go would write it; what is not declared is dropped."""
    return from_obj(node, value).obj


def strict(
    node: TypeNode, body: bytes | Obj, *, kind: str, version: str, validation: str = "Warn", parsed: Any = None
) -> Decoded:
    """A request's body by its `fieldValidation`: `strict` holds the warnings to give. Raises 400."""
    try:
        decoded = from_json(node, body, parsed) if isinstance(body, bytes) else from_obj(node, body)
    except DecodeError as error:
        raise refused(kind, version, str(error)) from None
    if decoded.strict and validation == "Strict":
        raise refused(kind, version, "strict decoding error: " + ", ".join(decoded.strict))
    return decoded if validation == "Warn" else Decoded(decoded.obj, ())


def refused(kind: str, version: str, why: str) -> status.ApiError:
    return status.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def duplicates(body: bytes) -> list[str]:
    """The repeated fields of a body that has no type."""
    if not may_repeat(body, json_pieces.decode(body)):
        return []
    decoding = exact_decoder.Exact()
    decoding.duplicates(exact_decoder.parse(body))
    return decoding.strict


def _exactly(node: TypeNode, value: Any) -> Decoded:
    decoding = exact_decoder.Exact()
    return Decoded(decoding.decode(node, value), decoding.strict)


def may_repeat(body: bytes, value: Any) -> bool:
    """A repeated field leaves more keys in the text than members in the value."""
    members = _count(value)
    # Escaped quotes are the only other place where a quote stands before a colon.
    return body.count(b":") != members and body.count(b'":') - body.count(b'\\":') != members


def _count(value: Any) -> int:
    if type(value) is dict:
        total = len(value)
        for member in value.values():
            if type(member) is dict or type(member) is list:
                total += _count(member)
        return total
    if type(value) is list:
        return sum(_count(member) for member in value)
    return 0
