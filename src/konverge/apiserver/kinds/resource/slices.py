"""ResourceSlice: the devices that a driver offers, on one node or on several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.kinds.core.pod.scheduling import node_selector
from konverge.apiserver.kinds.core.volume.sources import csi_driver_name
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Transition,
    as_created,
    creation,
    entries,
    field,
    items,
    number,
    required,
    section,
    struct,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.resource.devices import attribute_name, pool_name
from konverge.apiserver.kinds.rules.defaults import each
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain
from konverge.apiserver.kinds.rules.numbers import NOT_POSITIVE, at_least
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Obj, Strategy

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_MOST_DEVICES = 128
_MOST_ATTRIBUTES = 32
_VALUES = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")


def _defaults(obj: Obj) -> None:
    for device in each(obj.get("spec") or {}, "devices"):
        for taint in each(device, "taints"):
            if taint.get("timeAdded") is None:
                taint["timeAdded"] = timestamp()


_POOL = section(
    "pool",
    text("name", required, pool_name),
    number("resourceSliceCount", at_least(1, NOT_POSITIVE)),
    number("generation", at_least(0, "must be greater than or equal to zero")),
)


def _placed(spec: Any, path: str, report: Report) -> bool:
    """Where the devices are: in exactly one way."""
    name = spec.get("nodeName")
    if name:
        dns_subdomain(name, f"{path}.nodeName", report)
    elif name is not None:
        report.invalid(f"{path}.nodeName", name, "must be either unset or set to a non-empty string")
    if spec.get("nodeSelector") is not None:
        _one_term(spec["nodeSelector"], f"{path}.nodeSelector", report)
    for flag in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(flag) is False:
            report.invalid(f"{path}.{flag}", False, "must be either unset or set to true")
    chosen = [f"`{place}`" for place in _PLACES if spec.get(place) not in (None, False, "")]
    words = f"exactly one of {', '.join(f'`{place}`' for place in _PLACES)} is required"
    if not chosen:
        return report.required(path, words)
    shown = f"{{{', '.join(chosen)}}}"
    return len(chosen) == 1 or report.invalid(path, shown, f"{words}, but multiple fields are set")


def _one_term(value: Any, path: str, report: Report) -> bool:
    node_selector(value, path, report)
    terms = value.get("nodeSelectorTerms") or []
    words = "must have exactly one node selector term"
    return len(terms) == 1 or report.invalid(f"{path}.nodeSelectorTerms", terms, words)


def _attributes(device: Any, path: str, report: Report) -> bool:
    for name, value in sorted((device.get("attributes") or {}).items()):
        attribute_name(name, f"{path}.attributes", report)
        text_of = value.get("string")
        if text_of is not None and len(text_of) > 64:
            report.too_long(f"{path}.attributes[{name}].string", 64)
    return True


def _one_value(value: Any, path: str, report: Report) -> bool:
    """Reported last, as the generated rules of the real server are."""
    found = [kind for kind in _VALUES if value.get(kind) is not None]
    known = ", ".join(f"`{kind}`" for kind in _VALUES)
    if not found:
        return report.invalid(path, "", f"must specify one of: {known}")
    return len(found) == 1 or report.invalid(path, f"{{{', '.join(found)}}}", f"must specify exactly one of: {known}")


def _few_attributes(device: Any, path: str, report: Report) -> bool:
    total = len(device.get("attributes") or ()) + len(device.get("capacity") or ())
    words = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
    return total <= _MOST_ATTRIBUTES or report.invalid(path, total, words)


_DEVICE = struct(text("name", dns_label), _few_attributes, _attributes)


def _devices(value: Any, path: str, report: Report) -> bool:
    if len(value) > _MOST_DEVICES:
        report.too_many(path, len(value), _MOST_DEVICES)
    items(_DEVICE)(value, path, report)
    seen: set[str] = set()
    for index, device in enumerate(value):
        name = device.get("name") or ""
        if name in seen:
            report.duplicate(f"{path}[{index}]", name)
        seen.add(name)
    return True


_SPEC = section("spec", text("driver", required, csi_driver_name), _POOL, _placed, field("devices", _devices))
_VALUES_GIVEN = section("spec", field("devices", items(struct(field("attributes", entries(value=_one_value))))))
_KEPT: Transition = unchanged("spec.pool.name", "spec.driver", "spec.nodeName")


def _of_spec(name: str) -> Callable[[Obj], str]:
    return lambda obj: str((obj.get("spec") or {}).get(name) or "")


RESOURCE_SLICE = Strategy(
    defaults=_defaults,
    validate_create=creation(_SPEC, _VALUES_GIVEN),
    validate_update=update(as_created(_SPEC), _KEPT, as_created(_VALUES_GIVEN)),
    generation=True,
    returns_deleted=True,
    field_selectors={f"spec.{name}": _of_spec(name) for name in ("nodeName", "driver")},
    field_refusal="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}",
)
