"""A time limit for many short works at once, with one timer for all of them.

Almost every reconcile ends long before its limit. A timer for each would cost more than the reconcile of an object with
nothing to do; so there is one, set when something begins and none is set, which then looks who is overdue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable


class Watchdog:
    """Cancels the task of a work that takes longer than `seconds`.

    begin(key) … end(key); after a CancelledError, `barked(key)` tells whether it was us.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._working: dict[Hashable, tuple[float, asyncio.Task[object] | None]] = {}
        self._overdue: set[Hashable] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, key: Hashable, now: float) -> None:
        self._working[key] = (now, asyncio.current_task())
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._seconds, self._look)

    def end(self, key: Hashable) -> None:
        del self._working[key]
        if not self._working and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def barked(self, key: Hashable) -> bool:
        """Whether this work was cancelled for taking too long. Its task is then no longer being cancelled."""
        if key not in self._overdue:
            return False
        self._overdue.discard(key)
        _, task = self._working[key]
        return task is not None and task.uncancel() == 0

    def _look(self) -> None:
        now = self._loop.time()
        for key, (began, task) in self._working.items():
            if now >= began + self._seconds and key not in self._overdue and task is not None:
                self._overdue.add(key)
                task.cancel(f"not finished within {self._seconds:g} s")
        waiting = [began for key, (began, _) in self._working.items() if key not in self._overdue]
        self._timer = self._loop.call_at(min(waiting) + self._seconds, self._look) if waiting else None
