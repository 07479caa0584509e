"""The simple JSON paths of definitions: `.spec.replicas`, `.spec['a-b']`, resolved against a schema.

Upstream: ValidFieldPath (pkg/apiserver/schema/cel/validation.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from konverge.apiserver.crd.schema.structural import Schema

_PIECE = re.compile(r"'(?:\\.|[^'])*'?|[.\[\]]|[^.\[\]']+(?:'[^.\[\]]*)*", re.S)


class FieldPathError(ValueError):
    """What is wrong with the path."""


def resolve(path: str, schema: Schema, *, brackets: bool = True) -> tuple[str, Schema]:
    """The path as field errors print it, and the schema it leads to."""
    pieces = _PIECE.findall(path)
    printed, at = "", 0
    while at < len(pieces):
        piece = pieces[at]
        if piece == "[":
            if not brackets:
                raise FieldPathError("array notation is not allowed")
            name = _quoted(_next(pieces, at + 1))
            printed, schema = _step(printed, schema, name)
            closing = _next(pieces, at + 2)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
            at += 3
        elif piece == ".":
            printed, schema = _step(printed, schema, _next(pieces, at + 1))
            at += 2
        else:
            raise FieldPathError(f"expected [ or . but got: {piece}")
    return printed, schema


def _next(pieces: list[str], at: int) -> str:
    if at >= len(pieces):
        raise FieldPathError("unexpected end of JSON path")
    return pieces[at]


def _quoted(piece: str) -> str:
    if len(piece) < 2 or piece[0] != "'" or piece[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {piece}")
    return re.sub(r"\\(.)", r"\1", piece[1:-1])


def _step(printed: str, schema: Schema, name: str) -> tuple[str, Schema]:
    if schema.get("properties"):
        member = schema["properties"].get(name)
        if member is None:
            raise FieldPathError("does not refer to a valid field")
        return (f"{printed}.{name}" if printed else name), member
    values = schema.get("additionalProperties")
    if not isinstance(values, Mapping):
        raise FieldPathError("does not refer to a valid field")
    return f"{printed}[{name}]", values
