"""The state of one simulated container: waiting, running or ended, its probes, and what it does next by itself.

A probe that would only find again what is known already is not made: the container's script says when the answer will
change, and the next probe is the first of its rhythm after that. So a healthy pod costs nothing, for hours.

Upstream: pkg/kubelet/kuberuntime and pkg/kubelet/prober.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import ceil, inf

import msgspec

from konverge.objects.kinds.core_v1 import Container, ContainerRestartRule, Probe
from konverge.sim.kubelet.behaviour import Behaviour


class Prober(msgspec.Struct):
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


FIRST_BACKOFF, MAX_BACKOFF = 10.0, 300.0
"""kubelet's: 10 s, doubled with each failure, at most 5 minutes."""
FORGIVEN_AFTER = 600.0
"""A run that lasted so long resets the back-off."""
SYNC = 1.0
"""How long the end of a container stands before the kubelet acts on it."""
PULL_SHOWN = 2.0
"""How long a failed pull stands as such before it shows as back-off."""


PULL_FAILED = "Error: ErrImagePull"
CONFIG_ERROR = "CreateContainerConfigError"


class Mode(Enum):
    NEW = "new"
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


class Run(msgspec.Struct):
    """A run that is over."""

    code: int
    reason: str
    began: float
    ended: float
    signal: bool = False
    message: str = ""


class Note(msgspec.Struct):
    """Something to report as an Event."""

    type: str
    reason: str
    message: str
    container: str


