"""The operator's account may do what the operator does, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from konverge.check.model import Alarm, Obj, Run
from konverge.check.reference import Reference


def permissions(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per verb and resource that was forbidden."""
    known = set() if run is reference.run else {(verb, resource) for verb, resource, _ in _forbidden(reference.run)}
    for verb, resource, message in _forbidden(run):
        if (verb, resource) not in known:
            known.add((verb, resource))
            yield Alarm(
                oracle="permissions",
                severity="high",
                object="operator",
                field=f"{verb} {resource.removeprefix('/')}",
                sentence=f"the operator's account may not {verb} {resource.removeprefix('/')}: {message[:160]}",
            )


def _forbidden(run: Run) -> Iterator[tuple[str, str, str]]:
    """Refusals by authorization; a quota or a namespace that goes away is another matter."""
    for exchange in run.exchanges:
        if exchange.status == 403 and " cannot " in exchange.error:
            yield exchange.verb, exchange.resource, exchange.error


# ------------------------------------------------------------------ rules that are never used


def unused(objects: Iterable[Obj], runs: Iterable[Run]) -> list[Alarm]:
    """What the roles of an operator allow and no run ever did: one note per resource.

    `objects` are those of the setup. Wildcards are one note each; what cannot be tried here (other API groups that are
    not served, resource names) is left out.
    """
    done: set[tuple[str, str]] = set()
    for run in runs:
        for request in run.reads:
            verb, _, resource = request.partition(" ")
            done.add((verb, resource))
    alarms: list[Alarm] = []
    for role in objects:
        if role.get("kind") in ("Role", "ClusterRole"):
            alarms += _unused_rules(role, done)
    return alarms


def _unused_rules(role: Obj, done: set[tuple[str, str]]) -> Iterator[Alarm]:
    name = f"{role['kind']} {role['metadata']['name']}"
    for rule in role.get("rules") or ():
        for resource, verbs in _idle(rule, done):
            yield Alarm(
                oracle="permissions",
                severity="low",
                object=name,
                field=resource,
                sentence=f"{name} allows {', '.join(verbs)} of {resource.removeprefix('/')}, which was never used",
                actual=verbs,
            )


def _idle(rule: dict[str, Any], done: set[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    used = {resource for _, resource in done}
    for group in rule.get("apiGroups") or ():
        for plural in rule.get("resources") or ():
            resource = f"{group}/{plural}"
            if "*" in resource:
                if not any(_covers(group, plural, item) for item in used):
                    yield resource, ["everything"]
                continue
            verbs = [verb for verb in rule.get("verbs") or () if verb != "*" and (verb, resource) not in done]
            every = "*" in (rule.get("verbs") or ()) and resource not in used
            if verbs or every:
                yield resource, verbs or ["everything"]


def _covers(group: str, plural: str, resource: str) -> bool:
    one, _, other = resource.partition("/")
    return group in ("*", one) and plural in ("*", other)
