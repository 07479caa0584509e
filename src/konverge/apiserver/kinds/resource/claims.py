"""ResourceClaim and ResourceClaimTemplate: which devices a pod asks for."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import Report, creation, field, required, section, struct, text, update
from konverge.apiserver.kinds.framework.lifecycle import kept, prepared
from konverge.apiserver.kinds.resource.claim_status import (
    allocated_admin_access,
    claim_status,
    may_bind,
    may_report_devices,
    prepare_status,
    requested_admin_access,
    results_of,
)
from konverge.apiserver.kinds.resource.devices import (
    MOST_CONFIGURATIONS,
    REFERENCES,
    SELECTORS,
    TOLERATIONS,
    configuration,
    requests_of,
    up_to,
)
from konverge.apiserver.kinds.rules.defaults import each, fill, fill_numbers, section_of
from konverge.apiserver.kinds.rules.names import TEMPLATE_METADATA, dns_label, dns_subdomain
from konverge.apiserver.strategy import Obj, StatusRules, Strategy

MOST_REQUESTS = 32
MOST_ALTERNATIVES = 8
MOST_CONSTRAINTS = 32


# --- defaults


def _default_tolerations(value: Obj) -> None:
    for toleration in each(value, "tolerations"):
        fill(toleration, {"operator": "Equal"})


def _default_request(request: Obj) -> None:
    fill(request, {"allocationMode": "ExactCount"})
    if request["allocationMode"] == "ExactCount":
        fill_numbers(request, {"count": 1})
    _default_tolerations(request)


def _kinds_of_request(request: Obj) -> list[Obj]:
    """The exact request, or the alternatives."""
    exactly = request.get("exactly")
    return ([] if exactly is None else [exactly]) + list(each(request, "firstAvailable"))


def _default_claim_spec(spec: Obj) -> None:
    for request in each(section_of(spec, "devices"), "requests"):
        for kind in _kinds_of_request(request):
            _default_request(kind)


def _default_claim(obj: Obj) -> None:
    _default_claim_spec(section_of(obj, "spec"))
    for result in results_of(obj):
        _default_tolerations(result)


def _default_template(obj: Obj) -> None:
    _default_claim_spec(section_of(section_of(obj, "spec"), "spec"))


def _drop_disabled(spec: Obj) -> None:
    """Fields of features that are off in this release. Upstream: pkg/api/resourceclaimspec.DropDisabledFields."""
    for request in each(spec.get("devices") or {}, "requests"):
        for kind in _kinds_of_request(request):
            kind.pop("derivedAttributes", None)


# --- rules


def _allocation(value: Any, path: str, report: Report) -> bool:
    """Upstream: validateDeviceAllocationMode."""
    mode, count = value.get("allocationMode") or "", value.get("count") or 0
    if mode == "All" and count:
        return report.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    return mode != "ExactCount" or count > 0 or report.invalid(f"{path}.count", count, "must be greater than zero")


_EXACTLY = struct(text("deviceClassName", required, dns_subdomain), SELECTORS, _allocation, TOLERATIONS)
_ALTERNATIVE = struct(text("name", dns_label), SELECTORS, _allocation, TOLERATIONS)
_ALTERNATIVES = up_to(MOST_ALTERNATIVES, _ALTERNATIVE)


def _request(value: Any, path: str, report: Report) -> bool:
    """Upstream: validateDeviceRequest."""
    dns_label(value.get("name") or "", f"{path}.name", report)
    exactly, alternatives = value.get("exactly"), value.get("firstAvailable")
    one_of_two = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        return report.required(path, one_of_two)
    if exactly is not None and alternatives:
        return report.invalid(path, None, f"{one_of_two}, but multiple fields are set")
    if exactly is not None:
        return _EXACTLY(exactly, f"{path}.exactly", report)
    return _ALTERNATIVES(alternatives, f"{path}.firstAvailable", report)


def _one_attribute(value: Any, path: str, report: Report) -> bool:
    given = value.get("matchAttribute") is not None or value.get("distinctAttribute") is not None
    detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return given or report.required(path, detail)


_DEVICES = struct(
    field("requests", up_to(MOST_REQUESTS, _request)),
    field("constraints", up_to(MOST_CONSTRAINTS, struct(REFERENCES, _one_attribute))),
    field("config", up_to(MOST_CONFIGURATIONS, struct(REFERENCES, configuration))),
)


def _claim_spec(value: Any, path: str, report: Report) -> bool:
    """Upstream: validateDeviceClaim."""
    devices = value.get("devices") or {}
    report.scope = requests_of(devices)
    return _DEVICES(devices, f"{path}.devices", report)


# --- ResourceClaim


def _claim_admin_access(value: Any, path: str, report: Report) -> bool:
    return requested_admin_access(value.get("spec") or {}, value, report)


_CLAIM = Declared("resource/v1.ResourceClaim")

RESOURCE_CLAIM = Strategy(
    defaults=_default_claim,
    **prepared(lambda obj: _drop_disabled(obj["spec"]), status=("resource.k8s.io", "v1", "ResourceClaim")),
    validate_create=creation(_claim_admin_access, section("spec", _claim_spec), _CLAIM.created),
    validate_update=update(_CLAIM.updated),
    status=StatusRules(
        prepare=prepare_status,
        validate=update(allocated_admin_access, may_bind, may_report_devices, claim_status, _CLAIM.updated),
    ),
    returns_deleted=True,
)


# --- ResourceClaimTemplate

_TEMPLATE = section("spec", TEMPLATE_METADATA, section("spec", _claim_spec))
_CLAIM_TEMPLATE = Declared("resource/v1.ResourceClaimTemplate")


def _template_admin_access(value: Any, path: str, report: Report) -> bool:
    return requested_admin_access((value.get("spec") or {}).get("spec") or {}, value, report)


RESOURCE_CLAIM_TEMPLATE = Strategy(
    defaults=_default_template,
    **prepared(lambda obj: _drop_disabled(section_of(obj["spec"], "spec"))),
    validate_create=creation(_template_admin_access, _TEMPLATE, _CLAIM_TEMPLATE.created),
    validate_update=update(_TEMPLATE, kept("spec", "resource.ResourceClaimTemplateSpec"), _CLAIM_TEMPLATE.updated),
    returns_deleted=True,
)
