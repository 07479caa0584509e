"""NetworkPolicy. Upstream: pkg/registry/networking/networkpolicy/strategy.go, pkg/apis/networking/validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from konverge.apiserver.go.netip import parse_cidr_sloppy
from konverge.apiserver.kinds.framework.declare import (
    Field,
    Report,
    Rule,
    creation,
    field,
    given,
    items,
    one_of,
    required,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.rules.defaults import each, section_of
from konverge.apiserver.kinds.rules.names import port_name
from konverge.apiserver.kinds.rules.network import cidr_legacy, cidr_warnings
from konverge.apiserver.kinds.rules.numbers import port_number
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import Context, Obj, Strategy

_DIRECTIONS = (("ingress", "from"), ("egress", "to"))
_TYPES = ("Ingress", "Egress")


def _defaults(obj: Obj) -> None:  # upstream: SetDefaults_NetworkPolicyPort, SetDefaults_NetworkPolicy
    spec = section_of(obj, "spec")
    for direction, _ in _DIRECTIONS:
        for rule in each(spec, direction):
            for port in each(rule, "ports"):
                if port.get("protocol") is None:
                    port["protocol"] = "TCP"
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _port(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNetworkPolicyPort
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


_PORT = struct(given("protocol", one_of("TCP", "UDP", "SCTP")), _port)


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


def _rules(rule: Rule, ports: Rule | None = None) -> tuple[Field, ...]:
    """The same for both directions."""
    before = () if ports is None else (field("ports", items(ports)),)
    return tuple(
        field(direction, items(struct(*before, field(peers, items(rule))))) for direction, peers in _DIRECTIONS
    )


_SPEC = section(  # upstream: ValidateNetworkPolicySpec
    "spec",
    section("podSelector", label_selector),
    *_rules(_peer, _PORT),
    field("policyTypes", _types),
    *_rules(struct(field("ipBlock", struct(text("cidr", required))))),
)


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


def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:  # upstream: networkPolicyWarnings
    for path, block in _blocks(obj):
        yield from cidr_warnings(f"{path}.cidr", block.get("cidr") or "")
        for index, hole in enumerate(block.get("except") or ()):
            yield from cidr_warnings(f"{path}.except[{index}]", hole)


NETWORK_POLICY = Strategy(  # upstream: networkPolicyStrategy
    defaults=_defaults,
    validate_create=creation(_SPEC, scope=_stored_cidrs),
    validate_update=update(_SPEC, scope=_stored_cidrs),
    warnings=_warnings,
    generation=True,
)
