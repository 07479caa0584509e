"""Which snapshots may be taken. Pure, as `grants.py` is for machines.

Where snapshots are not limited nothing is recorded. A snapshot that was taken before a limit was set, or under a higher
one, stays and counts. Of one that is lost the sizes are kept but not counted: it may come back, when the machine has
other disks or is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from konverge.objects import Quantity
from konverge.operators.wukong.grants import sum_of, too_much
from konverge.operators.wukong.spec_quota import QuotaSpec, QuotaUse, SnapshotGrant, Waiting


class Taking(msgspec.Struct, frozen=True):
    """A snapshot, and the disks of its machine."""

    name: str
    uid: str
    created: str
    disks: dict[str, str] = msgspec.field(default_factory=dict)
    begun: bool = False
    """KubeVirt has been asked for it: it is there, whatever the limit."""
    contents: frozenset[str] | None = None
    """The disks that are in it, once that is known: KubeVirt leaves out those whose class takes no snapshots."""
    lost: bool = False
    """Its data are not there, so they take no storage."""


def are_limited(limits: QuotaSpec) -> bool:
    return limits.snapshots is not None or limits.snapshot_storage is not None


def decide_snapshots(
    limits: QuotaSpec, takings: Iterable[Taking], granted: Iterable[SnapshotGrant]
) -> tuple[list[SnapshotGrant], list[Waiting]]:
    """Everything that fits, in the order of creation; and what waits, each with the reason."""
    if not are_limited(limits):
        return [], []
    order = sorted(takings, key=lambda taking: (taking.created, taking.name, taking.uid))
    before = {grant.uid: grant for grant in granted}
    held = {taking.uid: _held(taking, before.get(taking.uid)) for taking in order}
    have = {uid: grant for uid, grant in held.items() if grant is not None}
    waiting: list[Waiting] = []
    lost = lost_of(order)
    storage = _storage(have.values(), lost)
    for taking in order:
        if taking.uid in have:
            continue
        desired = SnapshotGrant(name=taking.name, uid=taking.uid, disks=taking.disks)
        total = QuotaUse(snapshots=len(have), snapshot_storage=str(storage))
        obstacle = too_much(limits, total, QuotaUse(), snapshots_used([desired]))
        if obstacle:
            waiting.append(Waiting(name=taking.name, uid=taking.uid, message=obstacle))
        else:
            have[taking.uid] = desired
            storage += _storage([desired], lost)
    return [have[taking.uid] for taking in order if taking.uid in have], waiting


def _held(taking: Taking, grant: SnapshotGrant | None) -> SnapshotGrant | None:
    """What a snapshot has before anything is given."""
    if grant is None and not taking.begun:
        return None
    disks = taking.disks if grant is None else grant.disks
    if taking.contents is not None:
        disks = {name: size for name, size in disks.items() if name in taking.contents}
    return SnapshotGrant(name=taking.name, uid=taking.uid, disks=disks)


def lost_of(takings: Iterable[Taking]) -> frozenset[str]:
    """The uids of those that are lost."""
    return frozenset(taking.uid for taking in takings if taking.lost)


def snapshots_used(grants: Collection[SnapshotGrant], lost: Collection[str] = ()) -> QuotaUse:
    """The sum; of those that are `lost`, the number alone."""
    return QuotaUse(snapshots=len(grants), snapshot_storage=str(_storage(grants, lost)))


def _storage(grants: Iterable[SnapshotGrant], lost: Collection[str]) -> Quantity:
    return sum((sum_of(grant.disks) for grant in grants if grant.uid not in lost), sum_of({}))
