"""`VirtualMachineInstance`, kubevirt.io/v1: a machine that is on. KubeVirt makes it; we read it.

An instance has no status subresource.
"""

from __future__ import annotations

from typing import ClassVar

from konverge.objects import Condition, Model, Object, Resource, field
from konverge.objects.model import NullableList


class InstanceInterface(Model):
    """A network card as domain, pod and guest agent report it. One that the guest made itself has no name."""

    name: str = ""
    mac: str = ""
    ip_address: str = ""
    ip_addresses: NullableList[str] = []
    interface_name: str = ""


class GuestOsInfo(Model):
    """What the guest agent reports about the system."""

    name: str = ""
    pretty_name: str = ""
    version: str = ""
    kernel_release: str = ""


class VirtualMachineInstanceStatus(Model):
    """How it runs."""

    phase: str = ""
    reason: str = ""
    node_name: str = ""
    conditions: NullableList[Condition] = []
    interfaces: NullableList[InstanceInterface] = []
    guest_os_info: GuestOsInfo | None = field(default=None, name="guestOSInfo")


class VirtualMachineInstance(Object):
    """A machine that is on."""

    resource: ClassVar[Resource] = Resource("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")

    status: VirtualMachineInstanceStatus = field(default_factory=VirtualMachineInstanceStatus)
