"""Controller runtimes side by side: the same operator in each framework, on the same kube-apiserver.

- converge: new objects exist; the operator starts and makes them all Ready.
- sync: everything exists and is Ready; the operator starts, fills its caches and finds nothing to do; then it idles.
- latency: from the answer to a create to the owned object, at 20 creates per second.

CPU and memory are the operator's own, from /proc; rounds are interleaved.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from operator import attrgetter
from pathlib import Path
from statistics import quantiles

from bench import _workload as workload
from bench._operator import Operator, Peer, built
from bench._progress import turns
from bench._report import Bar, Figure, Report
from bench._server import api_server
from konverge.client import Client, load_config

LIMIT = 900.0
CREATES = 200
IDLE = 20.0
IDLE_LIMIT = 0.2
"""Per cent of a core that an operator with nothing to do may use."""
GAP = 0.05

Rounds = dict[str, dict[str, list[float]]]

BARS = (
    Bar("converge: CPU", 0.6, "controller-runtime"),
    Bar("converge: CPU", 1.2, "kube-rs"),
    Bar("converge: CPU", 1 / 8, "kopf"),
    Bar("converge: peak memory", 1.0, "controller-runtime"),
    Bar("sync: CPU", 1 / 3, "controller-runtime"),
    Bar("sync: CPU", 1.0, "kube-rs"),
    Bar("sync: memory after 5 s", 1 / 2, "controller-runtime"),
    Bar("sync: memory after 5 s", 1.0, "kube-rs tuned"),
    Bar("latency: p99", 1.0, "controller-runtime"),
)
UNITS = {"CPU": "s", "memory": "MB", "p50": "ms", "p99": "ms"}


def run(*, quick: bool = False) -> Report:
    peers = built()
    rounds, new, existing = (1, 500, 2000) if quick else (3, 3000, 20000)
    report = Report("runtime", f"controller runtimes: {new} new objects, {existing} existing ones, {rounds} rounds")
    with api_server() as (kubeconfig, described):
        measured = asyncio.run(_measure(kubeconfig, peers, rounds, new, existing))
    report.notes.append(f"on {described}")
    for metric, by_peer in measured.items():
        unit = "%" if metric.startswith("idle") else next(unit for word, unit in UNITS.items() if word in metric)
        report.figures += [Figure.of(metric, peer, values, unit) for peer, values in by_peer.items()]
    idle = report.ours("idle: CPU").value
    if idle > IDLE_LIMIT:
        report.failures.append(f"idle: {idle:.2f} % of a core, allowed {IDLE_LIMIT:g}")
    names = {peer.name for peer in peers}
    report.bars += [bar for bar in BARS if bar.against in names and bar.metric in measured]
    missing = sorted({bar.against for bar in BARS} - names)
    if missing:
        report.notes.append(f"not built, so not measured: {', '.join(missing)} (make bench-peers)")
    return report


async def _measure(kubeconfig: Path, peers: list[Peer], rounds: int, new: int, existing: int) -> Rounds:
    measured: Rounds = defaultdict(lambda: defaultdict(list))
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        await workload.set_up(client)
        for peer in turns("runtime, converge", rounds, peers, attrgetter("name")):
            await _converge(client, kubeconfig, peer, new, measured)
        waits: dict[str, list[float]] = defaultdict(list)
        # Without kopf: on what is filled in, its own annotations are missing, so it would find something to do.
        others = [peer for peer in peers if peer.name != "kopf"]
        for peer in turns("runtime, latency", rounds, others, attrgetter("name")):
            waits[peer.name] += await _latency(client, kubeconfig, peer)
        for name, all_waits in waits.items():
            # Of all rounds together: the 99th percentile of a single one is its second worst wait.
            cut = quantiles(all_waits, n=100)
            measured["latency: p50"][name].append(cut[49])
            measured["latency: p99"][name].append(cut[98])
        await workload.clear(client)
        await workload.fill(client, existing, reconciled=True)
        for peer in turns("runtime, sync", rounds, others, attrgetter("name")):
            await _sync(kubeconfig, peer, existing, measured)
    return measured


async def _converge(client: Client, kubeconfig: Path, peer: Peer, count: int, measured: Rounds) -> None:
    await workload.clear(client)
    await workload.fill(client, count)
    version = (await client.list(workload.BENCHES, workload.NAMESPACE, limit=1)).metadata.resource_version
    async with Operator(peer, kubeconfig, 0) as operator:
        async with asyncio.timeout(LIMIT):
            await workload.all_ready(client, version, count)
        measured["converge: CPU"][peer.name].append(operator.cpu())
        measured["converge: peak memory"][peer.name].append(operator.megabytes("VmHWM"))


async def _sync(kubeconfig: Path, peer: Peer, count: int, measured: Rounds) -> None:
    async with Operator(peer, kubeconfig, count) as operator:
        await operator.all_synced(LIMIT)
        measured["sync: CPU"][peer.name].append(operator.cpu())
        await asyncio.sleep(5)
        measured["sync: memory after 5 s"][peer.name].append(operator.megabytes("VmRSS"))
        idle = operator.cpu()
        await asyncio.sleep(IDLE)
        measured["idle: CPU"][peer.name].append((operator.cpu() - idle) / IDLE * 100)


async def _latency(client: Client, kubeconfig: Path, peer: Peer) -> list[float]:
    """Milliseconds from the answer to each create to the owned object."""
    await workload.clear(client)
    async with Operator(peer, kubeconfig, 0):
        await _warm(client)
        version = (await client.list(workload.CONFIG_MAPS, workload.NAMESPACE, limit=1)).metadata.resource_version
        answered: dict[str, float] = {}
        seen: dict[str, float] = {}

        async def observe() -> None:
            async for event in client.watch(workload.CONFIG_MAPS, workload.NAMESPACE, resource_version=version):
                seen.setdefault(event.object["metadata"]["name"], time.perf_counter())
                if len(seen) == CREATES:
                    return

        async def create(number: int) -> None:
            name = f"l-{number:05d}"
            await client.create(workload.bench(name), resource=workload.BENCHES)
            answered[name] = time.perf_counter()

        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            group.create_task(observe())
            for number in range(CREATES):
                group.create_task(create(number))
                await asyncio.sleep(GAP)
    return [max(0.0, seen[name] - at) * 1000 for name, at in answered.items()]


async def _warm(client: Client) -> None:
    """Until the operator reconciles: one object of its own, before the clock runs."""
    version = (await client.list(workload.BENCHES, workload.NAMESPACE, limit=1)).metadata.resource_version
    await client.create(workload.bench("warm"), resource=workload.BENCHES)
    async with asyncio.timeout(LIMIT):
        await workload.all_ready(client, version, 1)
