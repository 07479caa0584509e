"""Going back to a snapshot: `restoreFromSnapshot`, once for each new value.

The machine is stopped, KubeVirt puts its disks back under the names they have, and then it is as it was before, on or
off. While that lasts the operator touches neither the machine nor its disks. The VirtualMachineRestore has a name of
its own for each snapshot, so it is found again after a crash; it is deleted when another snapshot is requested, or
none.
"""

from __future__ import annotations

from konverge.client import NotFound
from konverge.operators.wukong import names
from konverge.operators.wukong.children.virtualmachine import IN_PLACE, restore_for
from konverge.operators.wukong.kinds import VirtualMachineRestore, VirtualMachineSnapshot
from konverge.operators.wukong.names import restore as restore_name
from konverge.operators.wukong.ownership import is_data_of
from konverge.operators.wukong.resource import WukongSnapshot
from konverge.operators.wukong.status import LOST, VIRTUAL_MACHINE_READY, Trouble, is_lost
from konverge.operators.wukong.steps.power import HALTED
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import controller_of, find_condition

TOO_OLD = "a restore into the claims of the machine needs KubeVirt 1.6 or newer"


async def restore(state: ReconcileState) -> None:
    """Note that a restore goes on, or what keeps it from beginning."""
    snapshot = state.spec.spec.restore_from_snapshot
    if not state.ctx.serves(VirtualMachineRestore):
        if snapshot and snapshot != state.status.last_restore:
            _no(state, "SnapshotsMissing", "the cluster has no snapshots of KubeVirt (snapshot.kubevirt.io)")
        return
    await _sweep(state, restore_name(state.name, snapshot) if snapshot else "")
    if not snapshot:
        state.status.last_restore = ""
    elif snapshot != state.status.last_restore and state.vm is not None:
        await _bring_back(state, snapshot)


async def _bring_back(state: ReconcileState, snapshot: str) -> None:
    ctx = state.ctx
    restore = await ctx.get(VirtualMachineRestore, restore_name(state.name, snapshot))
    if restore is not None and restore.status.complete and _is_ours(state, restore):
        restore = await _staying(state, restore)
        if restore is None:
            state.again = True  # of an earlier request for this snapshot: another one is made when it is gone
            return
    if restore is not None and not _is_ours(state, restore):
        _no(state, "NotOurs", f"VirtualMachineRestore {restore.metadata.name} belongs to another owner: delete it")
        return
    if restore is not None and restore.spec.volume_restore_policy != IN_PLACE:
        text = f"VirtualMachineRestore {restore.metadata.name} goes into other claims ({TOO_OLD}): delete it"
        _no(state, "RestoreUnavailable", text)
        return
    if restore is not None and restore.status.complete:
        state.status.last_restore = snapshot
        ctx.event("Restored", f"the virtual machine is back at snapshot {snapshot}")
        return
    if restore is not None:
        state.restoring = snapshot
        _report_failure(state, restore)
        return
    if not await _usable(state, snapshot):
        return
    state.restoring = snapshot
    if state.vmi is None and state.vm is not None and state.vm.spec.run_strategy == HALTED:
        await state.make(restore_for(state.spec, snapshot))
        ctx.event("RestoreStarted", f"the virtual machine goes back to snapshot {snapshot}")


async def _staying(state: ReconcileState, restore: VirtualMachineRestore) -> VirtualMachineRestore | None:
    """As the server has it: a cache may be from before it was deleted. None where it is gone or goes."""
    try:
        live = await state.ctx.client.get(VirtualMachineRestore, restore.metadata.name, state.ctx.request.namespace)
    except NotFound:
        return None
    return None if live.metadata.deletion_timestamp else live


def _is_ours(state: ReconcileState, restore: VirtualMachineRestore) -> bool:
    """KubeVirt makes the machine the controller of a restore, in place of us: then it has our label."""
    owner = controller_of(restore)
    if state.vm is not None and owner is not None and owner.uid == state.vm.metadata.uid:
        return restore.metadata.labels.get(names.LABEL) == state.name
    return state.owns(restore)


async def _sweep(state: ReconcileState, keep: str) -> None:
    """Restores of ours that are not asked for any more."""
    for restore in await state.ctx.list(VirtualMachineRestore):
        place = restore.metadata
        if place.name != keep and not place.deletion_timestamp and _is_ours(state, restore):
            await state.ctx.delete(VirtualMachineRestore, place.name)


async def _usable(state: ReconcileState, snapshot: str) -> bool:
    taken = await state.ctx.get(WukongSnapshot, snapshot)
    if taken is None:
        return _no(state, "SnapshotNotFound", f"there is no WukongSnapshot {snapshot}")
    if taken.spec.wukong_name != state.name:
        return _no(state, "SnapshotOfAnother", f"WukongSnapshot {snapshot} is of {taken.spec.wukong_name}")
    if is_lost(taken.status):
        return _no(state, LOST, f"WukongSnapshot {snapshot}: {taken.status.error}")
    if taken.status.phase != "Succeeded":
        return _no(state, "SnapshotNotReady", f"WukongSnapshot {snapshot} is {taken.status.phase or 'not taken yet'}")
    kept = await state.ctx.get(VirtualMachineSnapshot, snapshot)
    if kept is None or not is_data_of(taken, kept) or not kept.status.ready_to_use:
        text = f"VirtualMachineSnapshot {snapshot}, which WukongSnapshot {snapshot} has taken, is not there any more"
        return _no(state, LOST, text)
    if kept.status.source_uid and state.vm is not None and kept.status.source_uid != state.vm.metadata.uid:
        text = f"WukongSnapshot {snapshot} is of a machine that was here before: KubeVirt restores into no other one"
        return _no(state, "SnapshotOfAnother", text)
    absent = await state.lacking(restore_for(state.spec, snapshot))
    if absent:
        return _no(state, "RestoreUnavailable", f"{absent}: {TOO_OLD}; the machine goes on as it is")
    return True


def _report_failure(state: ReconcileState, restore: VirtualMachineRestore) -> None:
    """KubeVirt writes its sentences into the reason; what is not a failure for good, it tries again."""
    state.again = True
    conditions = restore.status.conditions
    failed, going = find_condition(conditions, "Failure"), find_condition(conditions, "Progressing")
    if failed is not None and failed.status == "True":
        why = failed.message or failed.reason or "the restore failed"
        state.refusals.append(Trouble(VIRTUAL_MACHINE_READY, "RestoreFailed", why))
    elif going is not None and going.status == "False":
        why = going.message or going.reason or "the restore does not go on"
        state.refusals.append(Trouble(VIRTUAL_MACHINE_READY, "RestoreFailing", why))


def _no(state: ReconcileState, reason: str, message: str) -> bool:
    """The machine goes on as it is."""
    state.refusals.append(Trouble(VIRTUAL_MACHINE_READY, reason, message))
    return False
