"""ResourceSlice: the devices that a driver offers, on one node or on several."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.pod.scheduling import node_selector
from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    at_most,
    creation,
    field,
    given,
    items,
    number,
    section,
    struct,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import first_generation, next_generation, selectable
from konverge.apiserver.kinds.resource.capacity import request_policy
from konverge.apiserver.kinds.resource.devices import (
    LONGEST_ATTRIBUTE,
    MOST_ATTRIBUTES,
    TAINT,
    attribute_name,
    binding_conditions,
    driver_name,
    pool_name,
    up_to,
)
from konverge.apiserver.kinds.rules.conditions import longest
from konverge.apiserver.kinds.rules.defaults import each, fill_unset
from konverge.apiserver.kinds.rules.formats import LONGEST_DOMAIN, LONGEST_IDENTIFIER
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain
from konverge.apiserver.kinds.rules.numbers import NOT_POSITIVE, at_least
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Context, Obj, Strategy

MOST_DEVICES = 128
MOST_ADVANCED_DEVICES = 64
"""Of devices with taints or counters, which take more room."""
MOST_ATTRIBUTE_VALUES = 48
MOST_TAINTS = 16
MOST_COUNTER_SETS = 8
MOST_COUNTERS = 32
MOST_CONSUMED_SETS = 2
_LONGEST_KEY = LONGEST_DOMAIN + 1 + LONGEST_IDENTIFIER
_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_is_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
).fullmatch
_LISTS = ("ints", "bools", "strings", "versions")


def _defaults(obj: Obj) -> None:
    for device in each(obj.get("spec") or {}, "devices"):
        for taint in each(device, "taints"):
            fill_unset(taint, {"timeAdded": timestamp})


def _prepare_create(obj: Obj, context: Context) -> None:
    first_generation(obj, context)
    _drop_disabled(obj)


def _prepare_update(obj: Obj, old: Obj, context: Context) -> None:
    """The generation moves for a field that is dropped, too."""
    if obj["spec"] != old["spec"]:
        next_generation(obj, old)
    _drop_disabled(obj)


def _drop_disabled(obj: Obj) -> None:
    """Fields of features that are off in this release. Upstream: dropDisabledFields."""
    spec = obj["spec"]
    spec.pop("partitionTypeAttribute", None)
    spec.pop("skipNodeOperations", None)
    for device in each(spec, "devices"):
        device.pop("nodeAllocatableResources", None)
        for consumption in each(device, "consumesCounters"):
            consumption.pop("compatibilityGroups", None)
        for attribute in (device.get("attributes") or {}).values():
            for name in _LISTS:
                attribute.pop(name, None)


def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    driver = obj["spec"].get("driver") or ""
    if driver != driver.lower():
        yield f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"


# --- where the devices are


def _node_name(value: Any, path: str, report: Report, *, empty: str) -> bool:
    return dns_subdomain(value, path, report) if value else report.invalid(path, value, empty)


def _set_or_true(value: Any, path: str, report: Report) -> bool:
    return value or report.invalid(path, value, "must be either unset or set to true")


def _places(value: Any, path: str, report: Report, names: tuple[str, ...], *, empty: str) -> list[str]:
    """The ways in which a slice or a device says where it is, each checked; the names of those that are given."""
    chosen = []
    for name in names:
        given, place = value.get(name), f"{path}.{name}"
        if given is None:
            continue
        if name == "nodeName":
            _node_name(given, place, report, empty=empty)
        elif name == "nodeSelector":
            node_selector(given, place, report)
        else:
            _set_or_true(given, place, report)
        if given or name == "nodeSelector":
            chosen.append(f"`{name}`")
    return chosen


def _slice_place(value: Any, path: str, report: Report) -> bool:
    names = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    empty = "must be either unset or set to a non-empty string"
    chosen = _places(value, path, report, names[:2], empty=empty)
    selector = value.get("nodeSelector")
    if selector is not None and len(selector.get("nodeSelectorTerms") or ()) != 1:
        shown = internal("[]core.NodeSelectorTerm", selector.get("nodeSelectorTerms"))
        report.invalid(f"{path}.nodeSelector.nodeSelectorTerms", shown, "must have exactly one node selector term")
    chosen += _places(value, path, report, names[2:], empty=empty)
    detail = f"exactly one of {', '.join(f'`{name}`' for name in names)} is required"
    if not chosen:
        return report.required(path, detail)
    shown = f"{{{', '.join(chosen)}}}"
    return len(chosen) == 1 or report.invalid(path, shown, f"{detail}, but multiple fields are set")


def _device_place(value: Any, path: str, report: Report) -> bool:
    names = ("nodeName", "nodeSelector", "allNodes")
    if not report.scope.each_placed:
        detail = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set "
            "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        )
        return all(value.get(name) is None for name in names) or report.invalid(path, None, detail)
    chosen = _places(value, path, report, names, empty="must not be empty")
    detail = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
        "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    if not chosen:
        return report.required(path, detail)
    return len(chosen) == 1 or report.invalid(path, f"{{{', '.join(chosen)}}}", detail)


# --- devices


class _Slice:
    """What the rules of a device need to know of the slice around it."""

    def __init__(self, spec: Obj, old: Obj | None) -> None:
        self.each_placed = bool(spec.get("perDeviceNodeSelection"))
        self._old = {device.get("name"): device for device in reversed(list(each(old or {}, "devices")))}

    def changed(self, device: Obj, name: str) -> bool:
        """Whether a member of a device is not as it was stored."""
        old = self._old.get(device.get("name"))
        return old is None or old.get(name) != device.get(name)


def _mapping(key: Rule, value: Rule) -> Rule:
    """A map: keys are reported at its path, values at `path[key]`. Upstream: validateMap."""

    def check(mapping: Any, path: str, report: Report) -> bool:
        for name in sorted(mapping):
            key(name, path, report)
            value(mapping[name], f"{path}[{_truncated(name)}]", report)
        return True

    return check


def _truncated(key: str) -> str:
    if len(key) <= _LONGEST_KEY:
        return key
    remaining = _LONGEST_KEY - len("...")
    return f"{key[: (remaining + 1) // 2]}...{key[-(remaining // 2) :]}"


_short = longest(LONGEST_ATTRIBUTE)


def _version(value: Any, path: str, report: Report) -> bool:
    if not _is_version(value):
        report.invalid(path, value, "must be a string compatible with semver.org spec 2.0.0")
    return _short(value, path, report)


_ATTRIBUTES = _mapping(attribute_name, struct(given("string", _short), given("version", _version)))


def _totals(value: Any, path: str, report: Report) -> bool:
    attributes = len(value.get("attributes") or ())
    total = attributes + len(value.get("capacity") or ())
    if total > MOST_ATTRIBUTES:
        detail = f"the total number of attributes and capacities must not exceed {MOST_ATTRIBUTES}"
        report.invalid(path, total, detail)
    detail = f"the total number of attribute values must not exceed {MOST_ATTRIBUTE_VALUES}"
    return attributes <= MOST_ATTRIBUTE_VALUES or report.invalid(path, attributes, detail)


def _single_use(value: Any, path: str, report: Report) -> bool:
    policy = value.get("requestPolicy")
    return policy is None or report.forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")


def _capacities(value: Any, path: str, report: Report) -> bool:
    if not value.get("capacity") or not report.scope.changed(value, "capacity"):
        return True
    rule = request_policy if value.get("allowMultipleAllocations") else _single_use
    return _mapping(attribute_name, rule)(value["capacity"], f"{path}.capacity", report)


_TAINTS = items(TAINT)


def _taints(value: Any, path: str, report: Report) -> bool:
    taints = value.get("taints")
    if not taints or not report.scope.changed(value, "taints"):
        return True
    place = f"{path}.taints"
    return at_most(MOST_TAINTS)(taints, place, report) and _TAINTS(taints, place, report)


_COUNTERS = struct(field("counters", at_most(MOST_COUNTERS)))
_DEVICE = struct(
    text("name", dns_label),
    _totals,
    field("attributes", _ATTRIBUTES),
    _capacities,
    _taints,
    field("consumesCounters", up_to(MOST_CONSUMED_SETS, _COUNTERS)),
    _device_place,
    binding_conditions,
)


def _advanced(devices: list[Obj]) -> bool:
    return any(device.get("taints") or device.get("consumesCounters") for device in devices)


def _devices(value: Any, path: str, report: Report) -> bool:
    most = MOST_ADVANCED_DEVICES if _advanced(value) else MOST_DEVICES
    if not at_most(most)(value, path, report):
        return False
    items(_DEVICE)(value, path, report)
    seen: set[str] = set()
    for index, device in enumerate(value):
        name = device.get("name") or ""
        if name in seen:
            report.duplicate(f"{path}[{index}]", name)
        seen.add(name)
    return True


# --- the slice


def _devices_or_counters(value: Any, path: str, report: Report) -> bool:
    both = value.get("sharedCounters") is not None and value.get("devices") is not None
    return not both or report.invalid(path, "", "only one of `sharedCounters` or `devices` is allowed")


_IDENTITY = section(
    "spec",
    text("driver", driver_name),
    section(
        "pool",
        text("name", pool_name),
        number("resourceSliceCount", at_least(1, NOT_POSITIVE)),
        number("generation", at_least(0, "must be greater than or equal to zero")),
    ),
)
_CONTENT = section(
    "spec",
    _slice_place,
    _devices_or_counters,
    field("devices", _devices),
    field("sharedCounters", up_to(MOST_COUNTER_SETS, _COUNTERS)),
)
_KEPT = unchanged("spec.pool.name", "spec.driver", "spec.nodeName")
_IDENTITY_RULE, _CONTENT_RULE = struct(_IDENTITY), struct(_CONTENT)


def _created(value: Any, path: str, report: Report) -> bool:
    """Upstream: validateResourceSliceSpec."""
    report.scope = _Slice(value["spec"], None)
    return _IDENTITY_RULE(value, path, report) and _CONTENT_RULE(value, path, report)


def _updated(new: Obj, old: Obj, path: str, report: Report) -> bool:
    report.scope = _Slice(new["spec"], old["spec"])
    _IDENTITY_RULE(new, path, report)
    _KEPT(new, old, path, report)
    return _CONTENT_RULE(new, path, report)


_DECLARED = Declared("resource/v1.ResourceSlice")

RESOURCE_SLICE = Strategy(
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=creation(_created, _DECLARED.created),
    validate_update=update(_updated, _DECLARED.updated),
    warnings=_warnings,
    returns_deleted=True,
    field_selectors=selectable("spec.nodeName", "spec.driver", "spec.pool.name"),
    field_refusal="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}",
)
