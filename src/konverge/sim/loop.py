"""An event loop on virtual time: no thread, no file descriptor, no wall clock.

When nothing is ready to run, time jumps to the next timer. So three minutes of backoff pass in microseconds, and a
program that draws its time and randomness from its loop (see `konverge.clock`) has one history per seed, bit for bit.

`Clock` is how a test moves the time of a simulated cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Executor
from functools import partial
from math import inf, ulp
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

from konverge import clock

EPOCH = 1_767_225_600.0
"""Where simulated wall time begins: 2026-01-01T00:00:00Z."""


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Deadlock(RuntimeError):
    """Nothing is ready, nothing is scheduled, and a task still waits: it would wait for ever."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio loop whose time is a number.

    >>> async def nap() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> with asyncio.Runner(loop_factory=VirtualLoop) as runner:
    ...     runner.run(nap())
    3600.0
    """

    _scheduled: list[asyncio.TimerHandle]  # BaseEventLoop's heap of timers, which typeshed does not know

    def __init__(self, seed: int = 0, *, epoch: float = EPOCH) -> None:
        super().__init__()
        self._set_time(0.0)
        self._epoch = epoch
        self._clock_resolution = 1e-9
        self._selector = self  # BaseEventLoop asks its selector how long to wait; here that is ourselves
        self.rng = clock.seeded(seed)
        self.seed = seed
        self._idlers: list[asyncio.Future[float]] = []

    def time(self) -> float:
        return self._now

    def wall_time(self) -> float:
        """Seconds since the epoch, as `konverge.clock.now` returns them."""
        return self._epoch + self._now

    def jump_wall_clock(self, seconds: float) -> None:
        """Set the wall clock forwards or back, as an administrator or a suspended laptop does. Timers do not notice."""
        self._epoch += seconds

    async def idle(self) -> float:
        """Until nothing is left to run at this instant. The answer is when something will be: infinity if nothing."""
        idler: asyncio.Future[float] = self.create_future()
        self._idlers.append(idler)
        try:
            return await idler
        finally:
            if idler in self._idlers:
                self._idlers.remove(idler)

    def _set_time(self, now: float) -> None:
        """And how exact it is: to the last digit.

        asyncio runs timers that are due within the clock's resolution. A task that sleeps for the rest of an interval
        would wake a hair too early, sleep again, and with another such sleeper beside him time would stand still.
        """
        self._now = now
        self._clock_resolution = ulp(now)

    def select(self, timeout: float | None) -> list[Any]:
        """Called by the loop when it would sleep: time passes at once, unless a task waits for just this moment."""
        if self._idlers and timeout != 0:
            idlers, self._idlers = self._idlers, []
            for idler in idlers:
                if not idler.done():
                    idler.set_result(self._scheduled[0].when() if self._scheduled else inf)
            return []
        if timeout is None:
            self._deadlock()
        if timeout > 0:
            # The exact time of the timer, not now + timeout: sums of floats drift.
            self._set_time(max(self._now, self._scheduled[0].when()))
        return []

    def _deadlock(self) -> NoReturn:
        waiting = sorted(task.get_name() for task in asyncio.all_tasks(self))
        raise Deadlock(f"nothing will ever wake {', '.join(waiting) or 'anybody'}: virtual time has no next event")

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Done here and now: a thread would end at a moment that no seed decides."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def forked(self) -> None:
        """In the child of os.fork, at once: this loop goes on there. asyncio itself leaves loops to the parent."""
        asyncio._set_running_loop(self)

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no file descriptors, hence no events of theirs."""

    def _write_to_self(self) -> None:
        """The loop never sleeps in a system call, so it need not be woken."""


def run(main: Coroutine[Any, Any, T], *, seed: int = 0) -> T:
    """Run a coroutine on virtual time.

    >>> async def nap() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run(nap())
    3600.0
    """
    with asyncio.Runner(loop_factory=partial(VirtualLoop, seed)) as runner:
        return runner.run(main)


class RealTime(RuntimeError):
    """Time cannot be moved on a real event loop."""


class Clock:
    """Time as the cluster has it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return clock.now()

    async def advance(self, seconds: float) -> None:
        """Let time pass. All that is due on the way happens, each at its own time."""
        loop = self._virtual()
        if seconds < 0:
            raise ValueError("time goes forwards; the wall clock alone can be set back: jump()")
        await asyncio.sleep(seconds)
        await loop.idle()

    def jump(self, seconds: float) -> None:
        """Set the wall clock forwards or back, as an administrator does. Timers do not notice."""
        self._virtual().jump_wall_clock(seconds)

    def _virtual(self) -> VirtualLoop:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):
            raise RealTime(
                "this loop runs on real time: use konverge.sim.run(main()), or @pytest.mark.virtual in tests"
            )
        return loop


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    tasks = tuple(tasks)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
