"""The programs outside of Kubernetes that our operators talk to, simulated.

An operator that talks to Kubernetes alone needs none. `_SIMULATED` has the others, with what simulates their servers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from konverge.operators.catalog import Operator
from konverge.runtime import Controller
from konverge.sim.cluster import Cluster
from konverge.sim.sample_databases import Database, given

Controllers = list[Controller[Any]]


@asynccontextmanager
async def with_simulators(
    cluster: Cluster, operators: list[Operator], databases: Sequence[Database] = (), *, seed: int = 0
) -> AsyncIterator[Controllers]:
    """The controllers of these operators; inside the block, the servers that they talk to run.

    `databases` are in place of those that the samples name; `seed` decides what is chance in the servers: who wins an
    election, how long a start takes.
    """
    async with AsyncExitStack() as stack:
        declared: Controllers = []
        for operator in operators:
            declared += (await stack.enter_async_context(outside(cluster, operator, databases, seed=seed)))()
        yield declared


@asynccontextmanager
async def outside(
    cluster: Cluster, operator: Operator, databases: Sequence[Database] = (), *, seed: int = 0
) -> AsyncIterator[Callable[[], Controllers]]:
    """What makes the controllers of an operator, again for each of its lives; the servers outlive them.

    async with Cluster() as cluster, outside(cluster, find("nacos")) as controllers:
        ...  # controllers()
    """
    simulated = _SIMULATED.get(operator.name) if operator.product == "konverge" else None
    if simulated is None:
        yield operator.controllers
    else:
        async with simulated(cluster, databases, seed) as made:
            yield made


@asynccontextmanager
async def _nacos(
    cluster: Cluster, databases: Sequence[Database], seed: int
) -> AsyncIterator[Callable[[], Controllers]]:
    """Servers on the pods, and their databases."""
    from konverge.operators.nacos.operator import controllers
    from konverge.operators.nacos.server import HttpNacosServers
    from konverge.sim.databases import SimulatedDatabases
    from konverge.sim.nacos import QUICK, SimulatedNacos

    simulated = SimulatedDatabases()
    for database in given(databases):
        server = simulated.add_server(database.host, database.port, database.engine)
        server.add(database.name, database.username, database.password)
    async with SimulatedNacos(cluster, databases=simulated, timings=QUICK, seed=seed) as nacos:
        yield lambda: controllers(simulated, HttpNacosServers(nacos.connect))


@asynccontextmanager
async def _wukong(
    cluster: Cluster, databases: Sequence[Database], seed: int
) -> AsyncIterator[Callable[[], Controllers]]:
    """KubeVirt, CDI, Multus and NMState."""
    from konverge.operators.wukong.operator import controllers
    from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt

    async with SimulatedKubeVirt(cluster, timings=QUICK, seed=seed):
        yield controllers


_SIMULATED: dict[
    str, Callable[[Cluster, Sequence[Database], int], AbstractAsyncContextManager[Callable[[], Controllers]]]
] = {"nacos": _nacos, "wukong": _wukong}
