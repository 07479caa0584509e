"""Service: its defaults, what is allocated and dropped as it changes, its warnings.

Upstream: pkg/registry/core/service, pkg/apis/core/v1/defaults.go, pkg/api/service/warnings.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.kinds.core.service.allocation import Allocation, allocators_of
from konverge.apiserver.kinds.core.service.cluster_ips import allocate_ips, init_families, needs_ip, normalise
from konverge.apiserver.kinds.core.service.node_ports import (
    allocate_ports,
    has_node_ports,
    keep_ports,
    needs_health_check,
    update_ports,
)
from konverge.apiserver.kinds.core.service.validation import (
    HINTS,
    MODE,
    changes,
    is_reachable,
    status_changes,
    validate_create,
)
from konverge.apiserver.kinds.framework.declare import update
from konverge.apiserver.kinds.framework.lifecycle import selectable
from konverge.apiserver.kinds.rules.defaults import each, fill, fill_unset, section_of
from konverge.apiserver.kinds.rules.names import object_name
from konverge.apiserver.kinds.rules.network import cidr_warnings, ip_warnings
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import dns_label_errors

Spec = dict[str, Any]


# --- defaults


def _defaults(service: Obj) -> None:  # upstream: SetDefaults_Service
    spec = section_of(service, "spec")
    fill(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    _default_affinity(spec)
    for port in each(spec, "ports"):
        fill(port, {"protocol": "TCP"})
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port") or 0
    if is_reachable(spec):
        fill(spec, {"externalTrafficPolicy": "Cluster"})
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        fill_unset(spec, {"internalTrafficPolicy": "Cluster"})
    if kind == "LoadBalancer":
        fill_unset(spec, {"allocateLoadBalancerNodePorts": True})
        for ingress in each(section_of(section_of(service, "status"), "loadBalancer"), "ingress"):
            if ingress.get("ip"):
                fill_unset(ingress, {"ipMode": "VIP"})


def _default_affinity(spec: Spec) -> None:  # upstream: SetDefaults_Service
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


# --- preparation


def _prepare_create(service: Obj, context: Context) -> None:  # upstream: REST.beginCreate, svcStrategy.PrepareForCreate
    """Allocation comes before validation, as in the real server."""
    spec = service["spec"]
    allocation = Allocation(service, context)
    normalise(spec, None)
    init_families(service, None)
    allocate_ips(service, allocation)
    allocate_ports(service, allocation)
    service["status"] = {"loadBalancer": {}}
    _drop_internal_traffic_policy(spec)


# upstream: REST.beginUpdate, svcStrategy.PrepareForUpdate
def _prepare_update(service: Obj, old: Obj, context: Context) -> None:
    spec, before = service["spec"], old["spec"]
    if needs_ip(spec) and needs_ip(before):
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    keep_ports(spec, before)
    normalise(spec, before)
    init_families(service, old)
    allocation = Allocation(service, context)
    if not needs_ip(before):
        allocate_ips(service, allocation)
    update_ports(service, before, allocation)
    service["status"] = old.get("status") or {"loadBalancer": {}}
    _drop_for_type(service, before)
    _drop_internal_traffic_policy(spec)


def _drop_internal_traffic_policy(spec: Spec) -> None:  # upstream: defaultOnReadInternalTrafficPolicy
    """The API does not show this field of an ExternalName service."""
    if not needs_ip(spec):
        spec.pop("internalTrafficPolicy", None)


def _drop_for_type(service: Obj, old: Spec) -> None:  # upstream: dropTypeDependentFields
    """What only the old type could have is dropped, if the client just sent it back."""
    spec = service["spec"]
    if needs_ip(old) and not needs_ip(spec):
        if all(spec.get(name) == old.get(name) for name in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_same(spec, old, "ipFamilies", "ipFamilyPolicy")
    if has_node_ports(old) and not has_node_ports(spec):
        known = {port.get("nodePort") for port in each(old, "ports")}
        ports = list(each(spec, "ports"))
        if all(port.get("nodePort") in known for port in ports if port.get("nodePort")):
            for port in ports:
                port.pop("nodePort", None)
    if needs_health_check(old) and not needs_health_check(spec):
        _drop_same(spec, old, "healthCheckNodePort")
    if old.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_same(spec, old, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_reachable(old) and not is_reachable(spec):
        _drop_same(spec, old, "externalTrafficPolicy")
    if spec.get("type") != "LoadBalancer":
        service["status"] = {**service["status"], "loadBalancer": {}}


def _drop_same(spec: Spec, old: Spec, *names: str) -> None:
    for name in names:
        if spec.get(name) == old.get(name):
            spec.pop(name, None)


# --- warnings, and the whole


def _warnings(service: Obj, old: Obj | None, context: Context) -> Iterable[str]:  # upstream: GetWarningsForService
    spec = service["spec"]
    if HINTS in (service["metadata"].get("annotations") or {}):
        yield f"annotation {HINTS} is deprecated, please use {MODE} instead"
    kind, headless = spec.get("type"), spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    if spec.get("clusterIP") not in ("None", "", None):
        for index, ip in enumerate(spec.get("clusterIPs") or ()):
            yield from ip_warnings(f"spec.clusterIPs[{index}]", ip)
    if headless:
        yield from _ignored_when_headless(spec)
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        yield from ip_warnings(f"spec.externalIPs[{index}]", ip)
    if spec.get("externalIPs") and not headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.get("loadBalancerIP"):
        yield from ip_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from cidr_warnings(f"spec.loadBalancerSourceRanges[{index}]", text)
    if kind == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _ignored_when_headless(spec: Spec) -> Iterable[str]:  # upstream: GetWarningsForService
    if spec.get("loadBalancerIP"):
        yield "spec.loadBalancerIP is ignored for headless services"
    if spec.get("externalIPs"):
        yield "spec.externalIPs is ignored for headless services"
    if spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"


def _release(service: Obj, context: Context) -> None:  # upstream: REST.afterDelete
    allocators_of(context).release(service)


def _settle_claims(context: Context) -> None:  # upstream: the transactions of alloc.go, committed or reverted
    allocators_of(context).settle(context)


SERVICE = Strategy(  # upstream: svcStrategy
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=validate_create,
    validate_update=update(changes),
    warnings=_warnings,
    status=StatusRules(validate=update(status_changes)),
    name_check=object_name(dns_label_errors),
    settle_claims=_settle_claims,
    create_on_update=True,
    returns_deleted=True,
    field_selectors=selectable("spec.clusterIP", "spec.type"),
    on_removed=_release,
)
