"""The loop of a WukongQuota: it grants machines and snapshots what they ask for, as far as the limits go.

A machine is built only with what was granted to it, and the grants are in the status of one object, written under the
version that the decision was made on: however many machines ask at once, and however many operators decide, no two
get the same place. There is one quota in a namespace, called `default`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from konverge.client import NotFound, merge_between
from konverge.objects import Quantity, from_dict, to_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong import names
from konverge.operators.wukong.grants import Asking, covers, decide, exceeded, used, wanted
from konverge.operators.wukong.kinds import VirtualMachineInstance
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import QUOTA, AnyWukong, WukongQuota, WukongSnapshot
from konverge.operators.wukong.snapshot_grants import Taking, are_limited, decide_snapshots, lost_of, snapshots_used
from konverge.operators.wukong.spec_quota import Grant, SnapshotGrant
from konverge.operators.wukong.status import LONGEST_MESSAGE, READY, SPEC_VALID, WITHIN_QUOTA, SnapshotStatus, is_lost
from konverge.operators.wukong.templates import resolved_spec
from konverge.runtime import Context, Reconciler, Request, Result, find_condition, is_true, set_condition
from konverge.runtime.context import Caches


class QuotaReconciler(Reconciler[WukongQuota]):
    """One reconcile."""

    def __init__(self, options: Options) -> None:
        self.options = options

    async def reconcile(self, ctx: Context[WukongQuota]) -> Result | None:
        if ctx.deleting:
            return None
        before = from_dict(WukongQuota, to_dict(ctx.obj))
        status, spec = ctx.obj.status, ctx.obj.spec
        grants = grants_of(ctx.obj)
        machines = [await _asking(ctx, wukong, grants) for wukong in await ctx.list(AnyWukong)]
        unseen = [await _unseen(ctx, grant) for grant in _without(status.granted, machines)]
        asking = [machine for machine in (*machines, *unseen) if machine is not None]
        decision = decide(spec, asking, status.granted)
        takings = await _takings(ctx) if are_limited(spec) else []
        status.snapshots, held_up = decide_snapshots(spec, takings, status.snapshots)
        status.granted, status.waiting = decision.granted, [*decision.waiting, *held_up]
        status.used = used(decision.granted)
        if are_limited(spec):
            kept = snapshots_used(status.snapshots, lost_of(takings))
            status.used.snapshots, status.used.snapshot_storage = kept.snapshots, kept.snapshot_storage
        status.observed_generation = ctx.obj.metadata.generation
        _say(ctx, exceeded(spec, status.used))
        if status != before.status:  # by value: what is encoded of a default depends on where it came from
            patch, place = merge_between(before, ctx.obj, lock=True), ctx.obj.metadata
            await ctx.client.patch(WukongQuota, place.name, patch, place.namespace, subresource="status")
        left_over = any(machine.left_over for machine in asking)  # no event comes when such a claim goes
        return Result(requeue_after=self.options.error) if left_over else None


async def _asking(ctx: Context[WukongQuota], wukong: AnyWukong, grants: Mapping[str, Grant]) -> Asking | None:
    place, status = wukong.metadata, wukong.status
    spec = resolved_spec(wukong)
    wants = wanted(spec, place.name, place.uid)
    grant = grants.get(place.uid)
    if place.deletion_timestamp and grant is None:
        return None
    gone = [disk for disk in (grant.disks if grant is not None else ()) if disk not in wants.disks]
    left_over = [disk for disk in gone if await ctx.get(PersistentVolumeClaim, names.claim(place.name, disk))]
    return Asking(
        name=place.name,
        uid=place.uid,
        created=place.creation_timestamp or "",
        wants=wants,
        by_instancetype="instancetype" in spec,
        built=bool(status.vm_name or status.volumes),
        settled=_is_settled(wukong) and await _let_go(ctx, wants),
        left_over=frozenset(left_over),
    )


def _is_settled(wukong: AnyWukong) -> bool:
    """Whether the operator has acted upon the spec."""
    status = wukong.status
    return status.observed_generation == wukong.metadata.generation and is_true(status.conditions, SPEC_VALID)


async def _let_go(ctx: Context[WukongQuota], wants: Grant) -> bool:
    """Whether the guest has no more than is asked for: what it was started with it has until it is restarted."""
    if not ctx.serves(VirtualMachineInstance):
        return True
    guest = await ctx.get(VirtualMachineInstance, names.machine(wants.name))
    if guest is None:
        return True
    cpu, memory = guest.spec.domain.cpu, guest.spec.domain.memory
    processors = 0 if cpu is None else (cpu.sockets or 1) * (cpu.cores or 1) * (cpu.threads or 1)
    size = Quantity((memory.guest if memory is not None else None) or "0")
    return processors <= wants.cpu and size <= Quantity(wants.memory)


def _without(granted: Iterable[Grant], machines: Iterable[Asking | None]) -> list[Grant]:
    known = {machine.uid for machine in machines if machine is not None}
    return [grant for grant in granted if grant.uid not in known]


async def _unseen(ctx: Context[WukongQuota], grant: Grant) -> Asking | None:
    """A machine with a grant that is not in the cache: gone; or the cache is older than the grant."""
    try:
        live = await ctx.client.get(AnyWukong, grant.name, ctx.request.namespace)
    except NotFound:
        return None
    return await _asking(ctx, live, {grant.uid: grant}) if live.metadata.uid == grant.uid else None


async def _takings(ctx: Context[WukongQuota]) -> list[Taking]:
    """The snapshots that have a place, or ask for one."""
    granted = {grant.uid: grant for grant in ctx.obj.status.snapshots}
    seen = {snapshot.metadata.uid: snapshot for snapshot in await ctx.list(WukongSnapshot)}
    for grant in granted.values():
        if grant.uid not in seen and (live := await _live(ctx, grant)) is not None:
            seen[grant.uid] = live
    takings = [await _taking(ctx, snapshot, known=uid in granted) for uid, snapshot in seen.items()]
    return [taking for taking in takings if taking is not None]


async def _live(ctx: Context[WukongQuota], grant: SnapshotGrant) -> WukongSnapshot | None:
    """A snapshot with a grant that is not in the cache: gone; or the cache is older than the grant."""
    try:
        live = await ctx.client.get(WukongSnapshot, grant.name, ctx.request.namespace)
    except NotFound:
        return None
    return live if live.metadata.uid == grant.uid else None


async def _taking(ctx: Context[WukongQuota], snapshot: WukongSnapshot, *, known: bool) -> Taking | None:
    """None for one that waits for its machine, or goes: it asks for nothing."""
    place, status = snapshot.metadata, snapshot.status
    wukong = await ctx.get(AnyWukong, snapshot.spec.wukong_name)
    begun = bool(status.snapshot_name)
    if not known and not begun and (place.deletion_timestamp or wukong is None or not wukong.status.vm_name):
        return None
    volumes = wukong.status.volumes if wukong is not None else []
    return Taking(
        name=place.name,
        uid=place.uid,
        created=place.creation_timestamp or "",
        disks={volume.name: volume.size or volume.capacity or volume.requested or "0" for volume in volumes},
        begun=begun,
        contents=_contents(status),
        lost=is_lost(status),
    )


def _contents(status: SnapshotStatus) -> frozenset[str] | None:
    """The disks in a snapshot; None where that is not known yet."""
    return frozenset(status.volumes) if status.phase == "Succeeded" or is_lost(status) else None


def _say(ctx: Context[WukongQuota], over: list[str]) -> None:
    waiting = ctx.obj.status.waiting
    reason, message = "Enforced", f"{len(waiting)} wait" if waiting else "all that was asked for is granted"
    if over:
        reason, message = "BelowUse", f"{'; '.join(over)}: nothing is stopped, and nothing is granted beyond that"
    conditions, generation = ctx.obj.status.conditions, ctx.obj.metadata.generation
    before = find_condition(conditions, READY)
    if over and (before is None or before.reason != reason):
        ctx.warning(reason, message)
    set_condition(conditions, READY, True, reason, message[:LONGEST_MESSAGE], observed_generation=generation)


# ------------------------------------------------------------------ who is to look


def quota_of(asking: AnyWukong | WukongSnapshot, caches: Caches) -> Iterable[Request]:
    """The quota of the namespace of a machine or a snapshot, where there is one."""
    lister, namespace = caches.lister(WukongQuota), asking.metadata.namespace
    return () if lister is None or lister.get(QUOTA, namespace) is None else (Request(namespace, QUOTA),)


def concerned(quota: WukongQuota, caches: Caches) -> Iterable[Request]:
    """Machines that wait for a quota, or do not know of it yet; of one that was deleted, all.

    A machine that has looked at the quota before this change may wait, and not have said so yet: it is known by what it
    asks for. Before a change and after it is asked, so that a grant wakes whoever did not have it.
    """
    lister, quotas, namespace = caches.lister(AnyWukong), caches.lister(WukongQuota), quota.metadata.namespace
    if lister is None or quotas is None:
        return ()
    gone = quotas.get(quota.metadata.name, namespace) is None
    machines, grants = lister.list(namespace), grants_of(quota)
    return [
        Request(namespace, machine.metadata.name)
        for machine in machines
        if gone or not is_true(machine.status.conditions, WITHIN_QUOTA) or not _is_granted(machine, grants)
    ]


def _is_granted(machine: AnyWukong, grants: Mapping[str, Grant]) -> bool:
    place, spec = machine.metadata, resolved_spec(machine)
    wants = wanted(spec, place.name, place.uid)
    return has_all(grants.get(place.uid), wants, spec.get("instancetype") is not None)


def waiting_snapshots(quota: WukongQuota, caches: Caches) -> Iterable[Request]:
    """Snapshots that KubeVirt has not been asked for: the status of one that waits for a quota may not say so yet."""
    lister, namespace = caches.lister(WukongSnapshot), quota.metadata.namespace
    snapshots = lister.list(namespace) if lister is not None else ()
    waiting = (snapshot for snapshot in snapshots if not snapshot.status.snapshot_name)
    return [Request(namespace, snapshot.metadata.name) for snapshot in waiting]


def grants_of(quota: WukongQuota) -> dict[str, Grant]:
    """What each machine has, by its uid."""
    return {grant.uid: grant for grant in quota.status.granted}


def has_all(grant: Grant | None, wants: Grant, by_instancetype: bool) -> bool:
    """Whether a machine may have all that it asks for: what an instance type gives is known of none with a grant."""
    return grant is not None and covers(grant, wants) and not (grant.cpu and by_instancetype)


GRANTED = ("Granted", f"WukongQuota {QUOTA} has granted it")
EXCEEDED = "QuotaExceeded"


def refusal(quota: WukongQuota, uid: str) -> tuple[str, str]:
    """Why a machine or a snapshot without a grant waits: a reason and a message."""
    obstacle = next((entry.message for entry in quota.status.waiting if entry.uid == uid), "")
    if obstacle:
        return EXCEEDED, f"WukongQuota {QUOTA}: {obstacle}"
    return "QuotaPending", f"WukongQuota {QUOTA} has not decided yet"
