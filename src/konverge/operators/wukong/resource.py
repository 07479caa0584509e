"""The resources: `wukongs`, their templates, quotas and addresses, `wukongsnapshots` and their schedules, of
vm.novasphere.dev, version v1alpha1, as classes.

`problems` applies the rules of these classes once more. The API server refuses what breaks them. A resource that got in
under an older definition, or on a cluster that does not know some function of the rules, meets the same ones here, and
becomes a readable condition instead of a surprise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from konverge.objects import Column, CustomResource, Description, Model, NoStatus, Object, Rule, crd, field
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.operators.wukong.rules import broken, rule
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.spec_address import AddressSpec, AddressStatus
from konverge.operators.wukong.spec_quota import QuotaSpec, QuotaStatus
from konverge.operators.wukong.spec_schedule import ScheduleSpec
from konverge.operators.wukong.spec_template import TemplateSpec
from konverge.operators.wukong.status import ScheduleStatus, SnapshotStatus, WukongStatus
from konverge.operators.wukong.texts import LABEL, ObjectName

GROUP = "vm.novasphere.dev"
FINALIZER = "wukong.novasphere.dev/finalizer"
LONGEST_NAME = 60
"""The machine is called NAME-vm, and names of machines end at 63: they become labels and host names."""
QUOTA = "default"
"""The name of the only quota that a namespace can have."""
LONGEST_ADDRESS = 55
"""Its Service is called NAME-address, and names of Services end at 63."""
LONGEST_SCHEDULE = 48
"""Its snapshots are called NAME-YYYYMMDDhhmmss, and the name is the value of a label."""
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
        rule(
            f"self.metadata.name.matches('{LABEL}') && size(self.metadata.name) <= {LONGEST_NAME}",
            lambda wukong: (
                re.fullmatch(LABEL.strip("^$"), wukong.metadata.name) is not None
                and len(wukong.metadata.name) <= LONGEST_NAME
            ),
            f"the name becomes a host name: at most {LONGEST_NAME} lower-case letters, digits and '-'",
        ),
        rule(
            "!has(self.spec.disks) || self.spec.disks.all(d, size(self.metadata.name) + size(d.name) <= 62)",
            lambda wukong: all(len(wukong.metadata.name) + len(disk.name) <= 62 for disk in wukong.spec.disks),
            "claims are called NAME-DISK, and may have 63 characters: shorten one of the two",
            ".spec.disks",
        ),
        rule(
            "!has(self.spec.expose) || self.spec.expose.size() == 0 || (self.metadata.name.matches('^[a-z]') && "
            "self.spec.expose.all(e, size(self.metadata.name) + size(e.name) <= 62))",
            lambda wukong: (
                not wukong.spec.expose
                or (
                    wukong.metadata.name[:1].isalpha()
                    and all(len(wukong.metadata.name) + len(service.name) <= 62 for service in wukong.spec.expose)
                )
            ),
            "Services are called NAME-EXPOSE: 63 characters, the first one a letter",
            ".spec.expose",
        ),
    ],
):
    """A virtual machine, with its disks and its networks."""

    spec: WukongSpec
    """Required, though no field of it is: a machine says what it is, or names its template."""


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


class WukongSnapshotSchedule(
    CustomResource[ScheduleSpec, ScheduleStatus],
    group=GROUP,
    version="v1alpha1",
    short_names=["wkss"],
    columns=[
        Column("Wukong", ".spec.wukongName"),
        Column("Schedule", ".spec.schedule"),
        Column("Zone", ".spec.timeZone", priority=1),
        Column("Suspend", ".spec.suspend", type="boolean"),
        Column("Ready", _READY),
        Column("Last", ".status.lastScheduleTime"),
        Column("Next", ".status.nextScheduleTime"),
        Column("Kept", ".status.snapshots", type="integer"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    rules=[
        Rule(
            f"self.metadata.name.matches('{LABEL}') && size(self.metadata.name) <= {LONGEST_SCHEDULE}",
            message=f"snapshots are called NAME-TIME: at most {LONGEST_SCHEDULE} lower-case letters, digits and '-'",
        ),
    ],
):
    """Snapshots of a virtual machine at the times of a schedule."""


class WukongTemplate(
    CustomResource[TemplateSpec, NoStatus],
    group=GROUP,
    version="v1alpha1",
    short_names=["wkt"],
    columns=[
        Column("CPU", ".spec.cpu", type="integer"),
        Column("Memory", ".spec.memory"),
        Column("Guest", ".spec.guest"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
):
    """What virtual machines have in common. A machine takes it once, and again when it is asked to."""


class WukongQuota(
    CustomResource[QuotaSpec, QuotaStatus],
    group=GROUP,
    version="v1alpha1",
    short_names=["wkq"],
    columns=[
        Column("Machines", ".status.used.machines", type="integer"),
        Column("CPU", ".status.used.cpu", type="integer"),
        Column("Memory", ".status.used.memory"),
        Column("Storage", ".status.used.storage"),
        Column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    rules=[
        Rule(
            f"self.metadata.name == '{QUOTA}'",
            message=f"there is one quota in a namespace, and it is called {QUOTA}",
        ),
    ],
):
    """What the virtual machines of a namespace may have together."""


class WukongAddress(
    CustomResource[AddressSpec, AddressStatus],
    group=GROUP,
    version="v1alpha1",
    short_names=["wka"],
    columns=[
        Column("Address", ".status.address"),
        Column("Wukong", ".spec.wukongName"),
        Column("Attached", ".status.attachedTo"),
        Column("Ready", _READY),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    rules=[
        Rule(
            f"self.metadata.name.matches('{LABEL}') && self.metadata.name.matches('^[a-z]') && "
            f"size(self.metadata.name) <= {LONGEST_ADDRESS}",
            message=f"the Service is called NAME-address: a letter, then lower-case letters, digits and '-', "
            f"{LONGEST_ADDRESS} at most",
        ),
    ],
):
    """An address that is attached to one virtual machine at a time."""


class AnyTemplate(Object):
    """The same as the operator reads it: whether it can be used is seen together with a machine."""

    spec: dict[str, Any] = field(default_factory=dict)


AnyTemplate.resource = WukongTemplate.resource


class AnyWukong(Object):
    """The same resource as the operator reads it: a spec that got past an older definition must not stop the watch."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: WukongStatus = field(default_factory=WukongStatus)


