"""Ingress and IngressClass. Upstream: pkg/registry/networking/ingress/strategy.go, pkg/apis/networking/validation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.netip import parse_ip_sloppy
from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    field,
    given,
    items,
    one_of,
    required,
    section,
    struct,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import status_cleared, status_kept
from konverge.apiserver.kinds.rules.defaults import section_of
from konverge.apiserver.kinds.rules.names import (
    dns_label,
    dns_subdomain,
    domain_path,
    format_rule,
    port_name,
    wildcard_subdomain,
)
from konverge.apiserver.kinds.rules.network import ip_legacy, ip_warnings
from konverge.apiserver.kinds.rules.numbers import port_number
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import path_segment_errors

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
NOT_A_NAME = "must be a DNS name, not an IP address"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")
_segment = format_rule(path_segment_errors)

# upstream: validateIngressTypedLocalObjectReference
_RESOURCE = struct(given("apiGroup", dns_subdomain), text("kind", required, _segment), text("name", required, _segment))


def _port(value: Any, path: str, report: Report) -> bool:  # upstream: validateIngressBackend
    """The port of a backend, by name or by number; an error of both is reported at the backend."""
    port = (value.get("service") or {}).get("port") or {}
    name, number = port.get("name"), port.get("number")
    if name and number:
        return report.invalid(path, "", "cannot set both port name & port number")
    if name:
        return port_name(name, f"{path}.service.port.name", report)
    if number:
        return port_number(number, f"{path}.service.port.number", report)
    return report.required(path, "port name or number is required")


_SERVICE = struct(text("name", required, dns_label))


def _backend(value: Any, path: str, report: Report) -> bool:  # upstream: validateIngressBackend
    resource, service = value.get("resource"), value.get("service")
    if resource is not None and service is not None:
        return report.invalid(path, "", "cannot set both resource and service backends")
    if resource is not None:
        return _RESOURCE(resource, f"{path}.resource", report)
    if service is None:
        return report.invalid(path, "", "resource or service backend is required")
    _SERVICE(service, f"{path}.service", report)
    return _port(value, path, report)


def _path(value: Any, path: str, report: Report) -> bool:  # upstream: validateHTTPIngressPath
    kind, text, place = value.get("pathType"), value.get("path") or "", f"{path}.path"
    if kind is None:
        return report.required(f"{path}.pathType", "pathType must be specified")
    if kind not in _PATH_TYPES:
        report.not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        report.invalid(place, text, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for part in _BAD_PARTS:
            if part in text:
                report.invalid(place, text, f"must not contain '{part}'")
        for end in _BAD_ENDS:
            if text.endswith(end):
                report.invalid(place, text, f"cannot end with '{end}'")
    return _backend(value.get("backend") or {}, f"{path}.backend", report)


def _host(value: Any, path: str, report: Report) -> bool:  # upstream: validateIngressTLS
    return (wildcard_subdomain if "*" in value else dns_subdomain)(value, path, report)


def _rule_host(value: Any, path: str, report: Report) -> bool:  # upstream: validateIngressRules
    if parse_ip_sloppy(value) is not None:
        report.invalid(path, value, NOT_A_NAME)
    return _host(value, path, report)


def _has_backend(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateIngressSpec
    backend = value.get("rules") or value.get("defaultBackend") is not None
    return bool(backend) or report.invalid(path, None, "either `defaultBackend` or `rules` must be specified")


# upstream: validateIngressRules
_RULE = struct(field("host", _rule_host), field("http", struct(field("paths", required, items(_path)))))
_SPEC = section(  # upstream: ValidateIngressSpec
    "spec",
    _has_backend,
    field("defaultBackend", _backend),
    field("rules", items(_RULE)),
    field("tls", items(struct(field("hosts", items(_host)), field("secretName", dns_subdomain)))),
    given("ingressClassName", dns_subdomain),
)


def _one_class(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidateIngressCreate
    noted = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    named = obj["spec"].get("ingressClassName")
    if noted is None or named is None or noted == named:
        return True
    detail = "must match `ingressClassName` when both are specified"
    return report.invalid(f"annotations.{CLASS_ANNOTATION}", noted, detail)


def _known_ips(old: Obj) -> set[str]:
    listed = ((old.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return {entry["ip"] for entry in listed if entry.get("ip")}


def _balancer(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateIngressLoadBalancerStatus
    known = _known_ips(old)
    for index, entry in enumerate(((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()):
        place = f"status.loadBalancer.ingress[{index}]"
        if entry.get("ip") and entry["ip"] not in known:
            ip_legacy(entry["ip"], f"{place}.ip", report)
        host = entry.get("hostname")
        if host:
            dns_subdomain(host, f"{place}.hostname", report)
            if parse_ip_sloppy(host) is not None:
                report.invalid(f"{place}.hostname", host, NOT_A_NAME)
    return True


# upstream: ingressStatusStrategy.WarningsOnUpdate
def _odd_addresses(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """Warnings about addresses that are accepted, but not in canonical form."""
    for index, entry in enumerate(((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()):
        for detail in ip_warnings(f"status.loadBalancer.ingress[{index}]", entry.get("ip") or ""):
            if report.context is not None and not report.errors:
                report.context.warn(detail)
    return True


# upstream: ingressStrategy.WarningsOnCreate
def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    noted = CLASS_ANNOTATION in (obj["metadata"].get("annotations") or {})
    if old is not None or not noted or obj["spec"].get("ingressClassName") is not None:
        return ()
    return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]


INGRESS = Strategy(  # upstream: ingressStrategy
    prepare_create=status_cleared("networking.k8s.io", "v1", "Ingress"),
    prepare_update=status_kept,
    validate_create=creation(_SPEC, _one_class),
    validate_update=update(_SPEC),
    warnings=_warnings,
    status=StatusRules(validate=update(_balancer, _odd_addresses)),
    generation=True,
)


def _default_class(obj: Obj) -> None:  # upstream: SetDefaults_IngressClass
    parameters = section_of(obj, "spec").get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def _controller(value: Any, path: str, report: Report) -> bool:  # upstream: validateIngressClassSpec
    controller = value.get("controller") or ""
    if len(controller) > 250:
        report.too_long(f"{path}.controller", 250)
    return domain_path(controller, f"{path}.controller", report)


def _scope(value: Any, path: str, report: Report) -> bool:  # upstream: validateIngressClassParametersReference
    scope, namespace, place = value.get("scope"), value.get("namespace"), f"{path}.namespace"
    if scope == "Namespace":
        detail = "`parameters.scope` is set to 'Namespace'"
        return report.required(place, detail) if namespace is None else dns_label(namespace, place, report)
    if scope == "Cluster":
        return namespace is None or report.forbidden(place, "`parameters.scope` is set to 'Cluster'")
    return one_of("Cluster", "Namespace")(scope, f"{path}.scope", report)


# upstream: validateIngressClassParametersReference
_PARAMETERS = struct(given("apiGroup", dns_subdomain), field("kind", _segment), field("name", _segment), _scope)
_CLASS = section("spec", _controller, field("parameters", _PARAMETERS))  # upstream: validateIngressClassSpec
_NAMED = section("spec", field("parameters", struct(text("kind", required), text("name", required))))

INGRESS_CLASS = Strategy(  # upstream: ingressClassStrategy
    defaults=_default_class,
    validate_create=creation(_CLASS, _NAMED),
    validate_update=update(unchanged("spec.controller", absent=""), _CLASS, _NAMED),
    generation=True,
)
