"""LimitRanger: defaults and bounds of resources by the LimitRanges of a namespace.

Upstream: plugin/pkg/admission/limitranger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from konverge.apiserver.admission.plugin import Kind, Step, refusal, spec_of
from konverge.apiserver.field_errors import aggregate
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.amounts import Amounts, amounts, asked_by_pod
from konverge.objects.quantity import Quantity, QuantityError

_ANNOTATION = "kubernetes.io/limit-ranger"

Constraint = Callable[[str, str, Quantity, Amounts, Amounts], str]
"""(type, resource, bound, requests, limits) -> what is wrong, or nothing."""


class LimitRanger:
    def admit(self, kind: Kind) -> Step | None:
        return _default if _is_pod_write(kind) else None

    def validate(self, kind: Kind) -> Step | None:
        if _is_pod_write(kind):
            return _check_pod
        return _check_claim if kind.writes("", "persistentvolumeclaims", "CREATE", "UPDATE") else None


def _is_pod_write(kind: Kind) -> bool:
    """Pods are looked at when they are created and when they are resized: nothing else changes their resources."""
    return kind.writes("", "pods", "CREATE") or kind.writes("", "pods", "UPDATE", subresource="resize")


def _limits(request: AdmissionRequest) -> Iterator[list[Obj]]:
    """The limits of each LimitRange of the namespace; none for an object that is being deleted."""
    if request.old is not None and request.old["metadata"].get("deletionTimestamp"):
        return
    for limit_range in request.call.scan("", "limitranges", request.namespace):
        yield (limit_range.get("spec") or {}).get("limits") or []


# --- defaults


def _default(request: AdmissionRequest) -> None:
    """Upstream: PodMutateLimitFunc, defaultContainerResourceRequirements."""
    for limits in _limits(request):
        requests: Obj = {}
        bounds: Obj = {}
        for limit in limits:
            if limit.get("type") == "Container":
                requests |= limit.get("defaultRequest") or {}
                bounds |= limit.get("default") or {}
        _fill(request.new, requests, bounds)


def _fill(pod: Obj, requests: Obj, limits: Obj) -> None:
    """Upstream: mergePodResourceRequirements."""
    changes: list[str] = []
    for key, label in (("containers", "container"), ("initContainers", "init container")):
        for container in spec_of(pod).get(key) or ():
            resources = container["resources"] = container.get("resources") or {}
            for part, defaults, name in (("requests", requests, "request"), ("limits", limits, "limit")):
                given = resources.get(part) or {}
                added = sorted(defaults.keys() - given.keys())
                if added:
                    resources[part] = {**given, **{resource: defaults[resource] for resource in added}}
                    changes.append(f"{', '.join(added)} {name} for {label} {container.get('name', '')}")
    if changes:
        metadata = pod["metadata"]
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            _ANNOTATION: "LimitRanger plugin set: " + "; ".join(changes),
        }


# --- bounds


def _check_pod(request: AdmissionRequest) -> None:
    """Upstream: PodValidateLimitFunc."""
    spec = spec_of(request.new)
    for limits in _limits(request):
        problems: list[str] = []
        for limit in limits:
            if limit.get("type") == "Container":
                for key in ("containers", "initContainers"):
                    for container in spec.get(key) or ():
                        resources = container.get("resources") or {}
                        requests, bounds = amounts(resources.get("requests")), amounts(resources.get("limits"))
                        problems += _violations(limit, requests, bounds)
            elif limit.get("type") == "Pod":
                problems += _violations(limit, asked_by_pod(spec, "requests"), asked_by_pod(spec, "limits"))
        if problems:
            raise refusal(request, aggregate(problems))


def _check_claim(request: AdmissionRequest) -> None:
    """Upstream: PersistentVolumeClaimValidateLimitFunc."""
    requests = amounts((spec_of(request.new).get("resources") or {}).get("requests"))
    for limits in _limits(request):
        problems: list[str] = []
        for limit in limits:
            if limit.get("type") == "PersistentVolumeClaim":
                problems += _failing(limit, "min", _minimum, requests, {})
                problems += _failing(limit, "max", _maximum_request, requests, {})
        if problems:
            raise refusal(request, aggregate(problems))


def _violations(limit: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _failing(limit, "min", _minimum, requests, limits)
    yield from _failing(limit, "max", _maximum, requests, limits)
    yield from _failing(limit, "maxLimitRequestRatio", _ratio, requests, limits)


def _failing(limit: Obj, part: str, check: Constraint, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for resource, bound in sorted(amounts(limit.get(part)).items()):
        problem = check(limit.get("type", ""), resource, bound, requests, limits)
        if problem:
            yield problem


def _minimum(kind: str, resource: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    """Upstream: minConstraint."""
    head, asked = f"minimum {resource} usage per {kind} is {bound}", {"request": requests, "limit": limits}
    return _outside(head, resource, asked, lambda amount: amount < bound)


def _maximum(kind: str, resource: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    """Upstream: maxConstraint."""
    head, asked = f"maximum {resource} usage per {kind} is {bound}", {"limit": limits, "request": requests}
    return _outside(head, resource, asked, lambda amount: amount > bound)


def _maximum_request(kind: str, resource: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    """Upstream: maxRequestConstraint."""
    head = f"maximum {resource} usage per {kind} is {bound}"
    return _outside(head, resource, {"request": requests}, lambda amount: amount > bound)


def _outside(head: str, resource: str, asked: dict[str, Amounts], outside: Callable[[Quantity], bool]) -> str:
    """The first amount that is out of bounds; the first of `asked` must be given."""
    first = next(iter(asked))
    if resource not in asked[first]:
        return f"{head}.  No {first} is specified"
    wrong = (f"{head}, but {label} is {given[resource]}" for label, given in asked.items()
             if resource in given and outside(given[resource]))  # fmt: skip
    return next(wrong, "")


def _ratio(kind: str, resource: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    """Upstream: limitRequestRatioConstraint."""
    head = f"{resource} max limit to request ratio per {kind} is {bound}"
    for amounts_given, label in ((requests, "request"), (limits, "limit")):
        if not amounts_given.get(resource):
            return f"{head}, but no {label} is specified or {label} is 0"
    request, limit = requests[resource], limits[resource]
    try:
        ratio = limit.milli / request.milli
        wrong = ratio * 1000 > float(bound.milli)
    except (OverflowError, QuantityError):  # beyond floats; those are what the real server compares
        ratio, wrong = math.inf, limit.exceeds(bound, request)
    return f"{head}, but provided ratio is {_shown(ratio)}" if wrong else ""


def _shown(ratio: float) -> str:
    return "+Inf" if math.isinf(ratio) else f"{ratio:f}"
