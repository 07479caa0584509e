"""A time limit for many short reconciles at once, with one timer for all of them.

Almost every reconcile ends long before its limit. A timer for each would cost more than the reconcile of an object with
nothing to do. So there is one timer: it is set when a reconcile begins and none is set, and then cancels those that are
overdue. It stays set when all have ended, because others will have begun before it expires.
"""

from __future__ import annotations

import asyncio


class Watchdog:
    """Cancels a task whose reconcile takes longer than `seconds`.

    begin(task, now) … end(task); after a CancelledError, `expired(task)` says whether the watchdog cancelled it.
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
            self._timer = self._loop.call_at(now + self._seconds, self._cancel_overdue)

    def end(self, task: asyncio.Task[object] | None) -> None:
        del self._working[task]
        self.expired(task)  # it may have ended in spite of the cancellation: the next reconcile has its full time

    def expired(self, task: asyncio.Task[object] | None) -> bool:
        """Whether this task was cancelled because its time expired. If so, the cancellation is taken back."""
        if task is None or task not in self._overdue:
            return False
        self._overdue.discard(task)
        return task.uncancel() == 0

    def stop(self) -> None:
        """No further reconcile will begin."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cancel_overdue(self) -> None:
        now = self._loop.time()
        for task, began in self._working.items():
            if now >= began + self._seconds and task is not None and task not in self._overdue:
                self._overdue.add(task)
                task.cancel(f"not finished within {self._seconds:g} s")
        waiting = [began for task, began in self._working.items() if task is not None and task not in self._overdue]
        self._timer = self._loop.call_at(min(waiting) + self._seconds, self._cancel_overdue) if waiting else None
