"""JSON bodies that cannot be read: the words of Go's scanner and decoder about them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from konverge.apiserver import nesting
from konverge.apiserver.go.json_scanner import END, problem, shown
from konverge.apiserver.strategy import Obj

SCANNED = 64 * 1024
"""Larger bodies get a rougher word about what is wrong: the exact one takes too long to find."""
TYPE_OF_HEAD = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def parse(body: bytes) -> tuple[Obj, str]:
    """A JSON object, or what Go would say about it."""
    try:
        obj: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}, syntax_error(body)
    if nesting.is_too_deep(obj, body):
        return {}, nesting.WORDS
    if obj is None:
        return {}, ""
    if not isinstance(obj, dict):
        return {}, f"json: cannot unmarshal {json_type(obj)} into Go value of type {TYPE_OF_HEAD}"
    for key, name in (("apiVersion", ".apiVersion"), ("kind", ".kind")):
        if not isinstance(obj.get(key, ""), str) and obj[key] is not None:
            return {}, f"json: cannot unmarshal {json_type(obj[key])} into Go struct field {name} of type string"
    return obj, ""


def json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    return {"str": "string", "list": "array", "dict": "object"}.get(type(value).__name__, "number")


def syntax_error(body: bytes) -> str:
    """What Go's JSON scanner says about a broken body."""
    if len(body) <= SCANNED:
        return problem(body) or "exceeded max depth"
    try:
        json.loads(body)
    except (UnicodeDecodeError, RecursionError):
        return "exceeded max depth"
    except json.JSONDecodeError as error:
        if error.pos < len(error.doc.rstrip()):
            return f"invalid character {shown(error.doc[error.pos].encode()[0])} looking for beginning of value"
    return END


def summary(body: bytes) -> str:
    """The beginning of a body for a message: as text when it looks like JSON, else as hex."""
    if not body:
        return "<empty>"
    cut = body[:30]
    shown = cut.decode("utf-8", "replace") if body[:1] == b"{" else cut.hex()
    return shown + " ..." if len(body) > 30 else shown
