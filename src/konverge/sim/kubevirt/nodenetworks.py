"""NMState: policies take effect on the nodes that they select, one enactment each, or are rolled back there.

Deleting a policy changes nothing on any node.

The network of a node is pure data: what it begins with (`eth0` carries the node's own traffic), and what a policy makes
of it. Upstream: kubernetes-nmstate, controllers/handler.
"""

from __future__ import annotations

from copy import deepcopy
from math import inf
from typing import Any

from konverge.client import AlreadyExists, Client
from konverge.objects.codec import to_dict
from konverge.objects.kinds.core_v1 import Node
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Result, Use, Watches
from konverge.sim.kubevirt import faults
from konverge.sim.kubevirt.controller import PhaseController, every
from konverge.sim.kubevirt.kinds import (
    Enactment,
    Foreign,
    NodePolicy,
    NodeState,
    Obj,
    condition,
    kept,
    reference,
    save,
    set_condition,
)

NAME_LIMIT = 15
"""The kernel's, for the name of an interface."""
FREE = ("ens192", "ens224")
MAIN = "eth0"
_BRIDGES = ("linux-bridge", "ovs-bridge")


def first_state(address: str, number: int) -> Obj:
    """`address` is the node's own; `number` makes its MACs differ from those of other nodes."""
    own = {"enabled": True, "dhcp": True, "address": [{"ip": address, "prefix-length": 24}]}
    interfaces: list[Obj] = [{"name": "lo", "type": "loopback", "state": "up", "mtu": 65536}]
    for index, name in enumerate((MAIN, *FREE)):
        card = {"name": name, "type": "ethernet", "state": "up", "mac-address": _mac(number, index), "mtu": 1500}
        interfaces.append({**card, "ipv4": own if name == MAIN else {"enabled": False}})
    gateway = f"{address.rpartition('.')[0]}.1"
    route = {"destination": "0.0.0.0/0", "next-hop-interface": MAIN, "next-hop-address": gateway, "metric": 100}
    return {"interfaces": interfaces, "routes": {"running": [route], "config": []}}


def _mac(number: int, index: int) -> str:
    return f"52:54:00:{number // 256 % 256:02x}:{number % 256:02x}:{index:02x}"


def problem(desired: Obj, state: Obj) -> str:
    """Why a node does not take a policy; nothing when it does."""
    wanted = desired.get("interfaces") or []
    there = {interface["name"] for interface in state.get("interfaces", [])}
    there |= {interface.get("name") for interface in wanted if interface.get("state") != "absent"}
    for interface in wanted:
        name = str(interface.get("name", ""))
        if not name:
            return "InvalidArgument: an interface has no name"
        if len(name) > NAME_LIMIT:
            return f"InvalidArgument: the interface name {name} is longer than {NAME_LIMIT} characters"
        if interface.get("state") == "absent":
            continue
        base = (interface.get("vlan") or {}).get("base-iface")
        missing = [name for name in (*_ports(interface), *([base] if base else [])) if name not in there]
        if missing:
            return f"NmstateError: VerificationError: interface {missing[0]} of {name} does not exist"
    return ""


def _ports(interface: Obj) -> list[str]:
    return [str(port.get("name")) for port in (interface.get("bridge") or {}).get("port") or []]


def applied(desired: Obj, state: Obj) -> Obj:
    """The state after a policy: interfaces by name, those that are absent gone, ports under their bridge."""
    made = deepcopy(state)
    by_name: dict[str, Obj] = {interface["name"]: interface for interface in made.get("interfaces", [])}
    for interface in desired.get("interfaces") or []:
        if interface.get("state") == "absent":
            by_name.pop(interface["name"], None)
            _release(by_name, interface["name"])
        else:
            by_name[interface["name"]] = {**by_name.get(interface["name"], {}), **deepcopy(interface)}
    for bridge in [interface for interface in by_name.values() if interface.get("type") in _BRIDGES]:
        for port in _ports(bridge):
            if port in by_name:
                by_name[port]["controller"] = bridge["name"]
    made["interfaces"] = list(by_name.values())
    return made


def _release(interfaces: dict[str, Obj], bridge: str) -> None:
    """What was under a bridge that has gone is down until a policy brings it up."""
    for interface in interfaces.values():
        if interface.get("controller") == bridge:
            del interface["controller"]
            interface["state"] = "down"


TYPES = ("Available", "Degraded", "Progressing", "Ignored")
_REFUSED = "NmstateError: the nodes refuse it, on purpose"


