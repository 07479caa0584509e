"""A small cluster with stand-ins, and pods for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from konverge.objects.kinds.core_v1 import Pod
from konverge.sim import FAST
from konverge.sim.applications import Applications, read_simulation
from konverge.sim.cluster import Cluster
from konverge.sim.loop import VirtualLoop
from konverge.sim.network import claimed_block
from tests.sim.conftest import SPACE, pod
from tests.sim.processes.support import is_running, until


@asynccontextmanager
async def simulated(document: dict[str, Any], **options: Any) -> AsyncIterator[tuple[Cluster, Applications]]:
    """A cluster without the built-in controllers whose pods have stand-ins."""
    with claimed_block() as first:
        simulation = read_simulation(document)
        async with Cluster(
            nodes=1,
            controllers=options.pop("controllers", False),
            simulation=simulation,
            pace=FAST,
            pods_from=first,
            **options,
        ) as cluster:
            assert cluster.applications is not None
            yield cluster, cluster.applications


async def running(cluster: Cluster, name: str, holds: Callable[[Pod], Any] = is_running, **spec: Any) -> Pod:
    """Create a pod, and wait until its container runs, or until something else holds of it."""
    await cluster.client.create(pod(name, **spec))
    made = await until(cluster.client, name, holds)
    if not isinstance(asyncio.get_running_loop(), VirtualLoop):
        return made
    await cluster.settle()  # what follows from it has happened as well
    return await cluster.client.get(Pod, name, SPACE)


async def delete(cluster: Cluster, applications: Applications, name: str) -> None:
    """Delete a pod, and wait until its servers have ended."""
    await cluster.client.delete(Pod, name, SPACE, grace_period=0)
    while any(name in server.pods for server in applications.servers.values()):
        await asyncio.sleep(0)
