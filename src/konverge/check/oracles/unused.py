"""The operator's account may do nothing that the operator never does: a note about a whole check, not about a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from konverge.apiserver.registry import Registry
from konverge.check.model import Alarm, Obj, Run, Setup

FIELD = "unused rules"
SHOWN = 6

_ALIKE = (
    frozenset(("get", "list", "watch")),
    frozenset(("update", "patch")),
    frozenset(("delete", "deletecollection")),
)
"""Verbs that come together in every generated role: one of them in use is enough."""
_NEVER_ASKED = ("finalizers", "approval")
"""Subresources that admission asks for on behalf of the writer of another object."""


class Used:
    """What the operator asked for in any run, and what it gave to others: who grants a permission has to have it."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs = 0
        self.requests: set[tuple[str, str]] = set()
        self._granted: set[tuple[str, str]] = set()
        for run in runs:
            self.add(run)

    def add(self, run: Run) -> None:
        self.runs += 1
        for request in run.reads:
            verb, _, resource = request.partition(" ")
            self.requests.add((verb, resource))
        for checkpoint in run.checkpoints:
            for obj in checkpoint.state.values():
                if obj.get("kind") in ("Role", "ClusterRole"):
                    self._granted.update(_allowed(obj))

    def any_of(self, verbs: Iterable[str], group: str, plural: str) -> bool:
        """Whether a verb of these was used; `*` stands for any."""
        wanted = set(verbs)
        return any(
            ("*" in wanted or verb in wanted or verb == "*") and _covers(group, plural, resource)
            for verb, resource in self.requests | self._granted
        )


def unused(setup: Setup, used: Used) -> list[Alarm]:
    """One note for each role of the operator's account with rules that no run used.

    Left out is what cannot be tried here: kinds that are not served, and paths.
    """
    served = _served(setup.objects)
    notes = []
    for role in _roles(setup):
        idle = list(dict.fromkeys(text for rule in role.get("rules") or () for text in _idle(rule, used, served)))
        if idle:
            name = f"{role['kind']} {role['metadata']['name']}"
            more = f" and {len(idle) - SHOWN} more" if len(idle) > SHOWN else ""
            notes.append(
                Alarm(
                    oracle="permissions",
                    severity="low",
                    object=name,
                    field=FIELD,
                    sentence=f"{name} allows what no run of this check used: {'; '.join(idle[:SHOWN])}{more}",
                    actual=idle,
                )
            )
    return notes


def _roles(setup: Setup) -> Iterator[Obj]:
    """Those that are bound to the account: folders of roles have others too, for users."""
    namespace, _, name = setup.account.partition("/")
    bound = {
        (obj["roleRef"]["kind"], obj["roleRef"]["name"])
        for obj in setup.objects
        if obj.get("kind") in ("RoleBinding", "ClusterRoleBinding")
        for subject in obj.get("subjects") or ()
        if (subject.get("kind"), subject.get("namespace"), subject.get("name")) == ("ServiceAccount", namespace, name)
    }
    return (obj for obj in setup.objects if (obj.get("kind"), obj["metadata"]["name"]) in bound)


def _served(objects: Iterable[Obj]) -> set[str]:
    served = {f"{item.resource.group}/{item.resource.plural}" for item in Registry.builtin()}
    for obj in objects:
        if obj.get("kind") == "CustomResourceDefinition":
            served.add(f"{obj['spec']['group']}/{obj['spec']['names']['plural']}")
    return served


def _idle(rule: dict[str, Any], used: Used, served: set[str]) -> Iterator[str]:
    """What of a rule was never used, as texts: "delete secrets"."""
    verbs = list(rule.get("verbs") or ())
    for group in rule.get("apiGroups") or ():
        for plural in rule.get("resources") or ():
            base, _, subresource = plural.partition("/")
            known = "*" in (group, base) or f"{group}/{base}" in served
            if not known or subresource in _NEVER_ASKED:
                continue
            never = [verb for verb in verbs if not used.any_of(_family(verb), group, plural)]
            if never:
                what = plural if group in ("", "*") else f"{plural}.{group}"
                yield f"{', '.join('do everything with' if verb == '*' else verb for verb in never)} {what}"


def _family(verb: str) -> frozenset[str]:
    return next((family for family in _ALIKE if verb in family), frozenset((verb,)))


def _allowed(role: Obj) -> Iterator[tuple[str, str]]:
    for rule in role.get("rules") or ():
        for group in rule.get("apiGroups") or ():
            for plural in rule.get("resources") or ():
                yield from ((verb, f"{group}/{plural}") for verb in rule.get("verbs") or ())


def _covers(group: str, plural: str, resource: str) -> bool:
    """Whether a rule is about a resource; either may say `*`."""
    mine, _, other = resource.partition("/")
    return (group in ("*", mine) or mine == "*") and (plural in ("*", other) or other == "*")
