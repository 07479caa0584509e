"""Faults of stand-ins, in the steps in which the operator talked to them."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import ApplicationFault, Plan
from konverge.check.reference import Reference
from konverge.sim.applications.application import CUT, ERROR

FAULTS = (ERROR, CUT)
"""Those that end with the answer. An operator that waits for one does nothing else, and finds nothing."""


def applications(reference: Reference) -> Iterator[Plan]:
    """Every fault of every server, in every step of the reference in which it was connected to."""
    for server, steps in sorted(reference.run.applications.items()):
        for step in steps:
            if 0 <= step < len(reference.run.steps):
                for fault in FAULTS:
                    yield Plan("application", (ApplicationFault(server, fault, step),))
