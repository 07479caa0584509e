"""Runs of a program in which a perturbation did not come to pass: what it waits for came in another order.

A program is a little faster or slower each time, so they are tried again: at once, and then once more when others have
been run. The best plans are the first ones, and begin while all jobs start at once; later the machine is less busy. On
virtual time the same run would miss the same.
"""

from __future__ import annotations

from collections import Counter

from konverge.check.model import Run, encode

TRIES = 3
ROUNDS = 2
"""As many plans as there are jobs are run so often before the last try."""


class Missed:
    """How often it was waited in vain, by what was waited for."""

    def __init__(self) -> None:
        self._times: Counter[bytes] = Counter()

    def may_come(self, run: Run) -> bool:
        """Whether a run that has missed something is worth another try; counts this one."""
        key = encode(run.plan.perturbations)
        self._times[key] += 1
        return self._times[key] < TRIES

    def behind(self, run: Run, jobs: int) -> int:
        """How many other plans come before the next try."""
        times = self._times[encode(run.plan.perturbations)] if run.missed else 0
        return ROUNDS * jobs if times > 1 else 0
