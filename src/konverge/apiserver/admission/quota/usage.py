"""What an object uses of which resource, as quotas count it.

Every kind is counted by `count/PLURAL.GROUP`; pods, services and claims use more than their place. A `Meter` says what
a kind's objects use, which of the names in a quota are about it, and when a write must be looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from konverge import clock
from konverge.apiserver.admission.amounts import Amounts, amounts, of_pod
from konverge.apiserver.admission.quota.scopes import Scope, claim_in_scope, is_terminating, no_scope, pod_in_scope
from konverge.apiserver.http.seams import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.quantity import Quantity
from konverge.objects.times import parse_time

_ONE = Quantity("1")
_ZERO = Quantity("0")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_REQUESTS, _LIMITS, _HUGE_PAGES = "requests.", "limits.", "hugepages-"
_MUST_BE_GIVEN = frozenset(prefix + name for name in ("cpu", "memory") for prefix in ("", _REQUESTS, _LIMITS))
_POD_NAMES = frozenset({"pods", "count/pods", *(p + n for n in _COMPUTE for p in ("", _REQUESTS, _LIMITS))})
_SERVICE_NAMES = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_CLAIM_NAMES = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_ALIASED = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
"""Core kinds that are also counted by their plain name."""


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
    names = [_counted(group, plural), *([plural] if not group and plural in _ALIASED else [])]
    return Meter(lambda obj: dict.fromkeys(names, _ONE), names.__contains__)


# --- pods


def _pod_usage(pod: Obj) -> Amounts:
    found = {"count/pods": _ONE}
    if _is_over(pod):
        return found
    spec = pod.get("spec") or {}
    overhead = amounts(spec.get("overhead"))
    requests, limits = of_pod(spec, "requests"), of_pod(spec, "limits")
    for name, value in overhead.items():
        requests[name] = requests[name] + value if name in requests else value
        if name in limits:
            limits[name] = limits[name] + value
    return {**found, **_compute_usage(requests, limits)}


def _compute_usage(requests: Amounts, limits: Amounts) -> Amounts:
    found = {"pods": _ONE}
    for name in _COMPUTE:
        if name in requests:
            found[name] = found[_REQUESTS + name] = requests[name]
        if name in limits:
            found[_LIMITS + name] = limits[name]
    for name, value in requests.items():
        if name.startswith(_HUGE_PAGES):
            found[name] = found[_REQUESTS + name] = value
        elif _is_extended(name):
            found[_REQUESTS + name] = value
    return found


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith(_REQUESTS)


def _is_over(pod: Obj) -> bool:
    """Pods that have ended, or should have, use nothing but their place."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    metadata = pod["metadata"]
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    return bool(deleted) and grace is not None and clock.now() > parse_time(deleted).timestamp() + int(grace)


def _pod_counts(name: str) -> bool:
    if name in _POD_NAMES or name.startswith((_HUGE_PAGES, _REQUESTS + _HUGE_PAGES)):
        return True
    return name.startswith(_REQUESTS) and _is_extended(name[len(_REQUESTS) :])


def _pod_missing(names: Iterable[str], pod: Obj) -> str:
    spec = pod.get("spec") or {}
    if any((spec.get("resources") or {}).get(part) for part in ("requests", "limits")):
        return ""
    needed = _MUST_BE_GIVEN.intersection(names)
    lacking: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        given = _compute_usage(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in needed - given.keys():
            lacking.setdefault(name, set()).add(container.get("name", ""))
    parts = [f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking)]
    return f"must specify {'; '.join(parts)}" if parts else ""


def _pod_concerns(request: AdmissionRequest) -> bool:
    if request.subresource == "resize" or request.operation == "CREATE":
        return True
    return is_terminating(request.obj or {}) is not is_terminating(request.old or {})


# --- services and claims


def _service_usage(service: Obj) -> Amounts:
    spec = service.get("spec") or {}
    ports = spec.get("ports") or []
    kind, node_ports, balancers = spec.get("type"), 0, 0
    if kind == "LoadBalancer":
        balancers = 1
        own = [port for port in ports if port.get("nodePort")]
        node_ports = len(own if spec.get("allocateLoadBalancerNodePorts") is False else ports)
    elif kind == "NodePort":
        node_ports = len(ports)
    found = {"count/services": _ONE, "services": _ONE, "services.loadbalancers": Quantity(balancers)}
    return {**found, "services.nodeports": Quantity(node_ports)}


def _claim_usage(claim: Obj) -> Amounts:
    spec = claim.get("spec") or {}
    found = {"persistentvolumeclaims": _ONE, "count/persistentvolumeclaims": _ONE}
    asked = amounts((spec.get("resources") or {}).get("requests")).get("storage")
    if asked is not None:
        allocated = amounts((claim.get("status") or {}).get("allocatedResources")).get("storage", _ZERO)
        asked = max(asked, allocated)
        found["requests.storage"] = asked if asked.milli % 1000 == 0 else Quantity(int(asked))
    annotations = claim["metadata"].get("annotations") or {}
    storage_class = annotations.get(_OLD_CLASS) or spec.get("storageClassName")
    if storage_class:
        found |= {f"{storage_class}{_OF_CLASS}{name}": found[name] for name in _CLAIM_NAMES if name in found}
    return found


def _claim_counts(name: str) -> bool:
    if name == "count/persistentvolumeclaims" or name in _CLAIM_NAMES:
        return True
    return name.endswith(tuple(_OF_CLASS + part for part in _CLAIM_NAMES))


_SPECIAL = {
    "pods": Meter(_pod_usage, _pod_counts, pod_in_scope, _pod_missing, _pod_concerns),
    "services": Meter(_service_usage, _SERVICE_NAMES.__contains__),
    "persistentvolumeclaims": Meter(_claim_usage, _claim_counts, claim_in_scope),
}
