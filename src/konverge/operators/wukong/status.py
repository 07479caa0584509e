"""What the operator says about a `Wukong` and about a `WukongSnapshot`."""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Condition, ListType, Model, Time, field

Phase = Literal["", "Pending", "Creating", "Running", "Stopped", "Error"]


class NetworkStatus(Model):
    """An interface, as the machine sees it."""

    name: str
    interface: str = ""
    """Its name inside the guest, as far as the guest agent tells."""
    ip_address: str = ""
    ip_addresses: list[str] = []
    mac_address: str = ""
    nad_name: str = ""
    primary: bool = False


class VolumeStatus(Model):
    """A disk: what was asked for, and how far it is."""

    name: str
    pvc_name: str = ""
    bound: bool = False
    size: str = ""
    """As the spec has it."""
    type: Literal["", "PersistentVolumeClaim", "DataVolume", "Existing"] = ""
    phase: str = ""
    """Of the DataVolume, or else of the claim."""
    progress: str = ""
    """Of an import: `45.30%`."""
    restarts: int = 0
    """Of the importer."""
    requested: str = ""
    """What the claim asks for."""
    capacity: str = ""
    message: str = ""


class GuestOs(Model):
    """The operating system, as the guest agent tells."""

    name: str = ""
    version: str = ""
    kernel: str = ""


class ConsoleStatus(Model):
    """How to look at the machine."""

    vnc: str = ""
    serial: str = ""


class WukongStatus(Model):
    """The state of a virtual machine."""

    phase: Phase = ""
    message: str = ""
    observed_generation: int = 0
    vm_name: str = ""
    node_name: str = ""
    power_state: Literal["", "Running", "Stopped", "Paused", "Starting", "Stopping"] = ""
    primary_ip: str = field(default="", name="primaryIP")
    migratable: bool | None = None
    agent_connected: bool = False
    guest_os: GuestOs | None = field(default=None, name="guestOS")
    pending_changes: list[str] = []
    """What a restart would bring into effect."""
    last_restart: str = ""
    """The `restartAt` that was acted upon."""
    last_restore: str = ""
    """The `restoreFromSnapshot` that was acted upon."""
    console: ConsoleStatus | None = None
    networks: Annotated[list[NetworkStatus], ListType("map", "name")] = []
    volumes: Annotated[list[VolumeStatus], ListType("map", "name")] = []
    conditions: Annotated[list[Condition], ListType("map", "type")] = []


class SnapshotStatus(Model):
    """The state of a snapshot."""

    phase: Literal["", "Pending", "Creating", "Succeeded", "Failed"] = ""
    snapshot_name: str = ""
    """The VirtualMachineSnapshot."""
    creation_time: Time | None = None
    error: str = ""
    observed_generation: int = 0
    conditions: Annotated[list[Condition], ListType("map", "type")] = []
