"""Which plans come in which order: faults and changes of the input share the time.

Each has an order of its own, by value. Both get their share of the budget from the beginning, by what a plan is likely
to take, so that neither has to wait for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from konverge.check.inputs import campaign as changes_of_input
from konverge.check.model import Obj, Plan
from konverge.check.plans import derive
from konverge.check.reference import Reference

FAULTS, INPUTS = 0.6, 0.4
"""Shares of the time."""
SLOW = 20.0
"""Seconds of a step: a run of several changes would not end within the budget. Where runs begin at a rest of the
reference, one for each change costs little more."""
OF_INPUT = frozenset(("input", "recovery"))


class Planned(msgspec.Struct):
    """Plans by value, and what else could be tried and is not, as sentences."""

    plans: list[Plan]
    left_out: list[str] = []


Planner = Callable[[Reference, Sequence[str], int], Planned]
"""From the reference, the chosen patterns (all, if there are none), and the seed."""


def faults_only(reference: Reference, only: Sequence[str], seed: int) -> Planned:
    """What can go wrong around the operator, the most telling first."""
    if only and OF_INPUT.issuperset(only):
        return Planned([])
    derived = derive(reference, only=only, seed=seed)
    return Planned(derived.plans, derived.left_out)


def planner_for(samples: Sequence[Obj], objects: Iterable[Obj], namespace: str) -> Planner:
    """Faults, and changes of the samples that their definitions allow."""
    definitions = [obj for obj in objects if obj.get("kind") == "CustomResourceDefinition"]

    def planned(reference: Reference, only: Sequence[str], seed: int) -> Planned:
        faults = faults_only(reference, only, seed)
        inputs: list[Plan] = []
        if not only or OF_INPUT.intersection(only):
            apart = bool(reference.run.snapshots) and _a_step(reference) > SLOW
            made = changes_of_input(samples, definitions, seed, namespace=namespace, apart=apart)
            inputs = [_estimated(plan, reference) for plan in made if not only or plan.pattern in only]
        return Planned(list(_shared(faults.plans, inputs)), faults.left_out)

    return planned


def _estimated(plan: Plan, reference: Reference) -> Plan:
    return msgspec.structs.replace(plan, seconds=_a_step(reference) * len(plan.steps or ()))


def _a_step(reference: Reference) -> float:
    """Seconds that a step of the reference took."""
    return reference.run.seconds / max(1, len(reference.run.steps))


def _shared(faults: Sequence[Plan], inputs: Sequence[Plan]) -> Iterator[Plan]:
    """Next comes whoever has had less of its share."""
    queues = [iter(faults), iter(inputs)]
    heads = [next(queue, None) for queue in queues]
    used = [0.0, 0.0]
    while any(head is not None for head in heads):
        waiting = [index for index in (0, 1) if heads[index] is not None]
        index = min(waiting, key=lambda number: used[number] / (FAULTS, INPUTS)[number])
        head = heads[index]
        assert head is not None
        used[index] += max(head.seconds, 1e-6)
        heads[index] = next(queues[index], None)
        yield head
