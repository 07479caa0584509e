"""The status of a ResourceClaim: which devices it was given, who uses them, what their drivers report."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.pod.scheduling import node_selector
from konverge.apiserver.kinds.framework.declare import Report, field, items, required, section, struct, text
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept
from konverge.apiserver.kinds.resource.devices import (
    MOST_CONFIGURATIONS,
    TOLERATIONS,
    binding_conditions,
    configuration,
    driver_name,
    json_object,
    pool_name,
    up_to,
)
from konverge.apiserver.kinds.resource.request_names import REFERENCES, reference, requests_of
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.defaults import each
from konverge.apiserver.kinds.rules.names import dns_label
from konverge.apiserver.kinds.rules.network import interface_address
from konverge.apiserver.strategy import Context, Obj

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
    allocation = status.get("allocation") or {}
    return {_device(result) for result in each(allocation.get("devices") or {}, "results")}


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


def _few_conditions(value: Any, path: str, report: Report) -> bool:
    return len(value) <= MOST_CONDITIONS or report.too_many(path, len(value), MOST_CONDITIONS)


def _is_allocated(value: Any, path: str, report: Report) -> bool:
    device = _device(value)
    shown = {name[0].upper() + name[1:]: part for name, part in zip(_IDENTITY, device, strict=True)}
    return device in report.scope or report.invalid(path, shown, "must be an allocated device in the claim")


_DEVICE = struct(
    text("driver", driver_name),
    text("pool", pool_name),
    text("device", dns_label),
    _is_allocated,
    field("conditions", _few_conditions),
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
