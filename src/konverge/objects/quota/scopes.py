"""Scopes: which objects a quota is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

Obj = dict[str, Any]


class Scope(msgspec.Struct, frozen=True):
    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def matches_name(self, name: str) -> bool:
        """Whether a class (by its name, "" for none) is meant."""
        if self.operator == "Exists":
            return bool(name)
        if self.operator == "DoesNotExist":
            return not name
        return (name in self.values) is (self.operator == "In")


def scopes_of(quota: Obj) -> list[Scope]:
    spec = quota.get("spec") or {}
    plain = [Scope(name) for name in spec.get("scopes") or ()]
    terms = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return plain + [
        Scope(term.get("scopeName", ""), term.get("operator", ""), tuple(term.get("values") or ())) for term in terms
    ]


def no_scope(scope: Scope, obj: Obj) -> bool:
    """Most kinds are in no scope."""
    return False


def pod_in_scope(scope: Scope, pod: Obj) -> bool:  # upstream: podMatchesScopeFunc (pkg/quota/v1/evaluator/core)
    match scope.name:
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return scope.matches_name((pod.get("spec") or {}).get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in _terms(pod))
    return False


def is_terminating(pod: Obj) -> bool:
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return deadline is not None and int(deadline) >= 0


def _is_best_effort(pod: Obj) -> bool:
    """The class has been set by then: it is part of preparing a new pod."""
    return (pod.get("status") or {}).get("qosClass") == "BestEffort"


def _terms(pod: Obj) -> Iterator[Obj]:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for part in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(part) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def claim_in_scope(scope: Scope, claim: Obj) -> bool:  # upstream: pvcMatchesScopeFunc
    if scope.name != "VolumeAttributesClass":
        return False
    wanted = (claim.get("spec") or {}).get("volumeAttributesClassName")
    current = (claim.get("status") or {}).get("currentVolumeAttributesClassName")
    names = {name for name in (wanted, current) if name}
    return any(scope.matches_name(name) for name in names or {""})
