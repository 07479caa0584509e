"""JSON bodies that cannot be read: the words of Go's scanner and decoder about them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from konverge.apiserver.fielderrors import quote
from konverge.apiserver.strategy import Obj

_TYPE_OF_HEAD = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def parse(body: bytes) -> tuple[Obj, str]:
    """A JSON object, or what Go would say about it."""
    try:
        obj: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}, syntax_error(body)
    if obj is None:
        return {}, ""
    if not isinstance(obj, dict):
        return {}, f"json: cannot unmarshal {json_type(obj)} into Go value of type {_TYPE_OF_HEAD}"
    for key, name in (("apiVersion", ".apiVersion"), ("kind", ".kind")):
        if not isinstance(obj.get(key, ""), str) and obj[key] is not None:
            return {}, f"json: cannot unmarshal {json_type(obj[key])} into Go struct field {name} of type string"
    return obj, ""


def json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {"str": "string", "list": "array", "dict": "object"}.get(type(value).__name__, "number")


def syntax_error(body: bytes) -> str:
    """What Go's JSON scanner says about a broken body."""

    text = body.decode("utf-8", "replace")
    if not text.strip():
        return "unexpected end of JSON input"
    try:
        json.loads(text)
    except RecursionError:
        return "exceeded max depth"
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            return "unexpected end of JSON input"
        character = "'\\\\''" if text[error.pos] == "'" else quote(text[error.pos]).replace('"', "'", 2)
        return f"invalid character {character} {_expectation(error.msg)}"
    return "invalid character"


def _expectation(message: str) -> str:
    if message.startswith("Expecting property name"):
        return "looking for beginning of object key string"
    if message.startswith("Expecting ':'"):
        return "after object key"
    if message.startswith("Expecting ','"):
        return "after object key:value pair"
    if message.startswith("Extra data"):
        return "after top-level value"
    return "looking for beginning of value"


def summary(body: bytes) -> str:
    """The beginning of a body for a message: as text when it looks like JSON, else as hex."""
    if not body:
        return "<empty>"
    cut = body[:30]
    shown = cut.decode("utf-8", "replace") if body[:1] == b"{" else cut.hex()
    return shown + " ..." if len(body) > 30 else shown
