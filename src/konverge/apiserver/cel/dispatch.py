"""Choosing an overload at run time, by the types of the arguments. Upstream: cel-go interpreter/dispatcher.go."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from konverge.apiserver.cel.cel_types import Type
from konverge.apiserver.cel.declarations import Overload, functions
from konverge.apiserver.cel.library import implementations
from konverge.apiserver.cel.values import EvalError, type_name
from konverge.apiserver.go.url import Url
from konverge.objects.quantity import Quantity

_CONVERSIONS = frozenset(("int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration"))
_KINDS = {
    "null_type": "null",
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "optional_type": "optional_type",
}


@lru_cache(maxsize=512)
def dispatcher(function: str, *, member: bool) -> Callable[..., Any]:
    """A function that chooses its overload by the types of its arguments, and keeps the choice for those types."""
    overloads = [overload for overload in functions()[function] if overload.member == member]
    known: dict[tuple[type, ...], Callable[..., Any] | None] = {}

    def call(*args: Any) -> Any:
        key = tuple(map(type, args))
        if key not in known:
            known[key] = _find(overloads, args)
        implementation = known[key]
        if implementation is None:
            raise EvalError(_refusal(function, args))
        return implementation(*args)

    return call


def _find(overloads: list[Overload], args: tuple[Any, ...]) -> Callable[..., Any] | None:
    for overload in overloads:
        if len(overload.args) == len(args) and all(map(_fits, args, overload.args)):
            return implementations()[overload.id]
    return None


def _fits(value: Any, wanted: Type) -> bool:
    if wanted.kind in ("param", "dyn"):
        return True
    name = _name(value)
    kind = _KINDS.get(name, name)
    if wanted.kind == "list" and isinstance(value, list) and value and wanted.params[0].kind not in ("param", "dyn"):
        return _fits(value[0], wanted.params[0])
    return kind in (wanted.kind, wanted.name)


def _name(value: Any) -> str:
    if isinstance(value, Quantity):
        return "kubernetes.Quantity"
    if isinstance(value, Url):
        return "kubernetes.URL"
    return type_name(value)


def _refusal(function: str, args: tuple[Any, ...]) -> str:
    if function in _CONVERSIONS:
        return f"no such overload: {function}({', '.join(_name(arg) for arg in args)})"
    return "no such overload: size" if function == "size" else "no such overload"
