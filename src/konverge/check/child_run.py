"""Runs of an operator as a child process, each on a cluster of its own, on real time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from konverge.check.child import Child, home_namespace
from konverge.check.isolation import OWN_RESOLV_CONF, RESOLVER, is_isolated
from konverge.check.locks import release
from konverge.check.model import Ref, Run, Setup, Task
from konverge.check.operator import CannotStart
from konverge.check.prepare import account_token, prepare, simulation_of
from konverge.check.real_rest import GENEROUS, LIMIT, RealRest
from konverge.check.run import perform
from konverge.check.snapshot import put_back
from konverge.sim import FAST, Cluster


async def run_child(task: Task) -> Run:
    """One run, from nothing to its end."""
    try:
        return await _run(task)
    except CannotStart as error:
        return Run(plan=task.plan, seed=task.seed, steps=(), problem=str(error))


async def _run(task: Task) -> Run:
    setup, restored = task.setup, task.restored
    cluster = Cluster(nodes=setup.nodes, pace=FAST, simulation=simulation_of(setup))
    if restored is not None:
        put_back(cluster, restored)
    async with cluster, _names(cluster, setup):
        if restored is None:
            token = await prepare(cluster, setup)
        else:
            token = await account_token(cluster, setup)
            await release(cluster, (Ref(*parts) for parts in restored.counted.locks))
        await cluster.settle(quiet=0.1)
        child = Child(task.subject, setup, token)
        rest = RealRest(task.quiet or GENEROUS, task.limit or LIMIT, task.pauses, task.always_busy)
        rest.patience = task.patience
        rest.began = restored is not None
        return await perform(task, child, rest, cluster, token or cluster.server.token)


@asynccontextmanager
async def _names(cluster: Cluster, setup: Setup) -> AsyncIterator[None]:
    """Names of Services and pods resolve for the child, where the worker has a resolv.conf of its own."""
    if not is_isolated():
        yield
        return
    from konverge.sim.applications.names import Names, Resolver, resolv_conf

    OWN_RESOLV_CONF.write_text(resolv_conf(RESOLVER, home_namespace(setup)))
    async with Resolver(Names(cluster.server.objects)) as resolver:
        await resolver.listen(RESOLVER, 53)
        yield
