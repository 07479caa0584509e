"""A time limit for many short reconciles at once, with one timer for all of them.

Almost every reconcile ends long before its limit. A timer for each would cost more than the reconcile of an object with
nothing to do. So there is one timer: it is set when a reconcile begins and none is set, and then cancels those that are
overdue. It stays set when all have ended, because others will have begun before it expires.
"""

from __future__ import annotations

import asyncio


class Watchdog:
    """Cancels a task whose reconcile takes longer than `seconds`.

    begin(task, now) … end(task); after a CancelledError, `expired(task)` says why the watchdog cancelled it, if it did.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._working: dict[asyncio.Task[object] | None, float] = {}
        self._overdue: dict[asyncio.Task[object], str] = {}
        """Task that was cancelled -> why."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, task: asyncio.Task[object] | None, now: float) -> None:
        self._working[task] = now
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._seconds, self._cancel_overdue)

    def end(self, task: asyncio.Task[object] | None) -> None:
        del self._working[task]
        if self._overdue:
            self.expired(task)  # it may have ended in spite of the cancellation: the next reconcile has its full time

    def expired(self, task: asyncio.Task[object] | None) -> str:
        """Why this task was cancelled from here; empty when it was not. If so, the cancellation is taken back."""
        why = "" if task is None else self._overdue.pop(task, "")
        return why if task is not None and why and task.uncancel() == 0 else ""

    def cancel(self, task: asyncio.Task[object], why: str) -> None:
        """End the reconcile that this task is at, if it is at one."""
        if task in self._working and task not in self._overdue:
            self._overdue[task] = why
            task.cancel(why)

    def stop(self) -> None:
        """No further reconcile will begin."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cancel_overdue(self) -> None:
        now = self._loop.time()
        for task, began in self._working.items():
            if now >= began + self._seconds and task is not None and task not in self._overdue:
                self.cancel(task, f"not finished within {self._seconds:g} s")
        waiting = [began for task, began in self._working.items() if task is not None and task not in self._overdue]
        self._timer = self._loop.call_at(min(waiting) + self._seconds, self._cancel_overdue) if waiting else None
