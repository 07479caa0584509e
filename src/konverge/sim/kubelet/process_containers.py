"""The state of a container that is a real process: the same life as a simulated one, but others make it happen.

Pure, like the rest of the machine: what is to be done to the process goes out as orders, and what happens to it comes
in as calls (`launched`, `probed`, `exited`, …). The process runner carries out the orders and reports what happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import msgspec

from konverge.objects.kinds.core_v1 import Container
from konverge.sim.kubelet.behaviour import RUNS, Behaviour
from konverge.sim.kubelet.containers import ContainerState, Mode, Note, Prober

LOST = 255
"""The exit code of a process that ended unseen, without a kubelet; its reason is `Unknown`, as containerd's."""


class Start(msgspec.Struct, frozen=True):
    container: str


class Stop(msgspec.Struct, frozen=True):
    """End it: by its hook and its signal at first, by force at the deadline."""

    container: str
    deadline: float


class Look(msgspec.Struct, frozen=True):
    """Probe it."""

    container: str
    probe: str
    """startup, readiness or liveness."""
    run: int


Order = Start | Stop | Look


@dataclass
class LiveContainer(ContainerState):
    """One container that is a real process."""

    orders: list[Order] = field(default_factory=list)
    grace: float = 30.0
    deadline: float = inf
    """When the present run must be over, since it was asked to end."""

    # -------------------------------------------------------------- beginning

    def create(self, t: float, spec: Container, script: Behaviour) -> list[Note]:
        self._wait(self.creating, "", inf)
        self.orders.append(Start(self.name))
        return []

    def run(self, t: float, spec: Container, script: Behaviour) -> list[Note]:
        self.deadline = inf
        return super().run(t, spec, script)

    def resume(self, began: float, t: float, spec: Container, script: Behaviour) -> None:
        """Its process went with the kubelet that ran it."""
        self.run(began, spec, script)
        self.exited(t, LOST, "Unknown")

    def launched(self, t: float, spec: Container) -> list[Note]:
        """The process runs, and its postStart hook is through."""
        return self.run(t, spec, RUNS)

    def refused(self, reason: str, message: str, again: float) -> list[Note]:
        """It cannot be started as things are; try again at that time."""
        reported = (reason, message) == (self.reason, self.message)
        self._wait(reason, message, again if self.deadline == inf else inf)
        return [] if reported else [Note("Warning", "Failed", f"Error: {message}", self.name)]

    # -------------------------------------------------------------- going on

    def fire(self, t: float, spec: Container, script: Behaviour, pod: str) -> list[Note]:
        if self.mode is Mode.WAITING:
            return self.create(t, spec, script)
        return super().fire(t, spec, script, pod)

    def _fire_running(self, t: float, spec: Container, script: Behaviour) -> list[Note]:
        for prober in self.probers:
            if prober.next <= t:
                prober.next = inf  # until the answer is there
                self.orders.append(Look(self.name, prober.kind, self.runs))
        return []

    def probed(self, look: Look, asked: float, t: float, answer: bool, output: str, spec: Container) -> list[Note]:
        """The answer to a probe that was made at `asked`. One about an earlier run is late, and counts for nothing."""
        prober = next((prober for prober in self.probers if prober.kind == look.probe), None)
        if self.mode is not Mode.RUNNING or look.run != self.runs or prober is None:
            return []
        prober.next = max(asked + prober.period, t)
        changed = prober.count(answer)
        notes = []
        if not answer:
            message = f"{look.probe.capitalize()} probe failed: {output}"
            notes.append(Note("Warning", "Unhealthy", message, self.name))
        return notes + (self._judged(prober, t, spec, RUNS) if changed else [])

    def _judged(self, prober: Prober, t: float, spec: Container, script: Behaviour) -> list[Note]:
        if prober.result or prober.kind == "readiness":
            return super()._judged(prober, t, spec, script)
        self.probers = [other for other in self.probers if other.kind == "readiness"]
        probe = spec.startup_probe if prober.kind == "startup" else spec.liveness_probe
        own = probe.termination_grace_period_seconds if probe is not None else None
        self._order_stop(t + (self.grace if own is None else own))
        message = f"Container {self.name} failed {prober.kind} probe, will be restarted"
        return [Note("Normal", "Killing", message, self.name)]

    def supply(self, t: float, refusal: str) -> None:
        """Its environment is built, and refused, where its process is prepared."""

    def follow(self, t: float, script: Behaviour) -> None:
        """A process follows no script."""

    # -------------------------------------------------------------- ending

    def stop(self, t: float, grace: float, script: Behaviour) -> list[Note]:
        self.last_run()
        if self.mode is not Mode.RUNNING:
            if self.mode is Mode.WAITING and self.deadline == inf:
                self._order_stop(t)
            self.due = inf
            return []
        first = self.deadline == inf
        self._order_stop(t + grace)
        return [Note("Normal", "Killing", f"Stopping container {self.name}", self.name)] if first else []

    def _order_stop(self, deadline: float) -> None:
        """Asking again with less grace shortens it."""
        if deadline < self.deadline - 0.001:
            self.deadline = deadline
            self.orders.append(Stop(self.name, deadline))

    def exited(self, t: float, code: int, reason: str = "", message: str = "") -> None:
        """The process is over."""
        self.code = code
        self.finish(t)
        if self.end is not None:
            self.end.reason = reason or self.end.reason
            self.end.message = message
