"""Client libraries: CPU per request and per watch event, on the same objects of the same server.

What is measured is the CPU time, user and system, of a process that does nothing else, in a steady state: the process
has been warmed up, and before each turn a few reads open whatever connections have been closed meanwhile.

- *CPU per request*: a peer creates its objects in a namespace of its own, reads each of them and lists all of them with
  a label selector, five times; all of that, divided by the number of requests. Results are typed wherever the library
  has types, and a field of each object is read.
- *CPU per watch event*: a peer watches a namespace from its present state on, five times: the events of all objects, as
  they come after a start. Measured from the first event to the last; opening the watch is a TLS handshake mostly, and
  happens once in many minutes.
- *CPU per change*: a peer watches from a version on, and another process changes the objects, eight at a time. Nearly
  every event wakes the watching process again, and that (the kernel, TLS, cold caches) is the larger part of what it
  costs, whatever the library. It stands here to be seen.

The bars are on the ConfigMap of a kilobyte and a half. The Deployment, three times as large, stands here to be seen, in
the full run only. A quick run has fewer rounds, not smaller ones: between two turns a peer's process sleeps for many
seconds while the others have the processor's caches, and the first dozens of requests after that cost more than the
rest, the more so the less a request costs otherwise (with 60 requests 0.16 to 0.21 of the best peer, with 150 0.15).
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench._progress import say
from bench._report import OURS, Bar, Figure, Report
from bench._server import api_server
from bench._workers import Worker
from bench.clients import FLIGHT, manifest, names, spread
from konverge import clock
from konverge.client import Client, MergePatch, load_config
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
LISTS = WATCHES = 5
WATCHED = "bench-watched"
KINDS: dict[str, type[ConfigMap] | type[Deployment]] = {"ConfigMap": ConfigMap, "Deployment": Deployment}
MICRO = 1e6


@dataclass(frozen=True, slots=True)
class Size:
    objects: int
    """Created and read by each peer in each round."""
    watched: int
    """Objects of the watched namespace."""
    changes: int
    rounds: int
    kinds: tuple[str, ...]


QUICK = Size(objects=150, watched=800, changes=100, rounds=3, kinds=("ConfigMap",))
FULL = Size(objects=150, watched=800, changes=100, rounds=5, kinds=("ConfigMap", "Deployment"))


def run(quick: bool) -> Report:
    size = QUICK if quick else FULL
    report = Report("client", f"clients: {size.objects} objects, {size.watched} events, {size.rounds} rounds")
    with api_server() as (kubeconfig, what), ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(name, module, *filter(None, (str(kubeconfig), argument))))
            for name, (module, argument) in PEERS.items()
        ]
        asyncio.run(_fill(kubeconfig, size))
        samples: dict[tuple[str, str], list[float]] = {}
        for number in range(size.rounds + 1):
            for kind in size.kinds:
                for index, worker in enumerate(workers):
                    turn = f"round {number} of {size.rounds}" if number else "warming up"
                    say(f"client: {turn}, {kind}, {worker.name}")
                    measured = _turn(kubeconfig, worker, kind, f"bench-{index}", size)
                    if number > 0:  # the first one warms up
                        for metric, value in measured.items():
                            samples.setdefault((f"{kind}: {metric}", worker.name), []).append(value * MICRO)
        report.figures = [Figure.of(metric, peer, values, "µs") for (metric, peer), values in samples.items()]
        report.figures += [Figure("peak memory", w.name, w.peak_bytes() / 2**20, "MiB") for w in workers]
    report.notes = [f"server: {what}", f"asynchronous peers run on uvloop, like Konverge, {FLIGHT} requests in flight"]
    report.bars = [
        Bar("ConfigMap: CPU per request", 0.2, text="create, get and list together"),
        Bar("ConfigMap: CPU per watch event", 0.2, text="the present state, from its first event on"),
    ]
    return report


def _turn(kubeconfig: Path, worker: Worker, kind: str, namespace: str, size: Size) -> dict[str, float]:
    """One peer's turn of a round."""
    asyncio.run(_empty(kubeconfig, kind, namespace))
    worker.do("get", kind=kind, namespace=WATCHED, count=2 * FLIGHT)  # connections, caches
    create = worker.do("create", kind=kind, namespace=namespace, count=size.objects)
    get = worker.do("get", kind=kind, namespace=namespace, count=size.objects)
    listed = worker.do("list", kind=kind, namespace=namespace, count=size.objects, times=LISTS)
    watch = sum(worker.do("watch", kind=kind, namespace=WATCHED, events=size.watched) for _ in range(WATCHES))
    version = asyncio.run(_change(kubeconfig, kind, 1))
    worker.start("watch", kind=kind, namespace=WATCHED, events=1 + size.changes, resource_version=version)
    asyncio.run(_change(kubeconfig, kind, size.changes))
    changes = worker.finish()
    return {
        "CPU per create": create / size.objects,
        "CPU per get": get / size.objects,
        f"CPU per list of {size.objects}": listed / LISTS,
        "CPU per request": (create + get + listed) / (2 * size.objects + LISTS),
        "CPU per watch event": watch / WATCHES / (size.watched - 1),
        "CPU per change": changes / size.changes,
    }


async def _fill(kubeconfig: Path, size: Size) -> None:
    """Namespaces for all peers, and the objects that all of them watch."""
    async with Client.connect(load_config(kubeconfig=kubeconfig, environ={})) as client:
        for name in [WATCHED, *(f"bench-{index}" for index in range(len(PEERS)))]:
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
        for kind in size.kinds:
            every = [from_dict(KINDS[kind], manifest(kind, name, WATCHED)) for name in names(size.watched)]
            await spread(every, client.create)


async def _empty(kubeconfig: Path, kind: str, namespace: str) -> None:
    """Remove the last round's objects."""
    async with Client.connect(load_config(kubeconfig=kubeconfig, environ={})) as client:
        await client.delete_collection(KINDS[kind], namespace)


async def _change(kubeconfig: Path, kind: str, count: int) -> str:
    """Change so many of the watched objects once each; returns the version before."""
    patch = MergePatch({"metadata": {"annotations": {"bench/changed": repr(clock.now())}}})
    async with Client.connect(load_config(kubeconfig=kubeconfig, environ={})) as client:
        before = await client.list(KINDS[kind], WATCHED, limit=1)

        async def change(name: str) -> None:
            await client.patch(KINDS[kind], name, patch, WATCHED)

        await spread(names(count), change)
        return before.metadata.resource_version
