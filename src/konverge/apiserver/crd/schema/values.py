"""Checks of values against a schema: every error of the API server's validator, compiled to closures once.

The texts are those of the OpenAPI validator that the API server uses. A check adds `Issue`s; the caller turns them
into field errors (`field_errors`), because the same check serves an object, its status alone and a default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from konverge.apiserver.crd.schema import numbers
from konverge.apiserver.crd.schema.correlation import UNKNOWN, old_item, old_member, unchanged
from konverge.apiserver.crd.schema.formats import FORMATS, effective
from konverge.apiserver.crd.schema.structural import Schema, Structural
from konverge.apiserver.crd.schema.value_errors import Issue, invalid_type
from konverge.apiserver.go.regexp import compile_pattern

Issues = list[Issue]
Check = Callable[[Any, str, Issues, Any], None]
"""(value, path, found, old value or UNKNOWN)"""

_KINDS: dict[type, tuple[str, str]] = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}

_MIN, _MAX = -(2**63), 2**63 - 1


def compile_check(raw: Schema, node: Structural | None = None) -> Check:
    """The checks of one schema node, in the API's order. `node` adds the correlation for ratcheting."""
    types = (
        ("integer", "string") if raw.get("x-kubernetes-int-or-string") else (raw["type"],) if raw.get("type") else ()
    )
    form = effective(types[0] if len(types) == 1 else "", raw.get("format") or "")
    typed = _type_check(types, bool(raw.get("nullable")), form)
    first: list[Check] = [typed] if typed is not None else []
    last: list[Check] = [partial(_enum, raw["enum"])] if raw.get("enum") else []
    begin = first + _junctors(raw, node)
    numeric = begin + numbers.checks(raw, types, form) + last
    plans: dict[type, list[Check]] = {
        type(None): first + last,
        bool: begin + last,
        str: begin + _string_checks(raw, form) + last,
        int: numeric,
        float: numeric,
        list: begin + _array_checks(raw, node) + last,
        dict: begin + last + _object_checks(raw, node),
    }

    def check(value: Any, path: str, found: Issues, old: Any = UNKNOWN) -> None:
        before = len(found)
        for one in plans[type(value)]:
            one(value, path, found, old)
        if len(found) > before and old is not UNKNOWN and unchanged(value, old, node):
            del found[before:]

    return check


def _type_check(types: tuple[str, ...], nullable: bool, form: str) -> Check | None:
    if not types and not form:
        return None
    wanted = ",".join(types)
    numeric = "number" in types or "integer" in types

    def check(value: Any, path: str, found: Issues, old: Any) -> None:
        if value is None:
            if types and not nullable:
                found.append(invalid_type(path, wanted, "null"))
            return
        kind, own = _KINDS[type(value)]
        if kind == "integer" and not _MIN <= value <= _MAX:
            kind, own = _KINDS[float]  # numbers beyond 64 bits are floats to the API server
        if kind in types:
            return
        close = (kind == "number" and "integer" in types and numbers.is_whole(value)) or (
            kind == "integer" and "number" in types
        )
        if close:
            return
        if form and kind not in ("string", "array") and own != form:
            found.append(invalid_type(path, form, own))
        elif not (form and not numeric and kind in ("string", "array")):
            found.append(invalid_type(path, wanted, kind))

    return check


def _enum(allowed: list[Any], value: Any, path: str, found: Issues, old: Any) -> None:
    for one in allowed:
        if type(one) is type(value) and one == value:
            return
        if type(one) in (int, float) and type(value) in (int, float) and type(one)(value) == one:
            return
    found.append(Issue("enum", path, value, values=tuple(allowed)))


