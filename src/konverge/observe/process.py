"""How the process itself is: the lag of its event loop, and the pauses of its garbage collector.

Lag is how much later than asked a callback runs: what a reconciler that blocks, or a loop with too much to do, costs
everything else. One timer a second measures it. Both are measured while they can be scraped, and only then.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from konverge.observe.metrics import Histogram, Numbers

PERIOD = 1.0
LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PAUSE_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class ProcessNumbers:
    """Lag and pauses, in seconds."""

    def __init__(self) -> None:
        self.lag = Histogram(LAG_BUCKETS)
        self.pauses = [Histogram(PAUSE_BUCKETS) for _ in range(3)]
        """By the generation that was collected."""
        self._began = 0.0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def collected(self, phase: str, info: dict[str, Any]) -> None:
        """For gc.callbacks. The clock is the system's: a pause takes no simulated time."""
        if phase == "start":
            self._began = time.perf_counter()
        elif self._began:
            self.pauses[min(int(info["generation"]), 2)].observe(time.perf_counter() - self._began)
            self._began = 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        gc.callbacks.append(self.collected)
        self._schedule(loop)

    def stop(self) -> None:
        gc.callbacks.remove(self.collected)
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + PERIOD
        self._timer = loop.call_at(self._due, self._measure, loop)

    def _measure(self, loop: asyncio.AbstractEventLoop) -> None:
        self.lag.observe(max(0.0, loop.time() - self._due))
        self._schedule(loop)


@contextmanager
def measuring(numbers: Numbers) -> Iterator[None]:
    """Inside the block, the process and the running loop are measured into these numbers."""
    process = numbers.process = ProcessNumbers()
    process.start(asyncio.get_running_loop())
    try:
        yield
    finally:
        process.stop()
