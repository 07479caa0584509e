"""Types of CEL, and when one may stand for another.

A type is a kind and parameters: `list(int)`, `map(string, dyn)`, `optional_type(string)`. Objects with a schema are of
kind `struct`, with a name and declared fields. Type variables (`T`) are bound during a check in a substitution.
Upstream: cel-go checker/types.go.
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


def is_optional(type_: Type) -> bool:
    return type_.kind == "opaque" and type_.name == "optional_type"


def unwrap(type_: Type) -> tuple[Type, bool]:
    """The type inside an optional, and whether it was one."""
    return (type_.params[0], True) if is_optional(type_) else (type_, False)


_ANYTHING = ("dyn", "error")
_NULLABLE = ("opaque", "struct", "duration", "timestamp", "null")


class Bindings:
    """The types that type variables are bound to. Cheap to copy, so that a failed attempt changes nothing."""

    __slots__ = ("_bound",)

    def __init__(self, bound: dict[Type, Type] | None = None) -> None:
        self._bound: dict[Type, Type] = bound if bound is not None else {}

    def copy(self) -> Bindings:
        return Bindings(dict(self._bound))

    def substitute(self, type_: Type, *, free_is_dyn: bool = False) -> Type:
        bound = self._bound.get(type_) if type_.kind == "param" else None
        if bound is not None:
            return self.substitute(bound, free_is_dyn=free_is_dyn)
        if type_.kind == "param":
            return DYN if free_is_dyn else type_
        if not type_.params:
            return type_
        params = tuple(self.substitute(inner, free_is_dyn=free_is_dyn) for inner in type_.params)
        # By identity: comparing whole types at each of their levels makes a deep one cost the cube of its depth.
        same = all(new is old for new, old in zip(params, type_.params, strict=True))
        return type_ if same else Type(type_.kind, params, type_.name, type_.fields)

    def assignable(self, left: Type, right: Type) -> bool:
        if right.kind == "param":
            valid, has = self._fits(left, right)
            if valid or has:
                return valid
        if left.kind == "param":
            return self._fits(right, left)[0]
        if left.kind in _ANYTHING or right.kind in _ANYTHING:
            return True
        if left.kind == "null":
            return right.kind in _NULLABLE
        if right.kind == "null":
            return left.kind in _NULLABLE
        if left.kind == "type":
            return right.kind == "type"
        if left.kind != right.kind or left.name != right.name or len(left.params) != len(right.params):
            return False
        return self.assignable_all(left.params, right.params)

    def assignable_all(self, lefts: tuple[Type, ...], rights: tuple[Type, ...]) -> bool:
        return len(lefts) == len(rights) and all(
            self.assignable(left, right) for left, right in zip(lefts, rights, strict=True)
        )

    def _fits(self, type_: Type, variable: Type) -> tuple[bool, bool]:
        """(whether the variable may be bound to the type, whether it is bound). Upstream: isValidTypeSubstitution."""
        if type_ == variable:
            return True, True
        bound = self._bound.get(variable)
        if bound is not None:
            if type_ == bound:
                return True, True
            if self.assignable(type_, bound):
                general = most_general(type_, bound)
                if self._absent(variable, general):
                    self._bound[variable] = general
                return True, True
            return False, True
        if self._absent(variable, type_):
            self._bound[variable] = type_
            return True, False
        return False, False

    def _absent(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return False
        if within.kind == "param":
            bound = self._bound.get(within)
            return bound is None or self._absent(variable, bound)
        return all(self._absent(variable, inner) for inner in within.params)


def most_general(left: Type, right: Type) -> Type:
    return left if _less_specific(left, right) else right


def _less_specific(left: Type, right: Type) -> bool:
    if left.kind in ("dyn", "param"):
        return True
    if right.kind in ("dyn", "param") or left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.kind in ("opaque", "list", "map"):
        return (
            left.name == right.name
            and len(left.params) == len(right.params)
            and all(_less_specific(a, b) for a, b in zip(left.params, right.params, strict=True))
        )
    return left == right
