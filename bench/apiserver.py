"""The embedded API server beside kube-apiserver with etcd (their CPU and memory counted together), both over TLS.

One driver, the same requests to each, rounds interleaved: creates of a 2 KB object, GETs, LISTs of everything, updates
seen by 50 watchers, creates that must be on disk when they are acknowledged. CPU and memory are the servers' own, from
/proc, which counts CPU in hundredths of a second: whatever is measured must take many of those.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import defaultdict
from operator import itemgetter
from typing import Any

from bench._apiservers import SERVERS, Running
from bench._progress import say, turns
from bench._report import Bar, Figure, Report
from bench._workload import each
from konverge.client import Client, load_config
from konverge.objects.resource import Resource

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
WATCHERS = 50
PAYLOAD = "x" * 1700

Rounds = dict[str, dict[str, list[float]]]

UNITS = {
    "create: CPU": "µs",
    "create: time": "µs",
    "get: CPU": "µs",
    "list: CPU": "ms",
    "watch: CPU per event and watcher": "µs",
    "memory": "MB",
    "start to ready": "ms",
    "durable create: time": "µs",
}
BARS = (
    Bar("create: CPU", 1 / 4),
    Bar("create: time", 1 / 3, text="creates per second at least 3 ×"),
    Bar("get: CPU", 1 / 4),
    Bar("list: CPU", 1 / 3),
    Bar("watch: CPU per event and watcher", 1 / 2),
    Bar("memory", 1 / 4),
    Bar("start to ready", 1 / 10),
    Bar("durable create: time", 1 / 2, text="creates per second at least 2 ×, each on disk"),
)
FIXTURE_LIMIT = 50.0


def run(*, quick: bool = False) -> Report:
    rounds, objects, gets, lists, updates = (1, 2000, 500, 25, 50) if quick else (3, 20000, 3000, 3, 200)
    report = Report("apiserver", f"API servers: {objects} objects of 2 KB, {WATCHERS} watchers, {rounds} rounds")
    measured: Rounds = defaultdict(lambda: defaultdict(list))
    for name, start in turns("apiserver", rounds, SERVERS.items(), itemgetter(0)):
        with start() as server:
            measured["start to ready"][name].append(server.seconds_to_ready * 1000)
            asyncio.run(_measure(server, name, measured, objects, gets, lists, updates))
        say("apiserver: the same on a disk")
        with start(durable=True) as server:
            asyncio.run(_durable(server, name, measured, objects // 10))
    for metric, by_server in measured.items():
        report.figures += [Figure.of(metric, name, values, UNITS[metric]) for name, values in by_server.items()]
    report.bars += BARS
    fixture = _fixture_start()
    report.notes.append(f"in process, `async with ApiServer()` takes {fixture:.1f} ms (import not counted)")
    if fixture >= FIXTURE_LIMIT:
        report.failures.append(f"in-process start {fixture:.1f} ms, allowed {FIXTURE_LIMIT:g}")
    return report


def config_map(name: str, version: int = 0) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "bench", "tier": "backend"}},
        "data": {"payload": PAYLOAD, "version": str(version)},
    }


async def _measure(
    server: Running, name: str, measured: Rounds, objects: int, gets: int, lists: int, updates: int
) -> None:
    async with Client.connect(load_config(kubeconfig=server.kubeconfig)) as client:
        await client.list(CONFIG_MAPS, "default", limit=1)  # connections, caches and code are warm

        async def create(number: int) -> None:
            await client.create(config_map(f"cm-{number:06d}"), resource=CONFIG_MAPS)

        cpu, wall = server.cpu(), time.perf_counter()
        await each(range(objects), 32, create)
        measured["create: time"][name].append((time.perf_counter() - wall) / objects * 1e6)
        measured["create: CPU"][name].append((server.cpu() - cpu) / objects * 1e6)

        async def get(number: int) -> None:
            await client.get(CONFIG_MAPS, f"cm-{number % objects:06d}", "default")

        cpu = server.cpu()
        await each(range(gets), 32, get)
        measured["get: CPU"][name].append((server.cpu() - cpu) / gets * 1e6)

        cpu = server.cpu()
        for _ in range(lists):
            await client.list_bytes(CONFIG_MAPS, "default")
        measured["list: CPU"][name].append((server.cpu() - cpu) / lists * 1e3)
        measured["memory"][name].append(server.megabytes())
        measured["watch: CPU per event and watcher"][name].append(await _watch(server, client, updates))


async def _watch(server: Running, client: Client, updates: int) -> float:
    """CPU per delivered event while one object is changed again and again and many watch it."""
    start = await client.list(CONFIG_MAPS, "default", limit=1)
    version = start.metadata.resource_version
    watching = 0
    all_watching = asyncio.Event()

    async def watcher() -> None:
        nonlocal watching
        seen = 0
        watching += 1
        if watching == WATCHERS:
            all_watching.set()
        async for batch in client.watch_bytes(CONFIG_MAPS, "default", resource_version=version):
            seen += sum(1 for kind, _ in batch if kind != "BOOKMARK")
            if seen >= updates:
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(WATCHERS):
            group.create_task(watcher())
        await all_watching.wait()
        await asyncio.sleep(1)  # the streams are open
        cpu = server.cpu()
        for number in range(updates):
            await client.update(config_map("cm-000000", number + 1), resource=CONFIG_MAPS)
    return (server.cpu() - cpu) / (updates * WATCHERS) * 1e6


async def _durable(server: Running, name: str, measured: Rounds, objects: int) -> None:
    async with Client.connect(load_config(kubeconfig=server.kubeconfig)) as client:
        await client.list(CONFIG_MAPS, "default", limit=1)

        async def create(number: int) -> None:
            await client.create(config_map(f"cm-{number:06d}"), resource=CONFIG_MAPS)

        wall = time.perf_counter()
        await each(range(objects), 32, create)
        measured["durable create: time"][name].append((time.perf_counter() - wall) / objects * 1e6)


_FIXTURE = """
import asyncio, time
from konverge.apiserver import ApiServer
async def main():
    best = 1e9
    for _ in range(5):
        began = time.perf_counter()
        async with ApiServer():
            best = min(best, time.perf_counter() - began)
    print(best * 1000)
asyncio.run(main())
"""


def _fixture_start() -> float:
    done = subprocess.run([sys.executable, "-c", _FIXTURE], check=True, capture_output=True, text=True)
    return float(done.stdout)
