"""A crash after every write of the operator that changed something, and before the first one of every step.

A crash before any other write leaves in the store what a crash after the write before it leaves; but not in the
application, which the operator has often told something just before it writes a Secret or lets a finalizer go. And an
operator that is away while the user goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge import clock
from konverge.check.model import Crash, Delete, OperatorAway, Place, Plan
from konverge.check.plans.writes import distinct, effective, place_of, step_of
from konverge.check.reference import Reference

PAIRS = 12
"""Pairs of crashes, at most."""
FARTHEST = 3
"""So many writes after the first crash comes the second, at most: in the recovery, and not after it."""


MOST_ABSENCES = 4
"""Single steps in which the operator is away, at most."""


def restarts(reference: Reference) -> Iterator[Plan]:
    """Of the pattern "crash"."""
    yield from crashes(reference)
    yield from absences(reference)


def absences(reference: Reference) -> Iterator[Plan]:
    """The operator is away during a step, deletions first; and during all that becomes of a custom resource.

    What it has not seen need not leave behind what the reference left behind: such a run ends with the deletion.
    """
    run = reference.run
    if not any(effective(reference)):
        return
    steps = [step for step, checkpoint in zip(run.steps, run.checkpoints, strict=False) if checkpoint.rested]
    deletions = [
        number for number, step in enumerate(steps) if any(isinstance(action, Delete) for action in step.actions)
    ]
    order = sorted(range(len(steps)), key=lambda number: number not in deletions)
    for number in order[:MOST_ABSENCES]:
        yield Plan("crash", (OperatorAway(number, number),))
    for begin in (0, 1):
        last = next((number for number in deletions if number > begin), None)
        if last is not None:
            yield Plan("crash", (OperatorAway(begin, last),), first=last + 1)


def crashes(reference: Reference) -> Iterator[Plan]:
    """In the order of the reference."""
    steps: set[int] = set()
    for exchange in distinct(reference):
        step = step_of(reference, exchange)
        place = place_of(exchange)
        if step not in steps or _follows_a_talk(place):
            steps.add(step)
            yield Plan("crash", (Crash(place, "before"),))
        yield Plan("crash", (Crash(place),))


def _follows_a_talk(place: Place) -> bool:
    """Whether an operator may just have told its application what it writes: a new password, that something goes."""
    return place.resource == "/secrets" or "finalizers" in place.change


def pairs(reference: Reference, seed: int) -> Iterator[Plan]:
    """A crash, and another one during the recovery: some, chosen by the seed."""
    places = [place_of(exchange) for exchange in effective(reference)]
    rng = clock.seeded(seed)
    chosen = rng.sample(range(len(places) - 1), min(PAIRS, max(len(places) - 1, 0)))
    for first in sorted(chosen):
        second = min(first + rng.randint(1, FARTHEST), len(places) - 1)
        yield Plan("crash", (Crash(places[first]), Crash(places[second])))
