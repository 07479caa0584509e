"""What the operator says about a Wukong, a snapshot and a schedule of snapshots, in fields and in conditions.

A condition's time moves with its status only; each says which generation it is about.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from konverge.objects import Condition, Description, ListType, Model, Time, field
from konverge.runtime import find_condition, set_condition
from konverge.runtime.conditions import ConditionStatus

READY = "Ready"
SPEC_VALID = "SpecValid"
NETWORKS_CONFIGURED = "NetworksConfigured"
VOLUMES_BOUND = "VolumesBound"
VIRTUAL_MACHINE_READY = "VirtualMachineReady"
MIGRATABLE = "Migratable"
RESTART_REQUIRED = "RestartRequired"
MIGRATING = "Migrating"
SNAPSHOT_IN_PROGRESS = "SnapshotInProgress"
RESTORE_IN_PROGRESS = "RestoreInProgress"
TEMPLATE_RESOLVED = "TemplateResolved"
WITHIN_QUOTA = "WithinQuota"
PAUSED = "Paused"
DELETING = "Deleting"

LONGEST_MESSAGE = 1024


class Trouble(msgspec.Struct, frozen=True):
    """Why the virtual machine cannot be as desired, for now."""

    condition: str
    """The condition that is false by it."""
    reason: str
    message: str
    failed: bool = False
    """Waiting does not help: the phase is Error, and the next look is later."""


def say(
    status: WukongStatus, type: str, value: bool | None, reason: str, message: str = "", *, generation: int
) -> bool:
    """Set one condition; None is Unknown. True when anything changed."""
    word: ConditionStatus = "Unknown" if value is None else "True" if value else "False"
    return set_condition(
        status.conditions, type, word, reason, message[:LONGEST_MESSAGE], observed_generation=generation
    )


def drop(status: WukongStatus, type: str) -> None:
    """A condition that is about nothing any more."""
    status.conditions = [condition for condition in status.conditions if condition.type != type]


Phase = Literal["", "Pending", "Creating", "Running", "Stopped", "Error"]


class NetworkStatus(Model):
    """An interface, as the machine sees it."""

    name: Annotated[str, Description("As in the spec.")]
    interface: Annotated[str, Description("Its name inside the guest, as far as the guest agent reports it.")] = ""
    ip_address: Annotated[str, Description("The first of its addresses.")] = ""
    ip_addresses: Annotated[list[str], Description("Its addresses, as far as pod and guest agent report them.")] = []
    mac_address: Annotated[str, Description("The address of the card.")] = ""
    nad_name: Annotated[str, Description("The NetworkAttachmentDefinition; empty for the pod network.")] = ""
    primary: Annotated[bool, Description("Whether it takes the place of the pod network.")] = False


class VolumeStatus(Model):
    """A disk: what was asked for, and how far it is."""

    name: Annotated[str, Description("As in the spec.")]
    pvc_name: Annotated[str, Description("The claim.")] = ""
    bound: Annotated[bool, Description("Whether the data is there.")] = False
    size: Annotated[str, Description("As the spec has it.")] = ""
    type: Annotated[
        Literal["", "PersistentVolumeClaim", "DataVolume", "Existing"],
        Description("What the operator has made for it."),
    ] = ""
    phase: Annotated[str, Description("Of the DataVolume, or else of the claim.")] = ""
    progress: Annotated[str, Description("Of an import: 45.30%.")] = ""
    restarts: Annotated[int, Description("Of the importer.")] = 0
    requested: Annotated[str, Description("What the claim asks for.")] = ""
    capacity: Annotated[str, Description("What the claim has got.")] = ""
    message: Annotated[str, Description("What the disk waits for, or what is wrong with it.")] = ""


class GuestOs(Model):
    """The operating system, as the guest agent reports it."""

    name: Annotated[str, Description("Its name.")] = ""
    version: Annotated[str, Description("Its version.")] = ""
    kernel: Annotated[str, Description("Its kernel.")] = ""


class ConsoleStatus(Model):
    """How to look at the machine."""

    vnc: Annotated[str, Description("The command for the screen.")] = ""
    serial: Annotated[str, Description("The command for the serial console.")] = ""


class MigrationStatus(Model):
    """The last move to another node, whoever asked for it."""

    name: Annotated[str, Description("The VirtualMachineInstanceMigration.")]
    phase: Annotated[str, Description("KubeVirt's own word for how far it is; Aborted when it was deleted.")] = ""
    source_node: Annotated[str, Description("Where the machine was.")] = ""
    target_node: Annotated[str, Description("Where it goes, once that is known.")] = ""


class TemplateStatus(Model):
    """What was taken from a template: the template itself may change or go."""

    name: Annotated[str, Description("The WukongTemplate.")]
    uid: Annotated[str, Description("Its uid: another of the same name is not the same.")] = ""
    generation: Annotated[int, Description("Its generation then.")] = 0
    update_at: Annotated[str, Description("The updateAt that was acted upon.")] = ""
    spec: Annotated[dict[str, Any], Description("Its spec then.")] = {}


class WukongStatus(Model):
    """The state of a virtual machine."""

    phase: Annotated[Phase, Description("Pending, Creating, Running, Stopped or Error.")] = ""
    message: Annotated[str, Description("The one thing to know.")] = ""
    observed_generation: Annotated[int, Description("The spec that this is about.")] = 0
    vm_name: Annotated[str, Description("The VirtualMachine.")] = ""
    node_name: Annotated[str, Description("Where it runs.")] = ""
    power_state: Annotated[
        Literal["", "Running", "Stopped", "Paused", "Starting", "Stopping"], Description("What it does.")
    ] = ""
    primary_ip: Annotated[str, Description("Where to reach it.")] = field(default="", name="primaryIP")
    migratable: Annotated[bool | None, Description("Whether it can move to another node while it runs.")] = None
    agent_connected: Annotated[bool, Description("Whether a guest agent reports what happens inside.")] = False
    guest_os: Annotated[GuestOs | None, Description("What runs inside.")] = field(default=None, name="guestOS")
    pending_changes: Annotated[list[str], Description("What a restart would bring into effect.")] = []
    last_restart: Annotated[str, Description("The restartAt that was acted upon.")] = ""
    last_migration: Annotated[str, Description("The migrateAt that was acted upon.")] = ""
    migration: Annotated[MigrationStatus | None, Description("The last move to another node.")] = None
    last_restore: Annotated[str, Description("The restoreFromSnapshot that was acted upon.")] = ""
    template: Annotated[TemplateStatus | None, Description("What was taken from the template.")] = None
    console: Annotated[ConsoleStatus | None, Description("How to look at the machine.")] = None
    networks: Annotated[list[NetworkStatus], ListType("map", "name"), Description("The interfaces.")] = []
    volumes: Annotated[list[VolumeStatus], ListType("map", "name"), Description("The disks.")] = []
    conditions: Annotated[list[Condition], ListType("map", "type"), Description("What is true of it, and why.")] = []


class SnapshotStatus(Model):
    """The state of a snapshot."""

    phase: Annotated[
        Literal["", "Pending", "Creating", "Succeeded", "Failed"],
        Description("Pending, Creating, Succeeded or Failed."),
    ] = ""
    snapshot_name: Annotated[str, Description("The VirtualMachineSnapshot.")] = ""
    snapshot_uid: Annotated[
        str, Description("Its uid, once it is taken: another of the same name is of another moment.")
    ] = field(default="", name="snapshotUID")
    creation_time: Annotated[Time | None, Description("The moment that it is of.")] = None
    error: Annotated[str, Description("What went wrong.")] = ""
    volumes: Annotated[list[str], Description("The disks that are in it.")] = []
    excluded_volumes: Annotated[list[str], Description("The disks that are not: their classes take no snapshots.")] = []
    indications: Annotated[list[str], Description("How it was taken: Online, GuestAgent, NoGuestAgent.")] = []
    observed_generation: Annotated[int, Description("The spec that this is about.")] = 0
    conditions: Annotated[list[Condition], ListType("map", "type"), Description("What is true of it, and why.")] = []


LOST = "SnapshotLost"
"""Why a snapshot that was taken is not ready any more. Not a phase: older definitions allow no others."""


def is_lost(status: SnapshotStatus) -> bool:
    """Whether a snapshot was taken, and is gone, empty or not its WukongSnapshot's any more; it may be again."""
    ready = find_condition(status.conditions, "Ready")
    return status.phase == "Failed" and ready is not None and ready.reason == LOST


class ScheduleStatus(Model):
    """The state of a schedule."""

    last_schedule_time: Annotated[Time | None, Description("The last start for which a snapshot was made.")] = None
    next_schedule_time: Annotated[Time | None, Description("The next start.")] = None
    last_successful_time: Annotated[Time | None, Description("The start of the newest snapshot that succeeded.")] = None
    last_snapshot: Annotated[str, Description("The newest WukongSnapshot of the schedule.")] = ""
    snapshots: Annotated[int, Description("How many of its snapshots are there and have succeeded.")] = 0
    observed_generation: Annotated[int, Description("The spec that this is about.")] = 0
    conditions: Annotated[list[Condition], ListType("map", "type"), Description("What is true of it, and why.")] = []
