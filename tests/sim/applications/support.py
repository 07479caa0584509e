"""A small cluster with stand-ins, and pods for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from konverge.objects.kinds.core_v1 import Pod
from konverge.sim import FAST
from konverge.sim.applications import Applications, read_simulation
from konverge.sim.cluster import Cluster
from konverge.sim.network import claimed_block
from tests.sim.conftest import SPACE, pod


@asynccontextmanager
async def simulated(document: dict[str, Any], **options: Any) -> AsyncIterator[tuple[Cluster, Applications]]:
    """A cluster without the built-in controllers whose pods have stand-ins."""
    with claimed_block() as first:
        simulation = read_simulation(document)
        async with Cluster(
            controllers=options.pop("controllers", False), simulation=simulation, pace=FAST, pods_from=first, **options
        ) as cluster:
            assert cluster.applications is not None
            yield cluster, cluster.applications


async def running(cluster: Cluster, name: str, **spec: Any) -> Pod:
    """Create a pod, and wait until it runs."""
    await cluster.client.create(pod(name, **spec))
    await cluster.settle(quiet=0.1)
    return await cluster.client.get(Pod, name, SPACE)
