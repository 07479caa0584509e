"""Go's encoding/json: how it writes values, and what it says about texts that it cannot read.

The API server reads bodies with sigs.k8s.io/json, a copy of encoding/json: both say the same about the same text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from typing import Any

import msgspec

from konverge.apiserver import nesting
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.json_scanner import END, problem, shown
from konverge.apiserver.go.strconv import fixed, scientific

# --- encode.go

# The encoder writes these as escapes so that JSON may stand inside HTML and JavaScript.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_PLAIN = re.compile(r"[ !#-%'-;=?-\[\]-~]*").fullmatch
"""Texts that are written as they are: nothing in them is escaped."""
_encode_text = json.JSONEncoder(ensure_ascii=False).encode


def html_safe(text: str) -> str:
    """JSON text with the escapes that Go's encoder adds."""
    return text.translate(_ESCAPES)


def encode(value: Any) -> str:
    """A value as json.Marshal writes it; members of objects in their order."""
    if isinstance(value, str):
        return f'"{value}"' if _PLAIN(value) else html_safe(_encode_text(value))
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _encode_float(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{encode(key)}:{encode(member)}" for key, member in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(encode, value)) + "]"
    return str(value) if isinstance(value, int) else encode(str(value))


def _encode_float(value: float) -> str:  # upstream: floatEncoder. Exponents of one digit are not padded
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return fixed(value)
    mantissa, exponent = scientific(value)
    return f"{mantissa}e{exponent:+d}"


# --- decode.go

SCANNED = 64 * 1024
"""Larger bodies get a less exact message about what is wrong: the exact one takes too long."""
TYPE_OF_HEAD = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_TYPES = {str: "string", list: "array", bool: "bool", dict: "object", type(None): "null"}


def json_type(value: Any) -> str:
    return _TYPES.get(type(value), "number")


def cannot_unmarshal(value: Any, into: str) -> str:
    """An UnmarshalTypeError; `into` is `value of type T` or `struct field S.f of type T`."""
    return f"json: cannot unmarshal {json_type(value)} into Go {into}"


_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG = b"0" * 309
"""As many digits as the least integer that no float64 holds."""
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|(-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)', re.DOTALL).finditer
_SHOWN_DIGITS = 400


def number_error(body: bytes, *, refused: bool = False) -> str:
    """Why a number of a JSON text cannot be read into a float64, or "". Upstream: convertNumber.

    Only bodies with very many digits in a row are looked at closely, and those that a decoder has `refused`, as it does
    for exponents that are too great.
    """
    if not refused and (len(body) < len(_LONG) or _LONG not in body.translate(_ZEROS)):
        return ""
    for match in _TOKENS(body):
        literal = match[1]
        if literal and math.isinf(float(literal)):
            shown = literal[:_SHOWN_DIGITS].decode() + "..." * (len(literal) > _SHOWN_DIGITS)
            return f"json: cannot unmarshal number {shown} into Go value of type float64"
    return ""


def syntax_error(body: bytes) -> str:
    """What the scanner says about a text that is not JSON."""
    if len(body) <= SCANNED:
        return problem(body) or nesting.TOO_DEEP
    if json_pieces.is_long(body):
        return json_pieces.problem(body) or nesting.TOO_DEEP
    try:
        json.loads(body)
    except (UnicodeDecodeError, RecursionError):
        return nesting.TOO_DEEP
    except json.JSONDecodeError as error:
        if error.pos < len(error.doc.rstrip()):
            return f"invalid character {shown(error.doc[error.pos].encode()[0])} looking for beginning of value"
    return END


def unmarshal_error(content: bytes, wanted: type, go_type: str) -> str:
    """Why JSON text cannot be read into a value of a type, or ""; null is always fine."""
    try:
        value = json.loads(content)
    except ValueError:
        return syntax_error(content)
    if value is None or isinstance(value, wanted):
        return ""
    return cannot_unmarshal(value, f"value of type {go_type}")


def unmarshal_structs_error(content: bytes, element: str, texts: Collection[str]) -> str:
    """Why JSON text cannot be read into a list of structs with these fields of text, or ""."""
    error = unmarshal_error(content, list, f"[]{element}")
    if error:
        return error
    for item in json.loads(content) or ():
        if not isinstance(item, dict):
            return cannot_unmarshal(item, f"value of type {element}")
        for name in texts:
            value = item.get(name)
            if value is not None and not isinstance(value, str):
                field = f"{element.rpartition('.')[2]}.{name[0].upper()}{name[1:]}"
                return cannot_unmarshal(value, f"struct field {field} of type string")
    return ""


# --- k8s.io/apimachinery/pkg/runtime/serializer/json


def parse(body: bytes) -> tuple[dict[str, Any], str]:
    """A JSON object, or why its kind and version cannot be read. Upstream: SimpleMetaFactory.Interpret."""
    try:
        obj: Any = json_pieces.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}, syntax_error(body)
    if nesting.is_too_deep(body):
        return {}, nesting.TOO_DEEP
    if obj is None:
        return {}, ""
    if not isinstance(obj, dict):
        return {}, cannot_unmarshal(obj, f"value of type {TYPE_OF_HEAD}")
    for key in ("apiVersion", "kind"):
        if not isinstance(obj.get(key, ""), str) and obj[key] is not None:
            return {}, cannot_unmarshal(obj[key], f"struct field .{key} of type string")
    return obj, ""


def summary(body: bytes) -> str:
    """The beginning of a body for a message: as text when it looks like JSON, else as hex."""
    if not body:
        return "<empty>"
    start = body[:30]
    text = start.decode("utf-8", "replace") if body[:1] == b"{" else start.hex()
    return text + " ..." if len(body) > 30 else text
