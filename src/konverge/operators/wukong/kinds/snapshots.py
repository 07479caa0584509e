"""Snapshots of machines and the way back, snapshot.kubevirt.io/v1beta1."""

from __future__ import annotations

from typing import ClassVar

from konverge.objects import Model, Object, Resource, field, required
from konverge.operators.wukong.kinds.conditions import ForeignCondition


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

    time: str | None = None
    message: str | None = None


class SnapshotStatus(Model):
    """How far it is."""

    phase: str | None = None
    ready_to_use: bool | None = None
    creation_time: str | None = None
    error: SnapshotError | None = None
    indications: list[str] | None = None
    conditions: list[ForeignCondition] | None = None


class VirtualMachineSnapshot(Object):
    """All volumes of a machine at one moment."""

    resource: ClassVar[Resource] = Resource(
        "snapshot.kubevirt.io", "v1beta1", "VirtualMachineSnapshot", "virtualmachinesnapshots"
    )

    api_version: str = field(default_factory=lambda: "snapshot.kubevirt.io/v1beta1")
    kind: str = field(default_factory=lambda: "VirtualMachineSnapshot")
    spec: SnapshotSpec = field(default_factory=SnapshotSpec)
    status: SnapshotStatus = field(default_factory=SnapshotStatus)


class RestoreSpec(Model):
    """What goes back to when."""

    target: MachineReference = required(MachineReference)
    virtual_machine_snapshot_name: str = required(str)
    target_readiness_policy: str | None = None
    volume_restore_policy: str | None = None


class RestoreStatus(Model):
    """How far it is."""

    complete: bool | None = None
    restore_time: str | None = None
    conditions: list[ForeignCondition] | None = None


class VirtualMachineRestore(Object):
    """A machine goes back to a snapshot. It must be off."""

    resource: ClassVar[Resource] = Resource(
        "snapshot.kubevirt.io", "v1beta1", "VirtualMachineRestore", "virtualmachinerestores"
    )

    api_version: str = field(default_factory=lambda: "snapshot.kubevirt.io/v1beta1")
    kind: str = field(default_factory=lambda: "VirtualMachineRestore")
    spec: RestoreSpec = field(default_factory=RestoreSpec)
    status: RestoreStatus = field(default_factory=RestoreStatus)
