"""A pod's life as a state machine: `advance(now)` lets everything happen that is due, each at its own time, in order.

Pure: it knows no clock and no API. Time may jump; what would have happened in between happens, with the times at which
it would have. `advance` answers when there will be something to do again.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from konverge.objects.kinds.core_v1 import Container, ContainerStateTerminated, ContainerStatus, EphemeralContainer, Pod
from konverge.objects.times import parse_time
from konverge.sim.kubelet.behaviour import RUNS, Behaviour
from konverge.sim.kubelet.containers import FIRST_BACKOFF, MAX_BACKOFF, PULL_FAILED, ContainerState, Mode, Note, Run
from konverge.sim.kubelet.pace import NORMAL, Pace
from konverge.sim.kubelet.process_containers import LiveContainer, Order
from konverge.sim.kubelet.references import Missing

_EVICTION_GRACE = 1.0
"""Upstream: immediateEvictionGracePeriodSeconds (pkg/kubelet/eviction/eviction_manager.go)."""

_LEAST_GRACE = 2.0
"""What a sidecar has to end in any case. Upstream: minimumGracePeriodInSeconds (pkg/kubelet/kuberuntime)."""


class PodMachine:
    """All containers of one pod. Those whose names are in `live` are real processes, the others follow scripts."""

    def __init__(
        self, pod: Pod, scripts: dict[str, Behaviour], now: float, live: Collection[str] = (), pace: Pace = NORMAL
    ) -> None:
        self.pod = pod
        self._pace = pace
        self._paced: dict[str, tuple[Container, Container]] = {}
        """Specs of containers as written and as lived, since they are asked for at every turn."""
        self._live = frozenset(live)
        self.scripts = scripts
        self.began = self.time = now
        self.ending: float | None = None
        """When it was asked to end."""
        self.failure: tuple[str, str] | None = None
        """Reason and message of a pod that the kubelet itself ended."""
        self._end_by: float | None = None
        """When all containers are to be over, once they were asked to end."""
        self._told: set[str] = set()
        """Sidecars that were told to end by then."""
        self.notes: list[Note] = []
        self.missing = Missing()
        self.inits = {spec.name: self._state(spec, init=True) for spec in pod.spec.init_containers}
        self.mains = {spec.name: self._state(spec, init=False) for spec in pod.spec.containers}
        self.ephemerals: dict[str, ContainerState] = {}
        """They are added to a pod that runs, and matter neither to its phase nor to its readiness."""
        self._add_ephemerals()

    def _add_ephemerals(self) -> None:
        for spec in self.pod.spec.ephemeral_containers:
            if spec.name not in self.ephemerals:
                self.ephemerals[spec.name] = self._new(spec.name, policy="Never")

    def _state(self, spec: Container, *, init: bool) -> ContainerState:
        policy = spec.restart_policy or self.pod.spec.restart_policy or "Always"
        sidecar = init and spec.restart_policy == "Always"
        if init and not sidecar and policy == "Always":
            policy = "OnFailure"
        state = self._new(spec.name, policy=policy, init=init, sidecar=sidecar)
        state.rules = spec.restart_policy_rules
        return state

    def _new(self, name: str, *, policy: str, init: bool = False, sidecar: bool = False) -> ContainerState:
        # upstream: defaultWaitingState in convertToAPIContainerStatuses
        waits = "PodInitializing" if self.pod.spec.init_containers else "ContainerCreating"
        kind = LiveContainer if name in self._live else ContainerState
        made = kind(name=name, init=init, sidecar=sidecar, policy=policy, creating=waits)
        if isinstance(made, LiveContainer):
            made.grace = self.grace
        return made

    @property
    def grace(self) -> float:
        """Seconds that its containers have to end."""
        asked = self.pod.spec.termination_grace_period_seconds
        return self._shortened(30.0 if asked is None else float(asked))

    def _shortened(self, grace: float) -> float:
        return grace if self._live else self._pace.shortened(grace)

    @property
    def live(self) -> dict[str, LiveContainer]:
        """The containers that are real processes."""
        return {container.name: container for container in self._all() if isinstance(container, LiveContainer)}

    def orders(self) -> list[Order]:
        """What is to be done to real processes, once each."""
        orders = [order for container in self.live.values() for order in container.orders]
        for container in self.live.values():
            container.orders.clear()
        return orders

    # -------------------------------------------------------------- time

    def advance(self, now: float) -> float:
        """Everything up to now. The answer is when to come again."""
        while True:
            self._begin_what_may()
            self._end_sidecars()
            due = self._next()
            if due > now:
                self.time = max(self.time, now)
                return due
            self.time = max(self.time, due)
            self._fire()

    def _next(self) -> float:
        begun = [container for container in self._all() if container.mode is not Mode.NEW]
        return min([self._deadline(), *(container.next(self.script(container)) for container in begun)])

    def script(self, container: ContainerState) -> Behaviour:
        return self.scripts.get(container.name, RUNS)

    def _deadline(self) -> float:
        limit = self.pod.spec.active_deadline_seconds
        return inf if limit is None or self.failure or self.finished else self.began + limit

    def _fire(self) -> None:
        t = self.time
        if self._deadline() <= t:
            self.failure = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
            self._stop_all(self.grace)
        for container in self._all():
            script = self.script(container)
            if container.mode is not Mode.NEW and container.next(script) <= t:
                self._note(container.fire(t, self.spec(container.name), script, self.full_name))

    def _begin_what_may(self) -> None:
        if self.ending is not None or self.failure is not None or self.unmounted:
            return
        for container in self.ephemerals.values():
            if container.mode is Mode.NEW:
                self._begin(container)
        for container in self.inits.values():
            if container.mode is Mode.NEW:
                self._begin(container)
            while container.mode is Mode.RUNNING and container.exits <= self.time:
                self._fire()
            if not (container.up if container.sidecar else container.completed) and not self.initialized:
                return
        for container in self.mains.values():
            if container.mode is Mode.NEW:
                self._begin(container)

    def _begin(self, container: ContainerState) -> None:
        self._note(container.create(self.time, self.spec(container.name), self.script(container)))

    def _note(self, notes: list[Note]) -> None:
        self.notes += notes
        if self.missing.pull_secrets and any(note.message == PULL_FAILED for note in notes):
            names = ", ".join(self.missing.pull_secrets)
            message = (
                f"Unable to retrieve some image pull secrets ({names}); attempting to pull the image may not succeed."
            )
            self.notes.append(Note("Warning", "FailedToRetrieveImagePullSecret", message, ""))

    def _end_sidecars(self) -> None:
        """Sidecars and ephemeral containers end when all that they serve is over."""
        if self._end_by is not None:
            self._end_in_turn(self._end_by)
        elif self._work_is_over():
            for container in self.inits.values():
                if container.sidecar and container.policy != "Never":
                    self.notes += container.stop(self.time, 30.0, self.script(container))
            for container in self.ephemerals.values():
                self.notes += container.stop(self.time, 30.0, self.script(container))

    def _end_in_turn(self, deadline: float) -> None:
        """Those of a pod that is asked to end: the last first, each when nothing that it serves runs any more.

        Upstream: terminationOrdering (pkg/kubelet/kuberuntime/kuberuntime_termination_order.go).
        """
        served = any(container.mode is Mode.RUNNING for container in self.mains.values())
        for container in reversed(self.inits.values()):
            runs = container.mode is Mode.RUNNING
            if container.sidecar and not (runs and served) and container.name not in self._told:
                if runs:
                    self._told.add(container.name)
                grace = max(deadline - self.time, _LEAST_GRACE)
                self.notes += container.stop(self.time, grace, self.script(container))
            served = served or (container.sidecar and runs)

    def _work_is_over(self) -> bool:
        broken = any(container.failed for container in self.inits.values() if not container.sidecar)
        return broken or all(container.over for container in self.mains.values())

    # -------------------------------------------------------------- inputs

    def terminate(self, now: float, grace: float) -> None:
        """Deletion was asked for. Asking again with less grace shortens it."""
        self.advance(now)
        if self.ending is None:
            self.ending = now
        grace = self._shortened(grace)
        self._stop_all(max(self.ending + grace - now, 0.0))

    def evict(self, now: float, message: str) -> None:
        """The pod takes more than it may: it fails at once."""
        self.advance(now)
        if self.ending is None and self.failure is None and not self.finished:
            self.failure = ("Evicted", message)
            self.notes.append(Note("Warning", "Evicted", message, ""))
            self._stop_all(_EVICTION_GRACE)

    def crash(self, now: float, container: str = "") -> list[str]:
        """Scripted containers that run end at once, as if they were killed; what runs for real is not ours to end."""
        crashed = []
        for state in self._all():
            if state.mode is Mode.RUNNING and state.name not in self._live and container in ("", state.name):
                state.code, state.killed, state.exits = 137, True, now
                crashed.append(state.name)
        return crashed

    def _stop_all(self, grace: float) -> None:
        for container in self._all():
            if not container.sidecar:
                self.notes += container.stop(self.time, grace, self.script(container))
        self._end_by = self.time + grace
        self._told.clear()
        self._end_sidecars()

    def update(self, pod: Pod, scripts: dict[str, Behaviour], now: float, live: Collection[str] = ()) -> None:
        """The object or its script has changed. A new script is followed from now on; `live` are containers that have
        been added since, and are real processes."""
        self.advance(now)
        before, self.pod, self.scripts = self.scripts, pod, scripts
        self._live = self._live.union(live)
        self._add_ephemerals()
        for container in self._all():
            script = scripts.get(container.name, RUNS)
            if script != before.get(container.name, RUNS):
                container.follow(self.time, script)

    def supply(self, missing: Missing, now: float) -> None:
        """What the pod refers to was looked at: containers that lack something wait, others go on."""
        before, self.missing = self.missing, missing
        failed = [message for message in missing.mounts if message not in before.mounts]
        self.notes += [Note("Warning", "FailedMount", message, "") for message in failed]
        if self.ending is None and self.failure is None:
            for container in self._all():
                container.supply(max(self.time, now), missing.config.get(container.name, ""))

    # -------------------------------------------------------------- what holds

    @property
    def begun(self) -> bool:
        """Its volumes are mounted: a container has begun."""
        return any(container.runs or container.mode is not Mode.NEW for container in self._all())

    @property
    def unmounted(self) -> bool:
        """No container may begin: a volume is not there."""
        return bool(self.missing.mounts) and not self.begun

    @property
    def initialized(self) -> bool:
        return any(container.runs or container.mode is not Mode.NEW for container in self.mains.values())

    @property
    def finished(self) -> bool:
        """Succeeded or failed, with nothing left running."""
        return not self._runs and (self.failure is not None or self._work_is_over())

    @property
    def gone(self) -> bool:
        """Asked to end, and ended."""
        return self.ending is not None and not self._runs

    @property
    def _runs(self) -> bool:
        return any(container.mode is Mode.RUNNING for container in self._all())

    @property
    def phase(self) -> str:
        """Upstream: getPhase (pkg/kubelet/kubelet_pods.go)."""
        if self.failure is not None:
            return "Failed"
        regular = [container for container in self.inits.values() if not container.sidecar]
        if any(container.failed and container.end is not None for container in regular):
            return "Failed"
        mains = list(self.mains.values())
        if any(container.runs == 0 for container in mains):
            return "Pending" if self.ending is None else "Failed"
        if not all(container.over for container in mains) or self._runs:
            return "Running"
        return "Succeeded" if all(container.completed for container in mains) else "Failed"

    def _all(self) -> list[ContainerState]:
        return [*self.inits.values(), *self.mains.values(), *self.ephemerals.values()]

    def container(self, name: str) -> ContainerState | None:
        return self.mains.get(name) or self.inits.get(name) or self.ephemerals.get(name)

    def spec(self, name: str) -> Container:
        spec = self.pod.spec
        declared = (*spec.init_containers, *spec.containers, *map(as_container, spec.ephemeral_containers))
        written = next(container for container in declared if container.name == name)
        if self._pace is NORMAL or name in self._live:
            return written
        known = self._paced.get(name)
        if known is None or known[0] is not written:
            known = self._paced[name] = (written, self._pace.container(written))
        return known[1]

    @property
    def full_name(self) -> str:
        meta = self.pod.metadata
        return f"{meta.name}_{meta.namespace}({meta.uid})"


def as_container(spec: EphemeralContainer) -> Container:
    """An ephemeral container as an ordinary one; it has neither ports nor probes."""
    return Container(
        name=spec.name,
        image=spec.image,
        command=spec.command,
        args=spec.args,
        working_dir=spec.working_dir,
        env=spec.env,
        env_from=spec.env_from,
        resources=spec.resources,
        security_context=spec.security_context,
        stdin=spec.stdin,
        tty=spec.tty,
        termination_message_path=spec.termination_message_path,
        termination_message_policy=spec.termination_message_policy,
        volume_mounts=spec.volume_mounts,
    )


def recover(
    pod: Pod, scripts: dict[str, Behaviour], now: float, live: Collection[str] = (), pace: Pace = NORMAL
) -> PodMachine:
    """The machine of a pod that another kubelet (or this one, before a restart) has brought so far."""
    machine = PodMachine(pod, scripts, now, live, pace)
    if pod.status.start_time is None:
        return machine
    machine.began = parse_time(pod.status.start_time).timestamp()
    machine.time = now
    shown = pod.status
    for status in (*shown.init_container_statuses, *shown.container_statuses, *shown.ephemeral_container_statuses):
        container = machine.container(status.name)
        if container is not None:
            _restore(container, status, machine)
    if pod.status.phase == "Failed" and pod.status.reason:
        machine.failure = (pod.status.reason, pod.status.message or "")
    return machine


def _restore(container: ContainerState, status: ContainerStatus, machine: PodMachine) -> None:
    state, before = status.state, status.last_state.terminated if status.last_state else None
    if state is None or (state.waiting is not None and before is None):
        return
    container.runs = status.restart_count
    container.backoff = min(FIRST_BACKOFF * 2.0 ** max(status.restart_count - 1, 0), MAX_BACKOFF) if before else 0.0
    if before is not None:
        container.last = _run(before, machine.time)
    if state.running is not None:
        script = machine.script(container)
        began = _time(state.running.started_at, machine.time) + script.age
        container.resume(began, machine.time, machine.spec(container.name), script)
    elif state.terminated is not None:
        container.end = _run(state.terminated, machine.time)
        container.runs, container.code, container.mode = status.restart_count + 1, container.end.code, Mode.ENDED
        container.finish(container.end.ended)
    elif container.last is not None:
        container.runs = status.restart_count + 1
        container.back_off(container.last, machine.full_name)


def _run(ended: ContainerStateTerminated, now: float) -> Run:
    return Run(ended.exit_code, ended.reason or "", _time(ended.started_at, now), _time(ended.finished_at, now))


def _time(text: str | None, default: float) -> float:
    return default if text is None else parse_time(text).timestamp()
