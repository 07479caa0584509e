"""How writes of a kind are measured: what its objects use, and when a write must be looked at.

The arithmetic itself is `konverge.objects.quota`; here is what only admission asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.amounts import Amounts, amounts
from konverge.objects.quota import usage
from konverge.objects.quota.scopes import Scope, claim_in_scope, is_terminating, no_scope, pod_in_scope

_MUST_BE_GIVEN = frozenset(prefix + name for name in ("cpu", "memory") for prefix in ("", "requests.", "limits."))


class Meter(msgspec.Struct, frozen=True):
    usage: Callable[[Obj], Amounts]
    counts: Callable[[str], bool]
    """Whether a name in a quota is about this kind."""
    in_scope: Callable[[Scope, Obj], bool] = no_scope
    missing: Callable[[Iterable[str], Obj], str] = lambda names, obj: ""
    """What an object fails to say that the quota needs to know."""
    concerns: Callable[[AdmissionRequest], bool] = lambda request: True


def _counted(group: str, plural: str) -> str:
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def meter(group: str, plural: str) -> Meter:
    special = _SPECIAL.get(plural) if not group else None
    if special is not None:
        return special
    names = [_counted(group, plural), *([plural] if not group and plural in usage.PLAIN else [])]
    return Meter(lambda obj: dict.fromkeys(names, usage.ONE), names.__contains__)


def _pod_missing(names: Iterable[str], pod: Obj) -> str:
    spec = pod.get("spec") or {}
    if any((spec.get("resources") or {}).get(part) for part in ("requests", "limits")):
        return ""
    needed = _MUST_BE_GIVEN.intersection(names)
    lacking: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        given = usage.of_resources(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in needed - given.keys():
            lacking.setdefault(name, set()).add(container.get("name", ""))
    parts = [f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking)]
    return f"must specify {'; '.join(parts)}" if parts else ""


def _pod_concerns(request: AdmissionRequest) -> bool:
    if request.subresource == "resize" or request.operation == "CREATE":
        return True
    return is_terminating(request.obj or {}) is not is_terminating(request.old or {})


_SPECIAL = {
    "pods": Meter(usage.of_pod, usage.is_pod_name, pod_in_scope, _pod_missing, _pod_concerns),
    "services": Meter(usage.of_service, usage.is_service_name),
    "persistentvolumeclaims": Meter(usage.of_claim, usage.is_claim_name, claim_in_scope),
}
