"""A running controller: events → queue → workers → reconcile → retry policy.

A reconcile that raises, hangs or is cancelled costs its own key one attempt and nothing else: this is where exceptions
are caught broadly, and each is counted and logged. What follows from them is decided in `konverge.runtime.retries`.

Upstream: controller-runtime's pkg/internal/controller/controller.go.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from konverge import clock
from konverge.cache.informer import Informer
from konverge.cache.record import Key, Record
from konverge.cache.store import Change
from konverge.client import Client, ClientError
from konverge.objects.meta import Object, ObjectMeta, PartialObjectMetadata
from konverge.objects.resource import Resource
from konverge.observe import logs
from konverge.observe.metrics import ControllerNumbers
from konverge.runtime.context import Context, Recorder
from konverge.runtime.declare import Controller, Settings, Source
from konverge.runtime.declared import DeclaredCaches
from konverge.runtime.failures import message
from konverge.runtime.mapping import WatchMapper, owned_mapper, predicate_of, watch_mapper
from konverge.runtime.reasons import Changed, External, Reason, Resync, TakenOver
from konverge.runtime.reconciled import Observer, Reconciled
from konverge.runtime.result import DONE, Quarantined, Request, Result, TransientError
from konverge.runtime.retries import Retries
from konverge.runtime.sources import listen
from konverge.runtime.status_merge import Unkept
from konverge.runtime.steps import reconcile_function
from konverge.runtime.story.entry import Entry
from konverge.runtime.story.story import Story
from konverge.runtime.watchdog import Watchdog
from konverge.runtime.writes import Writes, attribute_to
from konverge.workqueue import MAX_REASONS, Backoff, GatedQueue, Item, RateLimiter, ShutDown, TokenBucket, WorkQueue

if TYPE_CHECKING:
    from konverge.runtime.tasks.gone import GoneObjects
    from konverge.runtime.tasks.object_tasks import ObjectTasks

T = TypeVar("T", bound=Object)

LOW = -100
"""The priority of objects that did not change: first lists and resyncs. Upstream: handler.LowPriority."""

KEYS_PER_TURN = 8
"""Keys that a worker takes before it lets other tasks run.

