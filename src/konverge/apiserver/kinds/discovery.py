"""discovery.k8s.io: EndpointSlice.

Upstream: pkg/registry/discovery/endpointslice/strategy.go, pkg/apis/discovery/validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.kinds.core.service.endpoints import endpoint_ip
from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    Report,
    at_most,
    creation,
    distinct,
    distinct_by,
    field,
    given,
    items,
    one_of,
    same,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import empty_is_null, next_generation
from konverge.apiserver.kinds.rules.defaults import each, fill_unset
from konverge.apiserver.kinds.rules.names import (
    dns_label,
    dns_subdomain,
    domain_name,
    label_value,
    labels,
    qualified_name,
)
from konverge.apiserver.kinds.rules.network import ip_legacy, ip_strict, ip_warnings
from konverge.apiserver.strategy import Context, Obj, Strategy
from konverge.objects.text_cache import remembered

_MOST_ENDPOINTS = 1000
_MOST_PORTS = 20000
_OWN_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


def _defaults(obj: Obj) -> None:  # upstream: SetDefaults_EndpointPort
    for port in each(obj, "ports"):
        fill_unset(port, {"name": "", "protocol": "TCP"})


def _without_topology(obj: Obj) -> None:  # upstream: dropTopologyOnV1
    """A field of v1beta1, which v1 has but does not accept."""
    for endpoint in each(obj, "endpoints"):
        endpoint.pop("deprecatedTopology", None)


def _prepare_create(obj: Obj, context: Context) -> None:  # upstream: endpointSliceStrategy.PrepareForCreate
    empty_is_null(obj, "endpoints", "ports")
    _without_topology(obj)


def _prepare_update(obj: Obj, old: Obj, context: Context) -> None:  # upstream: endpointSliceStrategy.PrepareForUpdate
    """Labels name the service of the slice: a change of them is a new generation too."""
    empty_is_null(obj, "endpoints", "ports")
    if not same(obj.get("endpoints"), old.get("endpoints")):
        _without_topology(obj)
    if not same(obj["metadata"].get("labels"), old["metadata"].get("labels")):
        next_generation(obj, old)


def _address(value: str, family: str, listed: str, path: str, report: Report) -> bool:  # upstream: validateEndpoints
    if family == "FQDN":
        return domain_name(value, path, report)
    rule, is_other = (ip_legacy, ":" in value) if family == "IPv4" else (ip_strict, ":" not in value)
    if not rule(value, path, report):
        return False
    if is_other:
        report.invalid(listed, value, f"must be an {family} address")
    return endpoint_ip(value, path, report)


@remembered(16384)
def _plain(address: str, family: str) -> bool:
    """An address without errors and warnings. Controllers write the same ones again and again, so they are cached."""
    report = Report()
    _address(address, family, "", "", report)
    return not report.errors and not ip_warnings("", address)


def _addresses(value: Any, path: str, report: Report) -> bool:  # upstream: validateEndpoints
    family, place = report.scope, f"{path}.addresses"
    if family in ("IPv4", "IPv6", "FQDN"):
        for index, address in enumerate(value.get("addresses") or ()):
            if not _plain(address, family):
                _address(address, family, place, f"{place}[{index}]", report)
    return True


def _hints(value: Any, path: str, report: Report) -> bool:  # upstream: validateHints
    for name, rule in (("forZones", label_value), ("forNodes", dns_subdomain)):
        listed = value.get(name) or ()
        if len(listed) > 8:
            return report.too_many(f"{path}.{name}", len(listed), 8)
        items(distinct_by("name"), struct(text("name", rule)))(listed, f"{path}.{name}", report)
    return True


_ENDPOINT = struct(  # upstream: validateEndpoints
    _addresses,
    given("nodeName", dns_subdomain),
    field("deprecatedTopology", at_most(16), labels),
    given("hostname", dns_label),
    field("hints", _hints),
)


def _port_name(value: Any, path: str, report: Report) -> bool:  # upstream: validatePorts
    name = value.get("name") or ""
    if name:
        dns_label(name, f"{path}.name", report)
    distinct(name, f"{path}.name", report)
    return True


# upstream: validatePorts
_PORT = struct(_port_name, text("protocol", one_of("SCTP", "TCP", "UDP")), given("appProtocol", qualified_name))


def _endpoints(obj: Any, path: str, report: Report) -> bool:
    around, report.scope = report.scope, obj.get("addressType") or ""
    _ENDPOINTS(obj, path, report)
    report.scope = around
    return True


_ENDPOINTS = struct(field("endpoints", at_most(_MOST_ENDPOINTS), items(_ENDPOINT)))
_PORTS = field("ports", at_most(_MOST_PORTS), items(_PORT))


def _changed_endpoints(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateEndpointSliceUpdate
    """What was stored stays valid."""
    return same(new.get("endpoints"), old.get("endpoints")) or _endpoints(new, path, report)


_DECLARED = Declared("discovery/v1.EndpointSlice")


# upstream: warnOnDeprecatedAddressType, warnOnBadIPs
def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    if old is None and obj.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    manager = (obj["metadata"].get("labels") or {}).get("endpointslice.kubernetes.io/managed-by")
    if manager in _OWN_CONTROLLERS:
        return
    for i, endpoint in enumerate(each(obj, "endpoints")):
        for j, address in enumerate(endpoint.get("addresses") or ()):
            if not _plain(address, obj.get("addressType") or ""):
                yield from ip_warnings(f"endpoints[{i}].addresses[{j}]", address)


STRATEGIES = {  # upstream: endpointSliceStrategy
    "EndpointSlice": Strategy(
        defaults=_defaults,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate_create=creation(_PORTS, _endpoints, _DECLARED.created),
        validate_update=update(_PORTS, _changed_endpoints, _DECLARED.updated),
        warnings=_warnings,
        generation=True,
    )
}
