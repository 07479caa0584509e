"""One run: a cluster, the operator behind its gate, the steps of a workload, and what goes wrong; the result is a Run.

`perform` is the same for an operator in process on virtual time and for a child on real time; they differ in how rest
is known (`Rest`) and in who starts the operator (`konverge.check.operator.Operator`).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any, Protocol

from konverge.check.gate.core import Gate, Perturber
from konverge.check.gate.perturbers import perturber_for
from konverge.check.gate.recorder import RESTLESS, Recorder, writing
from konverge.check.model import Checkpoint, Edit, Exit, Obj, Plan, Ref, Run, Step, Task, TimePasses
from konverge.check.operator import CannotStart, Incarnation, Operator
from konverge.check.user import User
from konverge.client import ClientError
from konverge.sim.cluster import Cluster, Unsettled
from konverge.sim.invariants import Invariants

RESTARTS = 5
"""How often an operator that ends by itself is started again in one step."""

RELEASES = 10
"""How often views are released in one step: what the operator does then may be held back again."""


class Rest(Protocol):
    """Knows when nothing more will happen."""

    async def wait(self, cluster: Cluster, recorder: Recorder) -> None:
        """Until the cluster is at rest. Raises Unsettled."""


class VirtualRest:
    """On virtual time nothing is guessed: the next timer of the whole cluster is known."""

    def __init__(self, quiet: float = 60.0, limit: float = 1800.0) -> None:
        self._quiet, self._limit = quiet, limit

    async def wait(self, cluster: Cluster, recorder: Recorder) -> None:
        await cluster.settle(quiet=self._quiet, limit=self._limit)


class Supervisor:
    """Runs the operator, one incarnation after the other, and remembers how each ended."""

    def __init__(self, operator: Operator, cluster: Cluster, gate: Gate, run: Run) -> None:
        self._operator, self._cluster, self._gate, self._run = operator, cluster, gate, run
        self._crash = asyncio.Event()
        self._why = ""
        self.incarnation: Incarnation | None = None
        self.gave_up = ""
        gate.crash = self.crash
        gate.note = run.hit.append

    def crash(self, why: str) -> None:
        """End the present incarnation, as soon as the caller waits for something."""
        self._why = why
        self._run.hit.append(why)
        self._crash.set()

    async def serve(self) -> None:
        ends = 0
        while True:
            self._gate.recorder.incarnation += 1
            self._crash.clear()
            self.incarnation = await self._operator.start(self._cluster, self._gate)
            ended = asyncio.create_task(self.incarnation.ended())
            crashed = asyncio.create_task(self._crash.wait())
            try:
                await asyncio.wait([ended, crashed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                crashed.cancel()
                if not ended.done():
                    ended.cancel()
                await self._bury(self.incarnation)
            if self._crash.is_set():
                continue
            self._note_end(ended.result())
            ends += 1
            if ends > RESTARTS:
                self.gave_up = f"it ended {ends} times: {ended.result()}"
                return
            await asyncio.sleep(2.0 ** min(ends, 5))

    async def _bury(self, incarnation: Incarnation) -> None:
        await incarnation.kill()
        number = self._gate.recorder.incarnation
        self._run.log += [f"{number}: {line}" for line in incarnation.log()]

    def _note_end(self, why: str) -> None:
        recorder = self._gate.recorder
        number, step = recorder.incarnation, recorder.step
        self._run.exits.append(Exit(incarnation=number, step=step, time=recorder.now(), error=why))


async def perform(task: Task, operator: Operator, rest: Rest, cluster: Cluster, token: str = "") -> Run:
    """Carry out a task on a cluster that runs and holds what the setup asks for."""
    began, used = time.perf_counter(), time.process_time()
    run = Run(plan=task.plan, seed=task.seed, steps=task.plan.steps or task.steps)
    recorder = Recorder(cluster.server.store)
    gate = Gate(cluster.server.handle, recorder, token=token)
    perturbers = _attach(task.plan, gate)
    recorder.begin()
    invariants = Invariants(cluster)
    invariants.follow()
    first = cluster.server.store.revision
    supervisor = Supervisor(operator, cluster, gate, run)
    serving = asyncio.create_task(supervisor.serve(), name="supervisor")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(_ended, serving)
        try:
            await _play(run, User(cluster), Scene(cluster, recorder, rest, perturbers, first, serving, supervisor))
        except CannotStart as error:
            run.problem = str(error)
    recorder.end()
    run.exchanges, run.changes, run.reads = recorder.exchanges, recorder.changes, dict(recorder.reads)
    run.deliveries = recorder.deliveries
    run.violations = invariants.found
    run.missed = any(not perturber.done for perturber in perturbers)
    run.seconds, run.cpu = time.perf_counter() - began, time.process_time() - used
    return run


def _attach(plan: Plan, gate: Gate) -> list[Perturber]:
    made = [perturber for item in plan.perturbations if (perturber := perturber_for(item)) is not None]
    for perturber in made:
        gate.add(perturber)
    return made


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


class Scene:
    """What a run is played on."""

    def __init__(
        self,
        cluster: Cluster,
        recorder: Recorder,
        rest: Rest,
        perturbers: list[Perturber],
        first: int,
        serving: asyncio.Task[None],
        supervisor: Supervisor,
    ) -> None:
        self.cluster, self.recorder, self.rest = cluster, recorder, rest
        self.perturbers = perturbers
        self._first = first
        self._serving = serving
        self._supervisor = supervisor

    async def settle(self, step: int) -> bool:
        """Until rest, with every view released that was held back. Whether it came."""
        try:
            await self.rest.wait(self.cluster, self.recorder)
            for _ in range(RELEASES):
                released = [await perturber.rested(step) for perturber in self.perturbers if perturber.holds]
                if not any(released):
                    break
                await self.rest.wait(self.cluster, self.recorder)
        except Unsettled:
            return False
        finally:
            self._raise_if_dead()
        return True

    def _raise_if_dead(self) -> None:
        if self._serving.done() and not self._serving.cancelled():
            error = self._serving.exception()
            if error is not None:
                raise error

    @property
    def gave_up(self) -> str:
        return self._supervisor.gave_up

    def checkpoint(self, name: str, *, rested: bool, refused: str) -> Checkpoint:
        store = self.cluster.server.store
        state: dict[str, Obj] = {}
        for table in store.tables.values():
            if table.name in RESTLESS:
                continue
            for record in table.records.values():
                if record.revision > self._first:
                    obj = record.decode()
                    obj["metadata"].pop("managedFields", None)
                    state[str(Ref(table.name, record.namespace, record.name))] = obj
        return Checkpoint(
            step=name,
            revision=store.revision,
            time=self.recorder.now(),
            state=state,
            rested=rested,
            refused=refused,
            blind=any(perturber.holds for perturber in self.perturbers),
        )


async def _play(run: Run, user: User, scene: Scene) -> None:
    await scene.settle(-1)
    for number, step in enumerate(run.steps):
        scene.recorder.step = number
        refused = await _act(user, step)
        rested = await scene.settle(number)
        run.checkpoints.append(scene.checkpoint(step.name, rested=rested, refused=refused))
        if not rested or scene.gave_up:
            return
        if await _between(run, user, scene, number):
            rested = await scene.settle(number)
            run.checkpoints.append(scene.checkpoint(f"{step.name}, then", rested=rested, refused=""))
            if not rested:
                return


async def _act(user: User, step: Step) -> str:
    with writing("user"):
        try:
            for action in step.actions:
                await user.do(action)
        except ClientError as error:
            return str(error)
    return ""


async def _between(run: Run, user: User, scene: Scene, step: int) -> bool:
    """What happens at rest after a step. Whether anything did."""
    due: list[Any] = [item for item in run.plan.perturbations if isinstance(item, Edit | TimePasses)]
    mine = [item for item in due if item.step == step and not (isinstance(item, TimePasses) and item.away)]
    for item in mine:
        if isinstance(item, Edit):
            with writing("user"):
                run.hit.append(await user.edit(item))
        else:
            run.hit.append(f"{item.seconds:g} s pass")
            await asyncio.sleep(item.seconds)
    done = [perturber.between(step) for perturber in scene.perturbers]
    return bool(mine) or (any(done) and step == len(run.steps) - 1)