def _string_checks(raw: Schema, form: str) -> list[Check]:
    checks: list[Check] = []
    longest, shortest, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if longest is not None or shortest is not None or pattern:
        expression = compile_pattern(pattern) if pattern else None

        def limits(value: str, path: str, found: Issues, old: Any) -> None:
            if longest is not None and len(value) > longest:
                found.append(
                    Issue("too long", path, value, f"{path} in body should be at most {longest} chars long", longest)
                )
            elif shortest is not None and len(value) < shortest:
                found.append(Issue("", path, value, f"{path} in body should be at least {shortest} chars long"))
            elif expression is not None and not expression.matches(value):
                found.append(Issue("", path, value, f"{path} in body should match '{pattern}'"))

        checks.append(limits)
    if form:
        valid = FORMATS.get(form.replace("-", ""))
        if valid is not None:
            checks.append(partial(_format, form, valid))
    return checks


def _format(form: str, valid: Callable[[str], bool], value: str, path: str, found: Issues, old: Any) -> None:
    if not valid(value):
        found.append(invalid_type(path, form, value))


def _array_checks(raw: Schema, node: Structural | None) -> list[Check]:
    checks: list[Check] = []
    items = raw.get("items")
    if isinstance(items, Mapping):
        each = compile_check(items, node.items if node else None)
        correlated = node is not None and node.list_type == "map"

        def members(value: list[Any], path: str, found: Issues, old: Any) -> None:
            for index, item in enumerate(value):
                before = old_item(item, old, node) if correlated and old is not UNKNOWN and node else UNKNOWN
                each(item, f"{path}[{index}]", found, before)

        checks.append(members)
    fewest, most = raw.get("minItems"), raw.get("maxItems")
    if fewest is not None or most is not None:

        def size(value: list[Any], path: str, found: Issues, old: Any) -> None:
            count = len(value)
            if fewest is not None and count < fewest:
                found.append(Issue("", path, count, f"{path} in body should have at least {fewest} items"))
            if most is not None and count > most:
                found.append(Issue("too many", path, count, f"{path} in body should have at most {most} items", most))

        checks.append(size)
    return checks


@dataclass(frozen=True, slots=True)
class _Members:
    """The checks of an object's members; it comes last, after the enum."""

    fewest: int | None
    most: int | None
    closed: bool
    additional: Check | None
    properties: tuple[tuple[str, Check], ...]
    required: tuple[str, ...]

    def __call__(self, value: dict[str, Any], path: str, found: Issues, old: Any) -> None:
        count = len(value)
        if self.fewest is not None and count < self.fewest:
            found.append(Issue("", path, count, f"{path} in body should have at least {self.fewest} properties"))
        if self.most is not None and count > self.most:
            text = f"{path} in body should have at most {self.most} properties"
            found.append(Issue("too many", path, count, text, self.most))
        if self.closed or self.additional is not None:
            self._others(value, path, found, old)
        for name, check in self.properties:
            if name in value:
                check(value[name], f"{path}.{name}" if path else name, found, old_member(name, old))
        for name in self.required:
            if name not in value:
                found.append(Issue("required", f"{path}.{name}", message=f"{path}.{name} in body is required"))

    def _others(self, value: dict[str, Any], path: str, found: Issues, old: Any) -> None:
        known = {name for name, _ in self.properties}
        for name in sorted(value.keys() - known):
            if self.closed:
                found.append(Issue("", path, name, f"{path}.{name} in body is a forbidden property"))
            elif self.additional is not None:
                self.additional(value[name], f"{path}.{name}", found, old_member(name, old))


def _object_checks(raw: Schema, node: Structural | None) -> list[Check]:
    properties = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    compiled = tuple(
        (name, compile_check(sub, node.properties.get(name) if node else None))
        for name, sub in sorted(properties.items())
    )
    others = compile_check(additional, node.values if node else None) if isinstance(additional, Mapping) else None
    required = tuple(raw.get("required") or ())
    fewest, most = raw.get("minProperties"), raw.get("maxProperties")
    if not (compiled or others or required or additional is False or fewest is not None or most is not None):
        return []
    return [_Members(fewest, most, additional is False, others, compiled, required)]


def _junctors(raw: Schema, node: Structural | None) -> list[Check]:
    if not any(raw.get(name) for name in ("anyOf", "oneOf", "allOf", "not")):
        return []
    from konverge.apiserver.crd.schema.junctors import compile_junctors  # the two modules describe one recursion

    return compile_junctors(raw, node, compile_check)
