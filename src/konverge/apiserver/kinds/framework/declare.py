"""The vocabulary in which kinds are declared.

A *rule* looks at one value and reports what is wrong with it: `rule(value, path, report) -> bool`. It returns False
to end its chain ("required, then a DNS label, then unique" must report one of the three), True to go on.
Rules are closures, built once when a kind's module is imported; checking a valid object is a walk over its present
fields without any allocation but paths.

    PORT = struct(
        field("name", port_name, distinct),
        field("containerPort", required, port_number),
        field("protocol", required, one_of("SCTP", "TCP", "UDP")),
    )
    CONTAINER = struct(
        field("name", required, dns_label, distinct),
        field("ports", items(PORT)),
        ports_do_not_clash,                         # a plain function is a rule about the whole
    )
    validate = creation(section("spec", field("containers", required, items(CONTAINER))))

The parts of a struct are checked in the order in which they are written: the order of the messages is part of the
wire contract. A field that is absent (missing, null or an empty string, which are the same in Go) is skipped,
unless its first rule sees absent fields: `required` and what `even_absent` marks.

Updates are checked by *transitions*: `transition(new, old, path, report)`, see `unchanged` and `update`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from konverge.apiserver import field_errors
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.strategy import Context, Obj


class Report:
    """Collects the errors of one validation. Every method returns False, so that a rule can end with it.

    `scope` belongs to the kind: what its rules need of the object around them (the volumes of a pod).
    """

    __slots__ = ("context", "errors", "scope", "seen")

    def __init__(self, context: Context | None = None, scope: Any = None) -> None:
        self.context = context
        self.scope = scope
        self.errors: list[FieldError] = []
        self.seen: dict[str, set[Any]] = {}

    def add(self, error: FieldError) -> bool:
        self.errors.append(error)
        if len(self.errors) > field_errors.MOST:
            raise field_errors.TooManyErrors(self.errors)
        return False

    def required(self, path: str, detail: str = "") -> bool:
        return self.add(field_errors.required(path, detail))

    def invalid(self, path: str, value: Any, detail: str) -> bool:
        return self.add(field_errors.invalid(path, value, detail))

    def not_supported(self, path: str, value: Any, supported: Iterable[str]) -> bool:
        return self.add(field_errors.not_supported(path, value, list(supported)))

    def forbidden(self, path: str, detail: str) -> bool:
        return self.add(field_errors.forbidden(path, detail))

    def duplicate(self, path: str, value: Any) -> bool:
        return self.add(field_errors.duplicate(path, value))

    def not_found(self, path: str, value: Any) -> bool:
        return self.add(field_errors.not_found(path, value))

    def too_long(self, path: str, maximum: int) -> bool:
        return self.add(field_errors.too_long(path, maximum))

    def too_many(self, path: str, actual: int, maximum: int) -> bool:
        return self.add(field_errors.too_many(path, actual, maximum))


Rule = Callable[[Any, str, Report], bool]
Transition = Callable[[Obj, Obj, str, Report], bool]


class Field(msgspec.Struct, frozen=True):
    """One member of a struct, with the chain of rules for it."""

    name: str
    rules: tuple[Rule, ...]
    absent_too: bool = False
    empty: Any = None
    """What an absent member is checked as, if it is no pointer in Go."""


_SEES_ABSENT: set[Rule] = set()


def even_absent(rule: Rule) -> Rule:
    """Marks a rule that sees absent fields too (as the first of its chain)."""
    _SEES_ABSENT.add(rule)
    return rule


def field(name: str, *rules: Rule) -> Field:
    """A member that is checked when it is present (see `even_absent`)."""
    return Field(name, rules, absent_too=bool(rules) and rules[0] in _SEES_ABSENT)


def given(name: str, *rules: Rule) -> Field:
    """A member that is a pointer in Go: an empty text is a value, and checked as one."""
    checked = chain(*rules)

    def check(value: Any, path: str, report: Report) -> bool:
        return value is None or checked(value, path, report)

    return Field(name, (check,), absent_too=True)


def section(name: str, *parts: Part) -> Field:
    """A struct that is always there (not a pointer in Go): an absent one is checked as an empty one."""
    return Field(name, (struct(*parts),), absent_too=True, empty={})


def text(name: str, *rules: Rule) -> Field:
    """A string that is not a pointer."""
    return Field(name, rules, absent_too=True, empty="")


def number(name: str, *rules: Rule) -> Field:
    """A number that is not a pointer."""
    return Field(name, rules, absent_too=True, empty=0)


Part = Field | Rule


def chain(*rules: Rule) -> Rule:
    """The rules one after the other, until one of them ends it."""
    if len(rules) == 1:
        return rules[0]
    first, *rest = rules

    def check(value: Any, path: str, report: Report) -> bool:
        if not first(value, path, report):
            return False
        for rule in rest:  # noqa: SIM110 - all() costs a generator for every field
            if not rule(value, path, report):
                return False
        return True

    if first in _SEES_ABSENT:
        even_absent(check)
    return check


def struct(*parts: Part) -> Rule:
    """An object: its fields, and rules about the whole of it, in this order."""
    compiled = tuple(
        (part.name, not part.absent_too, part.empty, chain(*part.rules))
        if isinstance(part, Field)
        else ("", False, None, part)
        for part in parts
    )

    def check(value: Any, path: str, report: Report) -> bool:
        get, prefix = value.get, f"{path}." if path else ""
        for name, optional, empty, rule in compiled:
            member = get(name)
            if not member and (member is None or member == ""):
                if optional:
                    continue
                if not name:
                    rule(value, path, report)
                    continue
                if member is None:
                    member = empty
            rule(member, prefix + name, report)
        return True

    return check


def items(*rules: Rule) -> Rule:
    """Every element of a list; `distinct` inside it sees the elements of this list."""
    element = chain(*rules)

    def check(value: Any, path: str, report: Report) -> bool:
        if not value:
            return True
        around, report.seen = report.seen, {}
        for index, item in enumerate(value):
            element({} if item is None else item, f"{path}[{index}]", report)
        report.seen = around
        return True

    return check


@even_absent
def required(value: Any, path: str, report: Report) -> bool:
    """Not absent and not Go's zero value ("", 0, an empty list)."""
    return bool(value) or report.required(path)


