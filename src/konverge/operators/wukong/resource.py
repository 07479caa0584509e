"""The resources: `wukongs` and `wukongsnapshots` of vm.novasphere.dev, version v1alpha1, as classes."""

from __future__ import annotations

from typing import Annotated, Any

from konverge.objects import Column, CustomResource, Description, Model, Object, Rule, crd, field
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.status import SnapshotStatus, WukongStatus
from konverge.operators.wukong.texts import LABEL, ObjectName

GROUP = "vm.novasphere.dev"
FINALIZER = "wukong.novasphere.dev/finalizer"
LONGEST_NAME = 60
"""The machine is called NAME-vm, and names of machines end at 63: they become labels and host names."""
_READY = '.status.conditions[?(@.type=="Ready")].status'


class Wukong(
    CustomResource[WukongSpec, WukongStatus],
    group=GROUP,
    version="v1alpha1",
    short_names=["wk"],
    columns=[
        Column("Phase", ".status.phase"),
        Column("Ready", _READY),
        Column("Power", ".status.powerState"),
        Column("IP", ".status.primaryIP"),
        Column("Node", ".status.nodeName"),
        Column("CPU", ".spec.cpu", priority=1),
        Column("Memory", ".spec.memory", priority=1),
        Column("VM", ".status.vmName", priority=1),
        Column("Message", ".status.message", priority=1),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    rules=[
        Rule(
            f"self.metadata.name.matches('{LABEL}') && size(self.metadata.name) <= {LONGEST_NAME}",
            message=f"the name becomes a host name: at most {LONGEST_NAME} lower-case letters, digits and '-'",
        ),
        Rule(
            "self.spec.disks.all(d, size(self.metadata.name) + size(d.name) <= 62)",
            message="claims are called NAME-DISK, and may have 63 characters: shorten one of the two",
            field_path=".spec.disks",
        ),
        Rule(
            "!has(self.spec.expose) || self.spec.expose.size() == 0 || (self.metadata.name.matches('^[a-z]') && "
            "self.spec.expose.all(e, size(self.metadata.name) + size(e.name) <= 62))",
            message="Services are called NAME-EXPOSE: 63 characters, the first one a letter",
            field_path=".spec.expose",
        ),
    ],
):
    """A virtual machine, with its disks and its networks."""


class SnapshotSpec(
    Model, rules=[Rule("self.wukongName == oldSelf.wukongName", message="a snapshot is of one machine for ever")]
):
    """What to take a snapshot of."""

    wukong_name: Annotated[ObjectName, Description("The machine, in the same namespace.")]


class WukongSnapshot(
    CustomResource[SnapshotSpec, SnapshotStatus],
    group=GROUP,
    version="v1alpha1",
    short_names=["wks"],
    columns=[
        Column("Wukong", ".spec.wukongName"),
        Column("Phase", ".status.phase"),
        Column("Taken", ".status.creationTime"),
        Column("Error", ".status.error", priority=1),
        Column("Age", ".metadata.creationTimestamp"),
    ],
):
    """A snapshot of all disks of a virtual machine."""


class AnyWukong(Object):
    """The same resource as the operator reads it: a spec that got past an older definition must not stop the watch."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: WukongStatus = field(default_factory=WukongStatus)


AnyWukong.resource = Wukong.resource


def definitions() -> list[CustomResourceDefinition]:
    """What a cluster has to know before the first resource."""
    return [crd(Wukong), crd(WukongSnapshot)]
