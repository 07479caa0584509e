"""The NetworkPolicy of a Nacos: who may connect to the servers and, where that is asked for, what they may connect to.

The ports between servers take orders from whoever reaches them, so only the servers themselves do.

A policy knows addresses and pods, and no names: where the database has a name, its port is open to every address unless
the spec says where it is. DNS is open to every address too, because some clusters answer it on the node itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address

from msgspec.structs import replace

from konverge.objects import LabelSelector
from konverge.objects.kinds.networking_v1 import (
    IPBlock,
    NetworkPolicy,
    NetworkPolicyEgressRule,
    NetworkPolicyIngressRule,
    NetworkPolicyPeer,
    NetworkPolicyPort,
    NetworkPolicySpec,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.desired import Desired

OPERATOR = {"app.kubernetes.io/part-of": "konverge"}
"""The label of the operator's pods, whatever their installation is called."""
_FOR_CLIENTS = (names.CLIENT, names.NEW_RPC, names.CONSOLE)
_DNS = 53


def wants_network_policy(desired: Desired) -> bool:
    return desired.spec.network_policy.enabled


def network_policy(desired: Desired, kept: Iterable[NetworkPolicyEgressRule] = ()) -> NetworkPolicy:
    """`kept` is what servers of an earlier template may need: it stays open beside what the spec asks for."""
    spec = NetworkPolicySpec(
        pod_selector=LabelSelector(match_labels=names.selector(desired.name)),
        policy_types=["Ingress"],
        ingress=list(_ingress(desired)),
    )
    if desired.spec.network_policy.egress.enabled:
        spec.policy_types.append("Egress")
        spec.egress = list(_egress(desired))
        for rule in kept:
            if rule not in spec.egress:
                spec.egress.append(rule)
    return NetworkPolicy(metadata=desired.metadata(desired.name), spec=spec)


def _ingress(desired: Desired) -> Iterator[NetworkPolicyIngressRule]:
    clients = desired.spec.network_policy.clients
    yield NetworkPolicyIngressRule(from_=[_servers(desired)], ports=_ports(*names.PORTS))
    yield NetworkPolicyIngressRule(from_=clients, ports=_ports(*_FOR_CLIENTS))
    if clients:  # else everyone is one
        operator = NetworkPolicyPeer(
            namespace_selector=LabelSelector(), pod_selector=LabelSelector(match_labels=OPERATOR)
        )
        yield NetworkPolicyIngressRule(from_=[operator], ports=_ports(names.CLIENT))


def _egress(desired: Desired) -> Iterator[NetworkPolicyEgressRule]:
    egress = desired.spec.network_policy.egress
    yield NetworkPolicyEgressRule(to=[_servers(desired)], ports=_ports(*names.PORTS))
    yield NetworkPolicyEgressRule(ports=[_port(_DNS, "UDP"), _port(_DNS)])
    if desired.engine != "embedded":
        host, port = _database(desired)
        yield NetworkPolicyEgressRule(to=egress.database or _address(host), ports=[_port(port)])
    yield from map(_with_protocols, egress.allow)


def _with_protocols(rule: NetworkPolicyEgressRule) -> NetworkPolicyEgressRule:
    """As the API server fills it in, so that a rule is known again when it is read."""
    return replace(rule, ports=[replace(port, protocol=port.protocol or "TCP") for port in rule.ports])


def _database(desired: Desired) -> tuple[str, int]:
    if desired.engine == "mysql":
        return desired.spec.database.mysql_host, int(desired.spec.database.mysql_port)
    return desired.spec.postgres.host, int(desired.spec.postgres.port)


def _address(host: str) -> list[NetworkPolicyPeer]:
    """The address that a host is; empty, which is every address, where it is a name."""
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return []
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:  # known on one node only
            return []
        address = address.ipv4_mapped or address  # connections to such an address are IPv4
    return [NetworkPolicyPeer(ip_block=IPBlock(cidr=f"{address}/{address.max_prefixlen}"))]


def _servers(desired: Desired) -> NetworkPolicyPeer:
    return NetworkPolicyPeer(pod_selector=LabelSelector(match_labels=names.selector(desired.name)))


def _ports(*ports: str) -> list[NetworkPolicyPort]:
    return [_port(names.PORTS[name]) for name in ports]


def _port(number: int, protocol: str = "TCP") -> NetworkPolicyPort:
    return NetworkPolicyPort(port=number, protocol=protocol)
