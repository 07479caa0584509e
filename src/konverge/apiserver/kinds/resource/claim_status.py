"""The status of a ResourceClaim: which devices it was given, who uses them, what their drivers report."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.pod.scheduling import node_selector
from konverge.apiserver.kinds.framework.declare import Report, at_most, field, items, required, section, struct, text
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept
from konverge.apiserver.kinds.resource.devices import (
    MOST_CONFIGURATIONS,
    REFERENCES,
    TOLERATIONS,
    binding_conditions,
    configuration,
    driver_name,
    json_object,
    pool_name,
    reference,
    requests_of,
    up_to,
)
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.defaults import each
from konverge.apiserver.kinds.rules.names import dns_label
from konverge.apiserver.kinds.rules.network import interface_address
from konverge.apiserver.strategy import Context, Obj

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_NODE_OF_ACCOUNT = "authentication.kubernetes.io/node-name"


def requested_admin_access(spec: Obj, obj: Obj, report: Report) -> bool:
    """Upstream: AuthorizedForAdmin, which names the same path for claims and templates."""
    for index, request in enumerate(each(spec.get("devices") or {}, "requests")):
        if (request.get("exactly") or {}).get("adminAccess"):
            return _in_admin_namespace(obj, f"spec.devices.requests[{index}].adminAccess", report)
    return True


def allocated_admin_access(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """Upstream: AuthorizedForAdminStatus."""
    if any(result.get("adminAccess") for result in results_of(old)):
        return True
    for index, result in enumerate(results_of(new)):
        if result.get("adminAccess"):
            return _in_admin_namespace(new, f"status.allocation.devices.results[{index}].adminAccess", report)
    return True


def results_of(claim: Obj) -> list[Obj]:
    """The devices that a claim was given."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _in_admin_namespace(obj: Obj, path: str, report: Report) -> bool:
    """Access to devices in use is for namespaces that are labelled for it."""
    assert report.context is not None
    namespace = report.context.lookup("", "namespaces", "", obj["metadata"].get("namespace") or "") or {}
    allowed = ((namespace.get("metadata") or {}).get("labels") or {}).get(ADMIN_LABEL) == "true"
    detail = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
    return allowed or report.forbidden(path, detail)


