"""Endpoints. Upstream: pkg/registry/core/endpoint/strategy.go, pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.netip import parse_ip_sloppy
from konverge.apiserver.kinds.framework.declare import (
    Report,
    as_created,
    creation,
    field,
    given,
    items,
    number,
    one_of_required,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.rules.defaults import each, fill
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain, qualified_name
from konverge.apiserver.kinds.rules.network import ip_legacy, ip_warnings
from konverge.apiserver.kinds.rules.numbers import port_number
from konverge.apiserver.strategy import Context, Obj, Strategy


def _defaults(endpoints: Obj) -> None:  # upstream: SetDefaults_Endpoints
    for subset in each(endpoints, "subsets"):
        for port in each(subset, "ports"):
            fill(port, {"protocol": "TCP"})


def endpoint_ip(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateEndpointIP
    """An address that a backend can have: not the node's own, and not link-local."""
    address = parse_ip_sloppy(value or "")
    if address is None:
        return report.invalid(path, value or "", "must be a valid IP address")
    if address.is_unspecified:
        report.invalid(path, value, f"may not be unspecified ({value})")
    if address.is_loopback and not getattr(report.context, "loopback_backends", False):
        report.invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        report.invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    multicast = str(address).startswith(("224.0.0.", "ff02:"))
    detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
    return not multicast or report.invalid(path, value, detail)


_ADDRESS = struct(  # upstream: validateEndpointAddress
    text("ip", ip_legacy),
    field("hostname", dns_label),
    given("nodeName", dns_subdomain),
    text("ip", endpoint_ip),
)


_PORT = struct(  # upstream: validateEndpointPort
    field("name", dns_label),
    number("port", port_number),
    field("protocol", one_of_required("SCTP", "TCP", "UDP")),
    given("appProtocol", qualified_name),
)


def _subset(value: Any, path: str, report: Report) -> bool:  # upstream: validateEndpointSubsets
    if not value.get("addresses") and not value.get("notReadyAddresses"):
        report.required(path, "must specify `addresses` or `notReadyAddresses`")
    for name in ("addresses", "notReadyAddresses"):
        items(_ADDRESS)(value.get(name), f"{path}.{name}", report)
    ports = value.get("ports") or ()
    for index, port in enumerate(ports):
        place = f"{path}.ports[{index}]"
        if len(ports) > 1 and not port.get("name"):
            report.required(f"{place}.name")
        _PORT(port, place, report)
    return True


_SUBSETS = field("subsets", items(_subset))


def _if_changed(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateEndpointsUpdate
    """Stored subsets stay valid, even where new ones would be refused."""
    return new.get("subsets") == old.get("subsets") or as_created(_SUBSETS)(new, old, path, report)


def _warnings(endpoints: Obj, old: Obj | None, context: Context) -> Iterable[str]:  # upstream: endpointsWarnings
    labels = endpoints["metadata"].get("labels") or {}
    if labels.get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return
    for index, subset in enumerate(each(endpoints, "subsets")):
        for name in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(each(subset, name)):
                yield from ip_warnings(f"subsets[{index}].{name}[{at}].ip", address.get("ip") or "")


ENDPOINTS = Strategy(  # upstream: endpointsStrategy
    defaults=_defaults,
    validate_create=creation(_SUBSETS),
    validate_update=update(_if_changed),
    warnings=_warnings,
    create_on_update=True,
)
