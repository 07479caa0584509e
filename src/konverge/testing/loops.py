"""`TestLoop`: the event loop of one test, on which its fixtures and the test itself run.

A fixture that lives around the test (a cluster, an operator) has a task of its own for its whole life: it is entered
and left in the same task, and when it fails in the middle of the test, the test is cancelled and fails with that error.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Self, TypeVar

from konverge import clock
from konverge.sim.loop import VirtualLoop

T = TypeVar("T")

VIRTUAL_LIMIT = 7 * 24 * 3600.0
"""Seconds of virtual time for a test: a simulated cluster always has a next timer, so a test that waits for something
that never comes would run for ever."""


class TestLoop:
    """Runs coroutines of one test, in order, on one loop.

    def test_in_plain_functions(konverge_loop, client):
        konverge_loop.run(client.create(shop))
    """

    __test__ = False

    def __init__(self, runner: asyncio.Runner, *, limit: float | None = None) -> None:
        """`limit` is the time for one `run`, as the loop counts it."""
        self._runner = runner
        self._limit = limit
        self._context = contextvars.copy_context()
        self._current: asyncio.Task[Any] | None = None
        self._failure: BaseException | None = None
        """Of a fixture that failed while a test ran, until it is raised."""

    @property
    def virtual(self) -> bool:
        return isinstance(self._runner.get_loop(), VirtualLoop)

    def wall_time(self) -> float:
        """Seconds since the epoch, as the loop's clock has it; also while the loop does not run."""
        loop = self._runner.get_loop()
        return loop.wall_time() if isinstance(loop, VirtualLoop) else clock.now()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, beside the fixtures. Raises what ended one of them meanwhile."""
        return self._runner.run(self._beside_fixtures(work), context=self._context)

    async def _beside_fixtures(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        if self._has_failed():
            work.close()
            raise self._take_failure()
        self._current = task
        timer = None if self._limit is None else asyncio.get_running_loop().call_later(self._limit, task.cancel)
        late = asyncio.get_running_loop().time() + (self._limit or 0)
        try:
            return await work
        except asyncio.CancelledError as error:
            if self._has_failed():
                task.uncancel()
                raise self._take_failure() from None
            if timer is not None and asyncio.get_running_loop().time() >= late:
                task.uncancel()
                kind = "virtual time" if self.virtual else "time"
                raise TimeoutError(
                    f"not finished after {self._limit:g} s of {kind}: see above where it waits"
                ) from error
            raise
        finally:
            self._current = None
            if timer is not None:
                timer.cancel()

    def _has_failed(self) -> bool:
        return self._failure is not None

    def _take_failure(self) -> BaseException:
        failure, self._failure = self._failure, None
        assert failure is not None
        return failure

    # -------------------------------------------------------------- what lives around the test

    def enter(self, manager: AbstractAsyncContextManager[T]) -> Held[T]:
        """Enter a context manager in a task of its own, which stays until `Held.leave`."""
        held = Held(manager, self)
        self.run(held.begin())
        return held

    def failed(self, error: BaseException) -> None:
        """A fixture has failed: so does the test."""
        self._failure = error
        if self._current is not None:
            self._current.cancel()


class Held(Generic[T]):
    """A context manager that was entered; `value` is what it gave."""

    value: T

    def __init__(self, manager: AbstractAsyncContextManager[T], loop: TestLoop) -> None:
        self._manager = manager
        self._loop = loop
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None]
        self._entered = False

    async def begin(self) -> Self:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready), name="a fixture's life")
        await asyncio.wait((ready, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            self._task.result()
        self._entered = True
        return self

    async def _live(self, ready: asyncio.Future[None]) -> None:
        async with self._manager as self.value:
            ready.set_result(None)
            self._task.add_done_callback(self._ended)
            await self._stop.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None and not self._stop.is_set():
            self._loop.failed(error)

    def leave(self) -> None:
        """Leave it, in its own task. Raises what that raises, unless the test has failed by it before."""
        if not self._task.done():
            self._stop.set()
            self._loop.run(self._finish())

    async def _finish(self) -> None:
        await self._task
