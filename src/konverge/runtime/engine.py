"""A controller at work: events → queue → workers → reconcile → what follows.

The whole retry policy is `_follow`: one readable switch. A reconcile that raises, hangs or is cancelled costs its own
key one attempt and nothing else; this is the one place where exceptions are caught broadly, and each is counted and
logged.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from konverge import clock
from konverge.cache.informer import Informer
from konverge.cache.lister import Lister
from konverge.cache.record import Key
from konverge.cache.store import Change
from konverge.client import (
    Client,
    ClientError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    ServerTimeout,
    TooManyRequests,
    Unavailable,
)
from konverge.objects.codec import decoder
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.observe import logs
from konverge.observe.metrics import ControllerNumbers
from konverge.runtime.context import Context, Recorder
from konverge.runtime.declare import Controller, Reconciler, Settings, Source
from konverge.runtime.finalizers import with_finalizer
from konverge.runtime.mapping import OwnedMapper, WatchMapper
from konverge.runtime.reasons import Changed, External, Reason, Resync, Retry, Timer
from konverge.runtime.result import DONE, Request, Result, TerminalError, TransientError
from konverge.runtime.watchdog import Watchdog
from konverge.runtime.writes import Writes, attribute_to
from konverge.workqueue import MAX_REASONS, Backoff, Item, RateLimiter, ShutDown, TokenBucket, WorkQueue

T = TypeVar("T", bound=Object)
K = TypeVar("K", bound=Object)

LOW = -100
"""The priority of what nobody changed: first lists and resyncs. controller-runtime's number."""

AT_A_STRETCH = 8
"""Keys that a worker takes before it lets others run: a reconcile with nothing to do waits for nothing by itself, and
twenty thousand of them would hold the loop for a second."""

PUT_OFF = 1.0
"""Seconds after which a key comes again whose own writes the cache had not shown."""

_log = logging.getLogger("konverge.controller")

# What passes by itself: the server or the network was not ready. Logged in a line, without a traceback.
_PASSING = (TransientError, ConnectionFailed, TooManyRequests, Unavailable, ServerTimeout)


