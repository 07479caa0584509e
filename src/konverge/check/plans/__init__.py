"""The plans: what can go wrong with an operator, derived from what it did in the reference run.

    for plan in all_plans(reference, only={"crash", "stale"}, seed=0):
        ...

A generator is a function `(Reference) -> Iterable[Plan]`; `derive` calls all, orders what they give by value, and
says what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from konverge.check.model import Crash, Edit, Gap, Plan, Stale
from konverge.check.plans.application import applications
from konverge.check.plans.crash import pairs, restarts
from konverge.check.plans.edits import edits
from konverge.check.plans.errors import errors
from konverge.check.plans.gaps import gaps, late_own_writes
from konverge.check.plans.length import Length
from konverge.check.plans.order import owners_of, ranked
from konverge.check.plans.stale import any_version, stale
from konverge.check.plans.time import leaders, times
from konverge.check.plans.writes import distinct, effective
from konverge.check.reference import Reference

Generator = Callable[[Reference], Iterable[Plan]]

GENERATORS: dict[str, Generator] = {
    "crash": restarts,
    "stale": stale,
    "gap": gaps,
    "own-writes": late_own_writes,
    "edits": edits,
    "errors": errors,
    "application": applications,
    "leader": leaders,
    "time": times,
}
"""By pattern."""


class Derived(msgspec.Struct):
    """Plans by value, and what is not among them."""

    plans: list[Plan]
    left_out: list[str]
    """Sentences."""


def all_plans(reference: Reference, *, only: Collection[str] = (), seed: int = 0) -> list[Plan]:
    """Every plan of the patterns in `only` (all, if it is empty), by value; pairs of crashes come last."""
    return derive(reference, only=only, seed=seed).plans


def derive(reference: Reference, *, only: Collection[str] = (), seed: int = 0) -> Derived:
    """See `all_plans`."""
    chosen = {name: make for name, make in GENERATORS.items() if not only or name in only}
    length = Length(reference)
    plans: list[Plan] = []
    to_the_end: list[Plan] = []
    made = _once(plan for make in chosen.values() for plan in make(reference))
    for rank, plan in ranked(made, owners_of(reference)):
        plans.append(length.shortened(plan))
        if rank == 1 and _may_show_later(plan) and plans[-1] != plan:
            to_the_end.append(plan)
    plans += to_the_end
    if "crash" in chosen:
        plans += map(length.shortened, pairs(reference, seed))
    return Derived([length.estimated(plan) for plan in plans], _left_out(reference, chosen))


def _may_show_later(plan: Plan) -> bool:
    """Whether the first plan of its kind is run to the end of the workload as well, after those of all kinds."""
    return any(isinstance(item, Crash | Stale | Gap | Edit) for item in plan.perturbations)


def _once(plans: Iterable[Plan]) -> list[Plan]:
    """Plans that do the same are one."""
    return list({msgspec.json.encode(plan): plan for plan in plans}.values())


def _left_out(reference: Reference, chosen: Collection[str]) -> list[str]:
    alike = len(list(effective(reference))) - len(distinct(reference))
    said = []
    if alike and "crash" in chosen:
        said.append(f"{alike} writes that repeat others: a crash comes after the first and the last of each")
    fresh = {delivery.resource for delivery in reference.run.deliveries if delivery.listed} - any_version(reference)
    if fresh and "stale" in chosen:
        names = ", ".join(sorted(resource.removeprefix("/") for resource in fresh))
        said.append(f"no stale starts for {names}: the operator's lists of them are always fresh")
    return said