class NodeNetworks(PhaseController[NodePolicy]):
    """Two controllers: what nodes have, and what policies make of it."""

    kind, short = NodePolicy, "nncp"
    name, component = "nmstate-policies", "nmstate-handler"

    def controllers(self) -> list[Controller[Any]]:
        nodes, states = (Watches(kind, lookup=every(NodePolicy)) for kind in (Node, NodeState))
        return [
            Controller(Node, self.observe, name="nmstate-handler", uses=[Use(NodeState, cached=True)]),
            self._declared(nodes, states, uses=[Use(Enactment, cached=True)]),
        ]

    async def observe(self, ctx: Context[Node]) -> Result | None:
        """Every node has a state of its own name."""
        node = ctx.obj
        address = next((address.address for address in node.status.addresses if address.type == "InternalIP"), "")
        if ctx.deleting or not address or await ctx.get(NodeState, node.metadata.name) is not None:
            return None
        made = NodeState(metadata=ObjectMeta(name=node.metadata.name))
        number = int(address.rpartition(".")[2]) if address.rpartition(".")[2].isdigit() else 0
        await _make(ctx.client, made, node, {"currentState": first_state(address, number)})
        return None

    # -------------------------------------------------------------- policies

    async def _selected(self, ctx: Context[NodePolicy]) -> list[NodeState]:
        wanted = ctx.obj.spec.get("nodeSelector") or {}
        selected = []
        for node in await ctx.list(Node, ""):
            labels = node.metadata.labels
            state = await ctx.get(NodeState, node.metadata.name)
            if state is not None and all(labels.get(key) == value for key, value in wanted.items()):
                selected.append(state)
        return selected

    async def _advance(self, ctx: Context[NodePolicy], wrong: faults.Faults) -> float:
        policy, status = ctx.obj, ctx.obj.status
        states = await self._selected(ctx)
        if not states:
            _show(status, "Ignored", "NoMatchingNode", "Policy does not match any node")
            return inf
        verdicts = {state.metadata.name: self._verdict(policy, state, wrong) for state in states}
        open_ones = [state for state in states if not await self._is_done(ctx, state, verdicts[state.metadata.name])]
        if open_ones:
            step = f"generation {policy.metadata.generation}"
            if condition(status, "Progressing").get("status") != "True":
                self._pace.again(policy.metadata, step)
            left = self._pace.left(policy.metadata, step, self._timings.network)
            _show(status, "Progressing", "ConfigurationProgressing", "Policy is progressing")
            if left or "stuck" in wrong:
                return left or inf
            for state in open_ones:
                await self._enact(ctx, state, verdicts[state.metadata.name])
        failed = {name: why for name, why in verdicts.items() if why}
        if failed:
            name, why = min(failed.items())
            message = f"{len(failed)}/{len(states)} nodes failed to configure: {name}: {why}"
            _show(status, "Degraded", "FailedToConfigure", message)
        else:
            message = f"{len(states)}/{len(states)} nodes successfully configured"
            _show(status, "Available", "SuccessfullyConfigured", message)
        return inf

    def _verdict(self, policy: NodePolicy, state: NodeState, wrong: faults.Faults) -> str:
        if "degraded" in wrong:
            return _REFUSED
        return problem(policy.spec.get("desiredState") or {}, state.status.get("currentState") or {})

    async def _is_done(self, ctx: Context[NodePolicy], state: NodeState, verdict: str) -> bool:
        """This generation has been tried there, with the outcome that it would have now."""
        enactment = await ctx.get(Enactment, f"{state.metadata.name}.{ctx.obj.metadata.name}")
        if enactment is None or enactment.status.get("policyGeneration") != ctx.obj.metadata.generation:
            return False
        return bool(condition(enactment.status, "Failing").get("message", "") == verdict)

    async def _enact(self, ctx: Context[NodePolicy], state: NodeState, verdict: str) -> None:
        policy, name = ctx.obj, f"{state.metadata.name}.{ctx.obj.metadata.name}"
        desired = policy.spec.get("desiredState") or {}
        status: Obj = {"policyGeneration": policy.metadata.generation, "desiredState": desired}
        set_condition(status, "Available", not verdict, "FailedToConfigure" if verdict else "SuccessfullyConfigured")
        set_condition(status, "Failing", bool(verdict), "FailedToConfigure" if verdict else "", verdict)
        enactment = await ctx.get(Enactment, name)
        if enactment is None:
            await _make(ctx.client, Enactment(metadata=ObjectMeta(name=name)), policy, status)
        else:
            before, enactment.status = kept(enactment), status
            await save(ctx.client, enactment, before)
        if not verdict:
            before = kept(state)
            state.status["currentState"] = applied(desired, state.status.get("currentState") or {})
            await save(ctx.client, state, before)


def _show(status: Obj, name: str, reason: str, message: str) -> None:
    """One of the conditions holds, the others do not."""
    for condition_type in TYPES:
        holds = condition_type == name
        set_condition(status, condition_type, holds, reason, message if holds else "")


async def _make(client: Client, made: Foreign, owner: Node | NodePolicy, status: Obj) -> None:
    """An object that goes with its owner; its status is written afterwards, as the API wants it."""
    body = to_dict(made)
    body["metadata"]["ownerReferences"] = [reference(owner)]
    try:
        await client.create(body, resource=made.resource)
    except AlreadyExists:
        return
    live = await client.get(type(made), made.metadata.name)
    live.status = status
    await save(client, live, {})
