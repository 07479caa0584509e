"""ResourceClaim and ResourceClaimTemplate: which devices a pod asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from konverge.apiserver.kinds.framework.declare import (
    IMMUTABLE,
    Part,
    Report,
    at_most,
    creation,
    field,
    items,
    one_of,
    required,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import kept, kept_unshown, status_cleared, status_kept
from konverge.apiserver.kinds.resource.devices import (
    DRIVER_OF_CONFIGURATION,
    SELECTORS,
    configuration,
    qualified_attribute,
    toleration,
)
from konverge.apiserver.kinds.rules.defaults import each, fill_numbers, section_of
from konverge.apiserver.kinds.rules.names import annotation_map, dns_label, dns_subdomain, labels
from konverge.apiserver.strategy import Obj, StatusRules, Strategy

MOST = 32
MOST_ALTERNATIVES = 8
MOST_CONSUMERS = 256
_BAD_NAME = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def _default_request(request: Obj) -> None:
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount":
        fill_numbers(request, {"count": 1})


def _default_claim_spec(spec: Obj) -> None:
    devices = section_of(spec, "devices")
    for request in each(devices, "requests"):
        if request.get("exactly") is not None:
            _default_request(request["exactly"])
        for alternative in each(request, "firstAvailable"):
            _default_request(alternative)


def _default_claim(obj: Obj) -> None:
    _default_claim_spec(section_of(obj, "spec"))


def _default_template(obj: Obj) -> None:
    _default_claim_spec(section_of(section_of(obj, "spec"), "spec"))


@dataclass(frozen=True, slots=True)
class Names:
    """The requests of a claim with their alternatives, which constraints and configurations refer to."""

    of: dict[str, set[str]]

    def has(self, name: str) -> bool:
        request, slash, alternative = name.partition("/")
        return request in self.of and (not slash or alternative in self.of[request])


def _names(devices: Obj) -> Names:
    return Names(
        {
            request.get("name") or "": {one.get("name") or "" for one in each(request, "firstAvailable")}
            for request in each(devices, "requests")
        }
    )


def _allocation(value: Any, path: str, report: Report) -> bool:
    mode, count = value.get("allocationMode") or "", value.get("count") or 0
    if mode == "All":
        words = "must not be specified when allocationMode is 'All'"
        return not count or report.invalid(f"{path}.count", count, words)
    if mode == "ExactCount":
        return count > 0 or report.invalid(f"{path}.count", count, "must be greater than zero")
    return True


_EXACTLY = struct(
    text("deviceClassName", required, dns_subdomain),
    SELECTORS,
    _allocation,
    field("tolerations", items(toleration)),
)
_ALTERNATIVE = struct(text("name", dns_label), SELECTORS, _allocation, field("tolerations", items(toleration)))


def _request(value: Any, path: str, report: Report) -> bool:
    dns_label(value.get("name") or "", f"{path}.name", report)
    exactly, alternatives = value.get("exactly"), value.get("firstAvailable")
    words = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        return report.required(path, words)
    if exactly is not None and alternatives:
        return report.invalid(path, None, f"{words}, but multiple fields are set")
    if exactly is not None:
        return _EXACTLY(exactly, f"{path}.exactly", report)
    return items(_ALTERNATIVE)(alternatives, f"{path}.firstAvailable", report)


def _reference(value: Any, path: str, report: Report) -> bool:
    """A request by name, or one of its alternatives by both names."""
    segments = value.split("/")
    if len(segments) > 2:
        return report.invalid(path, value, _BAD_NAME)
    for segment in segments:
        dns_label(segment, path, report)
    return report.scope.has(value) or report.invalid(path, value, _BAD_NAME)


_REFERENCES = field("requests", items(_reference))


def _one_attribute(value: Any, path: str, report: Report) -> bool:
    words = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    found = value.get("matchAttribute") is not None or value.get("distinctAttribute") is not None
    return found or report.required(path, words)


def _unique(key: str = "") -> Any:
    """Elements (or their members) that are there once; reported at the element."""

    def check(value: Any, path: str, report: Report) -> bool:
        seen = set()
        for index, item in enumerate(value):
            found = (item.get(key) or "") if key else item
            if found in seen:
                report.duplicate(f"{path}[{index}]", item)
            seen.add(found)
        return True

    return check


def _mode_known(value: Any, path: str, report: Report) -> bool:
    return one_of("All", "ExactCount")(value, path, report)


_DECLARED_ALTERNATIVE = struct(
    text("deviceClassName", required, dns_subdomain),
    field("selectors", at_most(MOST)),
    field("allocationMode", _mode_known),
)
_DECLARED = (
    field(
        "requests",
        at_most(MOST),
        _unique("name"),
        items(
            struct(
                field("exactly", struct(field("selectors", at_most(MOST)), field("allocationMode", _mode_known))),
                field("firstAvailable", at_most(MOST_ALTERNATIVES), _unique("name"), items(_DECLARED_ALTERNATIVE)),
            )
        ),
    ),
    field(
        "constraints",
        at_most(MOST),
        items(
            struct(
                field("requests", at_most(MOST), _unique()),
                field("matchAttribute", qualified_attribute),
                field("distinctAttribute", qualified_attribute),
            )
        ),
    ),
    field(
        "config",
        at_most(MOST),
        items(struct(field("requests", at_most(MOST), _unique()), DRIVER_OF_CONFIGURATION)),
    ),
)
_DEVICES = struct(
    field("requests", items(_request)),
    field("constraints", items(struct(_REFERENCES, _one_attribute))),
    field("config", items(struct(_REFERENCES, configuration))),
    *_DECLARED,
)


def claim_spec(value: Any, path: str, report: Report) -> bool:
    devices = value.get("devices") or {}
    around, report.scope = report.scope, _names(devices)
    _DEVICES(devices, f"{path}.devices", report)
    report.scope = around
    return True


_CONSUMER = struct(text("resource", required), text("name", required), text("uid", required))


def _reserved(new: Obj, old: Obj, path: str, report: Report) -> bool:
    status, place = new.get("status") or {}, "status.reservedFor"
    listed = status.get("reservedFor") or []
    items(_CONSUMER)(listed, place, report)
    if listed and status.get("allocation") is None:
        report.forbidden(place, "may not be specified when `allocated` is not set")
    known = ((old.get("status") or {}).get("reservedFor")) or []
    if new["metadata"].get("deletionTimestamp") and any(one not in known for one in listed):
        words = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        report.forbidden(place, words)
    return True


def _allocation_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """What is allocated is given back before something else is."""
    found, before = ((obj.get("status") or {}).get("allocation") for obj in (new, old))
    if found is not None and before is not None and found != before:
        report.invalid("status.allocation", None, IMMUTABLE)
    count = len((new.get("status") or {}).get("reservedFor") or ())
    return count <= MOST_CONSUMERS or report.too_many("status.reservedFor", count, MOST_CONSUMERS)


RESOURCE_CLAIM = Strategy(
    defaults=_default_claim,
    prepare_create=status_cleared("resource.k8s.io", "v1", "ResourceClaim"),
    prepare_update=status_kept,
    validate_create=creation(section("spec", claim_spec)),
    validate_update=update(kept_unshown("spec")),
    status=StatusRules(validate=update(_reserved, _allocation_kept)),
    returns_deleted=True,
)

_TEMPLATE: Part = section(
    "spec",
    section("metadata", field("annotations", annotation_map), field("labels", labels)),
    section("spec", claim_spec),
)


RESOURCE_CLAIM_TEMPLATE = Strategy(
    defaults=_default_template,
    validate_create=creation(_TEMPLATE),
    validate_update=update(kept("spec", "resource.ResourceClaimTemplateSpec")),
    returns_deleted=True,
)
