"""Policy rules as pure values: what a rule allows, and how it is shown. Whether some cover others: `coverage.py`.

Upstream: component-helpers/auth/rbac/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from konverge.apiserver.go.strconv import quote
from konverge.objects import fields
from konverge.objects.labels import SelectorError

_SHOWN = (
    ("APIGroups", "api_groups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "urls"),
    ("ResourceNames", "names"),
    ("Verbs", "verbs"),
)


class Attributes(msgspec.Struct):
    """What a user wants to do: a verb on a resource or on a path. Upstream: authorizer.Attributes."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    is_resource: bool = True
    selector: str = ""
    """The field selector of a list or watch."""

    @property
    def fields(self) -> set[tuple[str, str]]:
        """The (field, value) pairs that the selector requires, equalities only; empty if it cannot be read."""
        try:
            return {(term.field, term.value) for term in fields.parse(self.selector).terms if term.equal}
        except SelectorError:
            return set()

    @property
    def combined(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


_NAMES = {"api_groups": "apiGroups", "names": "resourceNames", "urls": "nonResourceURLs"}


class Rule(msgspec.Struct, frozen=True, gc=False, rename=_NAMES):
    """One PolicyRule. It is decoded as it stands in a role: there may be ten thousands of them in one."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: dict[str, Any]) -> Rule:
        """From the form that it has in a role."""
        parts = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(rule.get(part) or ()) for part in parts))

    def allows(self, attrs: Attributes) -> bool:
        """Upstream: RuleAllows."""
        if not (attrs.verb in self.verbs or "*" in self.verbs):
            return False
        if not attrs.is_resource:
            return any(_url_matches(url, attrs.path) for url in self.urls)
        return (
            (attrs.group in self.api_groups or "*" in self.api_groups)
            and self._has_resource(attrs)
            and (not self.names or attrs.name in self.names)
        )

    def _has_resource(self, attrs: Attributes) -> bool:
        if attrs.combined in self.resources or "*" in self.resources:
            return True
        return bool(attrs.subresource) and f"*/{attrs.subresource}" in self.resources

    def parts(self) -> Iterator[Rule]:
        """The rule split into rules with one verb, group, resource and name each. Upstream: BreakdownRule."""
        for group in self.api_groups:
            for resource in self.resources:
                for verb in self.verbs:
                    for names in self.single_names():
                        yield Rule((verb,), (group,), (resource,), names)
        for url in self.urls:
            for verb in self.verbs:
                yield Rule((verb,), urls=(url,))

    def single_names(self) -> list[tuple[str, ...]]:
        """The names one by one; one empty tuple for a rule about all."""
        return [(name,) for name in self.names] or [()]

    def __str__(self) -> str:
        """As the real server prints it in refusals."""
        shown = [(label, getattr(self, member)) for label, member in _SHOWN]
        return "{" + ", ".join(f"{label}:{quoted(values)}" for label, values in shown if values) + "}"


def _url_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def quoted(values: Iterable[str]) -> str:
    """A list as Go's %q prints it."""
    return "[" + " ".join(quote(value) for value in values) + "]"


def merged(parts: Iterable[Rule]) -> list[Rule]:
    """Parts that differ in the verb only, merged into one rule each. Upstream: CompactRules."""
    verbs: dict[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], list[str]] = {}
    others: list[Rule] = []
    for part in parts:
        if part.urls:
            others.append(part)
        else:
            verbs.setdefault((part.api_groups, part.resources, part.names), []).extend(part.verbs)
    return others + [Rule(tuple(merged_verbs), *key) for key, merged_verbs in verbs.items()]
