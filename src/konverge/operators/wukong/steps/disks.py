"""Step 7: the disks. A DataVolume where there is something to fill it with, else a plain claim; or one that was there.

What was made is never made again: CDI may delete a DataVolume when its work is done, and a claim that is gone took its
data along. An empty disk in its place would be a silent loss, so it is reported, and left to the user.
"""

from __future__ import annotations

from typing import Literal

from konverge.client import MergePatch
from konverge.objects import Object, Quantity, to_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.wukong import effective_spec
from konverge.operators.wukong.children.disks import claim_for, data_volume_for, grown, marks_for
from konverge.operators.wukong.kinds import DataVolume
from konverge.operators.wukong.names import REQUESTED_SIZE
from konverge.operators.wukong.ownership import adoption, is_marked
from konverge.operators.wukong.spec_disks import Disk
from konverge.operators.wukong.status import SPEC_VALID, VOLUMES_BOUND, Trouble, VolumeStatus
from konverge.operators.wukong.steps.clones import clone_trouble
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.volumes import Standing, asked, capacity, may_grow, requested, stands
from konverge.runtime import controller_of
from konverge.runtime.owners import ADOPT_BY

PROGRESS_STEP = 5.0
LOST = "Lost"
"""The phase of a disk whose claim is gone; until there is one again, or the disk is taken out of the spec."""


async def disks(state: ReconcileState) -> None:
    """Make what is missing, let grow what should, and note how far everything is."""
    if state.restoring or (state.vm is not None and state.vm.status.restore_in_progress):
        state.volumes = list(state.status.volumes)  # they are being replaced, and no other step looks at them
        return
    for disk in state.spec.spec.disks:
        standing = await _disk(state, disk)
        if standing.trouble is not None:
            state.trouble.append(standing.trouble)
            state.missing_disks.add(disk.name)
        if standing.waiting:
            state.waiting.append(standing.waiting)


async def _disk(state: ReconcileState, disk: Disk) -> Standing:
    ctx, name = state.ctx, effective_spec.claim_name(state.spec, disk)
    claim = await ctx.get(PersistentVolumeClaim, name)
    if disk.existing_claim is not None:
        return await _existing(state, disk, claim)
    filled = effective_spec.source_of(state.spec.spec, disk) is not None
    if filled and claim is None and not ctx.serves(DataVolume):
        return _no(state, disk, "CDIMissing", "the cluster has no CDI to fill it: install it, or leave the image out")
    volume = await ctx.get(DataVolume, name) if filled else None
    if claim is not None and await _reclaim(state, claim):
        state.again = True  # the cache still shows its former owner: whatever else it needs comes with the next look
        return _judge(state, disk, volume, claim, await _storage(state, claim))
    trouble = (
        _foreign(state, disk, volume, claim)
        or _lost(state, disk, claim)
        or (_abandoned(state, disk, volume, claim) if filled else None)
    )
    if trouble is not None:
        return _note(state, disk, volume, claim, Standing(False, trouble))
    storage = await _storage(state, claim)
    trouble = await (_fill(state, disk, volume, claim, storage) if filled else _keep(state, disk, claim, storage))
    if volume is None and claim is None:
        making = trouble or Trouble(VOLUMES_BOUND, "ClaimPending", f"disk {disk.name} is being made")
        return _note(state, disk, None, None, Standing(False, making))
    if trouble is not None:
        state.trouble.append(trouble)  # what was asked of the disk cannot be; the disk itself is as it was
    return _judge(state, disk, volume, claim, storage)


def _judge(
    state: ReconcileState,
    disk: Disk,
    volume: DataVolume | None,
    claim: PersistentVolumeClaim | None,
    storage: StorageClass | None,
) -> Standing:
    standing = stands(disk.name, volume, claim, storage, restarts=state.options.import_restarts)
    return _note(state, disk, volume, claim, standing)


async def _storage(state: ReconcileState, claim: PersistentVolumeClaim | None) -> StorageClass | None:
    name = claim.spec.storage_class_name if claim is not None else None
    return await state.ctx.get(StorageClass, name) if name else None


# ------------------------------------------------------------------ a disk of ours


