"""`VirtualMachineInstanceMigration`, kubevirt.io/v1: a running machine moves to another node."""

from __future__ import annotations

from konverge.objects import Condition, Model, Object, Resource, field, required
from konverge.objects.model import NullableList


class MigrationSpec(Model):
    """What moves."""

    vmi_name: str = required(str)


class MigrationStatus(Model):
    """How far it is."""

    phase: str = ""
    conditions: NullableList[Condition] = []


class VirtualMachineInstanceMigration(Object):
    """One attempt. To delete it is to cancel it."""

    resource = Resource("kubevirt.io", "v1", "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations")

    spec: MigrationSpec = required(MigrationSpec)
    status: MigrationStatus = field(default_factory=MigrationStatus)
