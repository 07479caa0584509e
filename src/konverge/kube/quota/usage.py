"""What pods, services and claims use of a quota, and which of them a quota with scopes is about. Pure functions.

The API server's admission has the same arithmetic on plain objects (it must not depend on this layer); here it is on
typed ones, and adds up what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from konverge import clock
from konverge.objects.kinds.core_v1 import (
    Container,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    ResourceQuota,
    ScopedResourceSelectorRequirement,
    Service,
)
from konverge.objects.quantity import Quantity
from konverge.objects.times import parse_time

Amounts = dict[str, Quantity]

ONE, ZERO = Quantity("1"), Quantity("0")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_OF_CLASS = ".storageclass.storage.k8s.io/"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


def total(usages: Iterable[Amounts], names: Iterable[str]) -> Amounts:
    """The sum of all usages for the names that are asked for; what nobody uses is zero."""
    found = dict.fromkeys(names, ZERO)
    for usage in usages:
        add(found, {name: value for name, value in usage.items() if name in found})
    return found


# ------------------------------------------------------------------ pods


def is_pod_name(name: str) -> bool:
    """Whether a name in a quota is about pods."""
    bare = name.removeprefix("requests.").removeprefix("limits.")
    if name in ("pods", "count/pods") or bare in _COMPUTE:
        return True
    if name.startswith("count/"):
        return False
    return bare.startswith(_HUGE_PAGES) or (name.startswith("requests.") and _is_extended(bare))


def of_pod(pod: Pod) -> Amounts:
    """Its place, and while it runs what it asks for."""
    found = {"count/pods": ONE}
    if _is_over(pod):
        return found
    found["pods"] = ONE
    requests, limits = asked(pod, "requests"), asked(pod, "limits")
    for name in _COMPUTE:
        if name in requests:
            found[name] = found[f"requests.{name}"] = requests[name]
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    for name, value in requests.items():
        if name.startswith(_HUGE_PAGES):
            found[name] = found[f"requests.{name}"] = value
        elif _is_extended(name):
            found[f"requests.{name}"] = value
    return found


def asked(pod: Pod, part: str) -> Amounts:
    """The requests or limits of a pod: containers run together, init containers one after the other, sidecars beside
    those that come after them; what the pod says as a whole wins.
    """
    found: Amounts = {}
    for container in pod.spec.containers:
        add(found, _of_container(container, part))
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in pod.spec.init_containers:
        own = dict(_of_container(container, part))
        if container.restart_policy == "Always":
            add(found, own)
            add(sidecars, own)
            _raise_to(highest, sidecars)
        else:
            add(own, sidecars)
            _raise_to(highest, own)
    _raise_to(found, highest)
    whole: Amounts = getattr(pod.spec.resources, part) if pod.spec.resources else {}
    found |= {name: value for name, value in whole.items() if name in _COMPUTE[:2] or name.startswith(_HUGE_PAGES)}
    overhead = pod.spec.overhead
    add(found, overhead if part == "requests" else {name: v for name, v in overhead.items() if name in found})
    return found


def _of_container(container: Container, part: str) -> Amounts:
    found: Amounts = getattr(container.resources, part) if container.resources else {}
    return found


def _raise_to(found: Amounts, other: Amounts) -> None:
    for name, value in other.items():
        if name not in found or value > found[name]:
            found[name] = value


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _is_over(pod: Pod) -> bool:
    """It has ended, or should have."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return True
    when, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    return bool(when) and grace is not None and clock.utc_now() > parse_time(when or "") + timedelta(seconds=grace)


# ------------------------------------------------------------------ services and claims


def is_service_name(name: str) -> bool:
    return name in ("count/services", "services", "services.nodeports", "services.loadbalancers")


def of_service(service: Service) -> Amounts:
    ports, balancers = 0, 0
    if service.spec.type == "NodePort":
        ports = len(service.spec.ports)
    elif service.spec.type == "LoadBalancer":
        balancers, all_of_them = 1, service.spec.allocate_load_balancer_node_ports is not False
        ports = sum(1 for port in service.spec.ports if all_of_them or port.node_port)
    return {
        "count/services": ONE,
        "services": ONE,
        "services.nodeports": Quantity(ports),
        "services.loadbalancers": Quantity(balancers),
    }


def is_claim_name(name: str) -> bool:
    bare = name.partition(_OF_CLASS)[2] or name
    return bare in ("persistentvolumeclaims", "requests.storage") or name == "count/persistentvolumeclaims"


def of_claim(claim: PersistentVolumeClaim) -> Amounts:
    found = {"persistentvolumeclaims": ONE}
    requests = claim.spec.resources.requests if claim.spec.resources else {}
    if "storage" in requests:
        found["requests.storage"] = max(requests["storage"], claim.status.allocated_resources.get("storage", ZERO))
    storage_class = claim.metadata.annotations.get(_OLD_CLASS) or claim.spec.storage_class_name
    if storage_class:
        found |= {f"{storage_class}{_OF_CLASS}{name}": value for name, value in found.items()}
    return {**found, "count/persistentvolumeclaims": ONE}


# ------------------------------------------------------------------ scopes


def scopes(quota: ResourceQuota) -> list[ScopedResourceSelectorRequirement]:
    plain = [ScopedResourceSelectorRequirement(scope_name=name, operator="Exists") for name in quota.spec.scopes]
    selector = quota.spec.scope_selector
    return [*plain, *(selector.match_expressions if selector else ())]


def pod_is_meant(quota: ResourceQuota, pod: Pod) -> bool:
    return all(_pod_in(scope, pod) for scope in scopes(quota))


def claim_is_meant(quota: ResourceQuota, claim: PersistentVolumeClaim) -> bool:
    names = {claim.spec.volume_attributes_class_name, claim.status.current_volume_attributes_class_name} - {None, ""}
    return all(
        scope.scope_name == "VolumeAttributesClass" and any(_names(scope, name or "") for name in names or {""})
        for scope in scopes(quota)
    )


def _pod_in(scope: ScopedResourceSelectorRequirement, pod: Pod) -> bool:
    ends = pod.spec.active_deadline_seconds is not None
    match scope.scope_name:
        case "Terminating":
            return ends
        case "NotTerminating":
            return not ends
        case "BestEffort":
            return pod.status.qos_class == "BestEffort"
        case "NotBestEffort":
            return pod.status.qos_class != "BestEffort"
        case "PriorityClass":
            return _names(scope, pod.spec.priority_class_name or "")
        case "CrossNamespacePodAffinity":
            return any(term.namespaces or term.namespace_selector is not None for term in _terms(pod))
    return False


def _names(scope: ScopedResourceSelectorRequirement, name: str) -> bool:
    match scope.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in scope.values
    return name not in scope.values


def _terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if part is not None:
            yield from part.required_during_scheduling_ignored_during_execution
            for weighted in part.preferred_during_scheduling_ignored_during_execution:
                yield weighted.pod_affinity_term
