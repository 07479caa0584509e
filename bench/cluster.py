"""The simulated cluster: how soon it is there, how fast it works, what it costs while nothing happens.

- ready: `Cluster()` in this process, from nothing to controllers at work; a Deployment of three pods from its creation
  to its Ready, on virtual time; an idle hour of three nodes. CPU time of this process, which does nothing else.
- converge: many Deployments of three pods, `konverge up` side by side with a real control plane and kwok, by the same
  driver over TLS: wall time from the first create to the last Ready, and the CPU time of all their processes.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from statistics import median

from bench._clusters import CLUSTERS, REAL, converge, create_nodes, deployment
from bench._progress import turns
from bench._report import OURS, Bar, Figure, Report
from konverge.client import Client, load_config
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.sim import run as simulate
from konverge.sim.cluster import Cluster

POD_LIMIT = 100
"""Pods for each node: a little less than its 110."""
LIMITS = {"ready": (100.0, "ms"), "Deployment ready": (50.0, "ms"), "idle hour": (60.0, "ms")}
"""What each may cost. An idle hour in 60 ms is a thousand of them in a minute."""


def run(*, quick: bool = False) -> Report:
    rounds, count = (3, 100) if quick else (9, 1000)
    report = Report("cluster", f"the simulated cluster: {rounds} starts, {count} Deployments of 3 pods")
    _in_process(report, rounds, hours=10 if quick else 100)
    _side_by_side(report, count, 1 if quick else 2)
    return report


# ------------------------------------------------------------------ in this process


def _in_process(report: Report, rounds: int, *, hours: int) -> None:
    simulate(_once(1))  # modules and data that are loaded when first used are not counted
    costs = [simulate(_once(hours)) for _ in turns("cluster in this process", rounds, [OURS])]
    for (metric, (limit, unit)), values in zip(LIMITS.items(), zip(*costs, strict=True), strict=True):
        report.figures.append(Figure.of(metric, OURS, values, unit))
        if median(values) >= limit:
            report.failures.append(f"{metric}: {median(values):.1f} {unit}, allowed {limit:g}")


async def _once(hours: int) -> tuple[float, float, float]:
    """Milliseconds of CPU time: a start, a Deployment, an idle hour."""
    began = time.process_time()
    async with Cluster() as cluster:
        ready = time.process_time()
        await cluster.settle()
        asked = time.process_time()
        await cluster.client.create(deployment("web"))
        async for event in cluster.client.watch(Deployment, "default"):
            if event.object.status.ready_replicas == 3:
                break
        deployed = time.process_time()
        await cluster.settle()
        idle = time.process_time()
        await cluster.clock.advance(hours * 3600.0)
        return (ready - began) * 1e3, (deployed - asked) * 1e3, (time.process_time() - idle) * 1e3 / hours


# ------------------------------------------------------------------ side by side


def _side_by_side(report: Report, count: int, rounds: int) -> None:
    nodes = -(-count * 3 // POD_LIMIT)
    seconds: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)
    for name, cluster in turns("cluster", rounds, CLUSTERS.items(), itemgetter(0)):
        with cluster(nodes) as running:
            wall, used = asyncio.run(_converge(running.kubeconfig, running.cpu, count, nodes))
        seconds[name].append(wall)
        cpu[name].append(used)
    report.figures += [Figure.of("converge", name, values, "s") for name, values in seconds.items()]
    report.figures += [Figure.of("converge: CPU", name, values, "s") for name, values in cpu.items()]
    report.bars.append(Bar("converge", 1.0, REAL))


async def _converge(kubeconfig: Path, cpu: Callable[[], float], count: int, nodes: int) -> tuple[float, float]:
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        await create_nodes(client, nodes)
        before = cpu()
        wall = await converge(client, count)
        return wall, cpu() - before
