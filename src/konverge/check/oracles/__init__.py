"""The oracles: each looks at one run beside the reference and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from konverge.check.model import SEVERITIES, Alarm, Run
from konverge.check.oracles.state import state
from konverge.check.reference import Reference

Oracle = Callable[[Run, Reference], Iterable[Alarm]]

ORACLES: tuple[Oracle, ...] = (state,)


def judge(run: Run, reference: Reference) -> list[Alarm]:
    """What all oracles say of a run (also of the reference itself), worst first; nothing if the run says nothing."""
    if run.problem or run.missed:
        return []
    alarms = [alarm for oracle in ORACLES for alarm in oracle(run, reference)]
    return sorted(alarms, key=lambda alarm: SEVERITIES.index(alarm.severity))
