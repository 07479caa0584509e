"""Service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.fielderrors import FieldError
from konverge.apiserver.gotypes import internal
from konverge.apiserver.kinds.core.endpoints import endpoint_ip
from konverge.apiserver.kinds.core.service_allocation import Allocation, allocators_of
from konverge.apiserver.kinds.core.service_ips import (
    allocate_ips,
    cluster_ip_rules,
    init_families,
    ips_kept,
    is_headless,
    needs_ip,
    normalise,
)
from konverge.apiserver.kinds.core.service_ports import (
    allocate_ports,
    has_node_ports,
    keep_ports,
    needs_health_check,
    update_ports,
)
from konverge.apiserver.kinds.declare import Report, one_of, one_of_required, update
from konverge.apiserver.kinds.rules.defaults import each, fill, section_of
from konverge.apiserver.kinds.rules.names import (
    dns_label,
    dns_label_complaints,
    dns_subdomain,
    labels,
    named,
    qualified_name,
)
from konverge.apiserver.kinds.rules.network import cidr_legacy, cidr_warnings, ip_legacy, ip_warnings, parse_ip
from konverge.apiserver.kinds.rules.numbers import port_number, port_number_or_name
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

Spec = dict[str, Any]

_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_DAY = 86400
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def _is_reachable(spec: Spec) -> bool:
    """From outside the cluster."""
    return has_node_ports(spec) or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


# --- defaults


def _defaults(service: Obj) -> None:
    spec = section_of(service, "spec")
    fill(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    _default_affinity(spec)
    for port in each(spec, "ports"):
        fill(port, {"protocol": "TCP"})
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port") or 0
    if _is_reachable(spec):
        fill(spec, {"externalTrafficPolicy": "Cluster"})
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer", "ClusterIP") and spec.get("internalTrafficPolicy") is None:
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer":
        if spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        for ingress in each(section_of(section_of(service, "status"), "loadBalancer"), "ingress"):
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"


def _default_affinity(spec: Spec) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


# --- preparation


def _prepare_create(service: Obj, context: Context) -> None:
    """Allocation comes before validation, as in the real server."""
    spec = service["spec"]
    allocation = Allocation(service, context)
    normalise(spec, None)
    init_families(service, None)
    allocate_ips(service, allocation)
    allocate_ports(service, allocation)
    service["status"] = {"loadBalancer": {}}
    _no_inner_traffic(spec)


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
    _no_inner_traffic(spec)


def _no_inner_traffic(spec: Spec) -> None:
    """The API never shows this field of a mere alias."""
    if not needs_ip(spec):
        spec.pop("internalTrafficPolicy", None)


def _drop_for_type(service: Obj, old: Spec) -> None:
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
    if _is_reachable(old) and not _is_reachable(spec):
        _drop_same(spec, old, "externalTrafficPolicy")
    if spec.get("type") != "LoadBalancer":
        service["status"] = {**service["status"], "loadBalancer": {}}


def _drop_same(spec: Spec, old: Spec, *names: str) -> None:
    for name in names:
        if spec.get(name) == old.get(name):
            spec.pop(name, None)


# --- validation


def _topology_annotations(service: Obj, report: Report) -> None:
    found = service["metadata"].get("annotations") or {}
    if _MODE in found and _HINTS in found and found[_MODE] != found[_HINTS]:
        words = f"must match annotations[{_HINTS}] when both are specified"
        report.invalid(f"metadata.annotations[{_MODE}]", found[_MODE], words)


def _type_rules(spec: Spec, report: Report) -> None:
    kind = spec.get("type")
    if not spec.get("ports") and not is_headless(spec) and kind != "ExternalName":
        report.required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        report.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            report.forbidden(f"spec.{name}", "may not be set for ExternalName services")
    host = (spec.get("externalName") or "").removesuffix(".")
    if host:
        dns_subdomain(host, "spec.externalName", report)
    else:
        report.required("spec.externalName")


_PROTOCOL = one_of_required("SCTP", "TCP", "UDP")


def _ports(spec: Spec, report: Report) -> None:
    ports, names = spec.get("ports") or (), set[str]()
    for index, port in enumerate(ports):
        place, name = f"spec.ports[{index}]", port.get("name") or ""
        if not name and len(ports) > 1:
            report.required(f"{place}.name")
        elif name:
            dns_label(name, f"{place}.name", report)
            if name in names:
                report.duplicate(f"{place}.name", name)
            names.add(name)
        port_number(port.get("port") or 0, f"{place}.port", report)
        _PROTOCOL(port.get("protocol"), f"{place}.protocol", report)
        port_number_or_name(port.get("targetPort", 0), f"{place}.targetPort", report)
        if port.get("appProtocol") is not None:
            qualified_name(port["appProtocol"], f"{place}.appProtocol", report)


def _affinity(spec: Spec, report: Report) -> None:
    kind, config, path = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"), "spec.sessionAffinityConfig"
    one_of_required("ClientIP", "None")(kind, "spec.sessionAffinity", report)
    if kind == "None" and config is not None:
        report.forbidden(path, "must not be set when session affinity is None")
    if kind == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            report.required(path, "when session affinity type is ClientIP")
        elif not 0 < seconds <= _DAY:
            words = f"must be greater than 0 and less than {_DAY}"
            report.invalid(f"{path}.clientIP.timeoutSeconds", seconds, words)


def _external_ips(spec: Spec, old: Spec, report: Report) -> None:
    before = old.get("externalIPs") or ()
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        place = f"spec.externalIPs[{index}]"
        if ip in before or ip_legacy(ip, place, report):
            endpoint_ip(ip, place, report)


def _node_ports(spec: Spec, report: Report) -> None:
    ports = spec.get("ports") or ()
    if spec.get("type") == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                report.forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    outside: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol") or "", port.get("nodePort") or 0)
        if key[1] and key in outside:
            report.duplicate(f"spec.ports[{index}].nodePort", key[1])
        outside.add(key)
    inside: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol") or "", port.get("port") or 0)
        if key in inside:
            shown = internal("core.ServicePort", {"protocol": key[0], "port": key[1], "targetPort": 0})
            report.duplicate(f"spec.ports[{index}]", shown)
        inside.add(key)


def _source_ranges(service: Obj, old: Obj | None, report: Report) -> None:
    spec, path = service["spec"], "spec.LoadBalancerSourceRanges"
    annotations = service["metadata"].get("annotations") or {}
    balanced = spec.get("type") == "LoadBalancer"
    if spec.get("loadBalancerSourceRanges"):
        if not balanced:
            report.forbidden(path, _ONLY_BALANCED)
        stored = ((old or {}).get("spec") or {}).get("loadBalancerSourceRanges") or ()
        before = {text.strip() for text in stored}
        for index, text in enumerate(spec["loadBalancerSourceRanges"]):
            if text.strip() not in before:
                cidr_legacy(text.strip(), f"{path}[{index}]", report)
    elif _RANGES in annotations:
        _annotated_ranges(annotations[_RANGES], old, balanced, report)


def _annotated_ranges(text: str, old: Obj | None, balanced: bool, report: Report) -> None:
    path = f"metadata.annotations[{_RANGES}]"
    if not balanced:
        report.forbidden(path, _ONLY_BALANCED)
    if old is not None and (old["metadata"].get("annotations") or {}).get(_RANGES) == text:
        return
    for part in text.strip().split(",") if text.strip() else ():
        cidr_legacy(part.strip(), path, report)


def _balancing(spec: Spec, report: Report) -> None:
    balanced = spec.get("type") == "LoadBalancer"
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        report.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED)
    if balanced and spec.get("allocateLoadBalancerNodePorts") is None:
        report.required("allocateLoadBalancerNodePorts")
    _balancer_class(spec, report)


def _balancer_class(spec: Spec, report: Report) -> None:
    name, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if name is None:
        return
    if spec.get("type") == "LoadBalancer":
        qualified_name(name, path, report)
    else:
        report.forbidden(path, _ONLY_BALANCED)


def _traffic(spec: Spec, report: Report) -> None:
    policy, path = spec.get("externalTrafficPolicy") or "", "spec.externalTrafficPolicy"
    if _is_reachable(spec):
        one_of_required("Cluster", "Local")(policy, path, report)
    elif policy:
        report.invalid(path, policy, "may only be set for externally-accessible services")
    number, path = spec.get("healthCheckNodePort") or 0, "spec.healthCheckNodePort"
    if not needs_health_check(spec):
        if number:
            words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            report.invalid(path, number, words)
    elif not number:
        report.required(path)
    else:
        port_number(number, path, report)
    inner, path = spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy"
    if inner is not None:
        one_of("Cluster", "Local")(inner, path, report)
    elif spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP"):
        report.required(path)
    distribution = spec.get("trafficDistribution")
    if distribution is not None:
        known = ("PreferClose", "PreferSameZone", "PreferSameNode")
        one_of(*known)(distribution, "spec.trafficDistribution", report)


def _check(service: Obj, old: Obj | None, report: Report) -> None:
    spec, before = service["spec"], (old or {}).get("spec") or {}
    _topology_annotations(service, report)
    _type_rules(spec, report)
    _ports(spec, report)
    labels(spec.get("selector"), "spec.selector", report)
    _affinity(spec, report)
    cluster_ip_rules(spec, before, report)
    _external_ips(spec, before, report)
    one_of_required(*_TYPES)(spec.get("type"), "spec.type", report)
    _node_ports(spec, report)
    _source_ranges(service, old, report)
    _balancing(spec, report)
    _traffic(spec, report)


def _validate_create(service: Obj, context: Context) -> list[FieldError]:
    report = Report(context)
    _check(service, None, report)
    return report.errors


def _changes(new: Obj, old: Obj, path: str, report: Report) -> bool:
    spec, before = new["spec"], old["spec"]
    ips_kept(new, old, path, report)
    chosen = spec.get("loadBalancerClass")
    if spec.get("type") == before.get("type") == "LoadBalancer" and chosen != before.get("loadBalancerClass"):
        report.invalid("spec.loadBalancerClass", chosen, "may not change once set")
    _balancer_class(spec, report)
    checked = needs_health_check(spec) and needs_health_check(before)
    if checked and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
        report.forbidden("spec.healthCheckNodePort", "field is immutable")
    _check(new, old, report)
    return True


def _ingress(value: Any, path: str, report: Report) -> bool:
    ip, mode, place = value.get("ip"), value.get("ipMode"), f"{path}.ipMode"
    if ip and mode is None:
        report.required(place, "must be specified when `ip` is set")
    elif mode is not None and not ip:
        report.forbidden(place, "may not be specified when `ip` is not set")
    elif mode is not None:
        one_of("Proxy", "VIP")(mode, place, report)
    host = value.get("hostname")
    if host:
        dns_subdomain(host, f"{path}.hostname", report)
        if parse_ip(host) is not None:
            report.invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")
    return True


def load_balancer_status(status: Spec, old: Spec, path: str, report: Report) -> None:
    """The ingress points of a load balancer; addresses that were stored stay valid."""
    stored = {entry.get("ip") for entry in old.get("ingress") or ()}
    for index, entry in enumerate(status.get("ingress") or ()):
        place = f"{path}.ingress[{index}]"
        if entry.get("ip") and entry["ip"] not in stored:
            ip_legacy(entry["ip"], f"{place}.ip", report)
        _ingress(entry, place, report)


def _status(new: Obj, old: Obj, path: str, report: Report) -> bool:
    balancer, place = new["status"].get("loadBalancer") or {}, "status.loadBalancer"
    if new["spec"].get("type") != "LoadBalancer" and balancer.get("ingress"):
        return report.forbidden(f"{place}.ingress", "may only be used when `spec.type` is 'LoadBalancer'")
    load_balancer_status(balancer, (old.get("status") or {}).get("loadBalancer") or {}, place, report)
    if report.context and not report.errors:
        for index, entry in enumerate(balancer.get("ingress") or ()):
            for text in ip_warnings(f"{place}.ingress[{index}]", entry.get("ip") or ""):
                report.context.warn(text)
    return True


# --- the rest


def _warnings(service: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    spec = service["spec"]
    if _HINTS in (service["metadata"].get("annotations") or {}):
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
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


def _ignored_when_headless(spec: Spec) -> Iterable[str]:
    if spec.get("loadBalancerIP"):
        yield "spec.loadBalancerIP is ignored for headless services"
    if spec.get("externalIPs"):
        yield "spec.externalIPs is ignored for headless services"
    if spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"


def _release(service: Obj, context: Context) -> None:
    allocators_of(context).release(service)


SERVICE = Strategy(
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=_validate_create,
    validate_update=update(_changes),
    warnings=_warnings,
    status=StatusRules(validate=update(_status)),
    name_check=named(dns_label_complaints),
    create_on_update=True,
    returns_deleted=True,
    field_selectors={
        "spec.clusterIP": lambda service: service["spec"].get("clusterIP") or "",
        "spec.type": lambda service: service["spec"].get("type") or "",
    },
    on_removed=_release,
)
