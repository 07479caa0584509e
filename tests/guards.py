"""What a test's loops are checked for: nothing is left behind, no error goes unseen, no callback blocks them.

A test has one loop, a property test one for each example. At the end of a loop no task may be left; at the end of the
test no socket, no exception that was never retrieved or that a callback let through, and no callback that blocked.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.blocking import BlockingTime


class Heap:
    """Collects what a test has left open, without walking each time over all that a worker has loaded since its start.

    Modules, schemas and caches that came in the course of the run are set aside like those of the start. That is done
    between two tests, when nothing of a test is alive.
    """

    MANY = 20_000
    """Objects that are still there after a test: with more of them it is time to set them aside."""

    def __init__(self) -> None:
        self._grown = True

    def collect(self) -> None:
        gc.collect()
        self._grown = len(gc.get_objects()) > self.MANY

    def set_aside(self) -> None:
        if self._grown:
            gc.collect()
            gc.freeze()
            self._grown = False


_heap = Heap()
_DESCRIPTORS = "/proc/self/fd"
_HAS_DESCRIPTORS = Path(_DESCRIPTORS).is_dir()


class Guard:
    """Checks one test. `factory` makes its loops; with `patient`, its callbacks may take any time."""

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop], debug: bool | None, *, patient: bool) -> None:
        self._factory = factory
        self._debug = debug
        self._patient = patient
        self._errors: list[str] = []

    @contextmanager
    def watching(self) -> Iterator[Guard]:
        """The whole test, with all its loops inside."""
        _heap.set_aside()
        before = _open_sockets()
        with BlockingTime() as blocking:
            yield self
        _heap.collect()
        assert not self._errors, "\n".join(("exceptions that were never retrieved:", *self._errors))
        after = _open_sockets() - before
        assert not after, f"{len(after)} sockets left open"
        if not self._patient:
            error = blocking.error()
            assert not error, error

    @contextmanager
    def loop(self) -> Iterator[asyncio.Runner]:
        with asyncio.Runner(debug=self._debug, loop_factory=self._factory) as runner:
            loop = runner.get_loop()
            loop.slow_callback_duration = (
                10.0  # wall time says nothing on a busy machine; `BlockingTime` measures CPU time
            )
            loop.set_exception_handler(self._record)
            yield runner
            left = [task for task in asyncio.all_tasks(loop) if not task.done()]
            runner.run(asyncio.sleep(0))
        assert not left, f"tasks left behind: {left}"

    def _record(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._errors.append(f"{context.get('message')}: {context.get('exception')!r}")


def _open_sockets() -> set[str]:
    open_sockets = set()
    for number in os.listdir(_DESCRIPTORS) if _HAS_DESCRIPTORS else ():  # noqa: PTH208 - a fifth of the time
        try:
            target = os.readlink(f"{_DESCRIPTORS}/{number}")  # noqa: PTH115
        except OSError:
            continue
        if target.startswith("socket:"):
            open_sockets.add(target)
    return open_sockets
