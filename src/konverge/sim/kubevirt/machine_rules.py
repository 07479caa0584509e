"""What KubeVirt's webhooks say about a VirtualMachine: what they refuse, and what they fill in. Pure.

A problem is the path of a field and what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from uuid import UUID, uuid5

from konverge.sim.kubevirt.kinds import Obj

Problem = tuple[str, str]

ARCHITECTURE = "amd64"
MACHINE_TYPE = "q35"
PCI_TOPOLOGY = "kubevirt.io/pci-topology-version"
_BOARDS = UUID("6f1f3c52-5a0b-4f4e-9a54-0a4c3f1d2b77")
USER_DATA_LIMIT = 2048
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?").fullmatch
_SERIAL = re.compile(r"[A-Za-z0-9_.+-]{1,256}").fullmatch
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}").fullmatch
_BUSES = ("virtio", "sata", "scsi", "usb")
_SORTS = ("disk", "cdrom", "lun")
_TEMPLATE = "spec.template.spec"
_DEVICES = f"{_TEMPLATE}.domain.devices"


def fill_in(machine: Obj, *, new: bool) -> None:
    """Architecture and machine type, and once the identity of its board: an operator that writes whole specs fights
    with this for ever. Upstream the identity is random; here it follows from the name, so that a seed repeats."""
    outer = (machine.get("spec") or {}).get("template") or {}
    template = outer.get("spec")
    if not isinstance(template, dict) or not isinstance(template.get("domain"), dict):
        return
    template.setdefault("architecture", ARCHITECTURE)
    template["domain"].setdefault("machine", {}).setdefault("type", MACHINE_TYPE)
    if new:
        meta = machine["metadata"]
        firmware = template["domain"].setdefault("firmware", {})
        for key in ("uuid", "serial"):
            firmware.setdefault(key, str(uuid5(_BOARDS, f"{key} {meta.get('namespace')}/{meta.get('name')}")))
        outer.setdefault("metadata", {}).setdefault("annotations", {}).setdefault(PCI_TOPOLOGY, "v3")


def problems(machine: Obj) -> list[Problem]:
    """What is wrong with a machine whose shape the schema has accepted."""
    spec = machine["spec"]
    template = spec["template"]["spec"]
    return [
        *_networks(template),
        *_volumes(template),
        *_disks(template),
        *_boot_order(template),
        *_cloud_init(template),
        *_sizes(spec, template),
    ]


def _twice(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]


def _networks(template: Obj) -> Iterator[Problem]:
    interfaces = template["domain"]["devices"].get("interfaces", [])
    networks = template.get("networks", [])
    mine, theirs = [interface["name"] for interface in interfaces], [network["name"] for network in networks]
    for name in sorted(_twice(mine)):
        yield f"{_DEVICES}.interfaces", f"Only one interface can be connected to one specific network: {name}"
    for name in sorted(_twice(theirs)):
        yield (
            f"{_TEMPLATE}.networks",
            f"Network with name {name!r} already exists, every network must have a unique name",
        )
    for name in sorted(set(mine) - set(theirs)):
        yield f"{_DEVICES}.interfaces", f"interface {name!r} has no network of that name"
    for name in sorted(set(theirs) - set(mine)):
        yield f"{_TEMPLATE}.networks", f"network {name!r} has no interface of that name"
    on_pod = [network for network in networks if "pod" in network]
    default = [network for network in networks if (network.get("multus") or {}).get("default")]
    if len(on_pod) > 1:
        yield f"{_TEMPLATE}.networks", "more than one interface is connected to a pod network"
    if on_pod and default:
        yield f"{_TEMPLATE}.networks", "Pod network cannot be defined when Multus default network is defined"
    pods = {network["name"] for network in on_pod}
    for network in networks:
        if ("pod" in network) == ("multus" in network):
            yield f"{_TEMPLATE}.networks", f"network {network['name']!r} should have exactly one type: pod or multus"
        elif "multus" in network and not network["multus"].get("networkName"):
            yield f"{_TEMPLATE}.networks", f"network {network['name']!r} has no networkName"
    for interface in interfaces:
        if "masquerade" in interface and interface["name"] in theirs and interface["name"] not in pods:
            yield f"{_DEVICES}.interfaces", "Masquerade interface only implemented with pod network"
        mac = interface.get("macAddress")
        if mac is not None and not _MAC(mac):
            yield f"{_DEVICES}.interfaces", f"interface {interface['name']!r} has malformed MAC address ({mac})"


def _volumes(template: Obj) -> Iterator[Problem]:
    volumes = template.get("volumes", [])
    for name in sorted(_twice(volume["name"] for volume in volumes)):
        yield f"{_TEMPLATE}.volumes", f"volume {name!r} must have a unique name"
    for volume in volumes:
        sources = [key for key in volume if key != "name"]
        if len(sources) != 1:
            yield f"{_TEMPLATE}.volumes", f"volume {volume['name']!r} must have exactly one source type set"


def _disks(template: Obj) -> Iterator[Problem]:
    disks = template["domain"]["devices"].get("disks", [])
    volumes = {volume["name"]: volume for volume in template.get("volumes", [])}
    path = f"{_DEVICES}.disks"
    for name in sorted(_twice(disk["name"] for disk in disks)):
        yield path, f"disk {name!r} must have a unique name"
    for disk in disks:
        name = disk["name"]
        if not _LABEL(name):
            yield path, f"disk name {name!r} must be a DNS label"
        if name not in volumes:
            yield path, f"{path}[{name}] references a volume that does not exist"
        sort = next((target for target in _SORTS if target in disk), "disk")
        device = disk.get(sort) or {}
        bus = device.get("bus", "sata" if sort == "cdrom" else "virtio")
        if bus not in _BUSES:
            yield path, f"bus {bus!r} of disk {name!r} is not supported; there are: {', '.join(_BUSES)}"
        if sort == "cdrom" and bus == "virtio":
            yield path, f"Bus type virtio is invalid for CD-ROM device {name!r}"
        if sort == "disk" and bus == "sata" and device.get("readonly"):
            yield path, f"SATA disk {name!r} does not support read-only"
        if "serial" in disk and not _SERIAL(disk["serial"]):
            yield path, f"serial of disk {name!r} must consist of letters, digits and _ . + -, 256 at most"
        source = next((value for key, value in volumes.get(name, {}).items() if key != "name"), None)
        if isinstance(source, dict) and source.get("hotpluggable") and bus not in _hot_buses(sort):
            yield path, f"hotplugged {sort} {name!r} must use the bus {' or '.join(_hot_buses(sort))}"


def _hot_buses(sort: str) -> tuple[str, ...]:
    return ("scsi",) if sort == "lun" else ("scsi", "virtio") if sort == "disk" else _BUSES


def _boot_order(template: Obj) -> Iterator[Problem]:
    devices = template["domain"]["devices"]
    taken: set[int] = set()
    for disk in (*devices.get("disks", []), *devices.get("interfaces", [])):
        order = disk.get("bootOrder")
        if order is None:
            continue
        if order < 1:
            yield _DEVICES, f"bootOrder of {disk['name']!r} must have a value > 0"
        if order in taken:
            yield _DEVICES, f"Boot order for {disk['name']!r} already set for a different device"
        taken.add(order)


def _cloud_init(template: Obj) -> Iterator[Problem]:
    for volume in template.get("volumes", []):
        for kind in ("cloudInitNoCloud", "cloudInitConfigDrive"):
            if kind not in volume:
                continue
            source, path = volume[kind], f"{_TEMPLATE}.volumes[{volume['name']}].{kind}"
            user = [key for key in ("userData", "userDataBase64", "secretRef") if source.get(key)]
            network = [key for key in ("networkData", "networkDataBase64", "networkDataSecretRef") if source.get(key)]
            if len(user) > 1 or len(network) > 1:
                yield path, "must have only one source of user data and one of network data"
            if not user and not network:
                yield path, "must have at least one userdatasource or one networkdatasource set"
            for key in ("userData", "networkData"):
                if len(str(source.get(key, "")).encode()) > USER_DATA_LIMIT:
                    yield path, f"{key} exceeds {USER_DATA_LIMIT} byte limit. Should use SecretRef for larger data"


def _sizes(spec: Obj, template: Obj) -> Iterator[Problem]:
    if spec.get("instancetype"):
        domain = template["domain"]
        if domain.get("cpu") or (domain.get("memory") or {}).get("guest"):
            yield f"{_TEMPLATE}.domain", "VM field(s) conflict with selected instance type: cpu and memory come from it"
