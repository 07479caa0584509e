"""The quota of the namespace: a machine is made of what was granted to it, and of nothing more.

A new machine without a grant waits, and nothing is made for it. One that asks for more than it has goes on with what
it has: it can be stopped, moved and deleted as before.
"""

from __future__ import annotations

import msgspec

from konverge.objects import Quantity, to_dict
from konverge.operators.wukong.grants import wanted
from konverge.operators.wukong.quotas import EXCEEDED, GRANTED, grants_of, has_all, refusal
from konverge.operators.wukong.resource import QUOTA, Wukong, WukongQuota, problems
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.spec_disks import Disk
from konverge.operators.wukong.spec_quota import Grant
from konverge.operators.wukong.status import WITHIN_QUOTA, Trouble, drop, say
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import find_condition


async def quota(state: ReconcileState) -> None:
    """Look what was granted; where that is less than the spec asks for, go on with the spec as far as it is."""
    found = await state.ctx.get(WukongQuota, QUOTA) if state.ctx.serves(WukongQuota) else None
    if found is None:
        drop(state.status, WITHIN_QUOTA)
        return
    wukong, uid = state.spec, state.ctx.obj.metadata.uid
    grant = grants_of(found).get(uid)
    wants = wanted(to_dict(wukong.spec), wukong.metadata.name, uid)
    if has_all(grant, wants, wukong.spec.instancetype is not None):
        _say(state, True, *GRANTED)
        return
    reason, message = refusal(found, uid)
    before = find_condition(state.status.conditions, WITHIN_QUOTA)
    if reason == EXCEEDED and (before is None or before.reason != reason):
        state.ctx.warning(reason, message)
    _say(state, False, reason, message)
    held = None if grant is None else _held(wukong, grant)
    if held is None:
        state.trouble.append(Trouble(WITHIN_QUOTA, reason, message))
    else:
        state.wukong = held


def _held(wukong: Wukong, grant: Grant) -> Wukong | None:
    """The machine as far as it was granted; None where that is no machine."""
    spec = wukong.spec
    disks = [held for disk in spec.disks if (held := _held_disk(disk, grant)) is not None]
    changes: dict[str, object] = {"disks": disks}
    if spec.instancetype is not None and grant.cpu:
        changes |= {"instancetype": None, "cpu": grant.cpu, "memory": grant.memory}
    elif spec.instancetype is None:
        cpu = min(spec.cpu or 0, grant.cpu)
        memory = min(Quantity(spec.memory or "0"), Quantity(grant.memory))
        changes |= {"cpu": cpu, "memory": str(memory)}
    result = Wukong(metadata=wukong.metadata, spec=msgspec.structs.replace(spec, **changes))
    return None if not disks or not _is_sized(result.spec) or problems(result) else result


def _is_sized(spec: WukongSpec) -> bool:
    return spec.instancetype is not None or bool(spec.cpu)


def _held_disk(disk: Disk, grant: Grant) -> Disk | None:
    """None for one that is not plugged in yet."""
    if disk.size is None:
        return disk
    if disk.name not in grant.disks:
        return None
    size = grant.disks[disk.name]
    return disk if Quantity(disk.size) <= Quantity(size) else msgspec.structs.replace(disk, size=size)


def _say(state: ReconcileState, value: bool, reason: str, message: str) -> None:
    say(state.status, WITHIN_QUOTA, value, reason, message, generation=state.generation)
