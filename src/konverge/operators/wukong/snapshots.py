"""The loop of a WukongSnapshot: one VirtualMachineSnapshot of the same name, and what becomes of it.

The name makes it one, however often it is asked for. It is owned, so it goes with the WukongSnapshot. One that was
taken and is gone is not taken again: it would be of another moment, under the name of the first. One that others took
away and give back is the same one by its uid, and nothing else is.
"""

from __future__ import annotations

from konverge.client import BadRequest, Forbidden, Invalid, MergePatch, NotFound
from konverge.operators.wukong import names
from konverge.operators.wukong.children.virtualmachine import snapshot_for
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineSnapshot
from konverge.operators.wukong.kinds.snapshots import SnapshotStatus as FoundStatus
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.ownership import is_data_of
from konverge.operators.wukong.quotas import EXCEEDED, GRANTED, refusal
from konverge.operators.wukong.resource import QUOTA, AnyWukong, WukongQuota, WukongSnapshot
from konverge.operators.wukong.snapshot_grants import are_limited
from konverge.operators.wukong.status import LOST, WITHIN_QUOTA, SnapshotStatus, is_lost
from konverge.runtime import Context, NotOwned, Reconciler, Result, find_condition, set_condition
from konverge.runtime.owners import is_controlled_by


class SnapshotReconciler(Reconciler[WukongSnapshot]):
    """One reconcile."""

    def __init__(self, options: Options) -> None:
        self.options = options

    async def reconcile(self, ctx: Context[WukongSnapshot]) -> Result | None:
        status = ctx.obj.status
        if ctx.deleting or (is_lost(status) and not await _regain(ctx)):
            return None
        again = 0.0
        if status.phase == "Succeeded":
            await _keep(ctx)
        else:
            again = await self._take(ctx, status)
        _conclude(status, ctx.obj.metadata.generation)
        await ctx.save_status()
        return Result(requeue_after=again) if again else None

    async def _take(self, ctx: Context[WukongSnapshot], status: SnapshotStatus) -> float:
        """Make it or look at it; seconds until the next look."""
        wait, later = self.options.wait, self.options.error
        if not ctx.serves(VirtualMachineSnapshot):
            return _fail(ctx, "the cluster has no snapshots of KubeVirt (snapshot.kubevirt.io)", later)
        taken = await ctx.get(VirtualMachineSnapshot, ctx.request.name)
        if taken is not None and is_controlled_by(taken, ctx.obj):
            _note_grant(status, ctx.obj.metadata.generation)
            return _follow(ctx, taken, wait)
        name = ctx.obj.spec.wukong_name
        wukong = await ctx.get(AnyWukong, name)
        if wukong is None:
            return _fail(ctx, f"there is no Wukong {name}", later)
        vm = await ctx.get(VirtualMachine, names.machine(name)) if ctx.serves(VirtualMachine) else None
        if vm is None or not is_controlled_by(vm, wukong):
            status.phase, status.error = "Pending", f"Wukong {name} has no virtual machine yet"
            return wait
        return await self._make(ctx, status) if await _is_granted(ctx) else 0.0

    async def _make(self, ctx: Context[WukongSnapshot], status: SnapshotStatus) -> float:
        try:
            await ctx.apply(snapshot_for(ctx.obj))
        except NotOwned as error:
            return _fail(ctx, str(error), self.options.error)
        except (Invalid, Forbidden, BadRequest, NotFound) as error:
            if isinstance(error, Forbidden) and error.namespace_terminating:
                raise
            return _fail(ctx, f"the API server refuses: {error}", self.options.error)
        status.phase, status.snapshot_name, status.error = "Creating", ctx.request.name, ""
        ctx.event("SnapshotStarted", f"VirtualMachineSnapshot {ctx.request.name} made")
        return self.options.wait


async def _keep(ctx: Context[WukongSnapshot]) -> None:
    """Look after what was taken. Whether it is gone is asked of the server: a cache may not have it yet."""
    if not ctx.serves(VirtualMachineSnapshot):
        return
    taken = await ctx.get(VirtualMachineSnapshot, ctx.request.name)
    if taken is None or not is_data_of(ctx.obj, taken) or not taken.status.ready_to_use:
        try:
            taken = await ctx.client.get(VirtualMachineSnapshot, ctx.request.name, ctx.request.namespace)
        except NotFound as error:
            if not error.kind_missing:
                _lose(ctx, "is not there any more")
            return
        if not is_data_of(ctx.obj, taken):
            _recognize(ctx.obj.status, taken)
            again = ctx.obj.status.snapshot_uid not in ("", taken.metadata.uid)
            _lose(ctx, "was made again by others" if again else "belongs to another owner now, or to none")
            return
        if not taken.status.ready_to_use:
            _recognize(ctx.obj.status, taken)
            why = taken.status.error
            _lose(ctx, f"has lost its contents: {why.message}" if why is not None else "is not ready to use any more")
            return
    labels = snapshot_for(ctx.obj).metadata.labels
    if any(taken.metadata.labels.get(key) != value for key, value in labels.items()):
        patch = MergePatch({"metadata": {"labels": labels}})
        await ctx.client.patch(VirtualMachineSnapshot, taken.metadata.name, patch, taken.metadata.namespace)


def _lose(ctx: Context[WukongSnapshot], how: str) -> None:
    status = ctx.obj.status
    status.phase, status.error = "Failed", f"VirtualMachineSnapshot {ctx.request.name}, which was taken, {how}"
    ctx.warning(LOST, status.error)
    set_condition(status.conditions, "Ready", False, LOST, status.error)


