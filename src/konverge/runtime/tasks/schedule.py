"""When what is due: a heap of times with one entry for each key. Pure: it knows no clock.

Upstream: the heap of client-go's delaying queue (util/workqueue/delaying_queue.go).
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

STALE = 64
"""Entries without a meaning that a heap may hold before it is rebuilt, when they are more than the others."""


class Schedule(Generic[K]):
    """Each key is due once, at the time that was given last.

    >>> schedule: Schedule[str] = Schedule()
    >>> schedule.put("a", 5.0); schedule.put("b", 3.0); schedule.put("a", 1.0)
    >>> schedule.take_due(3.0), schedule.next_due
    (['a', 'b'], None)
    """

    def __init__(self) -> None:
        self._due: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        """May hold entries that `_due` has replaced or lost since."""
        self._count = 0

    def __len__(self) -> int:
        return len(self._due)

    def put(self, key: K, due: float) -> None:
        self._count += 1  # two that are due at the same time come in the order in which they were put
        self._due[key] = due, self._count
        heapq.heappush(self._heap, (due, self._count, key))
        self._tidy()

    def remove(self, key: K) -> None:
        if self._due.pop(key, None) is not None:
            self._tidy()

    @property
    def next_due(self) -> float | None:
        """The earliest time; None when nothing is due."""
        heap = self._heap
        while heap and not self._is_valid(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: float) -> list[K]:
        """The keys that are due, earliest first. They are not due any more."""
        keys = []
        while (due := self.next_due) is not None and due <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._due[key]
            keys.append(key)
        return keys

    def _is_valid(self, entry: tuple[float, int, K]) -> bool:
        return self._due.get(entry[2]) == entry[:2]

    def _tidy(self) -> None:
        if len(self._heap) > STALE + 2 * len(self._due):
            self._heap = [(due, count, key) for key, (due, count) in self._due.items()]
            heapq.heapify(self._heap)
