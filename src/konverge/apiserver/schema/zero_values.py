"""What Go's encoding/json writes for a field that is not set.

`omitempty` leaves out false, 0, "", nil and empty lists and maps, but never a struct: a nested struct is always there,
with whatever *its* fields write when they are not set, and so are the types that are structs inside (times, quantities,
int-or-strings). A pointer is left out when it is nil, and kept when it points to a zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from konverge.apiserver.schema.node import Field, Kind, TypeNode

OMITTED: Final = object()
"""Stands for a field that is not written at all."""

_SCALARS: dict[str, Any] = {"string": "", "int32": 0, "int64": 0, "float64": 0, "bool": False}
_STRUCTS_INSIDE: dict[str, Any] = {"quantity": "0", "intOrString": 0, "time": None, "microtime": None}


def zero(node: TypeNode) -> Any:
    """Go's zero value of a type as JSON, fresh."""
    if node.kind is Kind.STRUCT:
        members = ((name, absent(field)) for name, field in node.fields.items())
        return {name: value for name, value in members if value is not OMITTED}
    return _SCALARS.get(node.scalar, _STRUCTS_INSIDE.get(node.scalar))


def absent(field: Field) -> Any:
    """What is written for a field without a value, or OMITTED."""
    if field.omit == "omitzero" or (field.omit and (field.pointer or not _is_struct(field.node))):
        return OMITTED
    return None if field.pointer else zero(field.node)


def maker(field: Field) -> Callable[[], Any] | None:
    """Makes what is written for a field without a value; None when nothing is."""
    value = absent(field)
    if value is OMITTED:
        return None
    return (lambda: zero(field.node)) if isinstance(value, dict) else (lambda: value)


def keeps_empty(field: Field) -> bool:
    """A value that is given is written even when it is empty."""
    return field.pointer or field.omit != "omitempty" or _is_struct(field.node)


def _is_struct(node: TypeNode) -> bool:
    """A type without an empty value that omitempty could see. Upstream: isEmptyValue (encoding/json)."""
    return node.kind is Kind.STRUCT or node.scalar in _STRUCTS_INSIDE or (node.kind is Kind.ANY)
