"""Resources: limits, requests and claims of containers and of pods, their sums, quality of service.

Upstream: pkg/apis/core/validation, pkg/api/pod/util.go.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.field_errors import ErrorType, FieldError
from konverge.apiserver.kinds.core.resource_names import (
    container_resource_name,
    is_huge_page,
    is_huge_page_multiple,
    may_overcommit,
    pod_resource_name,
    resource_amount,
)
from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.apiserver.kinds.rules.names import dns_label
from konverge.apiserver.kinds.rules.quantities import added, amount, largest, shown


# upstream: validateResourceRequirements
def _against_limit(name: str, value: Any, limits: dict[str, Any], path: str, report: Report) -> None:
    if name not in limits:
        if not may_overcommit(name):
            report.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    limit, asked = limits[name], amount(value)
    if asked != amount(limit) and not may_overcommit(name):
        report.invalid(f"{path}.requests", shown(value), f"must be equal to {name} limit of {shown(limit)}")
    elif asked > amount(limit):
        detail = f"must be less than or equal to {name} limit of {shown(limit)}"
        report.invalid(f"{path}.requests", shown(value), detail)


# upstream: validateResourceRequirements, validateResourceQuantityHugePageValue
def _requirements(name_rule: Rule) -> Rule:
    def check(value: Any, path: str, report: Report) -> bool:
        limits, requests = value.get("limits") or {}, value.get("requests") or {}
        for which, amounts in (("limits", limits), ("requests", requests)):
            for name in sorted(amounts):
                place, asked = f"{path}.{which}[{name}]", amounts[name]
                name_rule(name, place, report)
                resource_amount(name, asked, place, report)
                if which == "requests":
                    _against_limit(name, asked, limits, path, report)
                if is_huge_page(name) and not is_huge_page_multiple(name, asked):
                    report.invalid(place, shown(asked), f"{shown(asked)} is not positive integer multiple of {name}")
        _pages_need_company(limits, requests, path, report)
        if value.get("claims"):
            _claims(value["claims"], f"{path}.claims", report)
        return True

    return check


# upstream: validateResourceRequirements
def _pages_need_company(limits: dict[str, Any], requests: dict[str, Any], path: str, report: Report) -> None:
    names = {*limits, *requests}
    if any(is_huge_page(name) for name in names) and not names & {"cpu", "memory"}:
        report.forbidden(path, "HugePages require cpu or memory")


def _claims(claims: list[dict[str, Any]], path: str, report: Report) -> None:  # upstream: validateResourceClaimNames
    known: frozenset[str] = report.scope.claims
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            report.required(place)
            continue
        _claim_once(claim, name, seen, place, report)
        if name not in known:
            listed = ": " + ", ".join(sorted(known)) if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            report.add(FieldError(ErrorType.NOT_FOUND, place, name, detail))


# upstream: validateResourceClaimNames
def _claim_once(claim: dict[str, Any], name: str, seen: set[str], place: str, report: Report) -> None:
    if name in seen:
        report.duplicate(place, name)
        return
    key, request = name, claim.get("request")
    if request:
        dns_label(request, f"{place}.request", report)
        key = f"{name}/{request}"
    if key in seen:
        report.duplicate(place, key)
    elif not request:
        for other in sorted(seen):
            if other.startswith(f"{name}/"):
                report.duplicate(place, name)
    seen.add(key)


container_requirements = _requirements(container_resource_name)  # upstream: ValidateContainerResourceRequirements
pod_requirements = _requirements(pod_resource_name)  # upstream: validatePodResourceRequirements


def overhead(value: Any, path: str, report: Report) -> bool:  # upstream: validateOverhead
    """The overhead of a RuntimeClass or pod counts as limits."""
    return container_requirements({"limits": value}, path, report)


Amounts = dict[str, str]


def _is_pod_level(name: str) -> bool:  # upstream: IsSupportedPodLevelResource (component-helpers/resource)
    return name in ("cpu", "memory") or is_huge_page(name)


def _of(container: dict[str, Any], which: str) -> dict[str, Any]:
    return (container.get("resources") or {}).get(which) or {}


# upstream: AggregateContainerRequests (component-helpers/resource)
def total_of_containers(spec: dict[str, Any], which: str) -> Amounts:
    """What the containers need at the same time at most; init containers run one after the other."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = added(total, _of(container, which))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _of(container, which)
        if container.get("restartPolicy") == "Always":
            total, sidecars = added(total, own), added(sidecars, own)
            own = sidecars
        else:
            own = added(own, sidecars)
        peak = largest(peak, own)
    return largest(total, peak)


