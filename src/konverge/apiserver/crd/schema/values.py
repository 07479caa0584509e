"""Checks of values against a schema, compiled to closures once.

The messages are those of the OpenAPI validator that the API server uses (kube-openapi pkg/validation/validate). A check
adds `Issue`s; the caller turns them into field errors (`value_errors`), because the same check serves an object, its
status alone and a default.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from konverge.apiserver.crd.schema.correlation import UNKNOWN, old_items, old_member, unchanged
from konverge.apiserver.crd.schema.structural import Schema, Structural, types_of
from konverge.apiserver.crd.schema.value_errors import Issue, invalid_type, ordered, plain
from konverge.apiserver.field_errors import FieldError, duplicate, invalid
from konverge.apiserver.go.fmt import go_value
from konverge.apiserver.go.regexp import compile_pattern
from konverge.apiserver.go.strfmt import FORMATS, effective

Issues = list[Issue]
Check = Callable[[Any, str, Issues, Any], None]
"""(value, path, issues, old value or UNKNOWN)"""

_KINDS: dict[type, tuple[str, str]] = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_FLOAT32 = 3.4028234663852886e38


# upstream: SchemaValidator.Validate; ratchetingValueValidator (apiextensions pkg/apiserver/validation/ratcheting.go)
def compile_check(raw: Schema, node: Structural | None = None) -> Check:
    """The checks of one schema node, in the API's order. `node` adds the correlation for ratcheting."""
    types = types_of(raw)
    form = effective(types[0] if len(types) == 1 else "", raw.get("format") or "")
    typed = _type_check(types, bool(raw.get("nullable")), form)
    first: list[Check] = [typed] if typed is not None else []
    last: list[Check] = [partial(_enum, raw["enum"])] if raw.get("enum") else []
    begin = first + _junctors(raw, node)
    numeric = begin + _number_checks(raw, types, form) + last
    plans: dict[type, list[Check]] = {
        type(None): first + last,
        bool: begin + last,
        str: begin + _string_checks(raw, form) + last,
        int: numeric,
        float: numeric,
        list: begin + _array_checks(raw, node) + last,
        dict: begin + last + _object_checks(raw, node),
    }

    def check(value: Any, path: str, issues: Issues, old: Any = UNKNOWN) -> None:
        before = len(issues)
        for step in plans[type(value)]:
            step(value, path, issues, old)
        if len(issues) > before and old is not UNKNOWN and unchanged(value, old, node):
            del issues[before:]

    return check


def _type_check(types: tuple[str, ...], nullable: bool, form: str) -> Check | None:
    if not types and not form:
        return None
    wanted = ",".join(types)
    numeric = "number" in types or "integer" in types

    def check(value: Any, path: str, issues: Issues, old: Any) -> None:
        if value is None:
            if types and not nullable:
                issues.append(invalid_type(path, wanted, "null"))
            return
        kind, own = _KINDS[type(value)]
        if kind == "integer" and not _INT64[0] <= value <= _INT64[1]:
            kind, own = _KINDS[float]  # numbers beyond 64 bits are floats to the API server
        if kind in types:
            return
        close = (kind == "number" and "integer" in types and _is_whole(value)) or (
            kind == "integer" and "number" in types
        )
        if close:
            return
        if form and kind not in ("string", "array") and own != form:
            issues.append(invalid_type(path, form, own))
        elif not (form and not numeric and kind in ("string", "array")):
            issues.append(invalid_type(path, wanted, kind))

    return check


def _enum(allowed: list[Any], value: Any, path: str, issues: Issues, old: Any) -> None:
    for candidate in allowed:
        if type(candidate) is type(value) and candidate == value:
            return
        if type(candidate) in (int, float) and type(value) in (int, float) and type(candidate)(value) == candidate:
            return
    issues.append(Issue("enum", path, value, values=tuple(allowed)))


