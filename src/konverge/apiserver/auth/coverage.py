"""Whether some rules cover others: users grant only what they hold.

Each combination of verb, group, resource and name must be covered by one rule of those held. Rules are compared by
index, not pair by pair: a role may have ten thousands of rules on both sides. Upstream: Covers
(component-helpers/auth/rbac/validation), which does compare pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from konverge.apiserver.auth.rules import Rule

MOST_PARTS = 300_000
"""Combinations that are looked at: a limit of ours. A few kilobytes of three long lists mean a billion of them."""


class TooManyParts(Exception):
    """The rules cannot be checked in reasonable time."""

    def __init__(self) -> None:
        super().__init__(
            f"the rules have more than {MOST_PARTS} combinations of verb, group, resource and name: "
            "write several roles, or use wildcards"
        )


def missing(held: Sequence[Rule], granted: Iterable[Rule]) -> list[Rule]:
    """The parts of the granted rules that those held do not cover. Raises TooManyParts."""
    granted = list(granted)
    if sum(map(_parts, granted)) > MOST_PARTS:
        raise TooManyParts
    index = _Index(held)
    return [part for rule in granted for part in index.lacking(rule)]


def _parts(rule: Rule) -> int:
    named = len(rule.api_groups) * len(rule.resources) * max(len(rule.names), 1)
    return len(rule.verbs) * (named + len(rule.urls))


class _Index:
    """Of each verb, group, resource, name and path the held rules that have it, as bits."""

    def __init__(self, held: Sequence[Rule]) -> None:
        self._verbs: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._resources: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._prefixes: dict[int, dict[str, int]] = {}
        """Paths that end with `*`, by their length without it."""
        self._unnamed = 0
        for number, rule in enumerate(held):
            self._add(rule, 1 << number)

    def _add(self, rule: Rule, bit: int) -> None:
        for values, index in (
            (rule.verbs, self._verbs),
            (rule.api_groups, self._groups),
            (rule.resources, self._resources),
            (rule.names, self._names),
            (rule.urls, self._paths),
        ):
            for value in values:
                index[value] = index.get(value, 0) | bit
        for url in rule.urls:
            if url.endswith("*"):
                prefix = url.rstrip("*")
                prefixes = self._prefixes.setdefault(len(prefix), {})
                prefixes[prefix] = prefixes.get(prefix, 0) | bit
        if not rule.names:
            self._unnamed |= bit

    def lacking(self, rule: Rule) -> Iterator[Rule]:
        """The parts of a rule that are not covered, in the order of `Rule.parts`."""
        for group in rule.api_groups:
            by_group = _either(self._groups, group, "*")
            for resource in rule.resources:
                by_resource = by_group & self._of_resource(resource)
                for verb in rule.verbs:
                    by_verb = by_resource & _either(self._verbs, verb, "*")
                    for names in rule.single_names():
                        if not by_verb & _either(self._names, *names) and not by_verb & self._unnamed:
                            yield Rule((verb,), (group,), (resource,), names)
        for url in rule.urls:
            by_path = self._unnamed & self._of_path(url)
            for verb in rule.verbs:
                if not by_path & _either(self._verbs, verb, "*"):
                    yield Rule((verb,), urls=(url,))

    def _of_resource(self, resource: str) -> int:
        _, slash, subresource = resource.partition("/")
        return _either(self._resources, resource, "*", *([f"*/{subresource}"] if slash else []))

    def _of_path(self, path: str) -> int:
        rules = self._paths.get(path, 0)
        for length, prefixes in self._prefixes.items():
            if length <= len(path):
                rules |= prefixes.get(path[:length], 0)
        return rules


def _either(index: dict[str, int], *values: str) -> int:
    rules = 0
    for value in values:
        rules |= index.get(value, 0)
    return rules