def required_saying(detail: str) -> Rule:
    """`required` with a detail of its own."""

    @even_absent
    def check(value: Any, path: str, report: Report) -> bool:
        return bool(value) or report.required(path, detail)

    return check


@even_absent
def present(value: Any, path: str, report: Report) -> bool:
    """Not absent; a zero or an empty struct is fine (a pointer in Go)."""
    return value is not None or report.required(path)


def distinct(value: Any, path: str, report: Report) -> bool:
    """Unique among the elements of the innermost `items` (per field name)."""
    seen = report.seen.setdefault(path.rpartition(".")[2] if path[-1] != "]" else "", set())
    if value in seen:
        return report.duplicate(path, value)
    seen.add(value)
    return True


def distinct_by(name: str) -> Rule:
    """An element of `items` differs from the others in this text; an absent one is empty."""

    def check(value: Any, path: str, report: Report) -> bool:
        distinct(value.get(name) or "", f"{path}.{name}", report)
        return True

    return check


def one_of(*supported: str) -> Rule:
    """An enumeration; the values are listed in the message in the order given here."""
    known = frozenset(supported)

    def check(value: Any, path: str, report: Report) -> bool:
        return value in known or report.not_supported(path, value, supported)

    return check


def one_of_required(*supported: str, detail: str = "") -> Rule:
    """`required`, then `one_of`."""
    return chain(required_saying(detail), one_of(*supported))


def at_most(maximum: int) -> Rule:
    """A list or map of at most so many items."""

    def check(value: Any, path: str, report: Report) -> bool:
        return len(value) <= maximum or report.too_many(path, len(value), maximum)

    return check


