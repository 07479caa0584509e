"""From a VirtualMachine to its instance: what KubeVirt fills in, and which changes reach a guest that runs. Pure."""

from __future__ import annotations

from copy import deepcopy
from uuid import UUID, uuid5

from konverge.objects.quantity import Quantity
from konverge.sim.kubevirt.kinds import Obj, VirtualMachine, reference

FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
FOREGROUND = "foregroundDeleteVirtualMachine"
ROOM = 4
"""How far CPU and memory can grow while the guest runs: the default ratio of a cluster that updates live."""
_TOPOLOGY = ("cores", "sockets", "threads")
_FIRMWARE = UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")
"""KubeVirt's own namespace: machines that came without an identity get one from their name."""


def strategy(spec: Obj) -> str:
    """The run strategy; the old boolean stands for two of them."""
    running = spec.get("running")
    if running is not None:
        return "Always" if running else "Halted"
    return str(spec.get("runStrategy") or "Halted")


def instance_for(machine: VirtualMachine, size: Obj | None = None, *, live: bool = False) -> Obj:
    """The VirtualMachineInstance; `size` is the spec of its instance type, `live`: the cluster updates live."""
    template = machine.spec["template"]
    meta = template.get("metadata") or {}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": machine.metadata.name,
            "namespace": machine.metadata.namespace,
            "labels": dict(meta.get("labels") or {}),
            "annotations": dict(meta.get("annotations") or {}),
            "ownerReferences": [reference(machine)],
            "finalizers": [FINALIZER, FOREGROUND],
        },
        "spec": spec_for(machine, size, live=live),
    }


def spec_for(machine: VirtualMachine, size: Obj | None = None, *, live: bool = False) -> Obj:
    spec: Obj = deepcopy(machine.spec["template"]["spec"])
    domain = spec["domain"]
    _size(domain, size)
    domain.setdefault("firmware", {}).setdefault("uuid", firmware_uuid(machine.metadata.name))
    spec.setdefault("evictionStrategy", "None")
    spec.setdefault("terminationGracePeriodSeconds", 180)
    _disks(spec)
    _network(spec)
    if live:
        _leave_room(domain)
    return spec


def firmware_uuid(name: str) -> str:
    return str(uuid5(_FIRMWARE, name))


def _size(domain: Obj, size: Obj | None) -> None:
    if size is not None:
        domain["cpu"] = {**domain.get("cpu", {}), "sockets": size["cpu"]["guest"], "cores": 1, "threads": 1}
        domain["memory"] = {**domain.get("memory", {}), "guest": size["memory"]["guest"]}
    cpu = domain.setdefault("cpu", {})
    for name in _TOPOLOGY:
        cpu.setdefault(name, 1)
    memory = domain.setdefault("memory", {})
    requested = ((domain.get("resources") or {}).get("requests") or {}).get("memory")
    memory.setdefault("guest", requested or "1Gi")


def _disks(spec: Obj) -> None:
    """A disk for each volume that has none."""
    disks = spec["domain"]["devices"].setdefault("disks", [])
    known = {disk["name"] for disk in (*disks, *spec["domain"]["devices"].get("filesystems", []))}
    for volume in spec.get("volumes", []):
        if volume["name"] not in known:
            disks.append({"name": volume["name"], "disk": {"bus": "sata"}})


def _network(spec: Obj) -> None:
    """The pod network, where none is named and none is refused."""
    devices = spec["domain"]["devices"]
    if not devices.get("interfaces") and devices.get("autoattachPodInterface", True):
        devices["interfaces"] = [{"name": "default", "masquerade": {}}]
        spec["networks"] = [{"name": "default", "pod": {}}]


def _leave_room(domain: Obj) -> None:
    domain["cpu"].setdefault("maxSockets", domain["cpu"]["sockets"] * ROOM)
    domain["memory"].setdefault("maxGuest", str(Quantity(str(domain["memory"]["guest"])) * ROOM))


# ------------------------------------------------------------------ changes while it runs


def propagated(running: Obj, wanted: Obj) -> Obj | None:
    """The spec of a running instance after a live update; None when something is left that needs a restart."""
    made = deepcopy(running)
    cpu, memory = made["domain"]["cpu"], made["domain"]["memory"]
    more = wanted["domain"]["cpu"]["sockets"]
    if cpu["sockets"] < more <= cpu.get("maxSockets", cpu["sockets"]):
        cpu["sockets"] = more
    guest = Quantity(str(wanted["domain"]["memory"]["guest"]))
    if Quantity(str(memory["guest"])) < guest <= Quantity(str(memory.get("maxGuest", memory["guest"]))):
        memory["guest"] = wanted["domain"]["memory"]["guest"]
    _plug_networks(made, wanted)
    _plug_volumes(made, wanted)
    return made if comparable(made) == comparable(wanted) else None


def comparable(spec: Obj) -> Obj:
    """What counts of a spec when two are compared: the room to grow follows from the size at the start, and entries are
    known by their names, not by their places: what is plugged in comes last, wherever the template has it."""
    compared = deepcopy(spec)
    compared["domain"]["cpu"].pop("maxSockets", None)
    compared["domain"]["memory"].pop("maxGuest", None)
    devices = compared["domain"]["devices"]
    for holder, key in ((compared, "volumes"), (compared, "networks"), (devices, "disks"), (devices, "interfaces")):
        if key in holder:
            holder[key] = sorted(holder[key], key=lambda entry: str(entry["name"]))
    return compared


def _plug_networks(made: Obj, wanted: Obj) -> None:
    """New ones with a bridge or SR-IOV are plugged in; those that are to be absent are unplugged."""
    have = {interface["name"]: interface for interface in made["domain"]["devices"].get("interfaces", [])}
    desired = {interface["name"]: interface for interface in wanted["domain"]["devices"].get("interfaces", [])}
    pluggable = [
        interface
        for name, interface in desired.items()
        if name not in have and ("bridge" in interface or "sriov" in interface)
    ]
    absent = {name for name, interface in desired.items() if interface.get("state") == "absent" and name in have}
    if pluggable or absent:
        made["domain"]["devices"]["interfaces"] = [
            *(desired[name] if name in absent else interface for name, interface in have.items()),
            *pluggable,
        ]
        names = {interface["name"] for interface in pluggable}
        made["networks"] = [
            *made.get("networks", []),
            *(network for network in wanted.get("networks", []) if network["name"] in names),
        ]


def _plug_volumes(made: Obj, wanted: Obj) -> None:
    """Volumes that say that they can be plugged come and go."""
    have = {volume["name"] for volume in made.get("volumes", [])}
    desired = {volume["name"] for volume in wanted.get("volumes", [])}
    coming = [volume for volume in wanted.get("volumes", []) if volume["name"] not in have and _pluggable(volume)]
    going = {
        volume["name"] for volume in made.get("volumes", []) if volume["name"] not in desired and _pluggable(volume)
    }
    if not coming and not going:
        return
    names = {volume["name"] for volume in coming}
    disks = [disk for disk in made["domain"]["devices"]["disks"] if disk["name"] not in going]
    disks += [disk for disk in wanted["domain"]["devices"]["disks"] if disk["name"] in names]
    made["domain"]["devices"]["disks"] = disks
    made["volumes"] = [*(volume for volume in made.get("volumes", []) if volume["name"] not in going), *coming]


def _pluggable(volume: Obj) -> bool:
    return any(isinstance(source, dict) and source.get("hotpluggable") for source in volume.values())
