"""Snapshots of machines and the way back, snapshot.kubevirt.io/v1beta1."""

from __future__ import annotations

from konverge.objects import Condition, Model, Object, Resource, field, required
from konverge.objects.model import NullableList


class MachineReference(Model):
    """A VirtualMachine."""

    api_group: str = required(str)
    kind: str = required(str)
    name: str = required(str)


class SnapshotSpec(Model):
    """Of what."""

    source: MachineReference = required(MachineReference)


class SnapshotError(Model):
    """What went wrong."""

    time: str = ""
    message: str = ""


class SnapshotVolumes(Model):
    """Which volumes are in it. One whose class cannot take snapshots is left out without a word."""

    included_volumes: NullableList[str] = []
    excluded_volumes: NullableList[str] = []


class SnapshotStatus(Model):
    """How far it is."""

    phase: str = ""
    ready_to_use: bool = False
    creation_time: str = ""
    error: SnapshotError | None = None
    indications: NullableList[str] = []
    snapshot_volumes: SnapshotVolumes | None = None
    source_uid: str = field(default="", name="sourceUID")
    conditions: NullableList[Condition] = []


class VirtualMachineSnapshot(Object):
    """All volumes of a machine at one moment."""

    resource = Resource("snapshot.kubevirt.io", "v1beta1", "VirtualMachineSnapshot", "virtualmachinesnapshots")

    spec: SnapshotSpec = required(SnapshotSpec)
    status: SnapshotStatus = field(default_factory=SnapshotStatus)


class RestoreSpec(Model):
    """What goes back to when."""

    target: MachineReference = required(MachineReference)
    virtual_machine_snapshot_name: str = required(str)
    volume_restore_policy: str | None = None


class RestoreStatus(Model):
    """How far it is."""

    complete: bool = False
    conditions: NullableList[Condition] = []


class VirtualMachineRestore(Object):
    """A machine goes back to a snapshot. It must be off."""

    resource = Resource("snapshot.kubevirt.io", "v1beta1", "VirtualMachineRestore", "virtualmachinerestores")

    spec: RestoreSpec = required(RestoreSpec)
    status: RestoreStatus = field(default_factory=RestoreStatus)