AnyWukong.resource = Wukong.resource


KINDS = (Wukong, WukongSnapshot, WukongSnapshotSchedule, WukongTemplate, WukongQuota, WukongAddress)


def definitions() -> list[CustomResourceDefinition]:
    """What a cluster has to know before the first resource."""
    return [crd(kind) for kind in KINDS]


NAMED = ("disks", "networks", "users", "gpus", "expose")
"""Lists whose entries have names of their own."""


def problems(wukong: Wukong) -> list[str]:
    """Everything that is wrong: the path of a field, and what to do. Nothing when it can be acted upon."""
    twice = (problem for name in NAMED for problem in _unique(f"spec.{name}", getattr(wukong.spec, name)))
    return [*(problem.lstrip(".") for problem in broken(wukong)), *twice, *_walk("spec", wukong.spec)]


def _walk(path: str, part: Model) -> Iterator[str]:
    for problem in broken(part):
        yield f"{path}{problem}"
    for name, shown in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True):
        value = getattr(part, name)
        if isinstance(value, Model):
            yield from _walk(f"{path}.{shown}", value)
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, Model):
                yield from _walk(f"{path}.{shown}[{getattr(entry, 'name', '')}]", entry)


def _unique(path: str, entries: Iterable[Model]) -> Iterator[str]:
    seen: set[str] = set()
    for name in (entry.name for entry in entries):  # type: ignore[attr-defined]
        if name in seen:
            yield f"{path}: there are two called {name}"
        seen.add(name)