def _string_checks(raw: Schema, form: str) -> list[Check]:
    checks: list[Check] = []
    longest, shortest, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if longest is not None or shortest is not None or pattern:
        expression = compile_pattern(pattern) if pattern else None

        def limits(value: str, path: str, issues: Issues, old: Any) -> None:
            if longest is not None and len(value) > longest:
                issues.append(
                    Issue("too long", path, value, f"{path} in body should be at most {longest} chars long", longest)
                )
            elif shortest is not None and len(value) < shortest:
                issues.append(Issue("", path, value, f"{path} in body should be at least {shortest} chars long"))
            elif expression is not None and not expression.matches(value):
                issues.append(Issue("", path, value, f"{path} in body should match '{pattern}'"))

        checks.append(limits)
    if form:
        valid = FORMATS.get(form.replace("-", ""))
        if valid is not None:
            checks.append(partial(_format, form, valid))
    return checks


def _format(form: str, valid: Callable[[str], bool], value: str, path: str, issues: Issues, old: Any) -> None:
    if not valid(value):
        issues.append(invalid_type(path, form, value))


# --- numbers: minimum, maximum, multipleOf, int32 and float


def _is_whole(value: float) -> bool:
    """A float that counts as an integer: whole, and exact in JSON's sense."""
    return abs(value) <= 2**53 - 1 and abs(value - round(value)) < 1e-9 * max(1.0, abs(value))


def _number_checks(raw: Schema, types: tuple[str, ...], form: str) -> list[Check]:
    kind = types[0] if len(types) == 1 and types[0] in ("integer", "number") else ""
    if not kind and all(raw.get(name) is None for name in ("multipleOf", "maximum", "minimum")):
        return []
    return [partial(_number, raw, kind, form)]


def _number(raw: Schema, kind: str, form: str, value: Any, path: str, issues: Issues, old: Any) -> None:
    _in_range(value, kind, form, "Checked", path, issues)
    if raw.get("multipleOf") is not None:
        _in_range(raw["multipleOf"], kind, form, "MultipleOf", path, issues)
        _multiple(raw["multipleOf"], value, kind, path, issues)
    for name, relation, beyond in (("Minimum", "greater than", operator.lt), ("Maximum", "less than", operator.gt)):
        bound = raw.get(name.lower())
        if bound is None:
            continue
        _in_range(bound, kind, form, f"{name} boundary", path, issues)
        limit, exclusive = _like(bound, value, kind), raw.get(f"exclusive{name}")
        if beyond(value, limit) or (exclusive and value == limit):
            relation += "" if exclusive else " or equal to"
            issues.append(Issue("", path, value, f"{path} in body should be {relation} {go_value(limit)}"))


def _multiple(factor: Any, value: Any, kind: str, path: str, issues: Issues) -> None:
    unit = _like(factor, value, kind)
    if unit <= 0:
        text = f"factor MultipleOf declared for {path} must be positive: {go_value(unit)}"
        issues.append(Issue("", path, unit, text))
    elif (
        (value % unit != 0) if isinstance(unit, int) else not _is_whole(1 / unit * value if unit < 1 else value / unit)
    ):
        issues.append(Issue("", path, value, f"{path} in body should be a multiple of {go_value(unit)}"))


def _like(limit: Any, value: Any, kind: str) -> Any:
    """A limit in the kind of the value: integers are compared with what is left of a limit without its fraction.

    Only for the type `integer` the API server sees that the fraction is lost, and compares as numbers.
    """
    whole = isinstance(value, int) and (kind != "integer" or float(limit).is_integer())
    return int(limit) if whole else float(limit)


def _in_range(value: Any, kind: str, form: str, what: str, path: str, issues: Issues) -> None:
    if kind == "integer":
        low, high = _INT32 if form == "int32" else _INT64
        fits = float(value).is_integer() and low <= value <= high
    else:
        fits = form != "float" or abs(value) <= _FLOAT32
    if not fits:
        tail = f"with format {form}" if form else "(default format)"
        issues.append(plain(f"{what} value must be of type {kind} {tail} in {path}"))


# --- lists and objects


def _array_checks(raw: Schema, node: Structural | None) -> list[Check]:
    checks: list[Check] = []
    items = raw.get("items")
    if isinstance(items, Mapping):
        each = compile_check(items, node.items if node else None)

        def members(value: list[Any], path: str, issues: Issues, old: Any) -> None:
            old_item = old_items(old, node)
            for index, item in enumerate(value):
                each(item, f"{path}[{index}]", issues, old_item(item))

        checks.append(members)
    return checks + _size_checks(raw, "items")