def may_bind(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """Who allocates or reserves needs a permission for all claims. Upstream: AuthorizedForBinding."""
    context, status, before = report.context, new.get("status") or {}, old.get("status") or {}
    if context is None or all(status.get(name) == before.get(name) for name in ("allocation", "reservedFor")):
        return True
    refusal = context.refusal(context.verb, "binding", "", "")
    detail = (
        "changing status.allocation or status.reservedFor requires "
        f'resource="resourceclaims/binding", verb="{context.verb}" permission: {refusal}'
    )
    return not refusal or report.forbidden("status.allocation", detail)


def may_report_devices(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """Who reports on devices needs a permission for their driver. Upstream: AuthorizedForDeviceStatus."""
    context, status = report.context, new.get("status") or {}
    if context is None or status.get("allocation") is None:
        return True
    verbs = [f"arbitrary-node:{context.verb}"]
    if _is_on_node(context, _allocated_node(status["allocation"])):
        verbs.insert(0, f"associated-node:{context.verb}")
    for driver in sorted(_drivers_of_changes(status, old.get("status") or {})):
        refusals = [context.refusal(verb, "driver", context.namespace, driver) for verb in verbs]
        if all(refusals):
            needed = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]"'
            detail = f"changing status.devices requires {needed} permission: {refusals[0]}"
            report.forbidden("status.devices", detail)
    return True


def _drivers_of_changes(status: Obj, before: Obj) -> set[str]:
    """The drivers of the devices whose reports were added, changed or removed."""
    new, old = (list(each(obj, "devices")) for obj in (status, before))
    changed = [device for device in new if device not in old] + [device for device in old if device not in new]
    return {device.get("driver") or "" for device in changed}


def _allocated_node(allocation: Obj) -> str:
    """The node that all devices are on, if there is only one."""
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    fields = (terms[0].get("matchFields") or []) if len(terms) == 1 and not terms[0].get("matchExpressions") else []
    if len(fields) != 1 or fields[0].get("key") != "metadata.name" or fields[0].get("operator") != "In":
        return ""
    values: list[str] = fields[0].get("values") or []
    return values[0] if len(values) == 1 else ""


def _is_on_node(context: Context, node: str) -> bool:
    """Whether the caller is a service account whose pod runs on the node."""
    is_account = context.username.startswith("system:serviceaccount:") and context.username.count(":") == 3
    return bool(node) and is_account and list(context.user_extra.get(_NODE_OF_ACCOUNT) or ()) == [node]


MOST_CONSUMERS = 256
MOST_RESULTS = 32
MOST_CONDITIONS = 8
MOST_ADDRESSES = 16


_IDENTITY = ("driver", "pool", "device", "shareID")


# --- preparation


def _device(entry: Obj) -> tuple[str, ...]:
    """The identity of a device. Upstream: SharedDeviceID (k8s.io/dynamic-resource-allocation/structured)."""
    return tuple(entry.get(name) or "" for name in _IDENTITY)


def _allocated(status: Obj) -> set[tuple[str, ...]]:
    return {_device(result) for result in results_of({"status": status})}


def prepare_status(obj: Obj, old: Obj, context: Context) -> None:
    """Upstream: resourceclaimStatusStrategy.PrepareForUpdate."""
    metadata_kept(obj, old, context)
    status = obj.get("status") or {}
    for result in each((status.get("allocation") or {}).get("devices") or {}, "results"):
        result.pop("skipNodeOperations", None)
    freed = _allocated(old.get("status") or {}) - _allocated(status)
    if "devices" in status:
        status["devices"] = [device for device in each(status, "devices") if _device(device) not in freed]
        if not status["devices"]:
            del status["devices"]


# --- rules

_CONSUMER = struct(text("resource", required), text("name", required), text("uid", required))
_RESULT = struct(
    text("request", reference),
    text("device", dns_label),
    binding_conditions,
    TOLERATIONS,
)
_ALLOCATION = struct(
    section(
        "devices",
        field("results", up_to(MOST_RESULTS, _RESULT)),
        field("config", up_to(2 * MOST_CONFIGURATIONS, struct(REFERENCES, configuration))),
    ),
    field("nodeSelector", node_selector),
)


def _is_allocated(value: Any, path: str, report: Report) -> bool:
    device = _device(value)
    shown = {name[0].upper() + name[1:]: part for name, part in zip(_IDENTITY, device, strict=True)}
    return device in report.scope or report.invalid(path, shown, "must be an allocated device in the claim")


_DEVICE = struct(
    text("driver", driver_name),
    text("pool", pool_name),
    text("device", dns_label),
    _is_allocated,
    field("conditions", at_most(MOST_CONDITIONS)),
    field("conditions", conditions),
    field("data", json_object),
    field("networkData", struct(field("ips", up_to(MOST_ADDRESSES, interface_address)))),
)


def claim_status(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """Upstream: validateResourceClaimStatusUpdate."""
    status, before = new.get("status") or {}, old.get("status") or {}
    consumers, allocation = status.get("reservedFor") or [], status.get("allocation")
    up_to(MOST_CONSUMERS, _CONSUMER)(consumers, "status.reservedFor", report)
    report.scope = _allocated(status)
    items(_DEVICE)(status.get("devices"), "status.devices", report)
    if consumers and allocation is None:
        report.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif new["metadata"].get("deletionTimestamp"):
        known = before.get("reservedFor") or []
        if any(consumer not in known for consumer in consumers):
            detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            report.forbidden("status.reservedFor", detail)
    if allocation is not None and before.get("allocation") is None:
        report.scope = requests_of((new.get("spec") or {}).get("devices") or {})
        _ALLOCATION(allocation, "status.allocation", report)
    return True