async def _fill(
    state: ReconcileState,
    disk: Disk,
    volume: DataVolume | None,
    claim: PersistentVolumeClaim | None,
    storage: StorageClass | None,
) -> Trouble | None:
    """A disk with a source. Its DataVolume never changes: what grows is the claim."""
    if volume is None and claim is not None:
        return await _grow(state, disk, None, claim, storage)  # CDI has tidied up after itself
    obstacle = await clone_trouble(state, disk) if volume is None else None
    if obstacle is not None:
        return obstacle
    wanted = data_volume_for(state.spec, disk)
    absent = await state.lacking(wanted) if volume is None else ""
    if absent:
        message = f"disk {disk.name}: {absent}; upgrade CDI, or leave out what needs it"
        return Trouble(VOLUMES_BOUND, "CDITooOld", message, failed=True)
    if volume is not None:
        if (wanted.spec.source, wanted.spec.source_ref) != (volume.spec.source, volume.spec.source_ref):
            return _refused(disk, "DiskSourceChanged", "what it was made from cannot change: add another disk")
        wanted.spec.storage = volume.spec.storage
    if volume is None or not volume.metadata.deletion_timestamp:
        await _apply(state, disk, wanted, volume)
    return None if claim is None else await _grow(state, disk, volume, claim, storage)


async def _grow(
    state: ReconcileState,
    disk: Disk,
    volume: DataVolume | None,
    claim: PersistentVolumeClaim,
    storage: StorageClass | None,
) -> Trouble | None:
    if disk.size is None:
        await _mark(state, disk, claim, None)
        return None
    before = asked(volume, claim, disk.size)
    verdict = _class_changed(disk, claim) or may_grow(disk.name, disk.size, before, claim, storage)
    if isinstance(verdict, Trouble):
        return verdict
    present = Quantity(requested(claim))
    if verdict:
        request = grown(present, Quantity(before), Quantity(disk.size))
        marks = marks_for(state.spec, disk, request, owned=_is_left(state, disk, claim))
        await _apply_some(state, marks, claim)
        state.ctx.event("DiskGrows", f"disk {disk.name} grows from {before} to {disk.size}")
    else:
        await _mark(state, disk, claim, present)
    return None


async def _mark(state: ReconcileState, disk: Disk, claim: PersistentVolumeClaim, present: Quantity | None) -> None:
    """The DataVolume knows size and owner, but CDI may delete it one day, and a restore takes the claim from it."""
    owned = _is_left(state, disk, claim)
    noted = any(owner.uid == state.ctx.obj.metadata.uid for owner in claim.metadata.owner_references)
    marks = {ADOPT_BY} if disk.size is None else {ADOPT_BY, REQUESTED_SIZE}
    if claim.status.phase == "Bound" and (owned != noted or not marks <= claim.metadata.annotations.keys()):
        await _apply_some(state, marks_for(state.spec, disk, present, owned=owned), claim)


def _is_left(state: ReconcileState, disk: Disk, claim: PersistentVolumeClaim) -> bool:
    """Whether no controller looks after a claim that is to go with the machine."""
    return controller_of(claim) is None and not effective_spec.is_kept(state.spec.spec, disk)


async def _keep(
    state: ReconcileState, disk: Disk, claim: PersistentVolumeClaim | None, storage: StorageClass | None
) -> Trouble | None:
    """A disk that begins empty."""
    wanted = claim_for(state.spec, disk)
    if claim is not None:
        if claim.metadata.deletion_timestamp:
            return None
        before = requested(claim)
        verdict = _class_changed(disk, claim) or may_grow(disk.name, disk.size or before, before, claim, storage)
        if isinstance(verdict, Trouble):
            return verdict
        if verdict:
            state.ctx.event("DiskGrows", f"disk {disk.name} grows from {before} to {disk.size}")
        else:
            wanted.spec.resources = claim.spec.resources
        wanted.spec.access_modes = claim.spec.access_modes  # how it is used was settled when it was made
        wanted.spec.volume_mode = claim.spec.volume_mode if wanted.spec.volume_mode is not None else None
    await _apply(state, disk, wanted, claim)
    return None


