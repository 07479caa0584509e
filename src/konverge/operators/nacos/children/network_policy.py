"""The NetworkPolicy of a Nacos: who may connect to the servers.

The ports between servers take orders from whoever reaches them, so only the servers themselves do. What servers connect
to is not restricted: databases, plugins and DNS are outside of what a policy can name.
"""

from __future__ import annotations

from konverge.objects import LabelSelector
from konverge.objects.kinds.networking_v1 import (
    NetworkPolicy,
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


def wants_network_policy(desired: Desired) -> bool:
    return desired.spec.network_policy.enabled


def network_policy(desired: Desired) -> NetworkPolicy:
    servers = LabelSelector(match_labels=names.selector(desired.name))
    clients = desired.spec.network_policy.clients
    rules = [
        NetworkPolicyIngressRule(from_=[NetworkPolicyPeer(pod_selector=servers)], ports=_ports(*names.PORTS)),
        NetworkPolicyIngressRule(from_=clients, ports=_ports(*_FOR_CLIENTS)),
    ]
    if clients:  # else everyone is one
        operator = NetworkPolicyPeer(
            namespace_selector=LabelSelector(), pod_selector=LabelSelector(match_labels=OPERATOR)
        )
        rules.append(NetworkPolicyIngressRule(from_=[operator], ports=_ports(names.CLIENT)))
    return NetworkPolicy(
        metadata=desired.metadata(desired.name),
        spec=NetworkPolicySpec(pod_selector=servers, policy_types=["Ingress"], ingress=rules),
    )


def _ports(*ports: str) -> list[NetworkPolicyPort]:
    return [NetworkPolicyPort(port=names.PORTS[name], protocol="TCP") for name in ports]
