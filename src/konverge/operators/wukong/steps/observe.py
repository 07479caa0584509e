"""Step 9: the status, from the VirtualMachine and its instance.

The guest agent may forget an address for a moment, and without an agent only the pod network has one. So an address
that was known is kept for as long as the machine runs, and nothing depends on one.
"""

from __future__ import annotations

from typing import Literal

from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.kinds.instances import InstanceInterface
from konverge.operators.wukong.status import ConsoleStatus, GuestOs, NetworkStatus, WukongStatus
from konverge.operators.wukong.steps.round import Round
from konverge.operators.wukong.wish import attached
from konverge.runtime import find_condition, is_true

PowerSeen = Literal["", "Running", "Stopped", "Paused", "Starting", "Stopping"]


async def observe(round: Round) -> None:
    """What KubeVirt tells, into the status."""
    status, vm, vmi = round.status, round.vm, round.vmi
    running = vmi is not None and vmi.status.phase == "Running"
    status.vm_name = vm.metadata.name if vm is not None else ""
    status.node_name = (vmi.status.node_name or "") if vmi is not None else ""
    status.power_state = _power(vm, vmi)
    status.agent_connected = vmi is not None and is_true(vmi.status.conditions, "AgentConnected")
    status.migratable = _migratable(vmi)
    status.guest_os = _guest_os(status, vmi)
    status.console = _console(vmi) if vmi is not None and running else None
    status.pending_changes = _pending(vm) if vmi is not None else []
    if round.wukong is not None:  # a round that was broken off knows only some of them
        if len(round.volumes) >= len(round.wukong.spec.disks):
            status.volumes = round.volumes
        if len(round.networks) >= len(attached(round.wukong.spec)):
            status.networks = round.networks
    _interfaces(status, vmi if running else None)


def _power(vm: VirtualMachine | None, vmi: VirtualMachineInstance | None) -> PowerSeen:
    if vm is None:
        return ""
    if vmi is None or vmi.status.phase in ("Succeeded", "Failed"):
        return "Stopped" if vm.spec.run_strategy in ("Halted", "Manual", "") or vmi is not None else "Starting"
    if vmi.metadata.deletion_timestamp:
        return "Stopping"
    if vmi.status.phase != "Running":
        return "Starting"
    return "Paused" if is_true(vmi.status.conditions, "Paused") else "Running"


def _migratable(vmi: VirtualMachineInstance | None) -> bool | None:
    found = find_condition(vmi.status.conditions, "LiveMigratable") if vmi is not None else None
    return None if found is None else found.status == "True"


def _guest_os(status: WukongStatus, vmi: VirtualMachineInstance | None) -> GuestOs | None:
    if vmi is None:
        return None
    told = vmi.status.guest_os_info
    if told is None or not (told.pretty_name or told.name):
        return status.guest_os  # no agent yet, or it is silent for a moment
    return GuestOs(
        name=told.pretty_name or told.name or "", version=told.version or "", kernel=told.kernel_release or ""
    )


def _console(vmi: VirtualMachineInstance) -> ConsoleStatus:
    where = f"{vmi.metadata.name} --namespace {vmi.metadata.namespace}"
    return ConsoleStatus(vnc=f"virtctl vnc {where}", serial=f"virtctl console {where}")


def _pending(vm: VirtualMachine | None) -> list[str]:
    found = find_condition(vm.status.conditions, "RestartRequired") if vm is not None else None
    if found is None or found.status != "True":
        return []
    return [line for line in found.message.splitlines() if line] or ["the machine as KubeVirt runs it is an older one"]


# ------------------------------------------------------------------ addresses


def _interfaces(status: WukongStatus, vmi: VirtualMachineInstance | None) -> None:
    """Of a running machine; without one there are no addresses."""
    seen = {one.name: one for one in vmi.status.interfaces if one.name} if vmi is not None else {}
    for network in status.networks:
        if vmi is None:
            network.ip_address, network.ip_addresses, network.interface = "", [], ""
        elif network.name in seen:
            _take(network, seen[network.name])
    leading = [one for one in status.networks if one.primary] + list(status.networks)
    status.primary_ip = next((one.ip_address for one in leading if one.ip_address), "")


def _take(network: NetworkStatus, told: InstanceInterface) -> None:
    addresses = [one for one in told.ip_addresses if one] or ([told.ip_address] if told.ip_address else [])
    if addresses:
        network.ip_addresses, network.ip_address = addresses, told.ip_address or addresses[0]
    network.mac_address = told.mac or network.mac_address
    network.interface = told.interface_name or network.interface