A reconcile with nothing to do never awaits anything by itself; twenty thousand of them in a row were measured to hold
the loop for a second.
"""

REPLAYED_PER_TURN = 256
"""Cached objects whose keys are queued before other tasks run, when work is taken over."""

POSTPONE_DELAY = 1.0
"""Seconds after which a key comes again whose own writes the cache had not shown."""

_log = logging.getLogger("konverge.controller")

ReconcileFunction = Callable[[Context[Any]], Awaitable[Result | None]]

_running: WeakSet[Engine[Any]] = WeakSet()


def running_engines() -> list[Engine[Any]]:
    """The controllers that run on this event loop, of whatever manager."""
    loop = asyncio.get_running_loop()
    return sorted((engine for engine in _running if engine.loop is loop), key=lambda engine: engine.controller.name)


class Engine(Generic[T]):
    """One running controller. `run` serves until the queue is shut down and empty."""

    def __init__(
        self,
        controller: Controller[T],
        *,
        client: Client,
        caches: DeclaredCaches,
        recorder: Recorder,
        manager: str,
        settings: Settings,
        observers: Sequence[Observer] = (),
        story: Story | None = None,
        gated: float = 0.0,
    ) -> None:
        """`observers` are called with every reconcile that has ended, and `story` keeps it. With `gated`, no key is
        taken before the gate of the queue is opened (see `take_over`); it is the seconds for which a key that was
        refused is remembered."""
        self.controller = controller
        self.settings = settings
        self.numbers = ControllerNumbers(controller.name, controller.workers or settings.workers)
        self.gate: GatedQueue[Request] | None = None
        """The queue, where it has a gate."""
        if gated:
            self.gate = GatedQueue(remember=gated, limiter=_limiter(settings), metrics=self.numbers.queue)
        self.queue: WorkQueue[Request] = (
            WorkQueue(limiter=_limiter(settings), metrics=self.numbers.queue) if self.gate is None else self.gate
        )
        self.numbers.oldest = lambda: self.queue.oldest
        self._client = client
        self._recorder = recorder
        self._manager = manager
        self._observers = observers
        story = Story(manager) if story is None else story
        self._story = story.ring(controller.name, controller.kind.resource, self.numbers.running)
        self.caches = caches
        self.writes = Writes(caches.by_resource)
        self._reconcile = reconcile_function(controller, self._is_held)
        self._primary = caches.primary
        self.loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(settings.timeout)
        self._retries = Retries(
            controller.name,
            self.queue,
            self.numbers,
            settings,
            warn=self._warn,
            is_deleting=self._is_deleting,
            module=getattr(controller.reconciler, "__module__", ""),
        )
        self._count = 0
        self._postponed: dict[Request, tuple[Reason, ...]] = {}
        """Key -> its reasons, for keys that were postponed."""
        self._unkept = Unkept()
        self._unreadable = f"cannot be read as {controller.kind.__name__} by {controller.name}"
        self._predicate = predicate_of(controller.name, controller.kind, controller.when, self._primary)
        self._mappers: list[WatchMapper] = []
        self._gone: GoneObjects | None = None
        self.object_tasks: ObjectTasks | None = None
        """Timers and daemons, where the controller has some."""
        if controller.timers or controller.daemons or controller.on_gone is not None:
            from konverge.runtime.tasks.attach import gone_objects, object_tasks  # few controllers need it

            self._gone = gone_objects(self, client, recorder, manager)
            self.object_tasks = object_tasks(self, client, recorder, manager)
        self._delivered: list[tuple[Informer, Callable[[Change, Request | None], None]]] = []
        """Where changes come from, and what becomes of them."""
        self._attach()

    def wrap(self, around: Callable[[ReconcileFunction], ReconcileFunction]) -> None:
        """Put something around every call of the reconciler. Before the start only."""
        self._reconcile = around(self._reconcile)

    # -------------------------------------------------------------- events in

    def _attach(self) -> None:
        self._listen(self._primary, self._primary_changed)
        for informer, owned in zip(self.caches.owned, self.controller.owned, strict=True):
            self._listen(informer, owned_mapper(self.controller, owned, informer, self.enqueue))
        for informer, watch in zip(self.caches.watched, self.controller.watched, strict=True):
            mapper = watch_mapper(self.controller, watch, informer, self.caches, self.enqueue)
            if isinstance(mapper, WatchMapper):
                self._mappers.append(mapper)
            self._listen(informer, mapper)

    def _listen(self, informer: Informer, deliver: Callable[[Change, Request | None], None]) -> None:
        self._delivered.append((informer, deliver))
        informer.add_handler(self.writes.router(informer, deliver), self.is_busy)

    def _primary_changed(self, change: Change, writer: Request | None) -> None:
        failing = self._retries.failing
        if failing and change.key in failing:
            self._retries.changed(change)
        predicate = self._predicate
        if predicate is None or predicate(change):
            self.enqueue(change.key, self.controller.kind.resource.kind, change, writer)

    def is_busy(self) -> bool:
        """Every worker has a key, and more keys wait than there are workers."""
        return len(self.queue) > self.numbers.workers

    def enqueue(self, request: Request, kind: str, change: Change, writer: Request | None) -> None:
        """Queue a request because an object changed, unless the change is the request's own write."""
        if writer == request:
            self.numbers.echoes += 1
            return
        self.queue.add(request, priority=LOW if change.initial else 0, reason=Changed(kind, change))

    def _is_foreign(self, request: Request) -> bool:
        return self.gate is not None and not self.gate.admits(request)

    def cancel(self, request: Request, why: str) -> None:
        """End the reconcile of this key; its worker goes on with others."""
        worker = None if self.gate is None else self.gate.worker(request)
        if worker is not None:
            self._watchdog.cancel(worker, why)

    async def take_over(self) -> None:
        """The gate of the queue admits more than before: add what the caches show, and what was refused of late."""
        await self._replay()
        gone = [] if self._gone is None else self._gone.waiting()
        refused = () if self.gate is None else self.gate.refused()
        for request in (*gone, *refused):
            self.queue.add(request, priority=LOW, reason=TakenOver())
        if self.object_tasks is not None:
            await self.object_tasks.refresh()

    async def _replay(self) -> None:
        """Map every cached object to its requests again."""
        for informer, deliver in self._delivered:
            for number, key in enumerate([key for key, _ in informer.items()], 1):
                informer.replay(key, lambda change, deliver=deliver: deliver(change, None))  # type: ignore[misc]
                if number % REPLAYED_PER_TURN == 0:
                    await asyncio.sleep(0)

    # -------------------------------------------------------------- life

    async def run(self) -> None:
        """Workers, sources and the resync, until the queue is shut down and empty. Upstream: Controller.Start."""
        _running.add(self)
        if self._gone is not None:
            self._gone.leads = True
        async with asyncio.TaskGroup() as group:
            name = self.controller.name
            helpers = [group.create_task(self._resync(), name=f"{name} resync")]
            helpers += [group.create_task(self._listen_to(s), name=f"{name} {s.name}") for s in self.controller.sources]
            try:
                if self.object_tasks is not None:
                    await self.object_tasks.start()
                await self._spawn_workers()
                if self.object_tasks is not None:
                    await self.object_tasks.end()
            finally:
                self.stop()
                if self.object_tasks is not None:
                    await self.object_tasks.abort()
            for helper in helpers:
                helper.cancel()

    def stop(self) -> None:
        """Let go of the timers."""
        _running.discard(self)
        self._watchdog.stop()
        for mapper in self._mappers:
            mapper.stop()

    async def _spawn_workers(self) -> None:
        """A worker when one is needed, up to the limit: most controllers never have more than one key at a time."""
        async with asyncio.TaskGroup() as workers:
            for number in range(self.numbers.workers):
                if not await self.queue.needs_worker():
                    break
                workers.create_task(self._work(), name=f"{self.controller.name} worker {number}")
                await asyncio.sleep(0)  # the worker takes its key now, or another would be spawned for the same key

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self.settings.resync_period * clock.rng().uniform(0.9, 1.1))
            self.resync()

    def resync(self) -> None:
        """Reconcile every object although none has changed."""
        for key, _ in list(self._primary.items()):
            self.queue.add(key, priority=LOW, reason=Resync())

    async def _listen_to(self, source: Source) -> None:
        await listen(
            source,
            lambda request: self.queue.add(request, reason=External(source.name, request)),
            self.numbers,
            self.controller.key,
        )

    # upstream: processNextWorkItem
    async def _work(self) -> None:
        queue, task = self.queue, asyncio.current_task()
        for count in itertools.count(1):
            try:
                item = queue.get_nowait() or await queue.get()
            except ShutDown:
                return
            try:
                await self._process(item, task)
            finally:
                queue.done(item.key)
            if count % KEYS_PER_TURN == 0:
                await asyncio.sleep(0)

    # -------------------------------------------------------------- one reconcile

    async def step(self) -> Item[Request] | None:
        """Reconcile the next key in the caller's own task, even while the queue is paused; None when no key waits."""
        item = self.queue.take()
        if item is not None:
            try:
                await self._process(item, asyncio.current_task())
            finally:
                self.queue.done(item.key)
        return item

    async def _process(self, item: Item[Request], task: asyncio.Task[Any] | None) -> None:
        key, numbers, watchdog = item.key, self.numbers, self._watchdog
        self._count += 1
        logs.scope.set(logs.Scope(self.controller.name, key, self._count))
        if self.writes.has_written(key) and not await self.caught_up(key):
            self._postpone(item)
            return
        if self.gate is not None and self._is_foreign(key):
            return  # it went to another replica while we waited
        began = numbers.running[key] = self.loop.time()
        numbers.event_to_reconcile.observe(item.waited)
        entry = Entry(key, item.reasons, item.waited, began, self._count)
        error: BaseException | None = None
        result: Result | None = None
        watchdog.begin(task, began)
        try:
            result = await self._attempt(entry)
        except asyncio.CancelledError as cancelled:
            if why := watchdog.expired(task):
                numbers.timeouts += not self._is_foreign(key)
                error = TransientError(why)
            elif task is not None and task.cancelling() > 0:  # the worker itself is being cancelled
                raise
            else:
                error = cancelled
        except Exception as raised:
            error = raised
        finally:
            watchdog.end(task)
            del numbers.running[key]
            seconds = self.loop.time() - began
            numbers.time.observe(seconds)
        self._retries.schedule_next(item, result or DONE, error)
        entry.seconds = seconds
        if result is not None:
            entry.result = result
        if error is not None:
            entry.failed(error, message(error), self._retries.place_of(error))
        self._story.keep(entry)
        if self._observers:
            ended = Reconciled(self.controller.name, key, entry.reasons, began, seconds, entry.result, error, entry)
            for observe in self._observers:
                observe(ended)

    async def _attempt(self, entry: Entry) -> Result | None:
        key = entry.key
        if self._gone is not None and key in self._gone:
            attribute_to(self.writes, key, entry)
            await self._gone.call(key)
        record = self._primary.get(key)
        if self._postponed and (postponed := self._postponed.pop(key, ())):
            entry.reasons = (*postponed, *entry.reasons)
        if record is None:
            entry.gone = True
            self._unkept.forget(key)
            return None  # the object is gone: nothing to do, and no error
        attribute_to(self.writes, key, entry)
        return await self._reconcile(self.context(key, record, entry))

    def context(self, key: Request, record: Record, entry: Entry) -> Context[T]:
        """The context of one reconcile, or of one call of a timer."""
        quarantine = self._primary.quarantine
        if quarantine.entries and (unread := quarantine.unread(key)):
            raise Quarantined(str(unread))  # the cache has an earlier state: it must not be acted on
        try:
            context = Context(
                key,
                self.controller.kind,
                record,
                client=self._client,
                caches=self.caches,
                recorder=self._recorder,
                manager=self._manager,
                reasons=entry.reasons,  # type: ignore[arg-type]
                log=_log,
                entry=entry,
                unkept=self._unkept,
            )
        except Exception as error:
            quarantine.report(key, record.version, record.uid, self._unreadable, error)
            raise Quarantined(str(error)) from error
        if quarantine.entries:
            quarantine.release(key, self._unreadable)
        return context

    async def caught_up(self, request: Hashable) -> bool:
        """Wait until the caches show what this request, timer or daemon wrote last; False when they do not in time."""
        try:
            async with asyncio.timeout(self.settings.catch_up):
                await self.writes.caught_up(request)
        except TimeoutError:
            _log.warning(
                "%s %s: the cache has not shown our last write within %g s; its watch is restarted",
                self.controller.name, request, self.settings.catch_up,
            )  # fmt: skip
            self.writes.restart_watches(request)
            return False
        except ClientError as error:
            _log.warning(
                "%s %s: it is not known whether our last write took effect: %s", self.controller.name, request, error
            )
            return False
        return True

    def _postpone(self, item: Item[Request]) -> None:
        """A cache that is behind must neither block a worker nor be acted on: the key comes again later."""
        reasons: tuple[Reason, ...] = item.reasons  # type: ignore[assignment]
        self._postponed[item.key] = (*self._postponed.get(item.key, ()), *reasons)[:MAX_REASONS]
        self.queue.add_after(item.key, POSTPONE_DELAY, priority=item.priority)

    # -------------------------------------------------------------- reports

    def _warn(self, key: Key, reason: str, message: str) -> None:
        record = self._primary.get(key)
        if record is not None:
            about = reference(self.controller.kind.resource, key, record.uid, record.version)
            try:
                self._recorder.event(reason, message, about=about, type="Warning")
            except Exception:  # a recorder may be the author's; an event is not worth a worker
                _log.exception("%s %s: no event %s", self.controller.name, key, reason)

    def _is_held(self, request: Request) -> bool:
        """Whether something still works for an object that is being deleted."""
        return self.object_tasks is not None and self.object_tasks.is_held(request)

    def _is_deleting(self, key: Key) -> bool:
        if self._gone is not None and key in self._gone:
            return True  # no further change of it will come
        record = self._primary.get(key)
        return record is not None and bool(record.meta.deletion_timestamp)


def reference(resource: Resource, key: Key, uid: str, version: int) -> PartialObjectMetadata:
    """An object as far as an event about it needs it: it may be one that cannot be decoded."""
    meta = ObjectMeta(name=key.name, namespace=key.namespace, uid=uid, resource_version=str(version or ""))
    return PartialObjectMetadata(api_version=resource.api_version, kind=resource.kind, metadata=meta)


def _limiter(settings: Settings) -> RateLimiter:
    bucket = TokenBucket(settings.rate_limiter_qps, settings.rate_limiter_burst)
    return RateLimiter(Backoff(settings.base_delay, settings.max_delay), bucket)