def _size_checks(raw: Schema, what: str) -> list[Check]:
    """minItems and maxItems, minProperties and maxProperties."""
    fewest, most = raw.get(f"min{what.capitalize()}"), raw.get(f"max{what.capitalize()}")
    if fewest is None and most is None:
        return []

    def size(value: Any, path: str, issues: Issues, old: Any) -> None:
        count = len(value)
        if fewest is not None and count < fewest:
            issues.append(Issue("", path, count, f"{path} in body should have at least {fewest} {what}"))
        if most is not None and count > most:
            issues.append(Issue("too many", path, count, f"{path} in body should have at most {most} {what}", most))

    return [size]


class _Members(msgspec.Struct, frozen=True):
    """The checks of an object's members; it comes last, after the enum."""

    closed: bool
    additional: Check | None
    properties: tuple[tuple[str, Check], ...]
    required: tuple[str, ...]

    def __call__(self, value: dict[str, Any], path: str, issues: Issues, old: Any) -> None:
        if self.closed or self.additional is not None:
            self._others(value, path, issues, old)
        for name, check in self.properties:
            if name in value:
                check(value[name], f"{path}.{name}" if path else name, issues, old_member(name, old))
        for name in self.required:
            if name not in value:
                issues.append(Issue("required", f"{path}.{name}", message=f"{path}.{name} in body is required"))

    def _others(self, value: dict[str, Any], path: str, issues: Issues, old: Any) -> None:
        known = {name for name, _ in self.properties}
        for name in sorted(value.keys() - known):
            if self.closed:
                issues.append(Issue("", path, name, f"{path}.{name} in body is a forbidden property"))
            elif self.additional is not None:
                self.additional(value[name], f"{path}.{name}", issues, old_member(name, old))


def _object_checks(raw: Schema, node: Structural | None) -> list[Check]:
    properties = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    compiled = tuple(
        (name, compile_check(sub, node.properties.get(name) if node else None))
        for name, sub in sorted(properties.items())
    )
    others = compile_check(additional, node.values if node else None) if isinstance(additional, Mapping) else None
    required = tuple(raw.get("required") or ())
    checks = _size_checks(raw, "properties")
    if compiled or others or required or additional is False:
        checks.append(_Members(additional is False, others, compiled, required))
    return checks


def _junctors(raw: Schema, node: Structural | None) -> list[Check]:
    if not any(raw.get(name) for name in ("anyOf", "oneOf", "allOf", "not")):
        return []
    from konverge.apiserver.crd.schema.junctors import compile_junctors  # the two modules describe one recursion

    return compile_junctors(raw, node, compile_check)


# --- uniqueness in lists that are sets or maps (upstream: schema/listtype/validation.go)


def check_uniqueness(value: Any, node: Structural | None, path: str) -> Iterator[FieldError]:
    if node is None:
        return
    if isinstance(value, dict):
        if isinstance(node.additional, Structural):
            for key, item in sorted(value.items()):
                yield from check_uniqueness(item, node.additional, f"{path}[{key}]")
        for key, item in sorted(value.items()):
            if key in node.properties and isinstance(item, (dict, list)):
                yield from check_uniqueness(item, node.properties[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield from _repeated_items(value, node, path)


def _repeated_items(items: list[Any], node: Structural, path: str) -> Iterator[FieldError]:
    if node.list_type == "set":
        for index in _repeated_indices(items):
            yield duplicate(f"{path}[{index}]", ordered(items[index]))
    elif node.list_type == "map":
        yield from _repeated_keys(items, node, path)
    for index, item in enumerate(items):
        if isinstance(item, (dict, list)):
            yield from check_uniqueness(item, node.items, f"{path}[{index}]")


def _repeated_keys(items: list[Any], node: Structural, path: str) -> Iterator[FieldError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            yield invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = [{key: item[key] for key in node.list_keys if key in item} if item else {} for item in items]
    for index in _repeated_indices(keys):
        yield duplicate(f"{path}[{index}]", ordered(keys[index]))


def _repeated_indices(items: list[Any]) -> list[int]:
    """The index of the second appearance of every value that is there more than once."""
    seen: dict[str, int] = {}
    repeated: list[int] = []
    for index, item in enumerate(items):
        key = json.dumps(item, sort_keys=True)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            repeated.append(index)
    return repeated
