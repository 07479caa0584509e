"""The result of a merge turned into a built-in type.

The real server does not go through JSON text here but through Go's reflection, field by field in the order of the
struct, and stops at the first value that does not fit; so the words differ from those for a body. Undeclared fields
come sorted.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.base64 import Base64Error, canonical_base64
from konverge.apiserver.schema.compiled_decoder import float64
from konverge.apiserver.schema.exact_decoder import DecodeError, Exact
from konverge.apiserver.schema.node import Kind, TypeNode
from konverge.apiserver.strategy import Obj

_INTEGERS = {"int32": 32, "int64": 64}


class Conversion(Exact):
    """One conversion; `strict` holds the undeclared fields when it is done."""

    def convert(self, node: TypeNode, obj: Obj) -> Any:
        found = self.decode(node, obj)
        self.strict.sort()
        return found

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
