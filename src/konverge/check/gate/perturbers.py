"""Which perturber carries out a perturbation at the gate."""

from __future__ import annotations

from konverge.check.gate.core import Perturber
from konverge.check.gate.crashes import Crashing
from konverge.check.gate.errors import Refusing
from konverge.check.model import Crash, Perturbation, Refuse


def perturber_for(perturbation: Perturbation) -> Perturber | None:
    """None for what happens elsewhere (edits, time): the run itself does that."""
    match perturbation:
        case Crash():
            return Crashing(perturbation)
        case Refuse():
            return Refusing(perturbation)
    return None
