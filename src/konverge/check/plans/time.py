"""Time that passes, an API server that is away, a Lease that is lost."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.gate.leader import LEASES
from konverge.check.model import Delete, LeaderLost, Plan, TimePasses
from konverge.check.plans.writes import distinct, place_of
from konverge.check.reference import Reference

HOUR = 3600.0
SOME_SECONDS = 20.0
"""On real time."""
OUTAGE, SHORT_OUTAGE = 90.0, 5.0
"""On virtual time, and on real time."""
MOST_OUTAGES = 4
MOST_LEADERS = 4


def times(reference: Reference) -> Iterator[Plan]:
    """An hour after the first and after the last step; an outage before some steps, deletions first."""
    steps = reference.run.steps
    if not steps:
        return
    virtual = _is_virtual(reference)
    for step in sorted({0, len(steps) - 1}, reverse=True):
        yield Plan("time", (TimePasses(step, HOUR if virtual else SOME_SECONDS),))
    order = sorted(range(len(steps) - 1), key=lambda step: not _deletes(reference, step + 1))
    for step in (*order[: MOST_OUTAGES - 1], len(steps) - 1):
        yield Plan("time", (TimePasses(step, OUTAGE if virtual else SHORT_OUTAGE, away=True),))


def _is_virtual(reference: Reference) -> bool:
    """More time passed in the run than on the clock at the wall."""
    run = reference.run
    return bool(run.checkpoints) and run.checkpoints[-1].time > run.seconds


def _deletes(reference: Reference, step: int) -> bool:
    return any(isinstance(action, Delete) for action in reference.run.steps[step].actions)


def leaders(reference: Reference) -> Iterator[Plan]:
    """Where the operator holds a Lease: after its first write of every verb, deletions first."""
    if not any(exchange.resource == LEASES for exchange in reference.run.exchanges):
        return
    first = {exchange.verb: place_of(exchange) for exchange in reversed(distinct(reference))}
    for verb in sorted(first, key=lambda verb: verb != "delete")[:MOST_LEADERS]:
        yield Plan("leader", (LeaderLost(first[verb]),))
