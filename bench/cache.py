"""How long a large cache stops the event loop, and what caches cost in memory with each of their options.

The first is measured with 100,000 objects and 1,000 changes a second. There is no peer in it: the promise is about
ourselves, and it is absolute. A heartbeat in the same loop notes the longest gap between two beats; the best of some
rounds counts, because everything else on the machine only adds to it. The second is in `bench/_cache_memory.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from statistics import median

from bench import _cache_memory
from bench._progress import turns
from bench._report import Figure, Report
from konverge.bulk_load import bulk_load
from konverge.cache import CacheSpec, Informer
from konverge.client.call import Call
from konverge.objects.resource import Resource
from konverge.runtime.lifecycle import LARGE_CACHE
from konverge.wire.message import Headers, Response

LIMIT = 50.0
RATE = 1000
BEAT = 0.001
CHUNK = 64 * 1024
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")


def _line(kind: str, number: int, version: int) -> bytes:
    managed = [{"manager": "m", "operation": "Update", "fieldsV1": {"f:data": {"f:payload": {}}}}]
    obj = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": f"cm-{number:06d}", "namespace": "bench", "uid": f"{number:036d}", "resourceVersion": str(version),
            "labels": {"app": "bench"}, "managedFields": managed,
        },
        "data": {"payload": "x" * 500},
    }  # fmt: skip
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


class _Changes:
    """A watch stream: the present state at once, then changes at a steady rate."""

    status = 200

    def __init__(self, objects: int, seconds: float) -> None:
        self.headers = Headers()
        self._objects, self._seconds = objects, seconds
        self.finished = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        waiting = bytearray()
        for number in range(self._objects):
            waiting += _line("ADDED", number, number + 1)
            if len(waiting) > CHUNK:
                yield bytes(waiting)
                waiting.clear()
        end = {
            "metadata": {"resourceVersion": str(self._objects), "annotations": {"k8s.io/initial-events-end": "true"}}
        }
        yield bytes(waiting) + json.dumps({"type": "BOOKMARK", "object": end}).encode() + b"\n"
        version = self._objects
        for _ in range(int(self._seconds * 100)):
            lines = []
            for _ in range(RATE // 100):
                version += 1
                lines.append(_line("MODIFIED", version * 7919 % self._objects, version))
            yield b"".join(lines)
            await asyncio.sleep(0.01)
        self.finished.set()
        await asyncio.Event().wait()

    async def read(self) -> bytes:
        return b""

    async def aclose(self) -> None: ...


class _Caller:
    near = False

    def __init__(self, stream: _Changes) -> None:
        self._stream = stream

    async def call(self, call: Call) -> Response:
        raise AssertionError("the cache asks for nothing but the stream")

    async def stream(self, call: Call) -> _Changes:
        return self._stream


async def _longest_stop(objects: int, seconds: float) -> float:
    stream = _Changes(objects, seconds)
    informer = Informer(_Caller(stream), CacheSpec(resource=CONFIG_MAPS))
    running = asyncio.create_task(informer.run())
    with bulk_load(lambda: informer.count >= LARGE_CACHE):
        await informer.synced.wait()
    loop = asyncio.get_running_loop()
    worst, last = 0.0, loop.time()
    while not stream.finished.is_set():
        await asyncio.sleep(BEAT)
        now = loop.time()
        worst, last = max(worst, now - last - BEAT), now
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return worst * 1000


def run(*, quick: bool = False) -> Report:
    objects, seconds, rounds = (20_000, 2.0, 2) if quick else (100_000, 5.0, 3)
    report = Report("cache", f"longest stop of the event loop: {objects} cached objects, {RATE} changes a second")
    stops = [asyncio.run(_longest_stop(objects, seconds)) for _ in turns("cache", rounds, ["konverge"])]
    report.figures.append(Figure("longest stop", "konverge", median(stops), "ms", tuple(stops)))
    if median(stops) >= LIMIT:
        report.failures.append(f"longest stop {median(stops):.1f} ms, allowed {LIMIT:g}")
    _cache_memory.measure(report, objects=2000 if quick else 10_000, rounds=1 if quick else 3)
    return report
