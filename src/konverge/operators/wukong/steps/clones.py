"""Copies of another machine's disks (`cloneFrom`): what must be true before one is made.

CDI copies a claim that no pod uses; while one does, it waits without a word in the DataVolume. So the machine that is
copied must be off, and that is looked at first. It is only read: nothing of it is ever written.
"""

from __future__ import annotations

from konverge.objects import Quantity
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong import names
from konverge.operators.wukong.effective_spec import is_clone
from konverge.operators.wukong.kinds import DataVolume, VirtualMachineInstance
from konverge.operators.wukong.resource import AnyWukong
from konverge.operators.wukong.spec_disks import Disk
from konverge.operators.wukong.status import SPEC_VALID, VOLUMES_BOUND, Trouble
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.volumes import requested

_ENDED = ("Succeeded", "Failed")


async def clone_trouble(state: ReconcileState, disk: Disk) -> Trouble | None:
    """Why a disk cannot be copied just now; None when it can, or is no copy."""
    spec, ctx = state.spec.spec, state.ctx
    if not is_clone(spec, disk) or spec.clone_from is None:
        return None
    source, name = spec.clone_from, names.claim(spec.clone_from, disk.name)
    wukong = await ctx.get(AnyWukong, source)
    claim = await ctx.get(PersistentVolumeClaim, name)
    if wukong is None or claim is None or claim.metadata.deletion_timestamp:
        missing = f"there is no Wukong {source}" if wukong is None else f"there is no claim {name}"
        message = f"disk {disk.name} is to be a copy: {missing}"
        return Trouble(VOLUMES_BOUND, "CloneSourceNotFound", message)
    volume = await ctx.get(DataVolume, name) if ctx.serves(DataVolume) else None
    if claim.status.phase != "Bound" or (volume is not None and volume.status.phase != "Succeeded"):
        message = f"claim {name}, of which disk {disk.name} is to be a copy, is not filled yet"
        return Trouble(VOLUMES_BOUND, "CloneSourceNotReady", message)
    if disk.size is not None and Quantity(disk.size) < Quantity(_size(wukong, disk, claim)):
        message = f"disk {disk.name} is a copy of one of {_size(wukong, disk, claim)}: it cannot be smaller"
        return Trouble(SPEC_VALID, "CloneTooSmall", message, failed=True)
    if ctx.serves(VirtualMachineInstance):
        running = await ctx.get(VirtualMachineInstance, names.machine(source))
        if running is not None and running.status.phase not in _ENDED:
            message = f"disk {disk.name} is copied once Wukong {source} is off: stop it"
            return Trouble(VOLUMES_BOUND, "CloneSourceInUse", message)
    return None


def _size(source: AnyWukong, disk: Disk, claim: PersistentVolumeClaim) -> str:
    """As the other machine has asked for it: a claim asks for more than that."""
    for volume in source.status.volumes:
        if volume.name == disk.name and volume.size:
            return volume.size
    return requested(claim)
