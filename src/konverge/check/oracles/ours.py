"""What must always hold of the simulated cluster itself: a violation is a defect of Konverge, and is said as one."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import Alarm, Run
from konverge.check.reference import Reference


def ours(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per violation of `konverge.sim.invariants`."""
    for violation in dict.fromkeys(run.violations):
        yield Alarm(
            oracle="konverge",
            severity="high",
            object="konverge",
            field=violation.partition(": ")[2][:60],
            sentence=f"this is a defect of Konverge, not of the operator; please report it: {violation}",
        )
