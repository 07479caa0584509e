"""The work queue: which keys wait, which are being worked on, and when a key comes back.

Three collections, as in client-go, each with one meaning:

- `_ready`   keys that wait for a worker (a `FairQueue`: priority with ageing, tenants in turn);
- `_working` keys that a worker has; no key is with two workers at a time;
- `_dirty`   keys that were added while a worker had them: they come back, once, when their worker is done.

Delayed keys are in a heap with one loop timer for the earliest. Every key carries the reasons for which it was added,
merged: a worker learns why it runs, which a queue that only removes duplicates cannot say (controller-runtime#1997).

Upstream: client-go's util/workqueue (queue.go, delaying_queue.go), controller-runtime's pkg/controller/priorityqueue.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from konverge.workqueue.fair import FairQueue
from konverge.workqueue.ratelimit import RateLimiter

K = TypeVar("K", bound=Hashable)

MAX_REASONS = 16
"""Reasons kept per key; a key that changes a thousand times before its turn remembers the first and the latest."""


class ShutDown(Exception):
    """Raised by `get` when the queue is shut down and nothing is left to hand out."""


class QueueMetrics(Protocol):
    """What a queue reports about itself. Times are seconds."""

    def added(self, depth: int) -> None: ...

    def handed_out(self, waited: float, depth: int) -> None: ...

    def finished(self, worked: float) -> None: ...

    def retried(self) -> None: ...


class NoMetrics:
    """The default: nothing is reported."""

    def added(self, depth: int) -> None: ...

    def handed_out(self, waited: float, depth: int) -> None: ...

    def finished(self, worked: float) -> None: ...

    def retried(self) -> None: ...


class Item(msgspec.Struct, Generic[K], gc=False):
    """A key that was handed to a worker."""

    key: K
    priority: int
    reasons: tuple[object, ...]
    waited: float


class Pending(msgspec.Struct, Generic[K], frozen=True):
    """A key that is in the queue."""

    key: K
    state: Literal["in work", "waiting", "delayed"]
    seconds: float
    """For so long it has been in work or waiting; a delayed one is due after so many."""
    reasons: tuple[object, ...] = ()


class _Entry(msgspec.Struct, gc=False, eq=False):
    """What is remembered of a waiting or dirty key."""

    since: float
    priority: int
    reasons: tuple[object, ...]

    def merge(self, priority: int, reason: object) -> bool:
        """The key was added again before its turn: keep the reason; True when its priority rises."""
        if reason is not None and reason not in self.reasons:
            self.reasons = (*self.reasons[: MAX_REASONS - 1], reason)
        if priority <= self.priority:
            return False
        self.priority = priority
        return True


class _Delayed(Generic[K]):
    """A key that is not due yet. Ordered by its time alone; of two for one key the heap may keep the stale one."""

    __slots__ = ("due", "key", "priority", "reason")

    def __init__(self, due: float, key: K, priority: int, reason: object) -> None:
        self.due = due
        self.key = key
        self.priority = priority
        self.reason = reason

    def __lt__(self, other: _Delayed[K]) -> bool:
        return self.due < other.due


class WorkQueue(Generic[K]):
    """A queue of keys for any number of workers on one event loop.

    >>> async def work() -> list[str]:
    ...     queue: WorkQueue[str] = WorkQueue()
    ...     queue.add("a"); queue.add("b"); queue.add("a")
    ...     queue.shut_down()
    ...     seen = []
    ...     try:
    ...         while True:
    ...             item = await queue.get()
    ...             seen.append(item.key)
    ...             queue.done(item.key)
    ...     except ShutDown:
    ...         return seen
    >>> asyncio.run(work())
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        limiter: RateLimiter | None = None,
        tenant: Callable[[K], Hashable] = lambda key: getattr(key, "namespace", None),
        metrics: QueueMetrics | None = None,
    ) -> None:
        self._limiter = limiter or RateLimiter()
        self._forget = self._limiter.backoff.forget
        self._metrics = metrics or NoMetrics()
        self._loop = asyncio.get_running_loop()
        self._ready: FairQueue[K] = FairQueue(tenant)
        self._entries: dict[K, _Entry] = {}  # of the keys in `_ready`
        self._dirty: dict[K, _Entry] = {}
        self._working: dict[K, float] = {}  # key -> when it was handed out
        self._due: dict[K, _Delayed[K]] = {}
        self._heap: list[_Delayed[K]] = []  # may hold entries that `_due` has since replaced
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0  # kept here: the handle that uvloop returns for a time just past has no `when`
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._spawner: asyncio.Future[None] | None = None  # waits in `needs_worker`
        self._drained: asyncio.Future[None] | None = None
        self._closing = False
        self._paused = False

    def __len__(self) -> int:
        """Keys that wait for a worker (neither those being worked on nor those delayed)."""
        return len(self._entries)

    # -------------------------------------------------------------- adding

    def add(self, key: K, *, priority: int = 0, reason: object = None) -> None:
        """Add a key. However often it is added before its turn, it is handed out once."""
        if self._closing:
            return
        entries = self._dirty if key in self._working else self._entries
        entry = entries.get(key)
        if entry is None:
            entries[key] = _Entry(self._loop.time(), priority, () if reason is None else (reason,))
            if entries is self._entries:
                self._make_ready(key, priority)
        elif entry.merge(priority, reason) and entries is self._entries:
            self._ready.push(key, priority)

    def add_after(self, key: K, delay: float, *, priority: int = 0, reason: object = None) -> None:
        """Add a key after `delay` seconds. Of several delays for one key the earliest wins."""
        if self._closing:
            return
        if delay <= 0:
            self.add(key, priority=priority, reason=reason)
            return
        due = self._loop.time() + delay
        present = self._due.get(key)
        if present is not None and present.due <= due:
            return
        delayed = _Delayed(due, key, priority, reason)
        self._due[key] = delayed
        heapq.heappush(self._heap, delayed)
        self._set_timer()

    def add_rate_limited(
        self, key: K, *, priority: int = 0, reason: object = None, at_most: float = math.inf, slowest: bool = False
    ) -> float:
        """Add a key that failed, after its back-off (see `RateLimiter.when`); returns the delay."""
        delay = self._limiter.when(key, self._loop.time(), at_most=at_most, slowest=slowest)
        self._metrics.retried()
        self.add_after(key, delay, priority=priority, reason=reason)
        return delay

    def num_requeues(self, key: K) -> int:
        """Failures of the key since it was last forgotten."""
        return self._limiter.failures(key)

    def forget(self, key: K) -> None:
        """The key succeeded, or its object has another spec: its next failure starts from the base delay."""
        self._forget(key)

    # -------------------------------------------------------------- handing out

    async def get(self) -> Item[K]:
        """Wait for the next key. Raises ShutDown when there will be none. Every item must be given back by `done`."""
        while self._paused or not self._entries:
            if self._closing:
                raise ShutDown
            await self._wait()
        return self._hand_out()

    async def needs_worker(self) -> bool:
        """Wait until a key waits and no worker is idle; False when there will be no more keys."""
        while not self._closing and (self._paused or not self._ready or self._waiters):
            self._spawner = self._loop.create_future()
            await self._spawner
        self._spawner = None
        return not self._closing

    def get_nowait(self) -> Item[K] | None:
        """As `get`, without waiting: None when it would have to."""
        return self._hand_out() if self._entries and not self._paused else None

    def take(self) -> Item[K] | None:
        """The next key at once, even while paused; None when no key waits. It must be given back by `done` as well."""
        return self._hand_out() if self._entries else None

    def _hand_out(self) -> Item[K]:
        key, priority = self._ready.pop()
        entry = self._entries.pop(key)
        now = self._loop.time()
        self._working[key] = now
        waited = now - entry.since
        self._metrics.handed_out(waited, len(self._entries))
        return Item(key, priority, entry.reasons, waited)

    def done(self, key: K) -> None:
        """The worker has finished the key. If it was added meanwhile, it waits again."""
        began = self._working.pop(key)
        self._metrics.finished(self._loop.time() - began)
        entry = self._dirty.pop(key, None) if self._dirty else None
        if entry is not None:
            self._entries[key] = entry
            self._make_ready(key, entry.priority)
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # -------------------------------------------------------------- pausing

    @property
    def paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        """Hand out nothing until `resume`: keys gather, workers wait. Workers that have a key continue."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        for _ in range(len(self._ready)):
            self._wake_one()

    @property
    def unfinished(self) -> int:
        """Keys that wait or are being worked on; not those delayed."""
        return len(self._ready) + len(self._working)

    @property
    def oldest(self) -> float:
        """Seconds for which the key that has waited longest waits for a worker; 0 when none does."""
        earliest = min((entry.since for entry in self._entries.values()), default=None)
        return 0.0 if earliest is None else self._loop.time() - earliest

    def pending(self) -> list[Pending[K]]:
        """All keys in it: those in work first, then those that wait, then delayed ones by their time."""
        now = self._loop.time()
        working = [Pending(key, "in work", now - began) for key, began in self._working.items()]
        waiting = [Pending(k, "waiting", now - e.since, e.reasons) for k, e in self._entries.items()]
        delayed = sorted(self._due.values())
        reasons = ((item.reason,) if item.reason is not None else () for item in delayed)
        return [
            *working,
            *waiting,
            *(Pending(d.key, "delayed", d.due - now, why) for d, why in zip(delayed, reasons, strict=True)),
        ]

    # -------------------------------------------------------------- ending

    def shut_down(self) -> None:
        """Take no new keys. Waiting keys are still handed out, unless paused; delayed ones are dropped."""
        self._closing = True
        self._due.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            self._wake_one()
        self._wake_spawner()

    async def shut_down_with_drain(self) -> None:
        """Shut down and wait until every key that waits or is being worked on is done."""
        self.shut_down()
        while (self._ready and not self._paused) or self._working:
            if self._drained is None or self._drained.done():
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)

    # -------------------------------------------------------------- inside

    def _make_ready(self, key: K, priority: int) -> None:
        self._ready.push(key, priority)
        self._metrics.added(len(self._entries))
        if self._waiters or self._spawner is not None:
            self._wake_one()

    async def _wait(self) -> None:
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self._wake_one()  # this worker was woken but is cancelled: another one takes its place
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._wake_spawner()

    def _wake_spawner(self) -> None:
        if self._spawner is not None and not self._spawner.done():
            self._spawner.set_result(None)

    def _set_timer(self) -> None:
        due = self._heap[0].due
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer, self._timer_due = self._loop.call_at(due, self._on_timer), due

    def _on_timer(self) -> None:
        self._timer = None
        now = max(self._loop.time(), self._timer_due)  # uvloop counts milliseconds: a timer may come a hair early
        while self._heap and self._heap[0].due <= now:
            delayed = heapq.heappop(self._heap)
            if self._due.get(delayed.key) is delayed:
                del self._due[delayed.key]
                self.add(delayed.key, priority=delayed.priority, reason=delayed.reason)
        if self._heap:
            self._set_timer()
