"""How much of the workload a plan needs, and how long it will take.

What an operator knows after a restart is in the cluster. A run that is at rest in the state of the reference, one step
after the perturbation, goes on as the reference does: the rest of the workload would repeat it. The first
crash, stale start, gap and edit of every kind is run to the end all the same, when all plans have been tried so.
"""

from __future__ import annotations

import msgspec

from konverge.check.causes import History
from konverge.check.model import (
    ApplicationFault,
    Crash,
    Edit,
    Gap,
    Lag,
    LeaderLost,
    Moment,
    OperatorAway,
    Perturbation,
    Place,
    Plan,
    Refuse,
    Stale,
    TimePasses,
)
from konverge.check.reference import Reference

RECOVERY, MORE = 0.2, 0.03
"""Of the time of the reference: for a perturbation, and for each more that comes after it."""


class Length:
    """Knows in which step of the reference every place and moment is."""

    def __init__(self, reference: Reference) -> None:
        run = reference.run
        history = History(run)
        self._run = run
        self._moments: dict[Moment, int] = {change.moment: change.step for change in run.changes}
        self._places: dict[Place, int] = {}
        for exchange in run.exchanges:
            made = history.of(exchange)
            if exchange.place is not None and made:
                self._places[exchange.place] = made[0].step

    def shortened(self, plan: Plan) -> Plan:
        """Up to the step after the last one that it disturbs."""
        steps = [self._step(item) for item in plan.perturbations]
        known = [step for step in steps if step is not None]
        if plan.steps is not None or plan.first or not known or len(known) < len(steps):
            return plan
        first = max(known) + 2
        return msgspec.structs.replace(plan, first=first) if first < len(self._run.steps) else plan

    def _step(self, item: Perturbation) -> int | None:
        """The last step that a perturbation touches; None if that is not known."""
        match item:
            case Crash() | LeaderLost() | Refuse():
                return self._places.get(item.place)
            case Stale() | Gap():
                return self._moments.get(item.until)
            case Lag():
                return self._moments.get(item.until or item.since)
            case TimePasses() | Edit():
                return item.step
            case OperatorAway():
                return item.last
        return None

    def beginning(self, plan: Plan) -> int:
        """The last step with which a run of this plan can begin: nothing that it disturbs is before."""
        steps = self._run.steps
        if plan.steps is not None:
            own = plan.steps
            alike = next((n for n in range(min(len(own), len(steps))) if own[n] != steps[n]), min(len(own), len(steps)))
            return min(alike, len(own) - 1) if not plan.perturbations else 0
        first = [self._first_step(item) for item in plan.perturbations]
        known = [step for step in first if step is not None]
        return min(known) if known and len(known) == len(first) else 0

    def _first_step(self, item: Perturbation) -> int | None:
        """The first step that a perturbation touches, after whose predecessor all is as in the reference."""
        match item:
            case Stale() | Gap() | Lag():
                return self._moments.get(item.since)
            case TimePasses() | Edit():
                return item.step + 1  # at rest after this step: right after the beginning
            case ApplicationFault() | OperatorAway():
                return item.step
        return self._step(item)

    def estimated(self, plan: Plan) -> Plan:
        """A run with a perturbation takes what the reference took, and some time to recover."""
        checkpoints = self._run.checkpoints
        share = 1.0
        if plan.first and len(checkpoints) >= plan.first and checkpoints[-1].time:
            share = checkpoints[plan.first - 1].time / checkpoints[-1].time
        count = len(plan.perturbations)
        seconds = self._run.seconds * (share + RECOVERY * min(count, 1) + MORE * max(count - 1, 0))
        return msgspec.structs.replace(plan, seconds=seconds)
