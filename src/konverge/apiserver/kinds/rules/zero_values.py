"""Members that are values in Go, not pointers: where absent is the zero value, and the zero value is checked.

struct(
    text("type", one_of("Percent", "Pods")),       # an absent type is "", and "" is not supported
    number("value", at_least(1)),
    same_rule(("active", "failed"), not_negative),
)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, Rule, chain


def _valued(name: str, empty: Any, rules: tuple[Rule, ...]) -> Rule:
    rule = chain(*rules)

    def check(value: Any, path: str, report: Report) -> bool:
        member = value.get(name)
        rule(empty if member is None else member, f"{path}.{name}" if path else name, report)
        return True

    return check


def text(name: str, *rules: Rule) -> Rule:
    """A string that is not a pointer."""
    return _valued(name, "", rules)


def number(name: str, *rules: Rule) -> Rule:
    """A number that is not a pointer."""
    return _valued(name, 0, rules)


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
