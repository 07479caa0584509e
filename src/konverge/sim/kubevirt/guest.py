"""What is known of a guest: from the domain at once, from its agent later. Pure.

The quirks are those that people meet: an address on a second network needs the agent; the agent may take a known
address away for a moment; with masquerade the address is the pod's, not the guest's own.
"""

from __future__ import annotations

from hashlib import sha256

from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.kubevirt.kinds import Instance, Obj

GUEST_OS: Obj = {
    "id": "debian",
    "name": "Debian GNU/Linux",
    "prettyName": "Debian GNU/Linux 13 (trixie)",
    "version": "13 (trixie)",
    "versionId": "13",
    "kernelRelease": "6.12.0-konverge",
    "kernelVersion": "#1 SMP",
    "machine": "x86_64",
}


def interfaces(instance: Instance, pod: Pod | None, *, agent: bool, silent: bool = False) -> list[Obj]:
    """`silent`: the agent answers without addresses."""
    networks = {network["name"]: network for network in instance.spec.get("networks", [])}
    shown = []
    plugged = [
        interface
        for interface in instance.spec["domain"]["devices"].get("interfaces", [])
        if interface.get("state") != "absent"
    ]
    for number, interface in enumerate(plugged):
        name = interface["name"]
        on_pod = "pod" in networks.get(name, {})
        made: Obj = {"name": name, "mac": _mac(instance, interface), "linkState": "up", "infoSource": "domain"}
        made["podInterfaceName"] = "eth0" if on_pod else f"pod{sha256(name.encode()).hexdigest()[:11]}"
        if not on_pod:
            made["infoSource"] += ", multus-status"
        address = _address(instance, name, pod, on_pod=on_pod, agent=agent)
        if address and not silent:
            made |= {"ipAddress": address, "ipAddresses": [address]}
        if agent:
            made |= {"interfaceName": f"enp{number + 1}s0", "infoSource": f"{made['infoSource']}, guest-agent"}
        shown.append(made)
    return shown


def _mac(instance: Instance, interface: Obj) -> str:
    """As asked; otherwise another one with every start, as KubeVirt does it where no MAC pool is installed."""
    if interface.get("macAddress"):
        return str(interface["macAddress"])
    digest = sha256(f"{instance.metadata.uid}/{interface['name']}".encode()).digest()
    return ":".join(f"{octet:02x}" for octet in (0x02, *digest[:5]))


def _address(instance: Instance, name: str, pod: Pod | None, *, on_pod: bool, agent: bool) -> str:
    if on_pod:
        return (pod.status.pod_ip or "") if pod is not None else ""
    if not agent:
        return ""
    digest = sha256(f"{instance.metadata.namespace}/{instance.metadata.name}/{name}".encode()).digest()
    return f"192.168.{digest[0]}.{2 + digest[1] % 250}"


def migratable(instance: Instance, modes: dict[str, list[str]], *, refused: bool = False) -> tuple[str, str]:
    """Reason and message why it cannot be migrated; empty when it can. `modes` are the access modes by claim."""
    devices = instance.spec["domain"]["devices"]
    if devices.get("gpus") or devices.get("hostDevices"):
        return "HostDeviceNotLiveMigratable", "VMI uses a PCI host devices"
    networks = {network["name"]: network for network in instance.spec.get("networks", [])}
    for interface in devices.get("interfaces", []):
        if "bridge" in interface and "pod" in networks.get(interface["name"], {}):
            message = "cannot migrate VMI which does not use masquerade to connect to the pod network"
            return "InterfaceNotLiveMigratable", message
    for claim, access_modes in modes.items():
        if refused or "ReadWriteMany" not in access_modes:
            message = (
                f"cannot migrate VMI: PVC {claim} is not shared, live migration requires that all PVCs must be shared"
            )
            return "DisksNotLiveMigratable", f"{message} (using ReadWriteMany access mode)"
    return "", ""
