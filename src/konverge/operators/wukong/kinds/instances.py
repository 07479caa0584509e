"""`VirtualMachineInstance` and its migration, kubevirt.io/v1: a machine that is on. KubeVirt makes it; we read it.

An instance has no status subresource.
"""

from __future__ import annotations

from typing import ClassVar

from konverge.objects import Model, Object, Resource, field, required
from konverge.operators.wukong.kinds.conditions import ForeignCondition


class InstanceInterface(Model):
    """A network card as domain, pod and guest agent tell of it. One that the guest made itself has no name."""

    name: str | None = None
    mac: str | None = None
    ip_address: str | None = None
    ip_addresses: list[str] | None = None
    interface_name: str | None = None
    info_source: str | None = None
    link_state: str | None = None


class GuestOsInfo(Model):
    """What the guest agent tells about the system."""

    name: str | None = None
    pretty_name: str | None = None
    version: str | None = None
    version_id: str | None = None
    kernel_release: str | None = None


class InstanceVolume(Model):
    """A volume of a running machine."""

    name: str = ""
    phase: str | None = None
    reason: str | None = None
    message: str | None = None


class VirtualMachineInstanceStatus(Model):
    """How it runs."""

    phase: str | None = None
    reason: str | None = None
    node_name: str | None = None
    conditions: list[ForeignCondition] | None = None
    interfaces: list[InstanceInterface] | None = None
    guest_os_info: GuestOsInfo | None = field(default=None, name="guestOSInfo")
    volume_status: list[InstanceVolume] | None = None


class VirtualMachineInstance(Object):
    """A machine that is on."""

    resource: ClassVar[Resource] = Resource("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")

    api_version: str = field(default_factory=lambda: "kubevirt.io/v1")
    kind: str = field(default_factory=lambda: "VirtualMachineInstance")
    status: VirtualMachineInstanceStatus = field(default_factory=VirtualMachineInstanceStatus)


class MigrationSpec(Model):
    """Which machine moves to another node."""

    vmi_name: str = required(str)


class MigrationStatus(Model):
    """How far it is."""

    phase: str | None = None


class VirtualMachineInstanceMigration(Object):
    """A running machine moves to another node."""

    resource: ClassVar[Resource] = Resource(
        "kubevirt.io", "v1", "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations"
    )

    api_version: str = field(default_factory=lambda: "kubevirt.io/v1")
    kind: str = field(default_factory=lambda: "VirtualMachineInstanceMigration")
    spec: MigrationSpec = field(default_factory=MigrationSpec)
    status: MigrationStatus = field(default_factory=MigrationStatus)
