"""Which machine may have how much. Pure: the same machines, limits and grants lead to the same decision.

What was granted stays granted, also under a limit that is lower by now: only what is more has to fit. Machines get
their turn in the order of their creation; one that does not fit does not hold up those after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from konverge.objects import Quantity, QuantityError
from konverge.operators.wukong.spec_quota import Grant, QuotaSpec, QuotaUse, Waiting

NOTHING = Quantity("0Gi")


class Asking(msgspec.Struct, frozen=True):
    """A machine, and what its spec asks for."""

    name: str
    uid: str
    created: str
    wants: Grant
    by_instancetype: bool = False
    """How much that is, only KubeVirt knows."""
    built: bool = False
    """It was there before the quota was: what it has is granted in any case."""
    settled: bool = True
    """It has become what its spec says: what it does not ask for any more is free."""
    left_over: frozenset[str] = frozenset()
    """Disks that are out of the spec, and whose claims are still there."""


def wanted(spec: Mapping[str, Any], name: str, uid: str) -> Grant:
    """What a spec asks for, be it valid or not. Claims that were there before are not the machine's."""
    cpu, disks = spec.get("cpu"), spec.get("disks")
    entries = [disk for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []
    return Grant(
        name=name,
        uid=uid,
        cpu=cpu if isinstance(cpu, int) else 0,
        memory=_size(spec.get("memory")),
        disks={str(disk.get("name")): _size(disk["size"]) for disk in entries if disk.get("size")},
    )


def _size(value: Any) -> str:
    try:
        return str(Quantity(value)) if isinstance(value, str) else "0"
    except QuantityError:
        return "0"


def covers(grant: Grant, wants: Grant) -> bool:
    """Whether a machine may have all that it asks for."""
    if wants.cpu > grant.cpu or Quantity(wants.memory) > Quantity(grant.memory):
        return False
    return all(
        name in grant.disks and Quantity(size) <= Quantity(grant.disks[name]) for name, size in wants.disks.items()
    )


class Decision(msgspec.Struct):
    """The grants, and who waits for more."""

    granted: list[Grant]
    waiting: list[Waiting]


def decide(limits: QuotaSpec, machines: Iterable[Asking], granted: Iterable[Grant]) -> Decision:
    """Everything that fits, in the order of creation."""
    order = sorted(machines, key=lambda machine: (machine.created, machine.name, machine.uid))
    before = {grant.uid: grant for grant in granted}
    held = {machine.uid: grant for machine in order if (grant := _held(machine, before.get(machine.uid))) is not None}
    total = used(held.values())  # carried on: adding all of them up again for each would take the square of the time
    waiting: list[Waiting] = []
    for machine in order:
        present = held.get(machine.uid)
        desired = _more(machine, present)
        obstacle = _unknown(limits, machine, present)
        if not obstacle and desired != present:
            mine, then = used([] if present is None else [present]), used([desired])
            obstacle = too_much(limits, total, mine, then)
            total = total if obstacle else moved(total, mine, then)
        if not obstacle:
            held[machine.uid] = desired
        elif present is None or not covers(present, machine.wants) or machine.by_instancetype:
            waiting.append(Waiting(name=machine.name, uid=machine.uid, message=obstacle))
    return Decision([held[machine.uid] for machine in order if machine.uid in held], waiting)


def _held(machine: Asking, grant: Grant | None) -> Grant | None:
    """What a machine has before anything is given: less than before, where it has let go of something."""
    wants = machine.wants
    if grant is None:
        return wants if machine.built else None
    disks = {name: size for name, size in grant.disks.items() if name in wants.disks or name in machine.left_over}
    if not machine.settled:
        return grant
    memory = min(Quantity(grant.memory), Quantity(wants.memory))
    return Grant(name=grant.name, uid=grant.uid, cpu=min(grant.cpu, wants.cpu), memory=str(memory), disks=disks)


def _more(machine: Asking, present: Grant | None) -> Grant:
    """What a machine would have with all that it asks for."""
    wants = machine.wants
    if present is None:
        return wants
    sizes = {name: max(Quantity(wants.disks.get(name, "0")), Quantity(size)) for name, size in present.disks.items()}
    disks = wants.disks | {name: str(size) for name, size in sizes.items()}
    memory = max(Quantity(present.memory), Quantity(wants.memory))
    return Grant(name=wants.name, uid=wants.uid, cpu=max(present.cpu, wants.cpu), memory=str(memory), disks=disks)


def _unknown(limits: QuotaSpec, machine: Asking, present: Grant | None) -> str:
    """Processors and memory of an instancetype cannot be counted: a machine that had been counted does not get one."""
    if not machine.by_instancetype or (limits.cpu is None and limits.memory is None):
        return ""
    if present is not None and present.cpu == 0:
        return ""
    return "an instancetype cannot be counted where cpu or memory are limited: give cpu and memory"


def used(grants: Collection[Grant]) -> QuotaUse:
    """The sum."""
    memory = sum((Quantity(grant.memory) for grant in grants), NOTHING)
    storage = sum((_storage(grant) for grant in grants), NOTHING)
    cpu = sum(grant.cpu for grant in grants)
    return QuotaUse(machines=len(grants), cpu=cpu, memory=str(memory), storage=str(storage))


def _storage(grant: Grant) -> Quantity:
    return sum_of(grant.disks)


def sum_of(disks: Mapping[str, str]) -> Quantity:
    return sum((Quantity(size) for size in disks.values()), NOTHING)


def moved(total: QuotaUse, mine: QuotaUse, then: QuotaUse) -> QuotaUse:
    """The sum once somebody has `then` instead of `mine`."""
    return QuotaUse(
        machines=total.machines - mine.machines + then.machines,
        cpu=total.cpu - mine.cpu + then.cpu,
        memory=str(Quantity(total.memory) - Quantity(mine.memory) + Quantity(then.memory)),
        storage=str(Quantity(total.storage) - Quantity(mine.storage) + Quantity(then.storage)),
    )


def too_much(limits: QuotaSpec, total: QuotaUse, mine: QuotaUse, then: QuotaUse) -> str:
    """Which limits are in the way of having `then` instead of `mine`, and by how much."""
    texts = []
    for name, limit in limits_of(limits).items():
        have, more = _amount(total, name), _amount(then, name) - _amount(mine, name)
        if more > NOTHING and have + more > limit:
            over = have + more - limit
            texts.append(f"{name}: {have} of {limit} in use, {more} more asked for, {over} too much")
    return "; ".join(texts)


_LIMITS = {
    "machines": "machines",
    "cpu": "cpu",
    "memory": "memory",
    "storage": "storage",
    "snapshots": "snapshots",
    "snapshotStorage": "snapshot_storage",
}
"""The members of limits and of their use, by the names that people see."""


def limits_of(limits: QuotaSpec) -> dict[str, Quantity]:
    """Those that are set."""
    given = {name: getattr(limits, member) for name, member in _LIMITS.items()}
    return {name: Quantity(str(value)) for name, value in given.items() if value is not None}


def exceeded(limits: QuotaSpec, use: QuotaUse) -> list[str]:
    """The limits that are lower than what is in use already."""
    pairs = ((name, _amount(use, name), limit) for name, limit in limits_of(limits).items())
    return [f"{name}: {have} of {limit} in use" for name, have, limit in pairs if have > limit]


def _amount(use: QuotaUse, name: str) -> Quantity:
    return Quantity(str(getattr(use, _LIMITS[name]) or 0))
