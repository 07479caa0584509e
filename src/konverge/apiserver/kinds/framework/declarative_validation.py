"""Rules that Kubernetes declares by `+k8s:` tags on its API types, and checks by generated code.

They are data (`data/validations.json`, made by tools/generate_validations.py, which describes its form) and become
closures here, once, when the kind's module is imported. A kind adds them after its hand-written rules, because the real
server reports them last:

    _DECLARED = Declared("resource/v1.DeviceClass")
    Strategy(
        validate_create=creation(_SPEC, _DECLARED.created),
        validate_update=update(_SPEC, _DECLARED.updated),
    )

A rule that upstream both declares and writes by hand is not written by hand here: the real server drops the
hand-written error in favour of the declared one (FilterCoveredHandwrittenErrors).

On an update what has not changed is not checked. A check is `check(value, old, path, report)`; `old` is CREATED on a
create, None where an update adds something new. Upstream: k8s.io/apimachinery/pkg/api/validate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any

from konverge.apiserver import schema
from konverge.apiserver.field_errors import ErrorType, FieldError
from konverge.apiserver.kinds.framework.declare import IMMUTABLE, Report, Rule
from konverge.apiserver.kinds.rules.formats import FORMATS
from konverge.apiserver.schema import TypeNode
from konverge.apiserver.strategy import Obj

Check = Callable[[Any, Any, str, Report], bool]
Spec = list[Any]
"""A check as the data has it: the name of its function and its arguments."""

CREATED: Any = object()
"""What a value is compared with on a create."""

_DATA = Path(__file__).parents[2] / "data" / "validations.json"
_STEPS = re.compile(r"(\[[^\]]*\])|([^.\[\]]+)").findall
"""The steps of a path: indexes or keys in brackets, and names."""
_EMPTY: tuple[Any, ...] = (None, [], {})


class Declared:
    """The declared rules of a type; `options` are the feature gates that are on, of those that its tags name."""

    def __init__(self, type_name: str, *, options: Collection[str] = ()) -> None:
        self._type = type_name
        self._check = _Compiler(options).type(type_name)

    def created(self, value: Any, path: str, report: Report) -> bool:
        return self.updated(value, CREATED, path, report)

    def updated(self, new: Obj, old: Obj, path: str, report: Report) -> bool:
        known = len(report.errors)
        passed = self._check(new, old, path, report)
        if not passed:
            report.errors[known:] = map(self._printed, report.errors[known:])
        return passed

    def _printed(self, error: FieldError) -> FieldError:
        """Structs are printed with their members in Go's order, not in the client's."""
        if not isinstance(error.value, dict):
            return error
        group, _, kind = self._type.partition("/")
        node = schema.lookup(group, *kind.split("."))
        for index, name in _STEPS(error.path):
            assert node is not None
            node = node.element if index else node.fields[name].node
        return FieldError(error.type, error.path, _in_go_order(node, error.value), error.detail)


def _in_go_order(node: TypeNode | None, value: Any) -> Any:
    if node is None or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [_in_go_order(node.element, item) for item in value]
    if not node.fields:
        return {name: _in_go_order(node.element, item) for name, item in sorted(value.items())}
    return {name: _in_go_order(field.node, value[name]) for name, field in node.fields.items() if name in value}


@cache
def _types() -> dict[str, list[Spec]]:
    return json.loads(_DATA.read_bytes())  # type: ignore[no-any-return]


def _unchanged(value: Any, old: Any) -> bool:
    return value == old or (value in _EMPTY and old in _EMPTY)


class _Compiler:
    """Makes closures of the data."""

    def __init__(self, options: Collection[str]) -> None:
        self._options = options

    def type(self, name: str) -> Check:
        return self._all(_types()[name])

    def check(self, spec: Spec) -> Check:
        name, *arguments = spec
        if name.startswith("~"):
            return _silent(self.check([name[1:], *arguments]))
        if inner := _WITH_CHECKS.get(name.removesuffix("!")):
            return inner(self, *arguments)
        if rule := FORMATS.get(name.removesuffix("!")):
            return _format(rule)
        return _FUNCTIONS[name.removesuffix("!")](*arguments)

    def _all(self, specs: list[Spec]) -> Check:
        """Checks in order. Upstream runs those that may end the others before all others."""
        gates = tuple(self.check(spec) for spec in specs if spec[0].endswith("!"))
        others = tuple(self.check(spec) for spec in specs if not spec[0].endswith("!"))

        def check(value: Any, old: Any, path: str, report: Report) -> bool:
            passed = True
            for gate in gates:
                passed = gate(value, old, path, report) and passed
            if passed:
                for other in others:
                    passed = other(value, old, path, report) and passed
            return passed

        return check

    def _field(self, name: str, zero: Any, specs: list[Spec]) -> Check:
        inner = self._all(specs)

        def check(value: Any, old: Any, path: str, report: Report) -> bool:
            before = old
            if name:
                value, path = value.get(name), f"{path}.{name}" if path else name
                value = zero if value is None else value
            if old is not None and old is not CREATED:
                if name:
                    before = old.get(name)
                    before = zero if before is None else before
                if _unchanged(value, before):
                    return True
            return inner(value, before, path, report)

        return check

    def _subfield(self, name: str, zero: Any, equality: str, spec: Spec) -> Check:
        return self._field(name, zero, [spec])

    def _each_item(self, keys: list[str] | str | None, equality: str | None, spec: Spec) -> Check:
        inner, key = self.check(spec), _key(keys)

        def check(value: Any, old: Any, path: str, report: Report) -> bool:
            passed, updating = True, old is not CREATED
            known = {key(item): item for item in reversed(old or ())} if updating and keys else {}
            for index, item in enumerate(value):
                before = (known.get(key(item)) if known else None) if updating else CREATED
                if before is None or before is CREATED or item != before:
                    passed = inner(item, before, f"{path}[{index}]", report) and passed
            return passed

        return check

    def _each_value(self, equality: str, spec: Spec) -> Check:
        inner = self.check(spec)

        def check(value: Any, old: Any, path: str, report: Report) -> bool:
            passed = True
            for name, item in sorted(value.items()):
                before = CREATED if old is CREATED else (old or {}).get(name)
                if before is CREATED or item != before:
                    passed = inner(item, before, f"{path}[{name}]", report) and passed
            return passed

        return check

    def _each_key(self, spec: Spec) -> Check:
        inner = self.check(spec)

        def check(value: Any, old: Any, path: str, report: Report) -> bool:
            known = () if old is CREATED else old or ()
            passed = True
            for name in sorted(set(value).difference(known)):
                passed = inner(name, CREATED, path, report) and passed
            return passed

        return check

    def _discriminated(
        self, name: str, member: list[str], discriminator: list[str], equality: str, otherwise: Spec, rules: list[Any]
    ) -> Check:
        """Which checks a member needs is decided by another one."""
        default, by_value = self.check(otherwise), {value: self.check(spec) for value, spec in rules}

        def check(value: Any, old: Any, path: str, report: Report) -> bool:
            chosen, given = value.get(discriminator[0]), value.get(name)
            before = old
            if old is not None and old is not CREATED:
                before = old.get(name)
                if chosen == old.get(discriminator[0]) and _unchanged(given, before):
                    return True
            return by_value.get(chosen, default)(given, before, f"{path}.{name}" if path else name, report)

        return check

    def _if_option(self, option: str, enabled: bool, spec: Spec) -> Check:
        return self.check(spec) if (option in self._options) == enabled else _passed


_WITH_CHECKS: dict[str, Callable[..., Check]] = {
    "all": _Compiler._all,
    "Discriminated": _Compiler._discriminated,
    "EachMapKey": _Compiler._each_key,
    "EachMapVal": _Compiler._each_value,
    "EachValSliceVal": _Compiler._each_item,
    "field": _Compiler._field,
    "IfOption": _Compiler._if_option,
    "Subfield": _Compiler._subfield,
    "type": _Compiler.type,
}


def _silent(inner: Check) -> Check:
    """A check of stage alpha: the real server compares its errors with the hand-written ones and reports the latter."""
    return lambda value, old, path, report: inner(value, old, path, Report(report.context))


def _format(rule: Rule) -> Check:
    return lambda value, old, path, report: value is None or rule(value, path, report)


def _passed(value: Any, old: Any, path: str, report: Report) -> bool:
    return True


def _key(keys: list[str] | str | None) -> Callable[[Any], Any]:
    """What items of a list are known by: themselves, or some of their members."""
    if not isinstance(keys, list):
        return lambda item: item
    return lambda item: tuple(item.get(name) or "" for name in keys)


def _optional() -> Check:
    return lambda value, old, path, report: bool(value)


def _optional_pointer() -> Check:
    return lambda value, old, path, report: value is not None


def _required() -> Check:
    return lambda value, old, path, report: bool(value) or report.required(path)


def _required_pointer() -> Check:
    return lambda value, old, path, report: value is not None or report.required(path)


def _forbidden_pointer() -> Check:
    return lambda value, old, path, report: value is None or report.forbidden(path, "")


def _enum(values: list[str], exclusions: None) -> Check:
    supported = sorted(values)
    return lambda value, old, path, report: value in supported or report.not_supported(path, value, supported)


def _max_items(maximum: int) -> Check:
    return lambda value, old, path, report: len(value or ()) <= maximum or report.too_many(path, len(value), maximum)


def _max_bytes(maximum: int) -> Check:
    return lambda value, old, path, report: (
        value is None or len(value.encode()) <= maximum or report.too_long(path, maximum)
    )


def _max_length(maximum: int) -> Check:
    error = f"may not be more than {maximum} characters"
    return lambda value, old, path, report: (
        value is None or len(value) <= maximum or report.add(FieldError(ErrorType.TOO_LONG, path, "", error))
    )


def _immutable() -> Check:
    """Only asked about what has changed."""
    return lambda value, old, path, report: old is CREATED or report.invalid(path, None, IMMUTABLE)


def _minimum(least: int) -> Check:
    error = f"must be greater than or equal to {least}"
    return lambda value, old, path, report: value is None or value >= least or report.invalid(path, value, error)


def _maximum(most: int) -> Check:
    error = f"must be less than or equal to {most}"
    return lambda value, old, path, report: value is None or value <= most or report.invalid(path, value, error)


_CONSTRAINTS: dict[str, tuple[Callable[[bool, bool], bool], str]] = {
    "NoSet": (lambda before, now: now and not before, "field cannot be set once created"),
    "NoUnset": (lambda before, now: before and not now, "field cannot be cleared once set"),
    "NoModify": (lambda before, now: before and now, "field cannot be modified once set"),
}
"""Which change of what is set each constraint refuses; only asked about what has changed."""


def _update_pointer(*constraints: list[str]) -> Check:
    refused = [_CONSTRAINTS[name] for (name,) in constraints]

    def check(value: Any, old: Any, path: str, report: Report) -> bool:
        if old is CREATED:
            return True
        errors = [error for refuses, error in refused if refuses(old is not None, value is not None)]
        for error in errors:
            report.invalid(path, None, error)
        return not errors

    return check


def _unique(keys: list[str] | str) -> Check:
    key = _key(keys)

    def check(value: Any, old: Any, path: str, report: Report) -> bool:
        seen, passed = set(), True
        for index, item in enumerate(value or ()):
            passed = (key(item) not in seen or report.duplicate(f"{path}[{index}]", item)) and passed
            seen.add(key(item))
        return passed

    return check


def _is_set(member: list[Any] | Obj, value: Any) -> bool:
    """Whether a member of a union is set: one of a struct, or an item of a list with certain values."""
    if isinstance(member, dict):
        return any(all(item.get(name) == wanted for name, wanted in member.items()) for item in value or ())
    name, pointer = member
    return value.get(name) is not None if pointer else bool(value.get(name))


def _union_of(at_least_one: bool, how_many: str, names: list[str], members: tuple[Any, ...]) -> Check:
    listed = ", ".join(f"`{name}`" for name in names)

    def given(value: Any) -> list[str]:
        return [name for name, member in zip(names, members, strict=True) if _is_set(member, value)]

    def check(value: Any, old: Any, path: str, report: Report) -> bool:
        present = given(value)
        if old is not CREATED and old is not None and given(old) == present:
            return True
        if not present:
            return not at_least_one or report.invalid(path, "", f"must specify one of: {listed}")
        several = f"must specify {how_many} one of: {listed}"
        return len(present) == 1 or report.invalid(path, f"{{{', '.join(present)}}}", several)

    return check


def _union(names: list[str], *members: Any) -> Check:
    return _union_of(True, "exactly", names, members)


def _zero_or_one(names: list[str], *members: Any) -> Check:
    return _union_of(False, "at most", names, members)


_FUNCTIONS: dict[str, Callable[..., Check]] = {
    "Enum": _enum,
    "ForbiddenPointer": _forbidden_pointer,
    "Immutable": _immutable,
    "MaxBytes": _max_bytes,
    "Maximum": _maximum,
    "MaxItems": _max_items,
    "MaxLength": _max_length,
    "Minimum": _minimum,
    "OptionalMap": _optional,
    "OptionalPointer": _optional_pointer,
    "OptionalSlice": _optional,
    "OptionalValue": _optional,
    "RequiredMap": _required,
    "RequiredPointer": _required_pointer,
    "RequiredSlice": _required,
    "RequiredValue": _required,
    "Union": _union,
    "UpdatePointer": _update_pointer,
    "ValSliceUnique": _unique,
    "ZeroOrOneOfUnion": _zero_or_one,
}
"""The checks without others inside them, by the name of the function in Go."""
