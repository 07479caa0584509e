"""Values at run time, their equality, and the errors of evaluation.

Most values are Python's own: int, float, str, bytes, bool, None, list, dict. Lists from a schema that are sets or maps
(`x-kubernetes-list-type`) are subclasses of list, since their equality and their sum ignore order. Upstream: cel-go
common/types; unstructuredSetList and unstructuredMapList (apiserver/pkg/cel/common/valuesunstructured.go).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from konverge.apiserver.cel.literals import UInt
from konverge.apiserver.cel.timestamps import Duration, Timestamp


class EvalError(Exception):
    """An expression that has no value; the message is the one that the API server reports."""


class CostExceeded(EvalError):
    """The expression cost more than its limit. Upstream: runtime cost tracker (interpreter/runtimecost.go)."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def is_valid(convert: Callable[..., Any]) -> Callable[..., bool]:
    """Whether a conversion succeeds: `isURL` for `url`."""

    def check(*args: Any) -> bool:
        try:
            convert(*args)
        except EvalError:
            return False
        return True

    return check


def no_overload() -> EvalError:
    return EvalError("no such overload")


@dataclass(frozen=True, slots=True, repr=False)
class TypeValue:
    """A type as a value: `type(x)`, `int`. Types are equal by their names."""

    name: str
    shown: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return self.shown or self.name


class Optional:
    """A value that may be absent."""

    __slots__ = ("_value", "present")

    def __init__(self, value: Any, *, present: bool = True) -> None:
        self._value = value
        self.present = present

    def value(self) -> Any:
        if not self.present:
            raise EvalError("optional.none() dereference")
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Optional) or other.present != self.present:
            return False
        return not self.present or equal(self._value, other._value)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"optional.of({self._value!r})" if self.present else "optional.none()"


NONE = Optional(None, present=False)


class SetList(list[Any]):
    """A list whose order does not matter."""


class MapList(list[Any]):
    """A list of objects that are identified by some of their fields."""

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key_of(self, item: Any) -> tuple[Any, ...]:
        return tuple(item.get(key) for key in self.keys)


_NUMBERS = (int, float, UInt)
_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: Any) -> str:
    name = _NAMES.get(type(value))
    return name if name is not None else str(getattr(type(value), "cel_name", type(value).__name__))


def equal(left: Any, right: Any) -> bool:
    """Equality across types: numbers by their value, everything else only within its own type."""
    kind, kind2 = type(left), type(right)
    if kind in _NUMBERS:
        return kind2 in _NUMBERS and bool(left == right)
    if isinstance(left, list):
        return isinstance(right, list) and _lists_equal(left, right)
    if kind is dict:
        if kind2 is not dict or len(left) != len(right):
            return False
        return all(key in right and equal(value, right[key]) for key, value in left.items())
    return kind is kind2 and bool(left == right)


def _lists_equal(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, SetList):
        return all(contains(right, item) for item in left)
    if isinstance(left, MapList):
        return all(
            any(equal(item, candidate) for candidate in right if left.key_of(candidate) == left.key_of(item))
            for item in left
        )
    return all(equal(a, b) for a, b in zip(left, right, strict=True))


def contains(items: list[Any], value: Any) -> bool:
    return any(equal(item, value) for item in items)


def join(left: list[Any], right: list[Any]) -> list[Any]:
    """`+`: sets add new items, maps replace items with the same keys."""
    if isinstance(left, SetList):
        return SetList([*left, *(item for item in right if not contains(left, item))])
    if isinstance(left, MapList):
        fresh = {left.key_of(item): item for item in right}
        kept = [fresh.pop(left.key_of(item), item) for item in left]
        return MapList([*kept, *(item for item in right if left.key_of(item) in fresh)], left.keys)
    return [*left, *right]


Evaluate = Callable[[list[Any]], Any]
"""A compiled expression. The list holds the remaining cost first, then the variables."""