@dataclass(slots=True)
class ContainerState:
    """One container. The times are those of the machine that drives it."""

    name: str
    init: bool = False
    sidecar: bool = False
    policy: str = "Always"
    rules: list[ContainerRestartRule] = field(default_factory=list)
    """Exit codes after which another run begins whatever the policy."""
    mode: Mode = Mode.NEW
    creating: str = "ContainerCreating"
    """The reason of one that is about to begin; in a pod with init containers another one."""
    reason: str = ""
    message: str = ""
    due: float = inf
    """When waiting or the pause after an end is over."""
    runs: int = 0
    began: float = 0.0
    exits: float = inf
    """When the present run ends by its script, or because it was asked to."""
    code: int = 0
    termination_message: str = ""
    """Of the present run, if it ends by its script."""
    killed: bool = False
    end: Run | None = None
    last: Run | None = None
    up: bool = False
    """Started, in the API's word: its startup probe has passed."""
    ready: bool = False
    refusal: str = ""
    """Why it cannot be created as things are: the kubelet's message about its environment."""
    backoff: float = 0.0
    pull_backoff: float = FIRST_BACKOFF
    probers: list[Prober] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reason = self.creating

    @property
    def restarts(self) -> int:
        return max(self.runs - 1, 0)

    @property
    def serves(self) -> bool:
        """It is there to be ready; an init container is there to end, and counts as ready then."""
        return self.sidecar or not self.init

    @property
    def over(self) -> bool:
        """It has ended and will not run again."""
        return self.mode is Mode.ENDED and self.due == inf

    @property
    def failed(self) -> bool:
        """It has ended for good, and not by itself with success."""
        return self.over and not self.completed

    @property
    def completed(self) -> bool:
        return self.over and self.end is not None and self.end.code == 0

    def next(self, script: Behaviour) -> float:
        """When something happens to it by itself."""
        if self.mode is not Mode.RUNNING:
            return self.due
        return min([self.exits, self._plain_readiness(script), *(prober.next for prober in self.probers)])

    # -------------------------------------------------------------- beginning

    def create(self, t: float, spec: Container, script: Behaviour) -> list[Note]:
        """Pull the image and start it, or begin to wait."""
        image = spec.image or ""
        if script.pull_error:
            self._wait(
                "ErrImagePull", f'failed to pull and unpack image "{image}": {script.pull_error}', t + PULL_SHOWN
            )
            return [
                Note("Normal", "Pulling", f'Pulling image "{image}"', self.name),
                Note("Warning", "Failed", f'Failed to pull image "{image}": {script.pull_error}', self.name),
                Note("Warning", "Failed", PULL_FAILED, self.name),
            ]
        self.pull_backoff = FIRST_BACKOFF
        if self.refusal:
            return self._refuse()
        pause = (script.pull if self.runs == 0 else 0.0) + script.start
        if pause > 0:
            self._wait(self.creating, "", t + pause)
            return []
        return self.run(t, spec, script)

    def _refuse(self) -> list[Note]:
        """Wait until `refusal` changes. Upstream: startContainer (ErrCreateContainerConfig)."""
        self._wait(CONFIG_ERROR, self.refusal, inf)
        return [Note("Warning", "Failed", f"Error: {self.refusal}", self.name)]

    def supply(self, t: float, refusal: str) -> None:
        """What it refers to has changed: try again if it waits for that."""
        self.refusal = refusal
        if self.mode is Mode.WAITING and self.reason == CONFIG_ERROR and self.message != refusal:
            self.due = t

    def run(self, t: float, spec: Container, script: Behaviour) -> list[Note]:
        self.mode, self.due, self.began = Mode.RUNNING, inf, t
        self.last, self.end = self.end or self.last, None
        self.runs += 1
        self.code, self.termination_message, self.killed = script.exit_code or 0, script.message, False
        self.exits = t + script.exit_after if self._ends(script) else inf
        self.probers = [new_prober("startup", spec.startup_probe, t)] if spec.startup_probe else []
        self.up = self.ready = False
        if not self.probers:
            self._started(t, spec, script)
        pulled = f'Container image "{spec.image}" already present on machine and can be accessed by the pod'
        return [
            Note("Normal", "Pulled", pulled, self.name),
            Note("Normal", "Created", "Container created", self.name),
            Note("Normal", "Started", "Container started", self.name),
        ]

    def _ends(self, script: Behaviour) -> bool:
        """Whether the present run ends by its script."""
        return script.exit_code is not None and (script.exit_times is None or self.runs <= script.exit_times)

    def resume(self, began: float, t: float, spec: Container, script: Behaviour) -> None:
        """Go on as the API shows it, after the kubelet itself restarted."""
        self.run(began, spec, script)

    def _started(self, t: float, spec: Container, script: Behaviour) -> None:
        self.up = True
        if spec.readiness_probe:
            self.probers.append(new_prober("readiness", spec.readiness_probe, t))
        else:
            self.ready = self.serves and answers("readiness", script, self.began, t)
        if spec.liveness_probe:
            self.probers.append(new_prober("liveness", spec.liveness_probe, t))

    def _wait(self, reason: str, message: str, until: float) -> None:
        self.mode, self.reason, self.message, self.due = Mode.WAITING, reason, message, until
        self.last, self.end = self.end or self.last, None

    # -------------------------------------------------------------- going on

    def fire(self, t: float, spec: Container, script: Behaviour, pod: str) -> list[Note]:
        """Do what is due."""
        if self.mode is Mode.RUNNING:
            return self._fire_running(t, spec, script)
        if self.mode is Mode.ENDED:
            return self._restart(t, spec, script, pod)
        if self.reason == "ErrImagePull":
            message = f'Back-off pulling image "{spec.image}"'
            self._wait("ImagePullBackOff", message, t - PULL_SHOWN + self.pull_backoff)
            self.pull_backoff = min(self.pull_backoff * 2, MAX_BACKOFF)
            return [
                Note("Normal", "BackOff", message, self.name),
                Note("Warning", "Failed", "Error: ImagePullBackOff", self.name),
            ]
        if self.reason == self.creating:
            return self._refuse() if self.refusal else self.run(t, spec, script)
        return self.create(t, spec, script)

    def _fire_running(self, t: float, spec: Container, script: Behaviour) -> list[Note]:
        if self.exits <= t:
            self.finish(t)
            return []
        if self._plain_readiness(script) <= t:
            self.ready = answers("readiness", script, self.began, t)
        notes: list[Note] = []
        for prober in [prober for prober in self.probers if prober.next <= t]:
            changed = prober.tick(t, script, self.began)
            if prober.failed:
                message = f"{prober.kind.capitalize()} probe failed: the simulated container does not answer"
                notes.append(Note("Warning", "Unhealthy", message, self.name))
            if changed:
                notes += self._judged(prober, t, spec, script)
            if self.mode is not Mode.RUNNING:
                break
        return notes

    def _judged(self, prober: Prober, t: float, spec: Container, script: Behaviour) -> list[Note]:
        if prober.kind == "readiness":
            self.ready = prober.result
        elif prober.result and prober.kind == "startup":
            self.probers.remove(prober)
            self._started(t, spec, script)
        elif not prober.result:
            self.code, self.killed = 137, True
            self.finish(t)
            message = f"Container {self.name} failed {prober.kind} probe, will be restarted"
            return [Note("Normal", "Killing", message, self.name)]
        return []

    def follow(self, t: float, script: Behaviour) -> None:
        """Go on by another script: what it says of readiness and of the end holds from here on."""
        if self.mode is not Mode.RUNNING:
            if self.reason in (self.creating, "ErrImagePull", "ImagePullBackOff") and self.due < inf:
                self.due = t + script.start
            return
        self.code, self.termination_message = script.exit_code or 0, script.message
        self.exits = max(t, self.began + script.exit_after) if self._ends(script) else inf
        for prober in self.probers:
            prober.next = min(
                prober.next, prober.first + max(ceil((t - prober.first) / prober.period), 0) * prober.period
            )
        if self.up and self.serves and not any(prober.kind == "readiness" for prober in self.probers):
            self.ready = answers("readiness", script, self.began, t)

    def finish(self, t: float) -> None:
        """The run ends. Whether another begins is for later: its due time says when to look."""
        reason = "Completed" if self.code == 0 else "Error"
        if self.mode is Mode.RUNNING:
            self.end = Run(self.code, reason, self.began, t, signal=self.killed, message=self.termination_message)
        self.mode, self.exits = Mode.ENDED, inf
        self.up, self.ready, self.probers = False, False, []
        self.due = t + SYNC if self._begins_again() else inf
        if not self.serves and self.code == 0:
            self.ready, self.due = True, inf

    def _begins_again(self) -> bool:
        """Upstream: ContainerShouldRestart (pkg/api/v1/pod/util.go)."""
        if any(_speaks_of(rule, self.code) for rule in self.rules):
            return True
        return self.policy == "Always" or (self.policy == "OnFailure" and self.code != 0)

    def _restart(self, t: float, spec: Container, script: Behaviour, pod: str) -> list[Note]:
        end = self.end
        if end is None or end.ended - end.began >= FORGIVEN_AFTER:
            self.backoff = 0.0
        if self.backoff == 0.0 or end is None:
            self.backoff = FIRST_BACKOFF
            return self.create(t, spec, script)
        self.back_off(end, pod)
        message = f"Back-off restarting failed container {self.name} in pod {pod}"
        return [Note("Warning", "BackOff", message, self.name)]

    def back_off(self, end: Run, pod: str) -> None:
        """Wait before the next run, and longer the next time."""
        message = f"back-off {_go_duration(self.backoff)} restarting failed container={self.name} pod={pod}"
        self._wait("CrashLoopBackOff", message, end.ended + self.backoff)
        self.last = end
        self.backoff = min(self.backoff * 2, MAX_BACKOFF)

    def _plain_readiness(self, script: Behaviour) -> float:
        """When readiness turns by the script alone, in a container without a probe for it."""
        if not self.up or not self.serves or any(prober.kind == "readiness" for prober in self.probers):
            return inf
        moments = turns(script, self.began)
        return min((m for m in moments if answers("readiness", script, self.began, m) != self.ready), default=inf)

    # -------------------------------------------------------------- ending

    def last_run(self) -> None:
        """Whatever ends the present run, no other begins."""
        self.policy, self.rules = "Never", []

    def stop(self, t: float, grace: float, script: Behaviour) -> list[Note]:
        """Asked to end: by itself within the grace period, or killed at its end.

        A server ends well when it is asked to; work that is broken off has failed.
        """
        served = self.policy == "Always"
        self.last_run()
        if self.mode is not Mode.RUNNING:
            self.due = inf
            return []
        killed = script.stop is None or script.stop > grace
        when = t + (grace if killed else script.stop or 0.0)
        if when < self.exits:
            self.exits, self.killed, self.termination_message = when, killed, ""
            self.code = 137 if killed else 0 if served else 143
        return [Note("Normal", "Killing", f"Stopping container {self.name}", self.name)]


def _speaks_of(rule: ContainerRestartRule, code: int) -> bool:
    codes = rule.exit_codes
    return codes is not None and (code in codes.values) == (codes.operator == "In")


def _go_duration(seconds: float) -> str:
    """
    >>> _go_duration(80)
    '1m20s'
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
