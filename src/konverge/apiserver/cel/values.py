"""Values at run time, their equality, and the errors of evaluation.

Most values are Python's own: int, float, str, bytes, bool, None, list, dict. Lists from a schema that are sets or maps
(`x-kubernetes-list-type`) are subclasses of list, since their equality and their sum ignore order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.cel.literals import UInt
from konverge.apiserver.cel.timestamps import Duration, Timestamp


class EvalError(Exception):
    """An expression that has no value; the text is what the API server reports."""


class CostExceeded(EvalError):
    """The expression took too long, in units of work."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_overload() -> EvalError:
    return EvalError("no such overload")


class TypeValue:
    """A type as a value: `type(x)`, `int`. Types are equal by their names."""

    __slots__ = ("name", "shown")

    def __init__(self, name: str, shown: str = "") -> None:
        self.name = name
        self.shown = shown or name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.shown


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
    """A list of objects that are told apart by some of their fields."""

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
    found = _NAMES.get(type(value))
    return found if found is not None else str(getattr(type(value), "cel_name", type(value).__name__))


def equal(one: Any, other: Any) -> bool:
    """Equality across types: numbers by their value, everything else only within its own type."""
    kind, kind2 = type(one), type(other)
    if kind in _NUMBERS:
        return kind2 in _NUMBERS and bool(one == other)
    if isinstance(one, list):
        return isinstance(other, list) and _lists_equal(one, other)
    if kind is dict:
        if kind2 is not dict or len(one) != len(other):
            return False
        return all(key in other and equal(value, other[key]) for key, value in one.items())
    return kind is kind2 and bool(one == other)


def _lists_equal(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, SetList):
        return all(contains(other, item) for item in one)
    if isinstance(one, MapList):
        return all(any(equal(item, found) for found in other if one.key_of(found) == one.key_of(item)) for item in one)
    return all(equal(a, b) for a, b in zip(one, other, strict=True))


def contains(items: list[Any], value: Any) -> bool:
    return any(equal(item, value) for item in items)


def join(one: list[Any], other: list[Any]) -> list[Any]:
    """`+`: sets take in what is new, maps replace what has the same keys."""
    if isinstance(one, SetList):
        return SetList([*one, *(item for item in other if not contains(one, item))])
    if isinstance(one, MapList):
        fresh = {one.key_of(item): item for item in other}
        kept = [fresh.pop(one.key_of(item), item) for item in one]
        return MapList([*kept, *(item for item in other if one.key_of(item) in fresh)], one.keys)
    return [*one, *other]


Evaluate = Callable[[list[Any]], Any]
"""A compiled expression. The list holds the remaining cost first, then the variables."""
