"""One run: a cluster, the operator behind its gate, the steps of a workload, and what goes wrong; the result is a Run.

`perform` is the same for an operator in process on virtual time and for a child on real time; they differ in how rest
is known (`Rest`) and in who starts the operator (`konverge.check.operator.Operator`).
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from contextlib import AsyncExitStack
from typing import Any, Protocol

import msgspec

from konverge.check.gate.core import Gate
from konverge.check.gate.perturbers import perturber_for
from konverge.check.gate.recorder import RESTLESS, Recorder, writing
from konverge.check.locks import is_lock
from konverge.check.model import (
    Change,
    Checkpoint,
    Edit,
    Obj,
    OperatorAway,
    Plan,
    Ref,
    Run,
    Step,
    Task,
    TimePasses,
)
from konverge.check.old_requests import OldApis
from konverge.check.operator import CannotStart, Operator
from konverge.check.snapshot import taken
from konverge.check.supervisor import REVIVALS, Supervisor
from konverge.check.trunk import Trunk
from konverge.check.user import User
from konverge.client import ClientError
from konverge.sim.cluster import Cluster, Unsettled
from konverge.sim.invariants import Invariants
from konverge.sim.loop import VirtualLoop

PAUSE = 2.0
"""Seconds between two steps of which the second ends what is held back."""
TURNS = 50
"""The same on a virtual loop, in its turns."""
LONGEST_DELETION = 30.0
"""Seconds for what the user deletes to go, before such a second step: another custom resource may have finalizers."""
PASSES = 4
"""How often a run is patient after its last step, at most: so many pods are replaced one after the other."""
RELEASES = 10
"""How often views are released in one step: what the operator does then may be held back again."""


MOST_CHANGES = 3000
"""Of the store in one step on virtual time. The largest samples of ours make some hundred."""


class Rest(Protocol):
    """Knows when nothing more will happen."""

    gap: float
    """The longest pause of the last wait, on real time."""
    noise: dict[str, int]
    """What went on all the same at the end of the last wait."""
    under_way: bool
    """Objects said at its end that something is under way; on real time."""
    patience: float
    """Seconds that an operator is given to look by itself at what others changed."""

    async def wait(self, cluster: Cluster, recorder: Recorder) -> None:
        """Until the cluster is at rest. Raises Unsettled."""


class VirtualRest:
    """On virtual time nothing is guessed: the next timer of the whole cluster is known."""

    patience = 900.0

    def __init__(self, quiet: float = 60.0, limit: float = 1800.0) -> None:
        self._quiet, self._limit = quiet, limit
        self.gap, self.noise, self.under_way = 0.0, dict[str, int](), False

    async def wait(self, cluster: Cluster, recorder: Recorder) -> None:
        # A heartbeat in a status (the time of the last look) goes on for ever, and is rest all the same.
        self.noise = {}
        await self._settled(cluster, recorder)
        self.noise = recorder.heartbeats_since(recorder.now() - self._quiet / 2) or {}

    async def _settled(self, cluster: Cluster, recorder: Recorder) -> None:
        """A loop of writes need not take any virtual time: what changes without end is given up by its number."""
        storm = asyncio.Event()
        last = len(recorder.changes) + MOST_CHANGES

        def counted(change: Change) -> None:
            if len(recorder.changes) > last:
                storm.set()

        recorder.on_change.append(counted)
        settle = cluster.settle(quiet=self._quiet, limit=self._limit, newest=lambda: recorder.newest)
        settling = asyncio.create_task(settle, name="settles")
        watching = asyncio.create_task(storm.wait(), name="counts changes")
        try:
            await asyncio.wait([settling, watching], return_when=asyncio.FIRST_COMPLETED)
            if not settling.done():
                raise Unsettled(f"{MOST_CHANGES} changes and no end: {recorder.changes[-1].moment}")
            await settling
        finally:
            recorder.on_change.remove(counted)
            await _ended(settling)
            await _ended(watching)


async def perform(
    task: Task, operator: Operator, rest: Rest, cluster: Cluster, token: str = "", trunk: Trunk | None = None
) -> Run:
    """Carry out a task on a cluster that runs and holds what the setup asks for. With a trunk, in a process that goes
    on from a rest it is the run of another plan."""
    began, used = time.perf_counter(), cpu_seconds()
    run = Run(plan=task.plan, seed=task.seed, steps=_steps(task))
    recorder = Recorder(cluster.server.store)
    handler = OldApis(cluster.server.handle) if task.setup.old_apis else cluster.server.handle
    gate = Gate(handler, recorder, token=token)
    gate.applications = cluster.applications
    gate.serves = functools.partial(_is_served, cluster)
    contacts = _contacts(cluster, recorder)
    _attach(task.plan, gate)
    recorder.begin()
    if task.restored is not None:
        recorder.resume(task.restored.counted)
    invariants = Invariants(cluster, rollouts=False)  # an operator may delete any pod
    invariants.follow()
    supervisor = Supervisor(operator, cluster, gate, run)
    serving = asyncio.create_task(supervisor.serve(), name="supervisor")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(operator.aclose)
        stack.push_async_callback(_ended, serving)
        try:
            await _play(task, run, User(cluster), Scene(cluster, gate, rest, serving, supervisor), trunk)
        except CannotStart as error:
            run.problem = str(error)
    if supervisor.gave_up and not recorder.reads:
        run.problem = f"the operator did not start: {supervisor.gave_up}"
    recorder.end()
    run.exchanges, run.changes, run.reads = recorder.exchanges, recorder.changes, dict(recorder.reads)
    run.deliveries = recorder.deliveries
    run.applications = {server: tuple(sorted(steps)) for server, steps in contacts.items()}
    run.violations = invariants.found
    run.missed = any(not perturber.done for perturber in gate.perturbers)
    run.seconds, run.cpu = time.perf_counter() - began, cpu_seconds() - used
    return run


def _is_served(cluster: Cluster, resource: str) -> bool:
    return any(f"{item.resource.group}/{item.resource.plural}" == resource for item in cluster.server.registry)


def _contacts(cluster: Cluster, recorder: Recorder) -> dict[str, set[int]]:
    """The steps in which each stand-in is connected to, filled in while the run goes on."""
    contacts: dict[str, set[int]] = {}
    for name, server in (cluster.applications.servers if cluster.applications is not None else {}).items():
        steps = contacts[name] = set()
        server.on_connection.append(lambda steps=steps: steps.add(recorder.step))  # type: ignore[misc]
    return contacts


def cpu_seconds() -> float:
    """Of this process, and of the children that it has outlived."""
    return sum(os.times()[:4])


def _steps(task: Task) -> tuple[Step, ...]:
    steps = task.plan.steps or task.steps
    return steps[: task.plan.first] if task.plan.first else steps


def _attach(plan: Plan, gate: Gate) -> None:
    for perturber in filter(None, map(perturber_for, plan.perturbations)):
        gate.add(perturber)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


class Scene:
    """What a run is played on."""

    def __init__(
        self,
        cluster: Cluster,
        gate: Gate,
        rest: Rest,
        serving: asyncio.Task[None],
        supervisor: Supervisor,
    ) -> None:
        self.cluster, self.gate, self.recorder, self.rest = cluster, gate, gate.recorder, rest
        self.perturbers = gate.perturbers
        self._serving = serving
        self._supervisor = supervisor
        self._gap = 0.0

    async def settle(self, step: int, *, last: bool = True) -> bool:
        """Until rest, with every view released that was held back. Whether it came."""
        self._gap = 0.0
        try:
            if not last and await self._hurried():
                return True
            await self._wait()
            for _ in range(RELEASES):
                released = [await perturber.rested(step) for perturber in self.perturbers if perturber.holds]
                if not any(released):
                    break
                await self._wait()
        except Unsettled:
            return False
        return True

    async def be_patient(self, step: int, seconds: float) -> bool:
        """Wait at rest, and once more as long as objects say that something is under way and it goes on: some replace
        one pod in each pass. Whether rest came after it."""
        for _ in range(PASSES):
            before = len(self.recorder.changes)
            await asyncio.sleep(seconds)
            if not await self.settle(step):
                return False
            if not self.rest.under_way or len(self.recorder.changes) == before:
                break
        return True

    async def _wait(self) -> None:
        waiting = asyncio.create_task(self.rest.wait(self.cluster, self.recorder), name="waits for rest")
        try:
            await asyncio.wait([waiting, self._serving], return_when=asyncio.FIRST_COMPLETED)
            self._raise_if_dead()
            await waiting
        finally:
            await _ended(waiting)
            self._gap = max(self._gap, self.rest.gap)

    async def stop(self) -> None:
        """The operator is away from now on."""
        stopping = asyncio.create_task(self._supervisor.stop(), name="stops the operator")
        try:
            await asyncio.wait([stopping, self._serving], return_when=asyncio.FIRST_COMPLETED)
            self._raise_if_dead()
        finally:
            await _ended(stopping)

    def start(self) -> None:
        self._supervisor.start()

    @property
    def hurries(self) -> bool:
        """Whether the next step is to come soon."""
        return any(perturber.hurries for perturber in self.perturbers)

    async def _hurried(self) -> bool:
        """Whether the next step comes without rest: what the operator does not see may keep it busy until then."""
        if not self.hurries:
            return False
        if isinstance(asyncio.get_running_loop(), VirtualLoop):
            for _ in range(TURNS):  # no time may pass at all: the operator may be busy until it sees more
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(PAUSE)
        return self.hurries

    def _raise_if_dead(self) -> None:
        if self._serving.done() and not self._serving.cancelled():
            error = self._serving.exception()
            if error is not None:
                raise error

    @property
    def gave_up(self) -> str:
        return self._supervisor.gave_up

    @property
    def may_be_revived(self) -> bool:
        return self._supervisor.revivals < REVIVALS

    def revive(self) -> None:
        """A container that ends again and again is started for ever: here, once the user has done something."""
        if self.gave_up and self.may_be_revived and self.recorder.step > 0:
            self._supervisor.revive()

    def checkpoint(self, name: str, *, rested: bool, refused: str) -> Checkpoint:
        store = self.cluster.server.store
        kinds = {served.table: served.resource for served in self.cluster.server.registry}
        state: dict[str, Obj] = {}
        for table in store.tables.values():
            if table.name in RESTLESS:
                continue
            for record in table.records.values():
                if record.revision > self.recorder.first and not is_lock(table.name, record):
                    obj = record.decode()
                    obj["metadata"].pop("managedFields", None)
                    if table.name in kinds:
                        kind = kinds[table.name]
                        obj = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
                    state[str(Ref(table.name, record.namespace, record.name))] = obj
        return Checkpoint(
            step=name,
            revision=store.revision,
            time=self.recorder.now(),
            state=state,
            rested=rested,
            refused=refused,
            blind=self.recorder.away or any(perturber.holds for perturber in self.perturbers),
            gap=self._gap,
            noise=self.rest.noise,
            under_way=self.rest.under_way,
        )


async def _play(task: Task, run: Run, user: User, scene: Scene, trunk: Trunk | None) -> None:
    number = begin = task.plan.begin if task.restored is not None else 0
    if not await _begun(run, user, scene, begin):
        return
    while number < len(run.steps):
        plan = trunk.at(number) if trunk is not None and number else None
        if plan is not None:  # from here this is a branch
            task = msgspec.structs.replace(task, plan=plan)
            run.plan, run.steps = plan, _steps(task)
            _attach(plan, scene.gate)
            if not await _disturbed(run, user, scene, number - 1):
                return
        if not await _stepped(task, run, user, scene, number):
            return
        number += 1


async def _stepped(task: Task, run: Run, user: User, scene: Scene, number: int) -> bool:
    """One step until its rest, and what goes wrong after it. Whether the run goes on."""
    step = run.steps[number]
    away = [item for item in run.plan.perturbations if isinstance(item, OperatorAway)]
    scene.recorder.step, scene.recorder.step_name = number, step.name
    if any(item.step == number for item in away):
        await scene.stop()
    if number and scene.hurries:
        await user.until_gone(run.steps[number - 1], LONGEST_DELETION)
    refused = await _act(user, step)
    if any(item.last == number for item in away):
        await scene.settle(number)
        scene.start()
    scene.revive()
    last = number == len(run.steps) - 1
    rested = await scene.settle(number, last=last)
    if rested and last and task.patience and not _due(run, number):
        rested = await scene.be_patient(number, task.patience)
    run.checkpoints.append(scene.checkpoint(step.name, rested=rested, refused=refused))
    if not rested or (scene.gave_up and (not number or not scene.may_be_revived)):
        return False
    if task.snapshots:
        run.snapshots.append(taken(scene.cluster, number, scene.recorder.counted()))
    return await _disturbed(run, user, scene, number)


async def _begun(run: Run, user: User, scene: Scene, begin: int) -> bool:
    """Until the operator is at rest before the first step, which is in another state if it does not begin with it."""
    recorder = scene.recorder
    if begin:
        recorder.step, recorder.step_name = begin - 1, run.steps[begin - 1].name
    rested = await scene.settle(-1)
    if not begin:
        return True
    run.checkpoints.append(scene.checkpoint(recorder.step_name, rested=rested, refused=""))
    return rested and not scene.gave_up and await _disturbed(run, user, scene, begin - 1)


async def _disturbed(run: Run, user: User, scene: Scene, number: int) -> bool:
    """What goes wrong at rest after a step. Whether the cluster came to rest after it."""
    if not await _between(run, user, scene, number):
        return not run.problem
    rested = await scene.settle(number)
    run.checkpoints.append(scene.checkpoint(f"{run.steps[number].name}, then", rested=rested, refused=""))
    return rested


async def _act(user: User, step: Step) -> str:
    with writing("user"):
        try:
            for action in step.actions:
                await user.do(action)
        except ClientError as error:
            return str(error)
    return ""


def _due(run: Run, step: int) -> list[Edit | TimePasses]:
    """What happens at rest after a step."""
    due = [item for item in run.plan.perturbations if isinstance(item, Edit | TimePasses)]
    return [item for item in due if item.step == step and not (isinstance(item, TimePasses) and item.away)]


async def _rested_between(run: Run, scene: Scene, step: int) -> bool:
    """Rest between two things that happen after one step, and the state at it. Whether there is an end to it."""
    rested = await scene.settle(step)
    if rested:
        run.checkpoints.append(scene.checkpoint(f"{run.steps[step].name}, then", rested=True, refused=""))
    return rested


async def _edited(run: Run, user: User, edit: Edit, *, alone: bool) -> bool:
    """A change by another client. A run with this one alone says nothing where it is refused."""
    try:
        with writing("user"):
            run.hit.append(await user.edit(edit))
    except ClientError as error:
        if alone:
            run.problem = f"the API server refused the change by another client: {error}"
            return False
        run.hit.append(f"{edit.ref}: the change by another client is refused: {error}")
    return True


async def _between(run: Run, user: User, scene: Scene, step: int) -> bool:
    """What happens at rest after a step. Whether anything did."""
    mine = _due(run, step)
    for position, item in enumerate(mine):
        if position and not await _rested_between(run, scene, step):
            return True
        if isinstance(item, Edit):
            if not await _edited(run, user, item, alone=len(mine) == 1):
                return False
        else:
            run.hit.append(f"{item.seconds:g} s pass")
            await asyncio.sleep(item.seconds)
    if any(isinstance(item, Edit) for item in mine) and scene.rest.patience and await scene.settle(step):
        await asyncio.sleep(scene.rest.patience)
    done = [perturber.between(step) for perturber in scene.perturbers]
    return bool(mine) or (any(done) and step == len(run.steps) - 1)