class Engine(Generic[T]):
    """One running controller. `run` serves until the queue is shut down and empty."""

    def __init__(
        self,
        controller: Controller[T],
        *,
        client: Client,
        informers: dict[Resource, Informer],
        recorder: Recorder,
        manager: str,
        settings: Settings,
    ) -> None:
        self.controller = controller
        self.settings = settings
        self.numbers = ControllerNumbers(controller.name, controller.workers or settings.workers)
        self.queue: WorkQueue[Request] = WorkQueue(limiter=_limiter(settings), metrics=self.numbers.queue)
        self._client = client
        self._informers = informers
        self._recorder = recorder
        self._manager = manager
        self._writes = Writes(informers)
        self._listers: dict[type[Object], Lister[Any]] = {}
        self._reconcile = _reconcile_function(controller)
        self._primary = informers[controller.kind.resource]
        self._loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(settings.timeout)
        self._count = 0
        self._late: dict[Request, tuple[Reason, ...]] = {}
        """The reasons of keys that were put off."""
        self._attach()

    # -------------------------------------------------------------- events in

    def _attach(self) -> None:
        kind, resource = self.controller.kind, self.controller.kind.resource
        self._listen(self._primary, kind, self._primary_changed)
        for owned in self.controller.owns:
            self._listen(self._informers[owned.resource], owned, OwnedMapper(resource, owned.__name__, self.want))
        for watch in self.controller.watches:
            self._listen(self._informers[watch.kind.resource], watch.kind, WatchMapper(watch, self, self.want))

    def _listen(
        self, informer: Informer, kind: type[Object], deliver: Callable[[Change, Request | None], None]
    ) -> None:
        informer.add_handler(self._writes.router(kind.resource, deliver), self._has_plenty)

    def _primary_changed(self, change: Change, writer: Request | None) -> None:
        predicate = self.controller.predicate
        if predicate is None or predicate(change):
            self.want(change.key, self.controller.kind.__name__, change, writer)

    def _has_plenty(self) -> bool:
        """Every worker is busy, and as many keys wait as there are workers."""
        return len(self.queue) > self.numbers.workers

    def want(self, request: Request, kind: str, change: Change, writer: Request | None) -> None:
        """Queue a request for a change of an object, unless it is the echo of its own write."""
        if writer == request:
            self.numbers.echoes += 1
            return
        self.queue.forget(request)  # something changed: earlier failures say nothing about the new state
        self.queue.add(request, priority=LOW if change.initial else 0, reason=Changed(kind, change))

    # -------------------------------------------------------------- life

    async def run(self) -> None:
        """Workers, sources and the resync, until the queue is shut down and empty."""
        async with asyncio.TaskGroup() as group:
            name = self.controller.name
            helpers = [group.create_task(self._resync(), name=f"{name} resync")]
            helpers += [group.create_task(self._listen_to(s), name=f"{name} {s.name}") for s in self.controller.sources]
            try:
                await self._employ()
            finally:
                self._watchdog.rest()
            for helper in helpers:
                helper.cancel()

    async def _employ(self) -> None:
        """Workers as they are needed: most controllers never have more than one key at a time."""
        async with asyncio.TaskGroup() as crew:
            for number in range(self.numbers.workers):
                if not await self.queue.short_handed():
                    break
                crew.create_task(self._work(), name=f"{self.controller.name} worker {number}")
                await asyncio.sleep(0)  # it takes its key, or there would be another for the same one

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self.settings.resync_period * clock.rng().uniform(0.9, 1.1))
            for key, _ in list(self._primary.items()):
                self.queue.add(key, priority=LOW, reason=Resync())

    async def _listen_to(self, source: Source) -> None:
        async for request in source.requests():
            self.queue.add(request, reason=External(source.name, request))

    async def _work(self) -> None:
        queue, task = self.queue, asyncio.current_task()
        for count in itertools.count(1):
            try:
                item = await queue.get()
            except ShutDown:
                return
            try:
                await self._process(item, task)
            finally:
                queue.done(item.key)
            if count % AT_A_STRETCH == 0:
                await asyncio.sleep(0)

    # -------------------------------------------------------------- one reconcile

    async def step(self) -> Item[Request] | None:
        """Work on the next key in the caller's own task, also while the queue is paused; None when none waits."""
        item = self.queue.take()
        if item is not None:
            try:
                await self._process(item, asyncio.current_task())
            finally:
                self.queue.done(item.key)
        return item

    async def _process(self, item: Item[Request], task: asyncio.Task[Any] | None) -> None:
        key, numbers, watchdog = item.key, self.numbers, self._watchdog
        if self._writes.has_written(key) and not await self._caught_up(key):
            self._put_off(item)
            return
        began = numbers.running[key] = self._loop.time()
        numbers.event_to_reconcile.observe(item.waited)
        error: BaseException | None = None
        result: Result | None = None
        watchdog.begin(task, began)
        try:
            result = await self._attempt(item)
        except asyncio.CancelledError as cancelled:
            if watchdog.barked(task):
                numbers.timeouts += 1
                error = TransientError(f"not finished within {self.settings.timeout:g} s")
            elif task is not None and task.cancelling() > 0:  # the worker itself is being ended
                raise
            else:
                error = cancelled
        except Exception as raised:
            error = raised
        finally:
            watchdog.end(task)
            del numbers.running[key]
            numbers.time.observe(self._loop.time() - began)
        self._follow(item, result or DONE, error)

    async def _attempt(self, item: Item[Request]) -> Result | None:
        record = self._primary.get(item.key)
        if record is None:
            self._late.pop(item.key, None)
            return None  # gone: nothing to do, and no error
        attribute_to(self._writes, item.key)
        self._count += 1
        logs.scope.set(logs.Scope(self.controller.name, item.key, self._count))
        reasons: tuple[Reason, ...] = item.reasons  # type: ignore[assignment]
        if self._late:
            reasons = (*self._late.pop(item.key, ()), *reasons)
        context = Context(
            item.key,
            self.controller.kind,
            record,
            client=self._client,
            caches=self,
            recorder=self._recorder,
            manager=self._manager,
            reasons=reasons,
            log=_log,
        )
        return await self._reconcile(context)

    async def _caught_up(self, request: Request) -> bool:
        try:
            async with asyncio.timeout(self.settings.catch_up):
                await self._writes.caught_up(request)
        except TimeoutError:
            _log.warning(
                "%s %s: the cache has not shown our last write within %g s; its watch is begun anew",
                self.controller.name, request, self.settings.catch_up,
            )  # fmt: skip
            self._writes.doubt(request)
            return False
        except ClientError as error:
            _log.warning(
                "%s %s: whether our last write took effect is not known: %s", self.controller.name, request, error
            )
            return False
        return True

    def _put_off(self, item: Item[Request]) -> None:
        """A worker is not to be held by a cache that is behind, and nobody acts on one: the key comes again."""
        reasons: tuple[Reason, ...] = item.reasons  # type: ignore[assignment]
        self._late[item.key] = (*self._late.get(item.key, ()), *reasons)[:MAX_REASONS]
        self.queue.add_after(item.key, PUT_OFF, priority=item.priority)

    # -------------------------------------------------------------- what follows

    def _follow(self, item: Item[Request], result: Result, error: BaseException | None) -> None:
        """The retry policy."""
        numbers, key = self.numbers, item.key
        priority = item.priority if result.priority is None else result.priority
        if error is not None:
            numbers.results["error"] += 1
            numbers.errors += 1
            self._failed(item, error)
        elif result.requeue_after > 0:
            numbers.results["requeue_after"] += 1
            self.queue.forget(key)
            self.queue.add_after(key, result.requeue_after, priority=priority, reason=Timer(result.requeue_after))
        elif result.requeue:
            numbers.results["requeue"] += 1
            self.queue.add_rate_limited(key, priority=priority, reason=Retry(self.queue.num_requeues(key) + 1))
        else:
            numbers.results["success"] += 1
            self.queue.forget(key)

    def _failed(self, item: Item[Request], error: BaseException) -> None:
        key = item.key
        attempt = self.queue.num_requeues(key) + 1
        where = f"{self.controller.name} {key}"
        if isinstance(error, TerminalError):
            self.numbers.terminal_errors += 1
            self.queue.forget(key)
            _log.error("%s: %s (not retried until the object changes)", where, error)
            self._tell(key, "ReconcileFailed", str(error))
        elif 0 < self.settings.max_retries < attempt:
            self.numbers.given_up += 1
            self.queue.forget(key)
            _log.error("%s: given up after %d attempts: %s", where, attempt, error)
            self._tell(key, "ReconcileGivenUp", f"given up after {attempt} attempts: {error}")
        else:
            self._log_failure(where, attempt, error)
            self.queue.add_rate_limited(key, priority=item.priority, reason=Retry(attempt, str(error)))

    def _log_failure(self, where: str, attempt: int, error: BaseException) -> None:
        if isinstance(error, Conflict):
            _log.info("%s: somebody else wrote at the same time; reading again (attempt %d)", where, attempt)
        elif isinstance(error, Forbidden) and error.namespace_terminating:
            _log.debug("%s: its namespace is being deleted (attempt %d)", where, attempt)
        elif isinstance(error, (*_PASSING, ClientError)):
            _log.warning("%s: %s (attempt %d)", where, error, attempt)
        else:
            self.numbers.panics += 1
            _log.error("%s: attempt %d failed", where, attempt, exc_info=error)

    def _tell(self, key: Key, reason: str, message: str) -> None:
        record = self._primary.get(key)
        if record is not None:
            about = decoder(self.controller.kind).decode(record.raw)
            self._recorder.event(about, "Warning", reason, message)

    # -------------------------------------------------------------- caches

    def lister(self, kind: type[K]) -> Lister[K] | None:
        """The lister of a declared kind, or None."""
        found = self._listers.get(kind)
        if found is None:
            informer = self._informers.get(kind.resource)
            if informer is None:
                return None
            found = self._listers[kind] = Lister(informer, decoder(kind).decode)
        return found


def _limiter(settings: Settings) -> RateLimiter:
    bucket = TokenBucket(settings.rate_limiter_qps, settings.rate_limiter_burst)
    return RateLimiter(Backoff(settings.base_delay, settings.max_delay), bucket)


def _reconcile_function(controller: Controller[T]) -> Callable[[Context[T]], Awaitable[Result | None]]:
    reconciler = controller.reconciler
    if not isinstance(reconciler, Reconciler):
        return reconciler
    if controller.finalizer:
        return with_finalizer(reconciler, controller.finalizer)
    return reconciler.reconcile
