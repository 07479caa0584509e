"""Bridges on the nodes, by NMState: only for interfaces that the operator's settings allow, and never for one that the
node itself is reached by.

A policy is named after its bridge, and all machines on that bridge share it. A bridge that is on the nodes already
needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from konverge.cache.record import Meta, Record
from konverge.objects import from_json
from konverge.objects.kinds.core_v1 import Node
from konverge.operators.wukong import effective_spec, names
from konverge.operators.wukong.children.networks import policy_for
from konverge.operators.wukong.kinds import NodeNetworkConfigurationPolicy, NodeNetworkState
from konverge.operators.wukong.kinds.networks import NodeInterface
from konverge.operators.wukong.ownership import adoption
from konverge.operators.wukong.resource import AnyWukong
from konverge.operators.wukong.spec_networks import Network
from konverge.operators.wukong.status import NETWORKS_CONFIGURED, Trouble
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.templates import resolved_spec
from konverge.runtime import find_condition, is_true

BRIDGES = "bridges"
"""The index of Wukongs by the policies of the bridges that they ask for."""
_EVERYWHERE = ("0.0.0.0/0", "::/0")


async def node_network(state: ReconcileState, network: Network) -> Trouble | None:
    """The bridge of a network, if the operator is asked to create it."""
    if not effective_spec.wants_policy(network):
        return None
    interface = network.physical_interface or ""
    if not state.options.node_networks:
        insists = network.node_network is not None and network.node_network.manage
        text = "the operator may not change nodes: make the bridge, or allow it in the operator's settings"
        return trouble(network, "NodeNetworksNotAllowed", text) if insists else None
    if interface not in state.options.node_interfaces:
        return trouble(network, "InterfaceNotAllowed", f"the operator may not put {interface} into a bridge")
    if not state.ctx.serves(NodeNetworkConfigurationPolicy):
        return trouble(network, "NMStateMissing", "the cluster has no NMState: install it, or make the bridge yourself")
    return await _policy(state, network, effective_spec.bridge_of(network), interface)


async def _policy(state: ReconcileState, network: Network, bridge: str, interface: str) -> Trouble | None:
    live = await state.ctx.get(NodeNetworkConfigurationPolicy, names.policy(bridge))
    wanted = policy_for(bridge, interface, "ovs" if network.type == "ovs" else "bridge")
    if live is not None and not is_our_policy(state, live):
        key, value = next(iter(adoption(state.name).items()))
        text = f"NodeNetworkConfigurationPolicy {live.metadata.name} belongs to another owner and is left as it is"
        hint = f"use another bridgeName, set nodeNetwork.manage to false, or hand it over with {key}: {value}"
        return trouble(network, "PolicyNotOurs", f"{text}: {hint}", failed=True)
    if live is not None and not _is_over(live, interface):
        return trouble(network, "BridgeInUse", f"bridge {bridge} is over another interface than {interface} already")
    if live is not None and not _is_alike(live, wanted):
        return trouble(network, "BridgeInUse", f"bridge {bridge} is there already, and not of type {network.type}")
    other = ""
    if live is None:
        states = await _states(state)
        if states and all(_has_bridge(node_state, bridge, interface) for node_state in states):
            return None
        reached = await _own_traffic(state, states, interface)
        if reached:
            return trouble(network, "InterfaceInUse", f"{interface} is what node {reached} is reached by")
        other = _bridge_on_nodes(states, interface, bridge)
    other = other or _bridge_of_others(await state.ctx.list(NodeNetworkConfigurationPolicy), live, interface, bridge)
    if other:
        return trouble(network, "InterfaceInUse", f"{interface} is in bridge {other} already: use that one")
    if live is not None:
        wanted.metadata.uid = live.metadata.uid
    await state.ctx.apply(wanted, own=False, force=live is not None)
    return _judge(network, live)


def is_our_policy(state: ReconcileState, policy: NodeNetworkConfigurationPolicy) -> bool:
    """All machines on a bridge share its policy, so it has a label instead of an owner; or it asks to be adopted."""
    return policy.metadata.labels.get(names.MANAGED_BY) == names.OPERATOR or state.owns(policy)


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
        for entry in policy.spec.desired_state.get("interfaces", ()):
            if entry.get("name") != bridge and interface in _ports(entry.get("bridge")):
                return str(entry.get("name"))
    return ""


def _bridge_on_nodes(states: Iterable[NodeNetworkState], interface: str, bridge: str) -> str:
    """The bridge that has the interface on a node, no matter who made it."""
    for node_state in states:
        for entry in _interfaces(node_state):
            if entry.name != bridge and interface in _ports(entry.bridge):
                return entry.name
    return ""


def _age(policy: NodeNetworkConfigurationPolicy) -> tuple[str, str]:
    return policy.metadata.creation_timestamp or "", policy.metadata.name


def _judge(network: Network, live: NodeNetworkConfigurationPolicy | None) -> Trouble | None:
    conditions = live.status.conditions if live is not None else []
    if is_true(conditions, "Available"):
        return None
    degraded = find_condition(conditions, "Degraded")
    if degraded is not None and degraded.status == "True":
        return trouble(
            network, "NodeNetworkFailed", degraded.message or "NMState could not make the bridge", failed=True
        )
    if is_true(conditions, "Ignored"):
        return trouble(network, "NodeNetworkIgnored", "NMState finds no node for the bridge")
    return trouble(network, "NodeNetworkProgressing", "NMState is making the bridge")


def trouble(network: Network, reason: str, message: str, *, failed: bool = False) -> Trouble:
    """What keeps a network from being there."""
    return Trouble(NETWORKS_CONFIGURED, reason, f"network {network.name}: {message}", failed)


def _is_over(live: NodeNetworkConfigurationPolicy, interface: str) -> bool:
    entries = live.spec.desired_state.get("interfaces", ())
    ports = [port for entry in entries for port in _ports(entry.get("bridge"))]
    return not ports or interface in ports


def _is_alike(live: NodeNetworkConfigurationPolicy, wanted: NodeNetworkConfigurationPolicy) -> bool:
    """Whether both make the same sort of bridge: otherwise two machines would rewrite it for each other for ever."""
    (bridge,) = wanted.spec.desired_state["interfaces"]
    present = live.spec.desired_state.get("interfaces", ())
    return all(entry.get("type") == bridge["type"] for entry in present if entry.get("name") == bridge["name"])


def _ports(bridge: dict[str, Any] | None) -> list[str]:
    """The interfaces that are in a bridge."""
    return [port.get("name", "") for port in (bridge or {}).get("port") or ()]


async def is_on_nodes(state: ReconcileState, bridge: str) -> bool:
    """Whether any node has the bridge, as far as NMState reports."""
    return any(entry.name == bridge for node_state in await _states(state) for entry in _interfaces(node_state))


async def _states(state: ReconcileState) -> Sequence[NodeNetworkState]:
    return await state.ctx.list(NodeNetworkState) if state.ctx.serves(NodeNetworkState) else []


def _has_bridge(node_state: NodeNetworkState, bridge: str, interface: str) -> bool:
    return any(entry.name == bridge and interface in _ports(entry.bridge) for entry in _interfaces(node_state))


def _interfaces(node_state: NodeNetworkState) -> list[NodeInterface]:
    current = node_state.status.current_state
    return list(current.interfaces or ()) if current is not None else []


async def _own_traffic(state: ReconcileState, states: Iterable[NodeNetworkState], interface: str) -> str:
    """A node whose default route or own address is on the interface."""
    for node_state in states:
        node = await state.ctx.get(Node, node_state.metadata.name)
        addresses = node.status.addresses if node is not None else []
        own = {address.address for address in addresses if address.type == "InternalIP"}
        if interface in _default_routes(node_state) or own & _addresses(node_state, interface):
            return node_state.metadata.name
    return ""


def _default_routes(node_state: NodeNetworkState) -> set[str | None]:
    current = node_state.status.current_state
    routes = current.routes.running if current is not None and current.routes is not None else []
    return {route.next_hop_interface for route in routes if route.destination in _EVERYWHERE}


def _addresses(node_state: NodeNetworkState, interface: str) -> set[str]:
    matching = [entry for entry in _interfaces(node_state) if entry.name == interface]
    nets = [net or {} for entry in matching for net in (entry.ipv4, entry.ipv6)]
    return {address.get("ip", "") for net in nets for address in net.get("address", ())}


def bridges_of(record: Record, meta: Meta) -> Iterable[str]:
    """Which bridges a Wukong asks for, for the index: a policy goes with the last of them."""
    networks = resolved_spec(from_json(AnyWukong, record.raw)).get("networks") or ()
    return [names.policy(bridge) for network in networks if isinstance(network, dict) and (bridge := _asked(network))]


def _asked(network: dict[str, Any]) -> str:
    if not network.get("physicalInterface") or network.get("nadName"):
        return ""
    return str(network.get("bridgeName") or names.bridge(str(network.get("name", ""))))
