"""Bridges on the nodes, by NMState: only for interfaces that the operator's settings allow, and never for one that the
node itself is reached by.

A policy is named after its bridge, and all machines on that bridge share it. A bridge that is on the nodes already
needs none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.cache.record import Meta, Record
from konverge.objects import from_json
from konverge.objects.kinds.core_v1 import Node
from konverge.operators.wukong import names, wish
from konverge.operators.wukong.children.networks import policy_for
from konverge.operators.wukong.conditions import NETWORKS_CONFIGURED, Trouble
from konverge.operators.wukong.kinds import NodeNetworkConfigurationPolicy, NodeNetworkState
from konverge.operators.wukong.kinds.nmstate import NodeInterface
from konverge.operators.wukong.resource import AnyWukong
from konverge.operators.wukong.spec_networks import Network
from konverge.operators.wukong.steps.round import Round
from konverge.runtime import find_condition, is_true

BRIDGES = "bridges"
"""The index of Wukongs by the policies of the bridges that they ask for."""
_EVERYWHERE = ("0.0.0.0/0", "::/0")


async def node_network(round: Round, network: Network) -> Trouble | None:
    """The bridge of a network, if it is wished that the operator makes it."""
    if not wish.wants_policy(network):
        return None
    interface = network.physical_interface or ""
    if not round.options.node_networks:
        insists = network.node_network is not None and network.node_network.manage
        text = "the operator may not change nodes: make the bridge, or allow it in the operator's settings"
        return _no(network, "NodeNetworksNotAllowed", text) if insists else None
    if interface not in round.options.node_interfaces:
        return _no(network, "InterfaceNotAllowed", f"the operator may not put {interface} into a bridge")
    if not round.ctx.serves(NodeNetworkConfigurationPolicy):
        return _no(network, "NMStateMissing", "the cluster has no NMState: install it, or make the bridge yourself")
    return await _policy(round, network, wish.bridge_of(network), interface)


async def _policy(round: Round, network: Network, bridge: str, interface: str) -> Trouble | None:
    live = await round.ctx.get(NodeNetworkConfigurationPolicy, names.policy(bridge))
    wanted = policy_for(bridge, interface, "ovs" if network.type == "ovs" else "bridge")
    if live is not None and not _is_over(live, interface):
        return _no(network, "BridgeInUse", f"bridge {bridge} is over another interface than {interface} already")
    if live is not None and not _is_alike(live, wanted):
        return _no(network, "BridgeInUse", f"bridge {bridge} is there already, and not of type {network.type}")
    other = ""
    if live is None:
        states = await round.ctx.list(NodeNetworkState) if round.ctx.serves(NodeNetworkState) else []
        if states and all(_has_bridge(state, bridge, interface) for state in states):
            return None
        reached = await _own_traffic(round, states, interface)
        if reached:
            return _no(network, "InterfaceInUse", f"{interface} is what node {reached} is reached by")
        other = _bridge_on_nodes(states, interface, bridge)
    other = other or _bridge_of_others(await round.ctx.list(NodeNetworkConfigurationPolicy), live, interface, bridge)
    if other:
        return _no(network, "InterfaceInUse", f"{interface} is in bridge {other} already: use that one")
    await round.ctx.apply(wanted, own=False)
    return _judge(network, live)


def _bridge_of_others(
    policies: Iterable[NodeNetworkConfigurationPolicy],
    live: NodeNetworkConfigurationPolicy | None,
    interface: str,
    bridge: str,
) -> str:
    """An interface is in one bridge at a time: a second policy would take it from the machines on the first.

    Of two that were made in the same moment, the older one counts.
    """
    for policy in policies:
        if live is not None and _age(live) < _age(policy):
            continue
        for one in policy.spec.desired_state.get("interfaces", ()):
            if one.get("name") != bridge and any(port.get("name") == interface for port in _ports(one)):
                return str(one.get("name"))
    return ""


def _bridge_on_nodes(states: Iterable[NodeNetworkState], interface: str, bridge: str) -> str:
    """The bridge that has the interface on a node, whoever made it."""
    for state in states:
        for one in _interfaces(state):
            if one.name != bridge and any(port.get("name") == interface for port in _ports({"bridge": one.bridge})):
                return one.name
    return ""


def _age(policy: NodeNetworkConfigurationPolicy) -> tuple[str, str]:
    return policy.metadata.creation_timestamp or "", policy.metadata.name


def _judge(network: Network, live: NodeNetworkConfigurationPolicy | None) -> Trouble | None:
    conditions = live.status.conditions if live is not None else []
    if is_true(conditions, "Available"):
        return None
    degraded = find_condition(conditions, "Degraded")
    if degraded is not None and degraded.status == "True":
        return _no(network, "NodeNetworkFailed", degraded.message or "NMState could not make the bridge", failed=True)
    if is_true(conditions, "Ignored"):
        return _no(network, "NodeNetworkIgnored", "NMState finds no node for the bridge")
    return _no(network, "NodeNetworkProgressing", "NMState is making the bridge")


def _no(network: Network, reason: str, message: str, *, failed: bool = False) -> Trouble:
    return Trouble(NETWORKS_CONFIGURED, reason, f"network {network.name}: {message}", failed)


def _is_over(live: NodeNetworkConfigurationPolicy, interface: str) -> bool:
    ports = [port.get("name") for one in live.spec.desired_state.get("interfaces", ()) for port in _ports(one)]
    return not ports or interface in ports


def _is_alike(live: NodeNetworkConfigurationPolicy, wanted: NodeNetworkConfigurationPolicy) -> bool:
    """Whether both make the same sort of bridge: otherwise two machines would rewrite it for each other for ever."""
    (bridge,) = wanted.spec.desired_state["interfaces"]
    present = live.spec.desired_state.get("interfaces", ())
    return all(one.get("type") == bridge["type"] for one in present if one.get("name") == bridge["name"])


def _ports(interface: dict[str, Any]) -> list[dict[str, Any]]:
    return list((interface.get("bridge") or {}).get("port") or ())


async def is_on_nodes(round: Round, bridge: str) -> bool:
    """Whether any node has the bridge, as far as NMState tells."""
    states = await round.ctx.list(NodeNetworkState) if round.ctx.serves(NodeNetworkState) else []
    return any(one.name == bridge for state in states for one in _interfaces(state))


def _has_bridge(state: NodeNetworkState, bridge: str, interface: str) -> bool:
    return any(
        one.name == bridge and any(port.get("name") == interface for port in _ports({"bridge": one.bridge}))
        for one in _interfaces(state)
    )


def _interfaces(state: NodeNetworkState) -> list[NodeInterface]:
    current = state.status.current_state
    return list(current.interfaces or ()) if current is not None else []


async def _own_traffic(round: Round, states: Iterable[NodeNetworkState], interface: str) -> str:
    """A node whose default route or own address is on the interface."""
    for state in states:
        node = await round.ctx.get(Node, state.metadata.name)
        own = {one.address for one in node.status.addresses if one.type == "InternalIP"} if node is not None else set()
        if interface in _default_routes(state) or own & _addresses(state, interface):
            return state.metadata.name
    return ""


def _default_routes(state: NodeNetworkState) -> set[str]:
    current = state.status.current_state
    routes = current.routes.running if current is not None and current.routes is not None else []
    return {one.next_hop_interface or "" for one in routes if one.destination in _EVERYWHERE}


def _addresses(state: NodeNetworkState, interface: str) -> set[str]:
    found = [one for one in _interfaces(state) if one.name == interface]
    return {
        address.get("ip", "")
        for one in found
        for net in (one.ipv4, one.ipv6)
        for address in (net or {}).get("address", ())
    }


def bridges_of(record: Record, meta: Meta) -> Iterable[str]:
    """Which bridges a Wukong asks for, for the index: a policy goes with the last of them."""
    networks = from_json(AnyWukong, record.raw).spec.get("networks") or ()
    return [names.policy(bridge) for one in networks if isinstance(one, dict) and (bridge := _asked(one))]


def _asked(network: dict[str, Any]) -> str:
    if not network.get("physicalInterface") or network.get("nadName"):
        return ""
    return str(network.get("bridgeName") or names.bridge(str(network.get("name", ""))))
