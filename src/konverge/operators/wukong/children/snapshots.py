"""Snapshots and the way back."""

from __future__ import annotations

from konverge.objects import ObjectMeta
from konverge.operators.wukong import names
from konverge.operators.wukong.children.metadata import metadata
from konverge.operators.wukong.kinds.snapshots import (
    MachineReference,
    RestoreSpec,
    SnapshotSpec,
    VirtualMachineRestore,
    VirtualMachineSnapshot,
)
from konverge.operators.wukong.resource import Wukong, WukongSnapshot


def snapshot_for(snapshot: WukongSnapshot) -> VirtualMachineSnapshot:
    """By the name of the WukongSnapshot: asked for twice, it is the same one. (The original put the time into it.)"""
    wukong, place = snapshot.spec.wukong_name, snapshot.metadata
    return VirtualMachineSnapshot(
        metadata=ObjectMeta(name=place.name, namespace=place.namespace, labels=names.labels(wukong)),
        spec=SnapshotSpec(source=_machine(wukong)),
    )


def restore_for(wukong: Wukong, snapshot: str) -> VirtualMachineRestore:
    """Back to a VirtualMachineSnapshot, into the claims that there are: under new names they would not be ours."""
    name = wukong.metadata.name
    return VirtualMachineRestore(
        metadata=metadata(wukong, names.restore(name, snapshot)),
        spec=RestoreSpec(
            target=_machine(name),
            virtual_machine_snapshot_name=snapshot,
            volume_restore_policy="InPlace",
        ),
    )


def _machine(wukong: str) -> MachineReference:
    return MachineReference(api_group="kubevirt.io", kind="VirtualMachine", name=names.machine(wukong))
