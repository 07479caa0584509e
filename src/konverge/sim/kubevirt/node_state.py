"""The network of a node as NMState sees it: what it begins with, what a policy makes of it, and why it cannot. Pure.

Every node has `eth0`, which carries its address and the default route, and two free interfaces, `ens192` and `ens224`.
"""

from __future__ import annotations

from copy import deepcopy

from konverge.sim.kubevirt.kinds import Obj

NAME_LIMIT = 15
"""The kernel's, for the name of an interface."""
FREE = ("ens192", "ens224")
MAIN = "eth0"
_BRIDGES = ("linux-bridge", "ovs-bridge")


def first_state(address: str, number: int) -> Obj:
    """`address` is the node's own; `number` makes its MACs differ from those of other nodes."""
    plain = {"enabled": False}
    own = {"enabled": True, "dhcp": True, "address": [{"ip": address, "prefix-length": 24}]}
    objs: list[Obj] = [
        {"name": "lo", "type": "loopback", "state": "up", "mtu": 65536},
        {"name": MAIN, "type": "ethernet", "state": "up", "mac-address": _mac(number, 0), "mtu": 1500, "ipv4": own},
    ]
    objs += [
        {
            "name": name,
            "type": "ethernet",
            "state": "up",
            "mac-address": _mac(number, index),
            "mtu": 1500,
            "ipv4": plain,
        }
        for index, name in enumerate(FREE, 1)
    ]
    gateway = f"{address.rpartition('.')[0]}.1"
    route = {"destination": "0.0.0.0/0", "next-hop-interface": MAIN, "next-hop-address": gateway, "metric": 100}
    return {"interfaces": objs, "routes": {"running": [route], "config": []}}


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
