"""Which perturber carries out a perturbation at the gate."""

from __future__ import annotations

from konverge.check.gate.application import Failing
from konverge.check.gate.core import Perturber
from konverge.check.gate.crashes import Crashing
from konverge.check.gate.errors import Refusing
from konverge.check.gate.leader import Deposing
from konverge.check.gate.outage import Away
from konverge.check.gate.watching import Delaying, Lagging, Showing, Skipping
from konverge.check.model import (
    ApplicationFault,
    Crash,
    Gap,
    Lag,
    LateOwnWrites,
    LeaderLost,
    Perturbation,
    Refuse,
    Stale,
    TimePasses,
)


def perturber_for(perturbation: Perturbation) -> Perturber | None:
    """None for what happens elsewhere (edits, time): the run itself does that."""
    match perturbation:
        case Crash():
            return Crashing(perturbation)
        case Refuse():
            return Refusing(perturbation)
        case Stale():
            return Showing(perturbation)
        case Lag():
            return Lagging(perturbation)
        case Gap():
            return Skipping(perturbation)
        case LateOwnWrites():
            return Delaying(perturbation)
        case LeaderLost():
            return Deposing(perturbation)
        case ApplicationFault():
            return Failing(perturbation)
        case TimePasses(away=True):
            return Away(perturbation)
    return None