def exactly_one(members: Collection[str], *, noun: str, none_detail: str, rules: dict[str, Rule]) -> Rule:
    """A union: one member, the first that is set; any further one is forbidden, none at all is missing.

    `noun` makes "may not specify more than 1 <noun>"; `none_detail` is the detail of the missing value.
    """

    def check(value: Any, path: str, report: Report) -> bool:
        given = False
        for name in members:
            member = value.get(name)
            if member is None:
                continue
            place = f"{path}.{name}"
            if given:
                report.forbidden(place, f"may not specify more than 1 {noun}")
                continue
            given = True
            if name in rules:
                rules[name](member, place, report)
        return given or report.required(path, none_detail)

    return check


IMMUTABLE = "field is immutable"


# upstream: ValidateImmutableField
def unchanged(*names: str, detail: str = IMMUTABLE, absent: Any = None) -> Transition:
    """These members (dotted paths) keep their values; the error shows the new one (`absent` where there is none)."""
    places = tuple((name, tuple(name.split("."))) for name in names)

    def check(new: Obj, old: Obj, path: str, report: Report) -> bool:
        for name, keys in places:
            value = dig(new, keys)
            if not same(value, dig(old, keys)):
                report.invalid(f"{path}.{name}" if path else name, absent if value is None else value, detail)
        return True

    return check


def pointers_unchanged(*names: str) -> Transition:
    """`unchanged` for pointers in Go: nothing is something else than a zero or an empty text."""
    places = tuple((name, tuple(name.split("."))) for name in names)

    def check(new: Obj, old: Obj, path: str, report: Report) -> bool:
        for name, keys in places:
            value = dig(new, keys)
            if value != dig(old, keys):
                report.invalid(f"{path}.{name}" if path else name, value, IMMUTABLE)
        return True

    return check


def dig(obj: Any, keys: Iterable[str]) -> Any:
    """The value at a path of keys, or None."""
    for key in keys:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def same(value: Any, other: Any) -> bool:
    """Semantic equality: nothing, null and the zero values are one and the same."""
    return value == other or (not value and not other)


Scope = Callable[[Obj, Obj | None], Any]
"""(new state, old state or None) -> `Report.scope`."""


def creation(*parts: Part, scope: Scope | None = None) -> Callable[[Obj, Context], list[FieldError]]:
    """`Strategy.validate_create` from the parts of the whole object."""
    rule = struct(*parts)

    def validate(obj: Obj, context: Context) -> list[FieldError]:
        report = Report(context, scope(obj, None) if scope else None)
        rule(obj, "", report)
        return report.errors

    return validate


Step = Transition | Field | tuple[Part, ...]


def update(*steps: Step, scope: Scope | None = None) -> Callable[[Obj, Obj, Context], list[FieldError]]:
    """`Strategy.validate_update`: transitions, and what holds of any new state: fields, parts of a struct in a tuple,
    or `as_created(rule)`."""
    transitions = [_transition(step) for step in steps]

    def validate(obj: Obj, old: Obj, context: Context) -> list[FieldError]:
        report = Report(context, scope(obj, old) if scope else None)
        for transition in transitions:
            transition(obj, old, "", report)
        return report.errors

    return validate


def _transition(step: Step) -> Transition:
    if isinstance(step, Field):
        return as_created(step)
    return as_created(*step) if isinstance(step, tuple) else step


def as_created(*parts: Part) -> Transition:
    """The rules of a creation, for the new state of an update."""
    rule = struct(*parts)

    def check(new: Obj, old: Obj, path: str, report: Report) -> bool:
        return rule(new, path, report)

    return check


def same_rule(names: Iterable[str], rule: Rule) -> Rule:
    """One rule for several members, where they are present."""
    listed = tuple(names)

    def check(value: Any, path: str, report: Report) -> bool:
        for name in listed:
            if value.get(name) is not None:
                rule(value[name], f"{path}.{name}" if path else name, report)
        return True

    return check


def not_above(name: str, limit: str, detail: str) -> Rule:
    """One number of a struct is at most another one; an absent number is 0."""

    def check(value: Any, path: str, report: Report) -> bool:
        number = value.get(name) or 0
        return number <= (value.get(limit) or 0) or report.invalid(f"{path}.{name}", number, detail)

    return check
