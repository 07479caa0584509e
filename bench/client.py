"""Client libraries: CPU per request and per watch event, on the same objects of the same server.

Every peer makes its own objects in its own namespace, reads each and lists all; then all watch the same namespace, from
its present state on. Results are typed wherever the library has types, and a field of each object is read.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

from bench._report import OURS, Bar, Figure, Report
from bench._server import api_server
from bench._workers import Worker
from bench.clients import FLIGHT, manifest, names, spread
from konverge.client import Client, load_config
from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace
from konverge.objects.meta import ObjectMeta

PEERS = {
    OURS: ("bench.clients.ours", ""),
    "kubernetes": ("bench.clients.official", ""),
    "kubernetes.aio": ("bench.clients.asyncio_generated", "kubernetes.aio"),
    "kubernetes_asyncio": ("bench.clients.asyncio_generated", "kubernetes_asyncio"),
    "lightkube": ("bench.clients.with_lightkube", "sync"),
    "lightkube (async)": ("bench.clients.with_lightkube", "async"),
    "kr8s": ("bench.clients.with_kr8s", ""),
}
LISTS = 5
WATCHED = "bench-watched"
KINDS: dict[str, type[ConfigMap] | type[Deployment]] = {"ConfigMap": ConfigMap, "Deployment": Deployment}
MICRO = 1e6


def run(quick: bool) -> Report:
    count, watched, rounds = (40, 300, 2) if quick else (150, 1000, 5)
    report = Report("client", f"clients: {count} objects of each kind, {rounds} rounds")
    with api_server() as (kubeconfig, what), ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(name, module, *filter(None, (str(kubeconfig), argument))))
            for name, (module, argument) in PEERS.items()
        ]
        asyncio.run(_fill(kubeconfig, watched))
        samples: dict[tuple[str, str], list[float]] = {}
        for number in range(rounds + 1):
            for kind in KINDS:
                for index, worker in enumerate(workers):
                    measured = _round(kubeconfig, worker, kind, f"bench-{index}", count, watched)
                    if number > 0:  # the first one warms up
                        for metric, value in measured.items():
                            samples.setdefault((f"{kind}: {metric}", worker.name), []).append(value * MICRO)
        report.figures = [Figure.of(metric, peer, values, "µs") for (metric, peer), values in samples.items()]
        report.figures += [Figure("peak memory", w.name, w.peak_bytes() / 2**20, "MiB") for w in workers]
    report.notes = [f"server: {what}", f"asynchronous peers run on uvloop, like Konverge, {FLIGHT} requests in flight"]
    # On both kinds: the issue does not say how large an object is, and the small one flatters us.
    for kind in KINDS:
        report.bars.append(Bar(f"{kind}: CPU per request", 0.2, text="create, get and list together"))
        report.bars.append(Bar(f"{kind}: CPU per watch event", 0.2))
    return report


def _round(kubeconfig: Path, worker: Worker, kind: str, namespace: str, count: int, watched: int) -> dict[str, float]:
    asyncio.run(_empty(kubeconfig, kind, namespace))
    create = worker.do("create", kind=kind, namespace=namespace, count=count)
    get = worker.do("get", kind=kind, namespace=namespace, count=count)
    listed = worker.do("list", kind=kind, namespace=namespace, count=count, times=LISTS)
    watch = worker.do("watch", kind=kind, namespace=WATCHED, count=watched)
    return {
        "CPU per create": create / count,
        "CPU per get": get / count,
        f"CPU per list of {count}": listed / LISTS,
        "CPU per request": (create + get + listed) / (2 * count + LISTS),
        "CPU per watch event": watch / watched,
    }


async def _fill(kubeconfig: Path, watched: int) -> None:
    """Namespaces for everybody, and the objects that everybody watches."""
    async with Client.connect(load_config(kubeconfig=kubeconfig, environ={})) as client:
        for name in [WATCHED, *(f"bench-{index}" for index in range(len(PEERS)))]:
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
        for kind, cls in KINDS.items():
            every = [from_dict(cls, manifest(kind, name, WATCHED)) for name in names(watched)]
            await spread(every, client.create)


async def _empty(kubeconfig: Path, kind: str, namespace: str) -> None:
    """Remove the last round's objects."""
    async with Client.connect(load_config(kubeconfig=kubeconfig, environ={})) as client:
        await client.delete_collection(KINDS[kind], namespace)
