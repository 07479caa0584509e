"""The arithmetic of probes: when the next one is worth making, and what it leads to.

A probe that would only find again what is known already is not made: its container's script says when the answer will
change, and the next probe is the first of its rhythm after that. So a healthy pod costs nothing, for hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

from konverge.objects.kinds.core_v1 import Probe
from konverge.sim.kubelet.behaviour import Behaviour


@dataclass(slots=True)
class Prober:
    """One probe of one running container."""

    kind: str
    """startup, readiness or liveness."""
    first: float
    period: float
    success_threshold: int
    failure_threshold: int
    result: bool
    """What holds until enough probes in a row say otherwise."""
    next: float
    against: int = 0
    """Probes in a row that contradict the result."""
    failed: bool = False
    """The last probe failed."""

    def tick(self, t: float, script: Behaviour, began: float) -> bool:
        """Probe now. True when the result has changed."""
        changed = self.count(answers(self.kind, script, began, t))
        self.next = t + self.period if self.against else self._next_worth_making(t, script, began)
        return changed

    def count(self, answer: bool) -> bool:
        """Take an answer in. True when it changes the result."""
        self.failed = not answer
        if answer == self.result and self.kind != "startup":
            self.against = 0
            return False
        self.against += 1
        if self.against < (self.success_threshold if answer else self.failure_threshold):
            return False
        self.result, self.against = answer, 0
        return True

    def _next_worth_making(self, t: float, script: Behaviour, began: float) -> float:
        turn = min((moment for moment in turns(script, began) if moment > t), default=inf)
        if turn == inf:
            return inf
        return max(self.first + ceil((turn - self.first) / self.period) * self.period, t + self.period)


def new_prober(kind: str, probe: Probe, t: float) -> Prober:
    first = t + (probe.initial_delay_seconds or 0)
    return Prober(
        kind=kind,
        first=first,
        period=float(probe.period_seconds or 10),
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
        result=kind == "liveness",
        next=first,
    )


def answers(kind: str, script: Behaviour, began: float, t: float) -> bool:
    """Whether a container that began to run at `began` would answer a probe at `t`."""
    age = t - began
    if script.ready_after is None:
        if kind == "readiness":
            return False
    elif age < script.ready_after:
        return False
    if kind == "readiness":
        return script.unready_after is None or age < script.unready_after
    return kind == "startup" or script.unhealthy_after is None or age < script.unhealthy_after


def turns(script: Behaviour, began: float) -> list[float]:
    """The moments at which an answer may change."""
    ages = (script.ready_after, script.unready_after, script.unhealthy_after)
    return [began + age for age in ages if age]