async def _apply(state: ReconcileState, disk: Disk, wanted: Object, live: Object | None) -> None:
    """What is there was judged to be ours. One that is kept has no owner, lest it goes with us."""
    if effective_spec.is_kept(state.spec.spec, disk):
        await _apply_some(state, wanted, live)
    else:
        await state.ctx.apply(wanted, adopt=True)


async def _apply_some(state: ReconcileState, wanted: Object, live: Object | None) -> None:
    """Without becoming its owner: to this very object; where there is none, to none that another client has made."""
    if live is not None:
        wanted.metadata.uid = live.metadata.uid
    await state.ctx.apply(wanted, own=False, force=live is not None)


def _class_changed(disk: Disk, claim: PersistentVolumeClaim) -> Trouble | None:
    desired, present = disk.storage_class_name, claim.spec.storage_class_name
    if desired is None or desired == present:
        return None
    message = f"it is of class {present} and cannot move to {desired}: add another disk"
    return _refused(disk, "DiskClassChanged", message)


def _refused(disk: Disk, reason: str, message: str) -> Trouble:
    return Trouble(SPEC_VALID, reason, f"disk {disk.name}: {message}", failed=True)


# ------------------------------------------------------------------ whose, and whether it was there before


def _foreign(
    state: ReconcileState, disk: Disk, volume: DataVolume | None, claim: PersistentVolumeClaim | None
) -> Trouble | None:
    """A disk of another owner under our name is not written to."""
    if volume is not None and not _is_ours(state, disk, volume):
        present: Object = volume
    elif claim is not None and not _is_ours(state, disk, claim) and not _is_of(disk, state, volume, claim):
        present = claim
    else:
        return None
    kind, (key, value) = type(present).resource.kind, next(iter(adoption(state.name).items()))
    message = (
        f"disk {disk.name}: {kind} {present.metadata.name} belongs to another owner and is left as it is: name it as "
        f"existingClaim, rename the disk, or hand it over with the annotation {key}: {value}"
    )
    return Trouble(VOLUMES_BOUND, "ClaimNotOurs", message, failed=True)


def _is_ours(state: ReconcileState, disk: Disk, present: Object) -> bool:
    if state.owns(present):
        return True
    return controller_of(present) is None and _recorded(state, disk) is not None and is_marked(state.name, present)


def _is_of(disk: Disk, state: ReconcileState, volume: DataVolume | None, claim: PersistentVolumeClaim) -> bool:
    """A claim that CDI has made for our DataVolume, which may not be in the cache yet, or no longer."""
    owner = controller_of(claim)
    if owner is None or owner.kind != "DataVolume" or effective_spec.source_of(state.spec.spec, disk) is None:
        return False
    return owner.uid == volume.metadata.uid if volume is not None else owner.name == claim.metadata.name


async def _reclaim(state: ReconcileState, claim: PersistentVolumeClaim) -> bool:
    """A restore makes the machine the owner of the claims it puts back: they would go with it, kept or not.

    True when that was undone just now.
    """
    owner = controller_of(claim)
    if owner is None or state.vm is None or owner.uid != state.vm.metadata.uid:
        return False
    await _disown(state, claim, owner.uid)
    return True


async def _disown(state: ReconcileState, child: Object, uid: str) -> None:
    """Take an owner from it, if it is one."""
    place = child.metadata
    others = [to_dict(reference) for reference in place.owner_references if reference.uid != uid]
    if len(others) < len(place.owner_references):
        patch = MergePatch({"metadata": {"ownerReferences": others, "resourceVersion": place.resource_version}})
        await state.ctx.client.patch(type(child), place.name, patch, place.namespace)


def _recorded(state: ReconcileState, disk: Disk) -> VolumeStatus | None:
    """What the status says about a disk of which there was something before."""
    return next((volume for volume in state.status.volumes if volume.name == disk.name and volume.phase), None)


