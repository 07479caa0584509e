"""A `WukongQuota`: what the machines and snapshots of a namespace may have together, and what each has been granted."""

from __future__ import annotations

from typing import Annotated

from konverge.objects import Condition, Description, ListType, Minimum, Model, field
from konverge.operators.wukong.texts import Size

Count = Annotated[int, Minimum(0)]


class QuotaSpec(Model):
    """Limits; what is not limited may be had without one."""

    machines: Annotated[Count | None, Description("How many machines.")] = None
    cpu: Annotated[Count | None, Description("Processors of all machines, on or off.")] = None
    memory: Annotated[Size | None, Description("Memory of all machines, on or off.")] = None
    storage: Annotated[Size | None, Description("Bytes of all disks that were made for machines.")] = None
    snapshots: Annotated[Count | None, Description("How many snapshots.")] = None
    snapshot_storage: Annotated[
        Size | None, Description("Bytes of the disks in snapshots, each as large as when it was taken.")
    ] = None


class QuotaUse(Model):
    """What has been granted, summed up."""

    machines: Annotated[int, Description("Machines.")] = 0
    cpu: Annotated[int, Description("Processors.")] = 0
    memory: Annotated[str, Description("Memory.")] = "0"
    storage: Annotated[str, Description("Bytes of disks.")] = "0"
    snapshots: Annotated[int | None, Description("Snapshots, where they are limited.")] = None
    snapshot_storage: Annotated[str | None, Description("Bytes of disks in snapshots, where they are limited.")] = None


class Grant(Model):
    """What one machine may have. Without an entry, nothing is made for it."""

    name: Annotated[str, Description("The Wukong.")]
    uid: Annotated[str, Description("Its uid: another of the same name has nothing.")]
    cpu: Annotated[int, Description("Processors; 0 of a machine with an instancetype.")] = 0
    memory: Annotated[str, Description("Memory.")] = "0"
    disks: Annotated[dict[str, str], Description("The size of each disk.")] = {}


class SnapshotGrant(Model):
    """A snapshot that may be taken. Where snapshots are limited, none is taken without an entry."""

    name: Annotated[str, Description("The WukongSnapshot.")]
    uid: Annotated[str, Description("Its uid: another of the same name has nothing.")]
    disks: Annotated[
        dict[str, str], Description("The size of each disk in it; while it is lost, they do not count.")
    ] = {}


class Waiting(Model):
    """A machine or a snapshot that asks for more than it was granted."""

    name: Annotated[str, Description("The Wukong or the WukongSnapshot.")]
    uid: Annotated[str, Description("Its uid.")]
    message: Annotated[str, Description("Which limit is in the way, and by how much.")] = ""


class QuotaStatus(Model):
    """Who has what."""

    used: Annotated[QuotaUse, Description("The sum of what was granted.")] = field(default_factory=QuotaUse)
    granted: Annotated[list[Grant], Description("What each machine may have.")] = []
    snapshots: Annotated[list[SnapshotGrant], Description("The snapshots that may be taken or were.")] = []
    waiting: Annotated[list[Waiting], Description("The machines and snapshots that ask for more.")] = []
    observed_generation: Annotated[int, Description("The spec that this is about.")] = 0
    conditions: Annotated[list[Condition], ListType("map", "type"), Description("What is true of it, and why.")] = []
