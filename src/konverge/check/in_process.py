"""Runs of an operator in this process, each on a cluster and a virtual loop of its own."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import msgspec

from konverge.check.model import Run, Task, decode_run
from konverge.check.operator import CannotStart, Declaration, InProcess
from konverge.check.own_log import kept
from konverge.check.performing import failed
from konverge.check.prepare import prepare, simulation_of
from konverge.check.run import VirtualRest, perform
from konverge.check.trunk import Trunk, can_fork, grown
from konverge.operators.catalog import Operator as Catalogued
from konverge.sim import Cluster, VirtualLoop
from konverge.sim.outside import outside


def run_in_process(task: Task, declaration: Declaration | Catalogued) -> Run:
    """One run, from nothing to its end. With an operator of the catalogue, what it talks to is simulated as well.

    If it is to leave processes for others to branch off, it is carried out in one of its own.
    """
    if task.branches and can_fork():
        run = grown(task, functools.partial(_run_on_a_loop, task, declaration))
        if run:
            return decode_run(run)
    return _run_on_a_loop(task, declaration)


def _run_on_a_loop(task: Task, declaration: Declaration | Catalogued, trunk: Trunk | None = None) -> Run:
    factory: Any = functools.partial(VirtualLoop, task.seed)
    runs: list[Run] = []

    async def played() -> None:  # the Run is not its result: asyncio.Runner makes a text of that, which costs
        runs.append(await _run(task, declaration, trunk))

    with kept(), asyncio.Runner(loop_factory=factory) as runner:
        try:
            runner.run(played())
        except CannotStart as error:
            return failed(task, str(error))
    return runs[0]


async def _run(task: Task, declaration: Declaration | Catalogued, trunk: Trunk | None) -> Run:
    simulation = simulation_of(task.setup)
    async with Cluster(seed=task.seed, nodes=task.setup.nodes, simulation=simulation) as cluster:
        token = await prepare(cluster, task.setup)
        await cluster.settle()
        if trunk is not None and (plan := trunk.at(0)) is not None:
            task = msgspec.structs.replace(task, plan=plan)
        rest = VirtualRest(task.quiet or 60.0, task.limit or 1800.0)
        if not isinstance(declaration, Catalogued):
            run = await perform(task, InProcess(declaration), rest, cluster, token, trunk)
        else:
            async with outside(cluster, declaration) as controllers:
                run = await perform(task, InProcess(controllers), rest, cluster, token, trunk)
        if trunk is not None:
            trunk.deliver(run)  # and so this process need not clean up
        return run
