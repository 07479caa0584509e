"""Events are kept for an hour after their last write, then the server removes them.

A write queues its key with the time at which the event expires; as all live equally long, the queue is in order and one
timer suffices. A later write makes the queued entry void: the revisions differ. While the disk fails nothing is
removed; an event whose removal was taken back gets the whole time again.
"""

from __future__ import annotations

import asyncio
from collections import deque

from konverge import clock
from konverge.apiserver.storage import Event, Store
from konverge.apiserver.storage.failures import Failed

TABLE = "/events"
LIFETIME = 3600.0  # upstream: --event-ttl (pkg/controlplane/apiserver/options)
_AT_ONCE = 500
"""Events that are removed in one turn of the loop; the rest follow in the next."""


class Expiry:
    """Removes events that have expired."""

    def __init__(self, store: Store, lifetime: float = LIFETIME) -> None:
        self._store = store
        self._lifetime = lifetime
        self._queue: deque[tuple[float, str, int]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Events that are stored already get the whole time again: the time of their last write is not known."""
        for record in self._store.table(TABLE).records.values():
            self._enqueue(record.key, record.revision)
        self._store.subscribe(TABLE, self._written)
        self._store.on_recovery(self._arm)

    def stop(self) -> None:
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _written(self, event: Event) -> None:
        if event.record is not None:
            self._enqueue(event.key, event.revision)

    def _enqueue(self, key: str, revision: int) -> None:
        self._queue.append((clock.monotonic() + self._lifetime, key, revision))
        self._arm()

    def _arm(self) -> None:
        if not self._queue or self._timer is not None:
            return
        delay = max(self._queue[0][0] - clock.monotonic(), 0.0)
        self._timer = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now, table = clock.monotonic(), self._store.table(TABLE)
        for _ in range(_AT_ONCE):
            if not self._queue or self._queue[0][0] > now:
                break
            _, key, revision = self._queue[0]
            record = table.records.get(key)
            if record is not None and record.revision == revision:
                try:
                    self._store.remove(table, key, expected=revision)
                except Failed:
                    return  # until the disk works again
            self._queue.popleft()
        self._arm()
