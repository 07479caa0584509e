"""Runs of an operator in this process, each on a cluster and a virtual loop of its own."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from konverge.check.model import Run, Task
from konverge.check.operator import Declaration, InProcess
from konverge.check.own_log import kept
from konverge.check.run import VirtualRest, perform
from konverge.operators.catalog import Operator as Catalogued
from konverge.sim import Cluster, VirtualLoop
from konverge.sim.outside import outside


def run_in_process(task: Task, declaration: Declaration | Catalogued) -> Run:
    """One run, from nothing to its end. With an operator of the catalogue, what it talks to is simulated as well."""
    factory: Any = functools.partial(VirtualLoop, task.seed)
    with kept(), asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_run(task, declaration))


async def _run(task: Task, declaration: Declaration | Catalogued) -> Run:
    async with Cluster(seed=task.seed, nodes=task.setup.nodes) as cluster:
        for obj in task.setup.objects:
            await cluster.client.create(obj)
        await cluster.settle()
        rest = VirtualRest(task.quiet or 60.0, task.limit or 1800.0)
        if not isinstance(declaration, Catalogued):
            return await perform(task, InProcess(declaration), rest, cluster)
        async with outside(cluster, declaration) as controllers:
            return await perform(task, InProcess(controllers), rest, cluster)
