"""Policy rules as pure values: what a rule allows, and whether some rules cover others.

A `Rule` is compiled once from a role and used on every request, so its lists are sets. The lists are kept as well:
reviews and refusals show them as they were written. Upstream: component-helpers/auth/rbac/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


class Rule:
    """One PolicyRule."""

    __slots__ = (
        "_any_group",
        "_any_resource",
        "_any_verb",
        "_groups",
        "_resources",
        "_verbs",
        "api_groups",
        "names",
        "resources",
        "urls",
        "verbs",
    )  # fmt: skip

    def __init__(
        self,
        verbs: Sequence[str] = (),
        api_groups: Sequence[str] = (),
        resources: Sequence[str] = (),
        names: Sequence[str] = (),
        urls: Sequence[str] = (),
    ) -> None:
        self.verbs, self.api_groups, self.resources = tuple(verbs), tuple(api_groups), tuple(resources)
        self.names, self.urls = tuple(names), tuple(urls)
        self._verbs, self._groups, self._resources = frozenset(verbs), frozenset(api_groups), frozenset(resources)
        self._any_verb, self._any_group = "*" in self._verbs, "*" in self._groups
        self._any_resource = "*" in self._resources

    @classmethod
    def of(cls, rule: dict[str, Any]) -> Rule:
        """From the form that it has in a role."""
        parts = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(rule.get(part) or () for part in parts))

    def allows(self, attrs: Attributes) -> bool:
        """Upstream: RuleAllows."""
        if not (self._any_verb or attrs.verb in self._verbs):
            return False
        if not attrs.is_resource:
            return any(_url_matches(url, attrs.path) for url in self.urls)
        return (
            (self._any_group or attrs.group in self._groups)
            and self._has_resource(attrs)
            and (not self.names or attrs.name in self.names)
        )

    def _has_resource(self, attrs: Attributes) -> bool:
        if self._any_resource or attrs.combined in self._resources:
            return True
        return bool(attrs.subresource) and f"*/{attrs.subresource}" in self._resources

    def covers(self, part: Rule) -> bool:
        """Whether this rule grants all that a part (see `parts`) does. Upstream: ruleCovers."""
        return (
            (self._any_verb or part._verbs <= self._verbs)
            and (self._any_group or part._groups <= self._groups)
            and (self._any_resource or all(self._covers_resource(resource) for resource in part.resources))
            and all(any(_url_matches(url, path) for url in self.urls) for path in part.urls)
            and (not self.names or (bool(part.names) and set(part.names) <= set(self.names)))
        )

    def _covers_resource(self, resource: str) -> bool:
        _, slash, subresource = resource.partition("/")
        return resource in self._resources or (bool(slash) and f"*/{subresource}" in self._resources)

    def parts(self) -> Iterator[Rule]:
        """The rule split into rules with one verb, group, resource and name each. Upstream: BreakdownRule."""
        for group in self.api_groups:
            for resource in self.resources:
                for verb in self.verbs:
                    for names in [[name] for name in self.names] or [[]]:
                        yield Rule((verb,), (group,), (resource,), names)
        for url in self.urls:
            for verb in self.verbs:
                yield Rule((verb,), urls=(url,))

    def __str__(self) -> str:
        """As the real server prints it in refusals."""
        shown = [(label, getattr(self, member)) for label, member in _SHOWN]
        return "{" + ", ".join(f"{label}:{quoted(values)}" for label, values in shown if values) + "}"


def _url_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def quoted(values: Iterable[str]) -> str:
    """A list as Go's %q prints it."""
    return "[" + " ".join(quote(value) for value in values) + "]"


def missing(held: Sequence[Rule], granted: Iterable[Rule]) -> list[Rule]:
    """The parts of the granted rules that those held do not cover. Upstream: Covers."""
    parts = [part for rule in granted for part in rule.parts()]
    return [part for part in parts if not any(rule.covers(part) for rule in held)]


def merged(parts: Iterable[Rule]) -> list[Rule]:
    """Parts that differ in the verb only, merged into one rule each. Upstream: CompactRules."""
    verbs: dict[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], list[str]] = {}
    others: list[Rule] = []
    for part in parts:
        if part.urls:
            others.append(part)
        else:
            verbs.setdefault((part.api_groups, part.resources, part.names), []).extend(part.verbs)
    return others + [Rule(merged_verbs, *key) for key, merged_verbs in verbs.items()]
