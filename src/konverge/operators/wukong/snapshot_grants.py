"""Which snapshots may be taken. Pure, as `grants.py` is for machines.

Where snapshots are not limited nothing is recorded. A snapshot that was taken before a limit was set, or under a higher
one, stays and counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from konverge.operators.wukong.grants import sum_of, too_much
from konverge.operators.wukong.spec_quota import QuotaSpec, QuotaUse, SnapshotGrant, Waiting


@dataclass(frozen=True, slots=True)
class Taking:
    """A snapshot, and the disks of its machine."""

    name: str
    uid: str
    created: str
    disks: dict[str, str] = field(default_factory=dict)
    begun: bool = False
    """KubeVirt has been asked for it: it is there, whatever the limit."""
    contents: frozenset[str] | None = None
    """The disks that are in it, once that is known: KubeVirt leaves out those whose class takes no snapshots."""


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
    for taking in order:
        if taking.uid in have:
            continue
        desired = SnapshotGrant(name=taking.name, uid=taking.uid, disks=taking.disks)
        obstacle = too_much(limits, snapshots_used(have.values()), QuotaUse(), snapshots_used([desired]))
        if obstacle:
            waiting.append(Waiting(name=taking.name, uid=taking.uid, message=obstacle))
        else:
            have[taking.uid] = desired
    return [have[taking.uid] for taking in order if taking.uid in have], waiting


def _held(taking: Taking, grant: SnapshotGrant | None) -> SnapshotGrant | None:
    """What a snapshot has before anything is given."""
    if grant is None and not taking.begun:
        return None
    disks = taking.disks if grant is None else grant.disks
    if taking.contents is not None:
        disks = {name: size for name, size in disks.items() if name in taking.contents}
    return SnapshotGrant(name=taking.name, uid=taking.uid, disks=disks)


def snapshots_used(grants: Collection[SnapshotGrant]) -> QuotaUse:
    """The sum."""
    storage = sum((sum_of(grant.disks) for grant in grants), sum_of({}))
    return QuotaUse(snapshots=len(grants), snapshot_storage=str(storage))
