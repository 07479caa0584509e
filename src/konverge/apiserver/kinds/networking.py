"""networking.k8s.io: NetworkPolicy, Ingress, IngressClass, IPAddress, ServiceCIDR.

Upstream: pkg/registry/networking, pkg/apis/networking/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from konverge.apiserver.go.netip import parse_cidr_sloppy, parse_ip_sloppy
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    IMMUTABLE,
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
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept, prepared
from konverge.apiserver.kinds.rules.defaults import each, fill_unset, section_of
from konverge.apiserver.kinds.rules.names import (
    dns_label,
    dns_subdomain,
    domain_path,
    path_segment,
    port_name,
    wildcard_subdomain,
)
from konverge.apiserver.kinds.rules.network import (
    NOT_A_NAME,
    balancer_status,
    cidr_legacy,
    cidr_strict,
    cidr_warnings,
    ip_strict,
)
from konverge.apiserver.kinds.rules.numbers import port_number
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

# --- NetworkPolicy

_DIRECTIONS = (("ingress", "from"), ("egress", "to"))
_TYPES = ("Ingress", "Egress")


def _default_policy(obj: Obj) -> None:  # upstream: SetDefaults_NetworkPolicyPort, SetDefaults_NetworkPolicy
    spec = section_of(obj, "spec")
    for direction, _ in _DIRECTIONS:
        for rule in each(spec, direction):
            for port in each(rule, "ports"):
                fill_unset(port, {"protocol": "TCP"})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _policy_port(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNetworkPolicyPort
    port, end = value.get("port"), value.get("endPort")
    if isinstance(port, int):
        port_number(port, f"{path}.port", report)
        if end is None:
            return True
        if end < port:
            report.invalid(f"{path}.endPort", end, "must be greater than or equal to `port`")
        return port_number(end, f"{path}.endPort", report)
    if end is not None:
        why = "is not specified" if port is None else "is non-numeric"
        report.invalid(f"{path}.endPort", end, f"may not be specified when `port` {why}")
    return port is None or port_name(port, f"{path}.port", report)


_POLICY_PORT = struct(given("protocol", one_of("TCP", "UDP", "SCTP")), _policy_port)


def _cidr(value: str, path: str, report: Report) -> bool:
    """What was stored stays valid."""
    return value in report.scope or cidr_legacy(value, path, report)


def _block(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateIPBlock
    text_of = value.get("cidr") or ""
    if not text_of:
        return True
    _cidr(text_of, f"{path}.cidr", report)
    outer = parse_cidr_sloppy(text_of)
    if outer is None:
        return True
    for index, hole in enumerate(value.get("except") or ()):
        place = f"{path}.except[{index}]"
        _cidr(hole, place, report)
        inner = parse_cidr_sloppy(hole)
        if inner is not None and not _inside(inner, outer):
            report.invalid(place, hole, "must be a strict subset of `cidr`")
    return True


def _inside(inner: Any, outer: Any) -> bool:
    return inner[0] in outer[1] and inner[1].prefixlen > outer[1].prefixlen


def _peer(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNetworkPolicyPeer
    selectors = [name for name in ("podSelector", "namespaceSelector") if value.get(name) is not None]
    for name in selectors:
        label_selector(value[name], f"{path}.{name}", report)
    block = value.get("ipBlock")
    if block is None:
        return bool(selectors) or report.required(path, "must specify a peer")
    _block(block, f"{path}.ipBlock", report)
    return not selectors or report.forbidden(path, "may not specify both ipBlock and another peer")


def _types(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNetworkPolicySpec
    if len(value) > len(_TYPES):
        return report.invalid(path, value, "may not specify more than two policyTypes")
    return items(one_of(*_TYPES))(value, path, report)


_POLICY = section(  # upstream: ValidateNetworkPolicySpec
    "spec",
    section("podSelector", label_selector),
    *(
        field(direction, items(struct(field("ports", items(_POLICY_PORT)), field(peers, items(_peer)))))
        for direction, peers in _DIRECTIONS
    ),
    field("policyTypes", _types),
)
_DECLARED_POLICY = Declared("networking/v1.NetworkPolicy")


def _blocks(obj: Obj) -> Iterator[tuple[str, Obj]]:
    """Every ipBlock of a policy with its path."""
    for direction, peers in _DIRECTIONS:
        for i, rule in enumerate(each(obj["spec"], direction)):
            for j, peer in enumerate(each(rule, peers)):
                if peer.get("ipBlock") is not None:
                    yield f"spec.{direction}[{i}].{peers}[{j}].ipBlock", peer["ipBlock"]


def _stored_cidrs(obj: Obj, old: Obj | None) -> set[str]:  # upstream: ValidationOptionsForNetworking
    blocks = _blocks(old) if old is not None else ()
    return {cidr for _, block in blocks for cidr in (block.get("cidr"), *(block.get("except") or ())) if cidr}


def _policy_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:  # upstream: networkPolicyWarnings
    for path, block in _blocks(obj):
        yield from cidr_warnings(f"{path}.cidr", block.get("cidr") or "")
        for index, hole in enumerate(block.get("except") or ()):
            yield from cidr_warnings(f"{path}.except[{index}]", hole)


NETWORK_POLICY = Strategy(  # upstream: networkPolicyStrategy
    defaults=_default_policy,
    validate_create=creation(_POLICY, _DECLARED_POLICY.created, scope=_stored_cidrs),
    validate_update=update(_POLICY, _DECLARED_POLICY.updated, scope=_stored_cidrs),
    warnings=_policy_warnings,
    generation=True,
)


# --- Ingress and IngressClass

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")

# upstream: validateIngressTypedLocalObjectReference
_RESOURCE = struct(
    given("apiGroup", dns_subdomain), text("kind", required, path_segment), text("name", required, path_segment)
)


def _backend_port(value: Any, path: str, report: Report) -> bool:  # upstream: validateIngressBackend
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
    return _backend_port(value, path, report)


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
_INGRESS_RULE = struct(field("host", _rule_host), field("http", struct(field("paths", required, items(_path)))))
_INGRESS = section(  # upstream: ValidateIngressSpec
    "spec",
    _has_backend,
    field("defaultBackend", _backend),
    field("rules", items(_INGRESS_RULE)),
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


# upstream: ingressStrategy.WarningsOnCreate
def _ingress_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    noted = CLASS_ANNOTATION in (obj["metadata"].get("annotations") or {})
    if old is not None or not noted or obj["spec"].get("ingressClassName") is not None:
        return ()
    return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]


INGRESS = Strategy(  # upstream: ingressStrategy
    **prepared(status=("networking.k8s.io", "v1", "Ingress")),
    validate_create=creation(_INGRESS, _one_class),
    validate_update=update(_INGRESS),
    warnings=_ingress_warnings,
    status=StatusRules(validate=update(balancer_status())),
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


def _scoped(value: Any, path: str, report: Report) -> bool:  # upstream: validateIngressClassParametersReference
    scope, namespace, place = value.get("scope"), value.get("namespace"), f"{path}.namespace"
    if scope == "Namespace":
        detail = "`parameters.scope` is set to 'Namespace'"
        return report.required(place, detail) if namespace is None else dns_label(namespace, place, report)
    if scope == "Cluster":
        return namespace is None or report.forbidden(place, "`parameters.scope` is set to 'Cluster'")
    return one_of("Cluster", "Namespace")(scope, f"{path}.scope", report)


# upstream: validateIngressClassParametersReference
_PARAMETERS = struct(
    given("apiGroup", dns_subdomain), field("kind", path_segment), field("name", path_segment), _scoped
)
_CLASS = section("spec", _controller, field("parameters", _PARAMETERS))  # upstream: validateIngressClassSpec
_DECLARED_CLASS = Declared("networking/v1.IngressClass")

INGRESS_CLASS = Strategy(  # upstream: ingressClassStrategy
    defaults=_default_class,
    validate_create=creation(_CLASS, _DECLARED_CLASS.created),
    validate_update=update(unchanged("spec.controller", absent=""), _CLASS, _DECLARED_CLASS.updated),
    generation=True,
)


# --- addresses of services


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
            field("resource", path_segment),
            field("name", path_segment),
            field("namespace", path_segment),
        ),
    ),
)
_DECLARED_ADDRESS = Declared("networking/v1.IPAddress")

IP_ADDRESS = Strategy(  # upstream: ipAddressStrategy
    validate_create=creation(_PARENT, _DECLARED_ADDRESS.created),
    validate_update=update(_PARENT, _DECLARED_ADDRESS.updated),
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
    **prepared(status=("networking.k8s.io", "v1", "ServiceCIDR")),
    validate_create=creation(section("spec", _cidrs)),
    validate_update=update(_only_a_second),
    status=StatusRules(prepare=metadata_kept),
)

STRATEGIES = {
    "Ingress": INGRESS,
    "IngressClass": INGRESS_CLASS,
    "NetworkPolicy": NETWORK_POLICY,
    "IPAddress": IP_ADDRESS,
    "ServiceCIDR": SERVICE_CIDR,
}