def _recognize(status: SnapshotStatus, taken: VirtualMachineSnapshot) -> None:
    """Earlier versions noted no uid, but the moment, which KubeVirt writes: one that was made again is of a later one.

    Only with the loss, which is written anyway: an earlier definition keeps no uid, however often it is written.
    """
    if not status.snapshot_uid and status.creation_time == taken.status.creation_time:
        status.snapshot_uid = taken.metadata.uid


async def _regain(ctx: Context[WukongSnapshot]) -> bool:
    """Whether what was lost is its own again, and whole: then the snapshot is what it was. The server is asked, because
    a cache may be from before the loss; one that does not show it yet leads here again when it does."""
    if not ctx.serves(VirtualMachineSnapshot):
        return False
    taken = await ctx.get(VirtualMachineSnapshot, ctx.request.name)
    if taken is None or not _is_whole(ctx.obj, taken):
        return False
    try:
        live = await ctx.client.get(VirtualMachineSnapshot, ctx.request.name, ctx.request.namespace)
    except NotFound:
        return False
    if not _is_whole(ctx.obj, live):
        return False
    ctx.obj.status.phase, ctx.obj.status.error = "Succeeded", ""
    ctx.event("SnapshotFound", f"VirtualMachineSnapshot {ctx.request.name}, which was taken, is back")
    return True


def _is_whole(snapshot: WukongSnapshot, taken: VirtualMachineSnapshot) -> bool:
    """Without the uid of what was taken, nothing is known to be the same."""
    known = bool(snapshot.status.snapshot_uid) and is_data_of(snapshot, taken)
    return known and taken.status.ready_to_use and not taken.metadata.deletion_timestamp


async def _is_granted(ctx: Context[WukongSnapshot]) -> bool:
    """Whether the quota of the namespace lets it be taken; it is heard of when that changes."""
    status, place = ctx.obj.status, ctx.obj.metadata
    quota = await ctx.get(WukongQuota, QUOTA) if ctx.serves(WukongQuota) else None
    if quota is None or not are_limited(quota.spec):
        status.conditions = [entry for entry in status.conditions if entry.type != WITHIN_QUOTA]
        return True
    granted = any(grant.uid == place.uid for grant in quota.status.snapshots)
    reason, message = GRANTED if granted else refusal(quota, place.uid)
    before = find_condition(status.conditions, WITHIN_QUOTA)
    if reason == EXCEEDED and (before is None or before.reason != reason):
        ctx.warning(reason, message)
    set_condition(status.conditions, WITHIN_QUOTA, granted, reason, message, observed_generation=place.generation)
    if not granted:
        status.phase, status.error = "Pending", message
    return granted


def _note_grant(status: SnapshotStatus, generation: int) -> None:
    """What is being taken was granted, also where the operator died before it could say so."""
    before = find_condition(status.conditions, WITHIN_QUOTA)
    if before is not None and before.status != "True":
        set_condition(status.conditions, WITHIN_QUOTA, True, *GRANTED, observed_generation=generation)


def _conclude(status: SnapshotStatus, generation: int) -> None:
    status.observed_generation = generation
    reason = LOST if is_lost(status) else status.phase if status.phase in ("Failed", "Succeeded") else "InProgress"
    done = status.phase == "Succeeded"
    message = status.error or _without(status)
    set_condition(status.conditions, "Ready", done, reason, message, observed_generation=generation)


def _without(status: SnapshotStatus) -> str:
    """KubeVirt leaves out what it cannot take, and calls it a success: that must not be a surprise one day."""
    missing = ", ".join(status.excluded_volumes)
    return f"not in it: {missing}; their storage classes take no snapshots" if missing else ""


def _fail(ctx: Context[WukongSnapshot], error: str, again: float) -> float:
    """It may still become possible, so it is tried again."""
    status = ctx.obj.status
    if (status.phase, status.error) != ("Failed", error):
        ctx.warning("SnapshotFailed", error)
    status.phase, status.error = "Failed", error
    return again


def _follow(ctx: Context[WukongSnapshot], taken: VirtualMachineSnapshot, wait: float) -> float:
    status, observed = ctx.obj.status, taken.status
    status.snapshot_name = taken.metadata.name
    status.creation_time = observed.creation_time or None
    failed = find_condition(observed.conditions, "Failure")
    error = (observed.error.message if observed.error is not None else "") or (
        failed.message or failed.reason if failed is not None else ""  # KubeVirt writes its sentences into the reason
    )
    if observed.ready_to_use:
        status.phase, status.error, status.snapshot_uid = "Succeeded", "", taken.metadata.uid
        note_contents(status, observed)
        ctx.event("SnapshotTaken", f"snapshot of {ctx.obj.spec.wukong_name} is ready to use")
        if status.excluded_volumes:
            ctx.warning("SnapshotIncomplete", _without(status))
        return 0.0
    if observed.phase == "Failed":
        _fail(ctx, error or "KubeVirt does not say why", 0.0)
        return 0.0
    status.phase, status.error = "Creating", error
    return wait


def note_contents(status: SnapshotStatus, observed: FoundStatus) -> None:
    """What is in it, and how it was taken. Disks that the operator adds itself are created again anyway."""
    volumes = observed.snapshot_volumes
    status.volumes = sorted(volumes.included_volumes) if volumes is not None else []
    left_out = set(volumes.excluded_volumes) if volumes is not None else set()
    status.excluded_volumes = sorted(left_out - set(names.RESERVED_DISKS))
    status.indications = sorted(observed.indications)
