"""What an object uses of which resource, and which names in a quota are about which kind.

Every kind is counted by `count/PLURAL.GROUP`; pods, services and claims use more than their place.
Upstream: pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from typing import Any

from konverge import clock
from konverge.objects.amounts import Amounts, add, amounts, asked_by_pod
from konverge.objects.quantity import Quantity, QuantityError
from konverge.objects.times import parse_time

Obj = dict[str, Any]

ONE, ZERO = Quantity("1"), Quantity("0")
PLAIN = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
"""Core kinds that are also counted by their name without `count/`."""
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_REQUESTS, _LIMITS, _HUGE_PAGES = "requests.", "limits.", "hugepages-"
_POD_NAMES = frozenset({"pods", "count/pods", *(p + n for n in _COMPUTE for p in ("", _REQUESTS, _LIMITS))})
_SERVICE_NAMES = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_CLAIM_NAMES = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


# ------------------------------------------------------------------ pods


def is_pod_name(name: str) -> bool:
    """Whether a name in a quota is about pods."""
    if name in _POD_NAMES or name.startswith((_HUGE_PAGES, _REQUESTS + _HUGE_PAGES)):
        return True
    return name.startswith(_REQUESTS) and _is_extended(name[len(_REQUESTS) :])


def of_pod(pod: Obj) -> Amounts:
    """Its place, and while it runs what it asks for."""
    counted = {"count/pods": ONE}
    if _is_over(pod):
        return counted
    spec = pod.get("spec") or {}
    requests, limits = asked_by_pod(spec, "requests"), asked_by_pod(spec, "limits")
    overhead = amounts(spec.get("overhead"))
    add(requests, overhead)
    add(limits, {name: value for name, value in overhead.items() if name in limits})
    return {**counted, **of_resources(requests, limits)}


def of_resources(requests: Amounts, limits: Amounts) -> Amounts:
    """Requests and limits by the names that quotas have for them."""
    usage = {"pods": ONE}
    for name in _COMPUTE:
        if name in requests:
            usage[name] = usage[_REQUESTS + name] = requests[name]
        if name in limits:
            usage[_LIMITS + name] = limits[name]
    for name, value in requests.items():
        if name.startswith(_HUGE_PAGES):
            usage[name] = usage[_REQUESTS + name] = value
        elif _is_extended(name):
            usage[_REQUESTS + name] = value
    return usage


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith(_REQUESTS)


def _is_over(pod: Obj) -> bool:
    """Pods that have ended, or should have, use nothing but their place."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    metadata = pod.get("metadata") or {}
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not deleted or grace is None:
        return False
    return clock.now() > parse_time(deleted).timestamp() + int(grace)


# ------------------------------------------------------------------ services and claims


def is_service_name(name: str) -> bool:
    return name in _SERVICE_NAMES


def of_service(service: Obj) -> Amounts:
    spec = service.get("spec") or {}
    ports = spec.get("ports") or []
    kind, node_ports, balancers = spec.get("type"), 0, 0
    if kind == "LoadBalancer":
        balancers = 1
        own = [port for port in ports if port.get("nodePort")]
        node_ports = len(own if spec.get("allocateLoadBalancerNodePorts") is False else ports)
    elif kind == "NodePort":
        node_ports = len(ports)
    usage = {"count/services": ONE, "services": ONE, "services.loadbalancers": Quantity(balancers)}
    return {**usage, "services.nodeports": Quantity(node_ports)}


def is_claim_name(name: str) -> bool:
    if name == "count/persistentvolumeclaims" or name in _CLAIM_NAMES:
        return True
    return name.endswith(tuple(_OF_CLASS + part for part in _CLAIM_NAMES))


def of_claim(claim: Obj) -> Amounts:
    spec = claim.get("spec") or {}
    usage = {"persistentvolumeclaims": ONE, "count/persistentvolumeclaims": ONE}
    asked = amounts((spec.get("resources") or {}).get("requests")).get("storage")
    if asked is not None:
        allocated = amounts((claim.get("status") or {}).get("allocatedResources")).get("storage", ZERO)
        asked = max(asked, allocated)
        usage["requests.storage"] = _rounded_up(asked)
    annotations = (claim.get("metadata") or {}).get("annotations") or {}
    storage_class = annotations.get(_OLD_CLASS) or spec.get("storageClassName")
    if storage_class:
        usage |= {f"{storage_class}{_OF_CLASS}{name}": usage[name] for name in _CLAIM_NAMES if name in usage}
    return usage


def _rounded_up(asked: Quantity) -> Quantity:
    try:
        return asked if asked.milli % 1000 == 0 else Quantity(int(asked))
    except QuantityError:  # so large that it has no fraction
        return asked
