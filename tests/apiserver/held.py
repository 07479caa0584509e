"""How long one request holds up all others: the latency probe of the API server's tests.

    probe = await held(api, "POST", CONFIG_MAPS, body)
    probe.check()

CPU time, not wall time: how busy the machine is does not matter, and a slower machine gets a higher limit. A request
holds the others in two ways, and both are measured: a callback uses the loop's thread, or another thread of the server
keeps the interpreter's lock, so that the loop cannot run. A task that only ticks sees both: what the whole process has
computed between two of its turns.

A thread that computes while the loop has its turn coming is not yet one that keeps the lock: where the system, or the
host of a virtual machine, does not run the loop's thread, others go on for tenths of a second without having been asked
for anything. A thread that waits for the lock asks for it once in a switch interval, and sleeps in between; the kernel
counts that. What others computed counts as long as the loop asked for the lock, and no longer.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

from konverge.wire.message import Response
from tests.apiserver.api import Api
from tests.blocking import BlockingTime, slowness

LIMIT = 0.1
"""Seconds of CPU time that a request of at most 3 MB may hold the loop."""
_TICK = 0.001
_ASKING = 3
"""Switch intervals that pass, at most, from one request for the lock to the next on a machine that is busy."""
T = TypeVar("T")


class Held(NamedTuple):
    """What a request was answered, and how long it held up others."""

    response: Response
    callback: float
    """Seconds of CPU time of its longest callback on the loop."""
    what: str
    """That callback."""
    gap: float
    """Seconds of CPU time of all threads between two turns of the loop, at most."""

    @property
    def seconds(self) -> float:
        return max(self.callback, self.gap)

    def check(self, limit: float = LIMIT) -> None:
        """Fails the test if others were held up for longer, seen from the speed of this machine now."""
        if self.seconds >= limit and self.seconds >= limit * slowness():
            by = self.what if self.callback >= self.gap / 2 else "another thread, which kept the interpreter's lock"
            raise AssertionError(f"the loop was held for {self.seconds:.3f} s of CPU time by {by}")


async def held(api: Api, method: str, path: str, body: Any = None, **more: Any) -> Held:
    """Send a request as `Api.send` does, and measure it alone: the test's own work is not part of it."""
    request = api.request(method, path, body, **more)
    response, probe = await measured(api.server.transport.send(request))
    return Held(response, *probe)


async def measured(work: Coroutine[Any, Any, T]) -> tuple[T, tuple[float, str, float]]:
    """The result of some work in a task of its own, and the times of a `Held`."""
    gc.collect()  # what the test has made before is not to be collected in the time of the request
    with BlockingTime() as blocking:
        ticker = _Ticker(blocking)
        ticking = asyncio.create_task(ticker.run())
        try:
            await asyncio.sleep(0)
            result = await asyncio.create_task(work)
            await ticker.next()  # for what came last
        finally:
            ticking.cancel()
            await asyncio.wait([ticking])
    return result, (blocking.worst, blocking.what, ticker.gap)


class _Turn(NamedTuple):
    """What was counted until the loop had this turn."""

    loop: float
    """Seconds of CPU time of its thread."""
    process: float
    """Seconds of CPU time of all threads."""
    sleeps: int
    """How often the loop's thread has given up its processor, to wait for the lock or for something to do."""
    interval: float
    """Seconds after which a thread that waits for the lock asks for it again."""


class _Ticker:
    """Takes turns on the loop, and notes how much was computed between two of them at most."""

    def __init__(self, blocking: BlockingTime) -> None:
        self.gap = 0.0
        self._blocking = blocking
        self._ticked = asyncio.Event()

    async def run(self) -> None:
        while True:
            before = self._now()
            await asyncio.sleep(_TICK)
            while self._blocking.is_collecting:  # its time is not known yet
                await asyncio.sleep(0)
            now = self._now()
            asked = (now.sleeps - before.sleeps) * max(before.interval, now.interval) * _ASKING
            self.gap = max(self.gap, now.loop - before.loop, min(now.process - before.process, asked))
            self._ticked.set()

    async def next(self) -> None:
        self._ticked.clear()
        await self._ticked.wait()

    def _now(self) -> _Turn:
        """The collector's time is left out: it walks over the whole suite."""
        collected = self._blocking.collected
        sleeps = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        return _Turn(time.thread_time() - collected, time.process_time() - collected, sleeps, sys.getswitchinterval())
