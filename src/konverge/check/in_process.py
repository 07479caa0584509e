"""Runs of an operator in this process, each on a cluster and a virtual loop of its own."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from konverge.check.model import Run, Task
from konverge.check.operator import CannotStart, Declaration, InProcess
from konverge.check.own_log import kept
from konverge.check.prepare import prepare, simulation_of
from konverge.check.run import VirtualRest, perform
from konverge.operators.catalog import Operator as Catalogued
from konverge.sim import Cluster, VirtualLoop
from konverge.sim.outside import outside


def run_in_process(task: Task, declaration: Declaration | Catalogued) -> Run:
    """One run, from nothing to its end. With an operator of the catalogue, what it talks to is simulated as well."""
    factory: Any = functools.partial(VirtualLoop, task.seed)
    runs: list[Run] = []

    async def played() -> None:  # the Run is not its result: asyncio.Runner makes a text of that, which costs
        runs.append(await _run(task, declaration))

    with kept(), asyncio.Runner(loop_factory=factory) as runner:
        try:
            runner.run(played())
        except CannotStart as error:
            return Run(plan=task.plan, seed=task.seed, steps=(), problem=str(error))
    return runs[0]


async def _run(task: Task, declaration: Declaration | Catalogued) -> Run:
    simulation = simulation_of(task.setup)
    async with Cluster(seed=task.seed, nodes=task.setup.nodes, simulation=simulation) as cluster:
        token = await prepare(cluster, task.setup)
        await cluster.settle()
        rest = VirtualRest(task.quiet or 60.0, task.limit or 1800.0)
        if not isinstance(declaration, Catalogued):
            return await perform(task, InProcess(declaration), rest, cluster, token)
        async with outside(cluster, declaration) as controllers:
            return await perform(task, InProcess(controllers), rest, cluster, token)
