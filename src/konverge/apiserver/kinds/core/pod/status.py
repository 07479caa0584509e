"""The status of a pod: what the kubelet and the scheduler may write.

Upstream: pkg/registry/core/pod/strategy.go, pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.field_errors import ErrorType, FieldError
from konverge.apiserver.go.netip import parse_ip_sloppy
from konverge.apiserver.kinds.core.pod.annotations import annotation_changes, pod_annotations
from konverge.apiserver.kinds.framework.declare import IMMUTABLE, Report, field, items, struct
from konverge.apiserver.kinds.rules.defaults import take
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain, qualified_name
from konverge.apiserver.kinds.rules.network import ip_legacy, ip_warnings
from konverge.apiserver.kinds.rules.numbers import group_id, within
from konverge.apiserver.kinds.rules.quantities import amount
from konverge.apiserver.strategy import Context, Obj

Status = dict[str, Any]

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")


def prepare_status(pod: Obj, old: Obj, context: Context) -> None:  # upstream: podStatusStrategy.PrepareForUpdate
    """Fields that an older kubelet does not know are kept; it may not change owners."""
    take(pod["metadata"], old["metadata"], "ownerReferences")
    status, was = pod["status"], old["status"]
    kept = ("qosClass", "resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")
    for name in (*kept, "observedGeneration"):
        if not status.get(name) and was.get(name):
            status[name] = was[name]
    generations: dict[Any, list[int]] = {}
    for condition in was.get("conditions") or ():
        generations.setdefault(condition.get("type"), []).append(condition.get("observedGeneration") or 0)
    for condition in status.get("conditions") or ():
        listed = generations.get(condition.get("type"))
        generation = listed.pop(0) if listed else 0
        if not condition.get("observedGeneration") and generation:
            condition["observedGeneration"] = generation


def check_pod_status(new: Obj, old: Obj, report: Report) -> None:  # upstream: ValidatePodStatusUpdate
    now, before = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    annotation_changes(now, before, "metadata.annotations", report)
    pod_annotations(now, new["spec"], "metadata.annotations", report)
    status, was = new["status"], old["status"]
    _conditions(status, report)
    _nomination(status, was, old["spec"], report)
    if (status.get("observedGeneration") or 0) < 0:
        generation = status["observedGeneration"]
        report.invalid("status.observedGeneration", generation, "must be a non-negative integer")
    if status.get("qosClass", "") != was.get("qosClass", ""):
        report.invalid("status.qosClass", status.get("qosClass", ""), IMMUTABLE)
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        _transitions(status.get(kind) or (), was.get(kind) or (), kind, old["spec"], report)
    _claims(status, new["spec"], report)
    _addresses(status, was, "podIP", "podIPs", report)
    _addresses(status, was, "hostIP", "hostIPs", report)
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        _users(status.get(kind) or (), f"status.{kind}", new["spec"], report)
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        check_devices(status, kind, new["spec"], report)


def _conditions(status: Status, report: Report) -> None:  # upstream: validatePodConditions
    for index, condition in enumerate(status.get("conditions") or ()):
        place, kind = f"status.conditions[{index}]", condition.get("type") or ""
        generation = condition.get("observedGeneration") or 0
        if generation < 0:
            report.invalid(f"{place}.observedGeneration", generation, "must be a non-negative integer")
        if kind not in _SYSTEM_CONDITIONS:
            qualified_name(kind, f"{place}.Type", report)


# upstream: ValidatePodStatusUpdate
def _nomination(status: Status, was: Status, spec: dict[str, Any], report: Report) -> None:
    node, path = status.get("nominatedNodeName"), "status.nominatedNodeName"
    if not node or node == was.get("nominatedNodeName"):
        return
    dns_subdomain(node, path, report)
    if spec.get("nodeName"):
        report.forbidden(path, "may not be set on pods that are already bound to a node")


# upstream: ValidateContainerStateTransition, ValidateEphemeralContainerStateTransition
def _transitions(new: Any, old: Any, kind: str, spec: dict[str, Any], report: Report) -> None:
    """A container that has ended starts again only if its restart policy allows it."""
    if kind != "ephemeralContainerStatuses" and _all_could_restart(spec):
        return
    now = {status.get("name"): status for status in new}
    for index, status in enumerate(old):
        ended = (status.get("state") or {}).get("terminated")
        name = status.get("name")
        if ended is None or name not in now or (now[name].get("state") or {}).get("terminated") is not None:
            continue
        if not _may_restart(name, kind, spec, ended.get("exitCode") or 0):
            report.forbidden(f"status.{kind}[{index}].state", "may not be transitioned to non-terminated state")


_LISTS = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}


def _may_restart(name: str | None, kind: str, spec: dict[str, Any], code: int) -> bool:
    for container in spec.get(_LISTS.get(kind, "")) or ():
        if container.get("name") == name:
            return _restarts(container, spec, code)
    return False


def _all_could_restart(spec: dict[str, Any]) -> bool:  # upstream: AllContainersCouldRestart
    return any(
        rule.get("action") == "RestartAllContainers"
        for kind in ("containers", "initContainers")
        for container in spec.get(kind) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _restarts(container: dict[str, Any], spec: dict[str, Any], code: int) -> bool:  # upstream: ContainerShouldRestart
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = code in (codes.get("values") or ())
        if rule.get("action") == "Restart" and listed == (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _claims(status: Status, spec: dict[str, Any], report: Report) -> None:  # upstream: validatePodResourceClaimStatuses
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        place, name = f"status.resourceClaimStatuses[{index}]", claim.get("name") or ""
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            report.invalid(f"{place}.name", name, detail)
        if name in seen:
            report.duplicate(f"{place}.name", name)
        seen.add(name)
        if claim.get("resourceClaimName") is not None:
            dns_subdomain(claim["resourceClaimName"], f"{place}.resourceClaimName", report)
    extended = status.get("extendedResourceClaimStatus")
    if extended is not None:
        _extended_claim(extended, "status.extendedResourceClaimStatus", report)


# upstream: validatePodExtendedResourceClaimStatus
def _extended_claim(claim: dict[str, Any], path: str, report: Report) -> None:
    if not claim.get("requestMappings"):
        report.required(f"{path}.requestMappings", "at least one request mapping is required")
    for index, mapping in enumerate(claim.get("requestMappings") or ()):
        dns_label(mapping.get("requestName") or "", f"{path}.requestMappings[{index}].requestName", report)
    if not claim.get("resourceClaimName"):
        report.required(f"{path}.resourceClaimName")
    else:
        dns_subdomain(claim["resourceClaimName"], f"{path}.resourceClaimName", report)


# upstream: validatePodIPs, validateHostIPs
def _addresses(status: Status, was: Status, singular: str, plural: str, report: Report) -> None:
    """podIP and podIPs, hostIP and hostIPs: one address per family, the first of which is the single one."""
    listed, path = status.get(plural) or [], f"status.{plural}"
    first = listed[0].get("ip", "") if listed else ""
    if plural == "hostIPs" and listed and status.get(singular, "") != first:
        report.invalid(f"{path}[0].ip", first, f"must be equal to `{singular}`")
    stored = {entry.get("ip") for entry in was.get(plural) or ()}
    for index, entry in enumerate(listed):
        if entry.get("ip") not in stored:
            ip_legacy(entry.get("ip") or "", f"{path}[{index}]", report)
    parsed = [parse_ip_sloppy(entry.get("ip") or "") for entry in listed]
    if len(listed) > 1 and None in parsed:
        wrong = parsed.index(None)
        detail = f"failed to check for dual stack with error:invalid IP[{wrong}]: {listed[wrong].get('ip', '')}"
        report.add(FieldError(ErrorType.INTERNAL, path, None, detail))
    families = {address.version for address in parsed if address}
    if len(listed) > 1 and (len(listed) > 2 or len(families) < 2):
        shown = [{"IP": entry.get("ip", "")} for entry in listed]
        report.invalid(path, shown, "may specify no more than one IP for each IP family")


# upstream: validateContainerStatusUsers
def _users(statuses: Any, path: str, spec: dict[str, Any], report: Report) -> None:
    windows = (spec.get("os") or {}).get("name") == "windows"
    for index, status in enumerate(statuses):
        user, place = (status.get("user") or {}).get("linux"), f"{path}[{index}].user.linux"
        if user is None:
            continue
        if windows:
            report.forbidden(place, "cannot be set for a windows pod")
        else:
            _USER(user, place, report)


_USER = struct(  # upstream: validateContainerStatusUsers
    field("uid", within(0, 2**32 - 1)),
    field("gid", group_id),
    field("supplementalGroups", items(group_id)),
)


def status_warnings(pod: Obj) -> list[str]:  # upstream: podStatusStrategy.WarningsOnUpdate
    """Addresses that are not in canonical form."""
    return [
        warning
        for many in ("podIPs", "hostIPs")
        for index, entry in enumerate(pod["status"].get(many) or ())
        for warning in ip_warnings(f"status.{many}[{index}].ip", entry.get("ip") or "")
    ]


_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MESSAGE_LIMIT = 2048
_CLAIMED = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "
    "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)


# upstream: validateContainerStatusAllocatedResourcesStatus
def check_devices(status: dict[str, Any], kind: str, spec: dict[str, Any], report: Report) -> None:
    """The devices in one list of container statuses; ephemeral containers have none."""
    containers = {each.get("name"): each for each in spec.get(_LISTS.get(kind, "")) or ()}
    for index, container_status in enumerate(status.get(kind) or ()):
        listed, path = container_status.get("allocatedResourcesStatus") or (), f"status.{kind}[{index}]"
        if listed and kind not in _LISTS:
            report.forbidden(f"{path}.allocatedResourcesStatus", "must not be specified in container status")
            continue
        container = containers.get(container_status.get("name"))
        for at, entry in enumerate(listed):
            place = f"{path}.allocatedResourcesStatus[{at}]"
            if container is not None:
                _known(entry.get("name") or "", container, status, f"{place}.name", report)
            _health(entry.get("resources") or (), f"{place}.resources", report)


# upstream: validateContainerStatusAllocatedResourcesStatus
def _known(name: str, container: dict[str, Any], status: dict[str, Any], path: str, report: Report) -> bool:
    resources = container.get("resources") or {}
    if not name.startswith("claim:"):
        detail = "must match one of the container's resource requests"
        return name in (resources.get("requests") or {}) or report.invalid(path, name, detail)
    claims = {_claim_name(claim) for claim in resources.get("claims") or ()}
    return name in claims or _extended(name, container, status) or report.invalid(path, name, _CLAIMED)


def _claim_name(claim: dict[str, Any]) -> str:  # upstream: resourceStatusName
    request = f"/{claim['request']}" if claim.get("request") else ""
    return f"claim:{claim.get('name') or ''}{request}"


# upstream: matchesExtendedResourceClaimStatus
def _extended(name: str, container: dict[str, Any], status: dict[str, Any]) -> bool:
    """A claim that the scheduler made for extended resources."""
    claim = status.get("extendedResourceClaimStatus") or {}
    own, _, request = name.removeprefix("claim:").partition("/")
    if not request or own != claim.get("resourceClaimName"):
        return False
    requests = (container.get("resources") or {}).get("requests") or {}
    return any(
        mapping.get("containerName") == container.get("name")
        and mapping.get("requestName") == request
        and amount(requests.get(mapping.get("resourceName"))) != 0
        for mapping in claim.get("requestMappings") or ()
    )


# upstream: validateContainerStatusAllocatedResourcesStatus
def _health(devices: Any, path: str, report: Report) -> None:
    seen: set[str] = set()
    for index, device in enumerate(devices):
        place, health, message = f"{path}[{index}]", device.get("health") or "", device.get("message")
        if health not in _HEALTH:
            report.not_supported(f"{place}.health", health, _HEALTH)
        if message == "":
            report.required(f"{place}.message", "must be non-empty if specified")
        elif message is not None and len(message.encode()) > _MESSAGE_LIMIT:
            report.too_long(f"{place}.message", _MESSAGE_LIMIT)
        identity = device.get("resourceID") or ""
        if identity in seen:
            report.duplicate(f"{place}.resourceID", identity)
        seen.add(identity)