def _lost(state: ReconcileState, disk: Disk, claim: PersistentVolumeClaim | None) -> Trouble | None:
    known = _recorded(state, disk)
    if claim is not None or known is None or not (known.bound or known.phase == LOST):
        return None
    message = (
        f"disk {disk.name}: claim {known.pvc_name} was deleted, and its data with it. Put it back from a backup, or "
        "take the disk out of spec.disks and in again for a new one"
    )
    return Trouble(VOLUMES_BOUND, "ClaimLost", message, failed=True)


def _abandoned(
    state: ReconcileState, disk: Disk, volume: DataVolume | None, claim: PersistentVolumeClaim | None
) -> Trouble | None:
    """A claim whose DataVolume was deleted before it was filled: it goes as well, and whatever is in it is no disk."""
    owner = controller_of(claim) if claim is not None else None
    known = _recorded(state, disk)
    if volume is not None or owner is None or owner.kind != "DataVolume" or (known is not None and known.bound):
        return None
    return Trouble(VOLUMES_BOUND, "ClaimPending", f"disk {disk.name}: its DataVolume is gone and is being recreated")


async def _existing(state: ReconcileState, disk: Disk, claim: PersistentVolumeClaim | None) -> Standing:
    if claim is None:
        return _no(state, disk, "ClaimNotFound", f"there is no claim {disk.existing_claim}")
    await _let_go(state, claim)
    return _judge(state, disk, None, claim, await _storage(state, claim))


async def _let_go(state: ReconcileState, claim: PersistentVolumeClaim) -> None:
    """It outlives the machine, whose claim it is after a restore; and us, where it was a disk of ours before."""
    if await _reclaim(state, claim):
        state.again = True  # as above
        return
    ours, owner = state.ctx.obj.metadata.uid, controller_of(claim)
    await _disown(state, claim, ours)
    if owner is not None and owner.kind == "DataVolume" and state.ctx.serves(DataVolume):
        volume = await state.ctx.get(DataVolume, owner.name)
        if volume is not None and volume.metadata.uid == owner.uid:
            await _disown(state, volume, ours)


# ------------------------------------------------------------------ telling


def _no(state: ReconcileState, disk: Disk, reason: str, message: str) -> Standing:
    standing = Standing(False, Trouble(VOLUMES_BOUND, reason, f"disk {disk.name}: {message}"))
    return _note(state, disk, None, None, standing)


def _note(
    state: ReconcileState,
    disk: Disk,
    volume: DataVolume | None,
    claim: PersistentVolumeClaim | None,
    standing: Standing,
) -> Standing:
    """The entry of the status."""
    known, reason = _recorded(state, disk), standing.trouble.reason if standing.trouble is not None else ""
    lost = reason == "ClaimLost" and claim is None
    entry = VolumeStatus(
        name=disk.name,
        pvc_name=effective_spec.claim_name(state.spec, disk),
        bound=standing.bound or (reason == "ClaimDeleting" and known is not None and known.bound),
        size=disk.size or "",
        type=_type(state, disk),
    )
    recorded = reason != "ClaimNotOurs"  # nothing is on record about what is not ours
    if lost:
        entry.phase = LOST
    elif volume is not None and recorded:
        entry.phase = volume.status.phase
        entry.progress = _progress(known, entry.phase, volume.status.progress)
        entry.restarts = volume.status.restart_count
    elif claim is not None and recorded:
        entry.phase = claim.status.phase or ""
    if claim is not None:
        entry.requested, entry.capacity = requested(claim), capacity(claim)
    entry.message = standing.waiting or (standing.trouble.message if standing.trouble is not None else "")
    state.volumes.append(entry)
    return standing


def _progress(known: VolumeStatus | None, phase: str, progress: str) -> str:
    """Reported in steps: an import that reports every second is no reason to write every second."""
    if known is None or known.phase != phase:
        return progress
    try:
        moved = float(progress.rstrip("%")) - float(known.progress.rstrip("%"))
    except ValueError:
        return progress
    return known.progress if 0 <= moved < PROGRESS_STEP else progress


def _type(state: ReconcileState, disk: Disk) -> Literal["PersistentVolumeClaim", "DataVolume", "Existing"]:
    if disk.existing_claim is not None:
        return "Existing"
    return "DataVolume" if effective_spec.source_of(state.spec.spec, disk) is not None else "PersistentVolumeClaim"
