"""IPAddress and ServiceCIDR: the addresses of services as objects. Upstream: pkg/apis/networking/validation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.netip import parse_cidr_sloppy
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.framework.declare import (
    IMMUTABLE,
    Report,
    creation,
    field,
    items,
    present,
    required,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import kept_unshown, metadata_kept, status_cleared, status_kept
from konverge.apiserver.kinds.rules.names import dns_subdomain, format_rule
from konverge.apiserver.kinds.rules.network import cidr_strict, ip_strict
from konverge.apiserver.strategy import Obj, StatusRules, Strategy
from konverge.objects.names import path_segment_errors

_segment = format_rule(path_segment_errors)


def _ip_name(name: str, is_prefix: bool) -> list[str]:  # upstream: ValidateIPAddressName
    report = Report()
    ip_strict(name, "", report)
    return [error.detail for error in report.errors]


_PARENT = section(  # upstream: validateIPAddressParentReference
    "spec",
    field(
        "parentRef",
        struct(
            field("group", dns_subdomain),
            field("resource", _segment),
            field("name", _segment),
            field("namespace", _segment),
        ),
    ),
    field("parentRef", present, struct(text("resource", required), text("name", required))),
)

IP_ADDRESS = Strategy(  # upstream: ipAddressStrategy
    validate_create=creation(_PARENT),
    validate_update=update(_PARENT, kept_unshown("spec.parentRef")),
    name_check=_ip_name,
)


def _cidrs(value: Any, path: str, report: Report) -> bool:  # upstream: validateServiceCIDRSpec
    cidrs = value.get("cidrs") or []
    place = f"{path}.cidrs"
    if not cidrs:
        return report.required(place, "at least one CIDR required")
    if len(cidrs) > 2:
        return report.invalid(place, internal("networking.ServiceCIDRSpec", value), "may only hold up to 2 values")
    items(cidr_strict)(cidrs, place, report)
    families = [parsed[0].version for parsed in map(parse_cidr_sloppy, cidrs) if parsed is not None]
    detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
    return len(families) < 2 or families[0] != families[1] or report.invalid(place, cidrs, detail)


def _only_a_second(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateServiceCIDRUpdate
    """A range of the other family may be added; nothing else changes."""
    cidrs, before = new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
    if len(before) != len(cidrs) and (len(before), len(cidrs)) != (1, 2):
        return report.invalid("spec.cidrs", cidrs, IMMUTABLE)
    for index, (now, then) in enumerate(zip(cidrs, before, strict=False)):
        if now != then:
            report.invalid(f"spec.cidrs[{index}]", now, IMMUTABLE)
    return len(cidrs) == len(before) or _cidrs(new["spec"], "spec", report)


SERVICE_CIDR = Strategy(  # upstream: serviceCIDRStrategy
    prepare_create=status_cleared("networking.k8s.io", "v1", "ServiceCIDR"),
    prepare_update=status_kept,
    validate_create=creation(section("spec", _cidrs)),
    validate_update=update(_only_a_second),
    status=StatusRules(prepare=metadata_kept),
)
