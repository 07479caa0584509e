"""Going back to a snapshot: `restoreFromSnapshot`, once for each new value.

The machine is stopped, KubeVirt puts its disks back under the names they have, and then it is as it was before, on or
off. While that lasts nobody touches the machine or its disks. The VirtualMachineRestore has a name of its own for each
snapshot, so whoever comes back after a crash finds it; it goes when another snapshot is wished, or none.
"""

from __future__ import annotations

from konverge.operators.wukong.children.snapshots import restore_for
from konverge.operators.wukong.conditions import VIRTUAL_MACHINE_READY, Trouble
from konverge.operators.wukong.kinds import VirtualMachineRestore
from konverge.operators.wukong.names import restore as restore_name
from konverge.operators.wukong.power import HALTED
from konverge.operators.wukong.resource import WukongSnapshot
from konverge.operators.wukong.steps.round import Round
from konverge.runtime import find_condition


async def restore(round: Round) -> None:
    """Note that a restore goes on, or what keeps it from beginning."""
    snapshot = round.spec.spec.restore_from_snapshot or ""
    if not round.ctx.serves(VirtualMachineRestore):
        if snapshot and snapshot != round.status.last_restore:
            _no(round, "SnapshotsMissing", "the cluster has no snapshots of KubeVirt (snapshot.kubevirt.io)")
        return
    await _forget_others(round, snapshot)
    if not snapshot:
        round.status.last_restore = ""
    elif snapshot != round.status.last_restore and round.vm is not None:
        await _bring_back(round, snapshot)


async def _forget_others(round: Round, snapshot: str) -> None:
    current = restore_name(round.name, snapshot) if snapshot else ""
    for one in await round.ctx.owned(VirtualMachineRestore):
        if one.metadata.name != current and not one.metadata.deletion_timestamp:
            await round.ctx.delete(VirtualMachineRestore, one.metadata.name)


async def _bring_back(round: Round, snapshot: str) -> None:
    ctx = round.ctx
    found = await ctx.get(VirtualMachineRestore, restore_name(round.name, snapshot))
    if found is not None and found.status.complete:
        round.status.last_restore = snapshot
        ctx.event("Restored", f"the virtual machine is back at snapshot {snapshot}")
        return
    if found is not None:
        round.restoring = snapshot
        _tell_failure(round, found)
        return
    if not await _usable(round, snapshot):
        return
    round.restoring = snapshot
    if round.vmi is None and round.vm is not None and round.vm.spec.run_strategy == HALTED:
        await ctx.apply(restore_for(round.spec, snapshot))
        ctx.event("RestoreStarted", f"the virtual machine goes back to snapshot {snapshot}")


async def _usable(round: Round, snapshot: str) -> bool:
    taken = await round.ctx.get(WukongSnapshot, snapshot)
    if taken is None:
        return _no(round, "SnapshotNotFound", f"there is no WukongSnapshot {snapshot}")
    if taken.spec.wukong_name != round.name:
        return _no(round, "SnapshotOfAnother", f"WukongSnapshot {snapshot} is of {taken.spec.wukong_name}")
    if taken.status.phase != "Succeeded":
        return _no(round, "SnapshotNotReady", f"WukongSnapshot {snapshot} is {taken.status.phase or 'not taken yet'}")
    return True


def _tell_failure(round: Round, found: VirtualMachineRestore) -> None:
    round.again = True
    failed = find_condition(found.status.conditions, "Failure")
    if failed is not None and failed.status == "True":
        round.refusals.append(Trouble(VIRTUAL_MACHINE_READY, "RestoreFailed", failed.message or "the restore failed"))


def _no(round: Round, reason: str, message: str) -> bool:
    """The machine goes on as it is."""
    round.refusals.append(Trouble(VIRTUAL_MACHINE_READY, reason, message))
    return False
