"""The health of the devices that a container got (`allocatedResourcesStatus`)."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.quantities import amount

_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MESSAGE_LIMIT = 2048
_CLAIMED = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "
    "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)
_LISTS = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}


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


def _known(name: str, container: dict[str, Any], status: dict[str, Any], path: str, report: Report) -> bool:
    resources = container.get("resources") or {}
    if not name.startswith("claim:"):
        detail = "must match one of the container's resource requests"
        return name in (resources.get("requests") or {}) or report.invalid(path, name, detail)
    claims = {_claim_name(claim) for claim in resources.get("claims") or ()}
    return name in claims or _extended(name, container, status) or report.invalid(path, name, _CLAIMED)


def _claim_name(claim: dict[str, Any]) -> str:
    request = f"/{claim['request']}" if claim.get("request") else ""
    return f"claim:{claim.get('name') or ''}{request}"


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
