"""How long single callbacks block the loop: the check that none of them takes too long.

Measured in CPU time, so that waiting for a core counts for nothing. The collector's time is left out: it walks over
all that a worker of the suite has loaded, which is not the product's. So is the time to compile a module of which there
is no bytecode yet, as in the first run in a new clone; and so is what belongs in a thread: virtual time has none. What
remains depends on how fast the machine is at that moment, so a time over the limit is compared with a fixed piece of
work that is timed right then, several times: a virtual machine whose host is busy, or fetches its memory, is several
times slower from one tenth of a second to the next, and a guest sees that as its own CPU time.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from typing import Any

from _pytest.assertion import rewrite

LIMIT = 1.0
"""Seconds of CPU time, on a machine that does `_reference_work` in `REFERENCE`. The longest callbacks of tests, which
start an operator with all its definitions, take half of it."""
REFERENCE = 0.025
_SAMPLES = 8


class Elsewhere:
    """Seconds of CPU time, of all loops, for what a loop on real time would have given to a thread."""

    seconds = 0.0


class BlockingTime:
    """The longest time that a callback inside the `with` block takes."""

    def __init__(self) -> None:
        self.worst = 0.01
        """Seconds; what takes less is not worth a note."""
        self.what = ""
        self.slowness = 1.0
        """Of the machine when it was over the limit."""
        self.collected = 0.0
        """The collector's time, and our own."""
        self.is_collecting = False
        """Another thread may come here between a collection and the report of its end."""
        self._collecting = 0.0
        self.compiled = 0.0
        self._compiling: list[tuple[Any, str, Callable[..., Any]]] = [
            (SourceFileLoader, "source_to_code", SourceFileLoader.source_to_code),
            (rewrite, "_rewrite_test", rewrite._rewrite_test),  # of tests, and of packages that have a plugin
        ]
        self._run = asyncio.Handle._run

    def __enter__(self) -> BlockingTime:
        original, thread_time = self._run, time.thread_time

        def timed(handle: asyncio.Handle) -> None:  # for each callback of each loop: it has to be quick
            excused, start = self.collected + self.compiled + Elsewhere.seconds, thread_time()
            original(handle)
            spent = thread_time() - start
            if spent > self.worst:
                self._note(handle, spent + excused - (self.collected + self.compiled + Elsewhere.seconds))

        asyncio.Handle._run = timed  # type: ignore[method-assign,assignment]
        gc.callbacks.append(self._collector)
        for owner, name, function in self._compiling:
            setattr(owner, name, self._compiler(function))
        return self

    def _note(self, handle: asyncio.Handle, spent: float) -> None:
        if spent > self.worst:
            self.worst = spent
            start = time.thread_time()
            self.what = repr(handle)  # with what it was given, which may be megabytes
            if spent >= LIMIT:
                self.slowness = slowness()
            self.collected += time.thread_time() - start

    def _compiler(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def compiling(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                if asyncio._get_running_loop() is not None:  # else it is in a thread beside the loop
                    self.compiled += time.thread_time() - start

        return compiling

    def __exit__(self, *exc: object) -> None:
        asyncio.Handle._run = self._run  # type: ignore[method-assign]
        gc.callbacks.remove(self._collector)
        for owner, name, function in self._compiling:
            setattr(owner, name, function)

    def _collector(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.is_collecting = True
            self._collecting = time.thread_time()
        else:
            self.collected += time.thread_time() - self._collecting
            self.is_collecting = False

    def error(self) -> str:
        """The problem as text, or an empty text."""
        if self.worst < LIMIT * max(1.0, self.slowness):
            return ""
        return f"the loop was blocked for {self.worst:.2f} s of CPU time by {self.what}"


def slowness() -> float:
    """How many times slower this machine is now, at its slowest, than the one that the limits were set on."""
    return max(_timed_work() for _ in range(_SAMPLES)) / REFERENCE


def _timed_work() -> float:
    start = time.thread_time()
    _reference_work()
    return time.thread_time() - start


def _reference_work() -> None:
    decoded: dict[str, object] = {}
    for number in range(10_000):
        decoded[f"key {number}"] = json.loads(f'{{"a": [{number}, "x"]}}')
    sorted(decoded, reverse=True)
