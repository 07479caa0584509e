"""Step 9: the status, from the VirtualMachine and its instance.

The guest agent may forget an address for a moment, and without an agent only the pod network has one. So an address
that was known is kept for as long as the machine runs, and nothing depends on one.
"""

from __future__ import annotations

from typing import Literal

from konverge.operators.wukong.effective_spec import attached
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.kinds.machines import InstanceInterface
from konverge.operators.wukong.status import ConsoleStatus, GuestOs, NetworkStatus, WukongStatus
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import find_condition, is_true

PowerSeen = Literal["", "Running", "Stopped", "Paused", "Starting", "Stopping"]


async def observe(state: ReconcileState) -> None:
    """What KubeVirt reports, into the status."""
    status, vm, vmi = state.status, state.vm, state.vmi
    running = vmi if vmi is not None and vmi.status.phase == "Running" else None
    status.vm_name = vm.metadata.name if vm is not None else ""
    status.node_name = vmi.status.node_name if vmi is not None else ""
    status.power_state = _power(vm, vmi)
    status.agent_connected = vmi is not None and is_true(vmi.status.conditions, "AgentConnected")
    status.migratable = _migratable(vmi)
    status.guest_os = _guest_os(status, vmi)
    status.console = _console(running) if running is not None else None
    status.pending_changes = _pending(vm) if vmi is not None else []
    if state.wukong is not None:  # an interrupted reconcile knows only some of them
        if len(state.volumes) >= len(state.wukong.spec.disks):
            status.volumes = state.volumes
        if len(state.networks) >= len(attached(state.wukong.spec)):
            status.networks = state.networks
    _interfaces(status, running)


def _power(vm: VirtualMachine | None, vmi: VirtualMachineInstance | None) -> PowerSeen:
    if vm is None:
        return ""
    if vmi is None or vmi.status.phase in ("Succeeded", "Failed"):
        off = vm.spec.run_strategy in ("Halted", "Manual", "") or vmi is not None or _has_ended(vm)
        return "Stopped" if off else "Starting"
    if vmi.metadata.deletion_timestamp:
        return "Stopping"
    if vmi.status.phase != "Running":
        return "Starting"
    return "Paused" if is_true(vmi.status.conditions, "Paused") else "Running"


def _has_ended(vm: VirtualMachine) -> bool:
    """The guest shut itself down and is not started again: KubeVirt deletes the instance of such a machine."""
    rerun = vm.spec.run_strategy == vm.status.run_strategy == "RerunOnFailure"
    return rerun and vm.status.printable_status == "Stopped"


def _migratable(vmi: VirtualMachineInstance | None) -> bool | None:
    condition = find_condition(vmi.status.conditions, "LiveMigratable") if vmi is not None else None
    return None if condition is None else condition.status == "True"


def _guest_os(status: WukongStatus, vmi: VirtualMachineInstance | None) -> GuestOs | None:
    if vmi is None:
        return None
    info = vmi.status.guest_os_info
    if info is None or not (info.pretty_name or info.name):
        return status.guest_os  # no agent yet, or it is silent for a moment
    return GuestOs(name=info.pretty_name or info.name, version=info.version, kernel=info.kernel_release)


def _console(vmi: VirtualMachineInstance) -> ConsoleStatus:
    where = f"{vmi.metadata.name} --namespace {vmi.metadata.namespace}"
    return ConsoleStatus(vnc=f"virtctl vnc {where}", serial=f"virtctl console {where}")


def _pending(vm: VirtualMachine | None) -> list[str]:
    condition = find_condition(vm.status.conditions, "RestartRequired") if vm is not None else None
    if condition is None or condition.status != "True":
        return []
    return [line for line in condition.message.splitlines() if line] or [
        "the machine as KubeVirt runs it is an older one"
    ]


# ------------------------------------------------------------------ addresses


def _interfaces(status: WukongStatus, vmi: VirtualMachineInstance | None) -> None:
    """Of a running machine; without one there are no addresses."""
    seen = {interface.name: interface for interface in vmi.status.interfaces} if vmi is not None else {}
    for network in status.networks:
        if vmi is None:
            network.ip_address, network.ip_addresses, network.interface = "", [], ""
        elif network.name in seen:
            _take(network, seen[network.name])
    leading = [interface for interface in status.networks if interface.primary] + list(status.networks)
    status.primary_ip = next((interface.ip_address for interface in leading if interface.ip_address), "")


def _take(network: NetworkStatus, interface: InstanceInterface) -> None:
    addresses = [address for address in interface.ip_addresses if address] or (
        [interface.ip_address] if interface.ip_address else []
    )
    if addresses:
        network.ip_addresses, network.ip_address = addresses, interface.ip_address or addresses[0]
    network.mac_address = interface.mac or network.mac_address
    network.interface = interface.interface_name or network.interface
