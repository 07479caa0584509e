"""A time limit for many short works at once, with one timer for all of them.

Almost every reconcile ends long before its limit. A timer for each would cost more than the reconcile of an object with
nothing to do; so there is one, set when something begins and none is set, which then looks who is overdue. It is left
where it is when everything has ended: something else will have begun before it rings.
"""

from __future__ import annotations

import asyncio


class Watchdog:
    """Cancels a task whose work takes longer than `seconds`.

    begin(task, now) … end(task); after a CancelledError, `barked(task)` tells whether it was us.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._working: dict[asyncio.Task[object] | None, float] = {}
        self._overdue: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, task: asyncio.Task[object] | None, now: float) -> None:
        self._working[task] = now
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._seconds, self._look)

    def end(self, task: asyncio.Task[object] | None) -> None:
        del self._working[task]
        if self._overdue:
            self.barked(task)  # its work may have ended all the same: the next one has its full time

    def barked(self, task: asyncio.Task[object] | None) -> bool:
        """Whether this task was cancelled for taking too long. It is then no longer being cancelled."""
        if task is None or task not in self._overdue:
            return False
        self._overdue.discard(task)
        return task.uncancel() == 0

    def rest(self) -> None:
        """Nothing will begin any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now = self._loop.time()
        for task, began in self._working.items():
            if now >= began + self._seconds and task is not None and task not in self._overdue:
                self._overdue.add(task)
                task.cancel(f"not finished within {self._seconds:g} s")
        waiting = [began for task, began in self._working.items() if task not in self._overdue]
        self._timer = self._loop.call_at(min(waiting) + self._seconds, self._look) if waiting else None
