"""A work queue that takes some keys and refuses the others: those of a standby, or of another replica's share.

Refused keys cost nothing but their name. A change is not remembered: whoever opens the gate adds every key again from
the state that caches hold. What caches cannot show, an object that is gone or an event of an external source, is in
`refused` for a while, so that a key that comes while its owner changes is not lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

from konverge.workqueue.queue import Item, WorkQueue

K = TypeVar("K", bound=Hashable)

REMEMBERED = 10_000
"""Refused keys that are remembered at most."""


class GatedQueue(WorkQueue[K]):
    """A work queue behind a gate, closed at first.

    queue.set_gate(lambda key: key in share)   # waiting keys outside are dropped, those in work go on
    """

    def __init__(self, *, remember: float, **options: Any) -> None:
        """`remember`: seconds for which refused keys are remembered."""
        super().__init__(**options)
        self._remember = remember
        self._admits: Callable[[K], bool] = _nothing
        self._refused: dict[K, float] = {}
        self.on_begin: Callable[[K], None] | None = None
        """Called with every key that is handed to a worker."""
        self.on_done: Callable[[K], None] | None = None
        """Called with every key that a worker has given back."""
        self._workers: dict[K, asyncio.Task[Any] | None] = {}

    def set_gate(self, admits: Callable[[K], bool]) -> None:
        """From now on exactly these keys are taken; waiting and delayed ones that it refuses are dropped."""
        self._admits = admits
        for key in [key for key in self._entries if not admits(key)]:
            del self._entries[key]
            self._ready.remove(key)
            self._refuse(key)
        for key in [key for key in (*self._dirty, *self._due) if not admits(key)]:
            self._dirty.pop(key, None)
            self._due.pop(key, None)
            self._refuse(key)

    def admits(self, key: K) -> bool:
        return self._admits(key)

    def refused(self) -> Iterator[K]:
        """The keys refused of late, which the gate admits now. They are forgotten here."""
        admitted = [key for key in self._refused if self._admits(key)]
        for key in admitted:
            del self._refused[key]
        return iter(admitted)

    def in_work(self) -> list[K]:
        return list(self._working)

    def add(self, key: K, *, priority: int = 0, reason: object = None) -> None:
        if self._admits(key):
            super().add(key, priority=priority, reason=reason)
        else:
            self._refuse(key)

    def add_after(self, key: K, delay: float, *, priority: int = 0, reason: object = None) -> None:
        if self._admits(key):
            super().add_after(key, delay, priority=priority, reason=reason)
        else:
            self._refuse(key)

    def worker(self, key: K) -> asyncio.Task[Any] | None:
        """The task that has this key in work."""
        return self._workers.get(key)

    def _hand_out(self) -> Item[K]:
        item = super()._hand_out()
        self._workers[item.key] = asyncio.current_task()
        if self.on_begin is not None:
            self.on_begin(item.key)
        return item

    def done(self, key: K) -> None:
        del self._workers[key]
        super().done(key)
        if self.on_done is not None:
            self.on_done(key)

    def _refuse(self, key: K) -> None:
        now = self._loop.time()
        self._refused.pop(key, None)
        self._refused[key] = now
        for oldest, since in self._refused.items():
            if len(self._refused) <= REMEMBERED and now - since <= self._remember:
                break
            del self._refused[oldest]
            return  # one is added at a time, so forgetting one at a time keeps the bound


def _nothing(key: object) -> bool:
    return False
