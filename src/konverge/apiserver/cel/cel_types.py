"""Types of CEL, and when one may stand for another.

A type is a kind and parameters: `list(int)`, `map(string, dyn)`, `optional_type(string)`. Objects with a schema are of
kind `struct`, with a name and declared fields. Type variables (`T`) are bound during a check in a substitution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Type:
    kind: str
    params: tuple[Type, ...] = ()
    name: str = ""
    fields: Mapping[str, Type] | None = field(default=None, compare=False, hash=False)
    """Of a struct: its members; None for a type without members (Quantity …)."""

    def __str__(self) -> str:
        shown = self.name or _SHOWN.get(self.kind, self.kind)
        return f"{shown}({', '.join(map(str, self.params))})" if self.params else shown


_SHOWN = {"error": "!error!"}

BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL, DYN, ERROR = Type("string"), Type("bytes"), Type("null"), Type("dyn"), Type("error")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("opaque", (value,), "optional_type")


def type_of(inner: Type) -> Type:
    return Type("type", (inner,))


def opaque(name: str) -> Type:
    return Type("opaque", (), name)


def struct(name: str, fields: Mapping[str, Type] | None = None) -> Type:
    return Type("struct", (), name, fields)


def param(name: str) -> Type:
    return Type("param", (), name)


def is_optional(found: Type) -> bool:
    return found.kind == "opaque" and found.name == "optional_type"


def unwrap(found: Type) -> tuple[Type, bool]:
    """The type inside an optional, and whether it was one."""
    return (found.params[0], True) if is_optional(found) else (found, False)


_ANYTHING = ("dyn", "error")
_NULLABLE = ("opaque", "struct", "duration", "timestamp", "null")


class Bindings:
    """What type variables stand for. Cheap to copy: a failed attempt leaves no trace."""

    __slots__ = ("_bound",)

    def __init__(self, bound: dict[Type, Type] | None = None) -> None:
        self._bound: dict[Type, Type] = bound if bound is not None else {}

    def copy(self) -> Bindings:
        return Bindings(dict(self._bound))

    def substitute(self, found: Type, *, free_is_dyn: bool = False) -> Type:
        bound = self._bound.get(found) if found.kind == "param" else None
        if bound is not None:
            return self.substitute(bound, free_is_dyn=free_is_dyn)
        if found.kind == "param":
            return DYN if free_is_dyn else found
        if not found.params:
            return found
        params = tuple(self.substitute(inner, free_is_dyn=free_is_dyn) for inner in found.params)
        # By identity: comparing whole types at each of their levels makes a deep one cost the cube of its depth.
        same = all(new is old for new, old in zip(params, found.params, strict=True))
        return found if same else Type(found.kind, params, found.name, found.fields)

    def assignable(self, one: Type, other: Type) -> bool:
        if other.kind == "param":
            valid, has = self._fits(one, other)
            if valid or has:
                return valid
        if one.kind == "param":
            return self._fits(other, one)[0]
        if one.kind in _ANYTHING or other.kind in _ANYTHING:
            return True
        if one.kind == "null":
            return other.kind in _NULLABLE
        if other.kind == "null":
            return one.kind in _NULLABLE
        if one.kind == "type":
            return other.kind == "type"
        if one.kind != other.kind or one.name != other.name or len(one.params) != len(other.params):
            return False
        return self.assignable_all(one.params, other.params)

    def assignable_all(self, ones: tuple[Type, ...], others: tuple[Type, ...]) -> bool:
        return len(ones) == len(others) and all(
            self.assignable(one, other) for one, other in zip(ones, others, strict=True)
        )

    def _fits(self, one: Type, variable: Type) -> tuple[bool, bool]:
        """(whether the variable may stand for the type, whether it is bound)."""
        if one == variable:
            return True, True
        bound = self._bound.get(variable)
        if bound is not None:
            if one == bound:
                return True, True
            if self.assignable(one, bound):
                general = most_general(one, bound)
                if self._absent(variable, general):
                    self._bound[variable] = general
                return True, True
            return False, True
        if self._absent(variable, one):
            self._bound[variable] = one
            return True, False
        return False, False

    def _absent(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return False
        if within.kind == "param":
            bound = self._bound.get(within)
            return bound is None or self._absent(variable, bound)
        return all(self._absent(variable, inner) for inner in within.params)


def most_general(one: Type, other: Type) -> Type:
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("opaque", "list", "map"):
        return (
            one.name == other.name
            and len(one.params) == len(other.params)
            and all(_less_specific(a, b) for a, b in zip(one.params, other.params, strict=True))
        )
    return one == other