def default_pod_level(spec: dict[str, Any]) -> None:  # upstream: DefaultPodLevelResources (pkg/api/pod)
    """A pod with resources of its own gets the missing ones from its containers, or from its limits."""
    resources = spec.get("resources")
    if not resources or not (resources.get("limits") or resources.get("requests")):
        return
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    for name, value in total_of_containers(spec, "limits").items():
        if is_huge_page(name) and name not in requests:
            limits.setdefault(name, value)
    for name, value in total_of_containers(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, value)
    for name, value in limits.items():
        if _is_pod_level(name):
            requests.setdefault(name, value)
    limits.update(_limits_from_containers(spec, requests, limits))
    resources.update({name: amounts for name, amounts in (("limits", limits), ("requests", requests)) if amounts})


# upstream: defaultPodLevelLimits (pkg/api/pod)
def _limits_from_containers(spec: dict[str, Any], requests: Amounts, limits: Amounts) -> Amounts:
    """Where all containers have a limit, the pod has one too: theirs together, but not below its request."""
    holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    total = total_of_containers(spec, "limits")
    return {
        name: requests[name] if amount(requests[name]) > amount(total[name]) else total[name]
        for name in requests
        if name not in limits and _is_pod_level(name) and all(name in _of(holder, "limits") for holder in holders)
    }


def pod_resources(spec: Any, path: str, report: Report) -> bool:  # upstream: validatePodResources
    """spec.resources against the containers."""
    resources, place = spec.get("resources"), f"{path}.resources"
    if not resources:
        return True
    if (spec.get("os") or {}).get("name") == "windows":
        return report.forbidden(place, "may not be set for a windows pod")
    if resources.get("claims"):
        report.forbidden(f"{place}.claims", "claims may not be set for Resources at pod-level")
    pod_requirements(resources, place, report)
    _at_least(resources.get("requests"), total_of_containers(spec, "requests"), f"{place}.requests", "requests", report)
    pages = {name: value for name, value in total_of_containers(spec, "limits").items() if is_huge_page(name)}
    _at_least(resources.get("limits"), pages, f"{place}.limits", "limits", report)
    _containers_within(spec, resources.get("limits") or {}, place, report)
    return True


# upstream: validatePodResourceConsistency
def _at_least(of_pod: dict[str, Any] | None, total: Amounts, path: str, noun: str, report: Report) -> None:
    for name in sorted(total):
        if of_pod and name in of_pod and amount(total[name]) > amount(of_pod[name]):
            detail = f"must be greater than or equal to aggregate container {noun} of {total[name]}"
            report.invalid(f"{path}[{name}]", shown(of_pod[name]), detail)


# upstream: validatePodResourceConsistency
def _containers_within(spec: dict[str, Any], limits: dict[str, Any], path: str, report: Report) -> None:
    for index, container in enumerate(spec.get("containers") or ()):
        own = _of(container, "limits")
        for name in sorted(own):
            if name in limits and amount(own[name]) > amount(limits[name]):
                detail = f"must be less than or equal to pod limits of {shown(limits[name])}"
                report.invalid(f"{path}.containers[{index}][{name}].limits", shown(own[name]), detail)


def quality_of_service(spec: dict[str, Any]) -> str:  # upstream: ComputePodQOS (pkg/apis/core/helper/qos)
    """Guaranteed, Burstable or BestEffort: what all containers agree on, else Burstable."""
    of_pod = spec.get("resources") or {}
    if any(_is_pod_level(name) for which in ("requests", "limits") for name in of_pod.get(which) or ()):
        return _quality(of_pod)
    holders = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    classes = {_quality(holder.get("resources") or {}) for holder in holders} or {"BestEffort"}
    return classes.pop() if len(classes) == 1 else "Burstable"


def _quality(resources: dict[str, Any]) -> str:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    if not requests and not limits:
        return "BestEffort"
    asked = [amount(requests.get(name)) for name in ("cpu", "memory")]
    if asked != [amount(limits.get(name)) for name in ("cpu", "memory")]:
        return "Burstable"
    if all(asked):
        return "Guaranteed"
    return "Burstable" if any(asked) else "BestEffort"
