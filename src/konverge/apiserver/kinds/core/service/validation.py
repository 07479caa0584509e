"""The rules of a Service's spec and status. Upstream: pkg/apis/core/validation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.service.cluster_ips import cluster_ip_rules, ips_kept, is_headless
from konverge.apiserver.kinds.core.service.endpoints import endpoint_ip
from konverge.apiserver.kinds.core.service.node_ports import has_node_ports, needs_health_check
from konverge.apiserver.kinds.framework.declare import Report, one_of, one_of_required
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain, labels, qualified_name
from konverge.apiserver.kinds.rules.network import balancer_status, cidr_legacy, ip_legacy
from konverge.apiserver.kinds.rules.numbers import port_number, port_number_or_name
from konverge.apiserver.strategy import Context, Obj

Spec = dict[str, Any]

HINTS, MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_DAY = 86400
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def is_reachable(spec: Spec) -> bool:  # upstream: ExternallyAccessible
    """From outside the cluster."""
    return has_node_ports(spec) or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _topology_annotations(service: Obj, report: Report) -> None:  # upstream: validateService
    annotations = service["metadata"].get("annotations") or {}
    if MODE in annotations and HINTS in annotations and annotations[MODE] != annotations[HINTS]:
        detail = f"must match annotations[{HINTS}] when both are specified"
        report.invalid(f"metadata.annotations[{MODE}]", annotations[MODE], detail)


def _type_rules(spec: Spec, report: Report) -> None:  # upstream: validateService
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


def _ports(spec: Spec, report: Report) -> None:  # upstream: validateServicePort
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


def _affinity(spec: Spec, report: Report) -> None:  # upstream: validateService, validateClientIPAffinityConfig
    kind, config, path = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"), "spec.sessionAffinityConfig"
    one_of_required("ClientIP", "None")(kind, "spec.sessionAffinity", report)
    if kind == "None" and config is not None:
        report.forbidden(path, "must not be set when session affinity is None")
    if kind == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            report.required(path, "when session affinity type is ClientIP")
        elif not 0 < seconds <= _DAY:
            detail = f"must be greater than 0 and less than {_DAY}"
            report.invalid(f"{path}.clientIP.timeoutSeconds", seconds, detail)


def _external_ips(spec: Spec, old: Spec, report: Report) -> None:  # upstream: validateService
    before = old.get("externalIPs") or ()
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        place = f"spec.externalIPs[{index}]"
        if ip in before or ip_legacy(ip, place, report):
            endpoint_ip(ip, place, report)


def _node_ports(spec: Spec, report: Report) -> None:  # upstream: validateService
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


def _source_ranges(service: Obj, old: Obj | None, report: Report) -> None:  # upstream: validateService
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


def _annotated_ranges(text: str, old: Obj | None, balanced: bool, report: Report) -> None:  # upstream: validateService
    path = f"metadata.annotations[{_RANGES}]"
    if not balanced:
        report.forbidden(path, _ONLY_BALANCED)
    if old is not None and (old["metadata"].get("annotations") or {}).get(_RANGES) == text:
        return
    for part in text.strip().split(",") if text.strip() else ():
        cidr_legacy(part.strip(), path, report)


def _balancing(spec: Spec, report: Report) -> None:  # upstream: validateService
    balanced = spec.get("type") == "LoadBalancer"
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        report.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED)
    if balanced and spec.get("allocateLoadBalancerNodePorts") is None:
        report.required("allocateLoadBalancerNodePorts")
    _balancer_class(spec, report)


def _balancer_class(spec: Spec, report: Report) -> None:  # upstream: validateLoadBalancerClassField
    name, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if name is None:
        return
    if spec.get("type") == "LoadBalancer":
        qualified_name(name, path, report)
    else:
        report.forbidden(path, _ONLY_BALANCED)


# upstream: validateServiceExternalTrafficPolicy, validateServiceInternalTrafficFieldsValue
def _traffic(spec: Spec, report: Report) -> None:
    policy, path = spec.get("externalTrafficPolicy") or "", "spec.externalTrafficPolicy"
    if is_reachable(spec):
        one_of_required("Cluster", "Local")(policy, path, report)
    elif policy:
        report.invalid(path, policy, "may only be set for externally-accessible services")
    number, path = spec.get("healthCheckNodePort") or 0, "spec.healthCheckNodePort"
    if not needs_health_check(spec):
        if number:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            report.invalid(path, number, detail)
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


def _check(service: Obj, old: Obj | None, report: Report) -> None:  # upstream: validateService
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


def validate_create(service: Obj, context: Context) -> list[FieldError]:  # upstream: ValidateServiceCreate
    report = Report(context)
    _check(service, None, report)
    return report.errors


def changes(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateServiceUpdate
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


def _ingress(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateLoadBalancerStatus
    ip, mode, place = value.get("ip"), value.get("ipMode"), f"{path}.ipMode"
    if ip and mode is None:
        report.required(place, "must be specified when `ip` is set")
    elif mode is not None and not ip:
        report.forbidden(place, "may not be specified when `ip` is not set")
    elif mode is not None:
        one_of("Proxy", "VIP")(mode, place, report)
    return True


_BALANCER_STATUS = balancer_status(_ingress)


def status_changes(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateServiceStatusUpdate
    balancer = new["status"].get("loadBalancer") or {}
    if new["spec"].get("type") != "LoadBalancer" and balancer.get("ingress"):
        return report.forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")
    return _BALANCER_STATUS(new, old, path, report)
