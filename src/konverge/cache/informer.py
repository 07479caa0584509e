"""The informer: one resource, kept in memory, for every controller that declared it.

Informers are shared by what they watch (resource, namespaces, selectors, form): six controllers that watch Secrets have
one cache. They are declared before the start and never start implicitly: a read of a kind that was not declared goes to
the server, where it can be seen.

Upstream: sharedIndexInformer (client-go's tools/cache/shared_informer.go).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from konverge.cache.quarantine import Quarantine
from konverge.cache.record import Key, Record
from konverge.cache.reflector import Reflector
from konverge.cache.spec import CacheSpec, receiver_for
from konverge.cache.store import Change, ChangeType, IndexFunction, Store
from konverge.cache.watch_state import Watching
from konverge.client.call import Caller

Handler = Callable[[Change], None]
HANDLER = "is not handled by "
"""The beginning of the stage of a handler that failed."""


class CacheTooLarge(Exception):
    """More objects than the cache may hold."""


class _Part(msgspec.Struct):
    """One namespace (or all of them), with its own list, watch and store."""

    store: Store
    reflector: Reflector


class _Waiter(msgspec.Struct, eq=False):
    """A caller that has written something and waits until the cache shows it."""

    condition: Callable[[], bool]
    future: asyncio.Future[None]


class Informer:
    """A cache of one resource. `run` keeps it current until it is cancelled.

    Handlers are plain functions that must not block; they see every change in the order in which it happened.
    """

    def __init__(self, caller: Caller, spec: CacheSpec, indexes: Mapping[str, IndexFunction] | None = None) -> None:
        self.spec = spec
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        """Set when synced, or when the server says that it has no such resource."""
        self.health_listeners: list[Callable[[str, Exception | None], None]] = []
        """Called with the namespace (empty for all) and the error of every failed attempt to list or watch, and with
        None when the watch works again."""
        self.shows: Callable[[str], bool] | None = None
        """Whether the server is asked for the objects of a namespace (empty: of all); None when it is asked for all.
        What is not shown may be there all the same."""
        self.quarantine = Quarantine(str(spec))
        self._handlers: list[tuple[Handler, Callable[[], bool]]] = []
        self._waiters: list[_Waiter] = []
        self._parts: dict[str, _Part] = {}
        self._indexes = dict(indexes or {})
        for scope in spec.scopes():
            store = Store(indexes, self.quarantine)
            watching = Watching(store, receiver_for(spec), scope.namespace)
            reflector = Reflector(
                caller,
                scope,
                watching,
                self._deliver,
                list_timeout=spec.list_timeout,
                streaming=spec.streaming,
                is_busy=self._is_busy,
                on_missing=self.answered.set,
                on_health=functools.partial(self._health_changed, scope.namespace),
            )
            self._parts[scope.namespace] = _Part(store, reflector)
        self._everywhere = self._parts.get("")

    # -------------------------------------------------------------- running

    async def run(self) -> None:
        """Keep the cache current. Ends only by cancellation, or because the cache grew over its bound."""
        async with asyncio.TaskGroup() as group:
            for namespace, part in self._parts.items():
                name = f"reflector {self.spec.resource.group_resource}"
                group.create_task(part.reflector.run(), name=f"{name} in {namespace}" if namespace else name)

    def _health_changed(self, namespace: str, error: Exception | None) -> None:
        for listener in self.health_listeners:
            listener(namespace, error)

    def add_handler(self, handler: Handler, is_busy: Callable[[], bool] = lambda: False) -> Callable[[], None]:
        """Call the handler for every change from now on; objects that are cached already are delivered now as initial.

        `is_busy` says that the handler has enough to do for now: as long as all handlers say so, changes are read in
        batches. Returns the function that removes the handler.
        """
        for key in [key for key, _ in self.items()]:
            self.replay(key, handler)
        entry = (handler, is_busy)
        self._handlers.append(entry)
        return functools.partial(self._handlers.remove, entry)

    def replay(self, key: Key, handler: Handler) -> None:
        """Deliver an object that is cached as an initial change to one handler."""
        record = self.get(key)
        if record is not None:
            change = Change(ChangeType.ADDED, key, None, record, initial=True)
            try:
                handler(change)
            except Exception as error:
                self._set_aside(handler, change, error)

    def _is_busy(self) -> bool:
        return self._handlers != [] and all(is_busy() for _, is_busy in self._handlers)

    def _deliver(self, changes: list[Change]) -> None:
        self._check_size()
        for change in changes:
            for handler, _ in self._handlers:
                try:
                    handler(change)
                except Exception as error:
                    self._set_aside(handler, change, error)
            change.forget_meta()
            if self.quarantine.entries:
                self._delivered(change)
        self._after_progress()

    def _set_aside(self, handler: Handler, change: Change, error: Exception) -> None:
        """A handler failed on a change: that concerns neither the other handlers nor the other objects."""
        record, name = change.latest, getattr(handler, "__qualname__", type(handler).__name__)
        self.quarantine.report(change.key, record.version, record.uid, f"{HANDLER}{name}", error)

    def _delivered(self, change: Change) -> None:
        """All handlers were called: one that failed on an earlier state succeeded on this one, or failed again."""
        if change.new is None:
            self.quarantine.forget(change.key)
        else:
            for entry in self.quarantine:
                if entry.key == change.key and entry.stage.startswith(HANDLER) and entry.version != change.new.version:
                    self.quarantine.release(entry.key, entry.stage)

    def _check_size(self) -> None:
        bound = self.spec.max_objects
        if bound and not self.synced.is_set() and self.count > bound:
            raise CacheTooLarge(
                f"the cache of {self.spec} may hold {bound} objects and the server has more: "
                "narrow it by namespaces or selectors, or raise INFORMER_CACHE_SIZE"
            )

    def _after_progress(self) -> None:
        if not self.synced.is_set() and all(part.reflector.watching.synced for part in self._parts.values()):
            self.synced.set()
            self.answered.set()
        for waiter in self._waiters:
            if not waiter.future.done() and waiter.condition():
                waiter.future.set_result(None)

    # -------------------------------------------------------------- state

    @property
    def count(self) -> int:
        return sum(part.store.count for part in self._parts.values())

    @property
    def version(self) -> int:
        """Everything up to this resourceVersion is in the cache."""
        return min(part.store.version for part in self._parts.values())

    def version_in(self, namespace: str) -> int:
        """Everything of this namespace up to this resourceVersion is in the cache."""
        part = self._everywhere or self._parts.get(namespace)
        return 0 if part is None else part.store.version

    @property
    def error(self) -> str:
        """Why the cache is not current, or an empty text."""
        return next((part.reflector.health.error for part in self._parts.values() if part.reflector.health.error), "")

    @property
    def served(self) -> bool:
        """Whether the server has this resource and the cache its state. A definition may be installed and removed."""
        return self.synced.is_set() and not self.missing

    @property
    def readable(self) -> bool:
        """Whether what is not in the cache does not exist: it was filled, or the server has no such resource."""
        return self.synced.is_set() or self.missing

    @property
    def missing(self) -> bool:
        """Whether the server said that it has no such resource."""
        return any(part.reflector.health.missing for part in self._parts.values())

    @property
    def reflectors(self) -> list[Reflector]:
        return [part.reflector for part in self._parts.values()]

    def mark(self, namespace: str) -> int:
        """Marks the present moment, for a caller that writes now and waits later: later lists show what was written."""
        part = self._part(namespace)
        return 0 if part is None else part.reflector.watching.lists

    async def wait_for_version(self, key: Key, version: int, mark: int | None = None) -> None:
        """Wait until the cache shows the object at this version, or a later state of the cluster.

        That is any state that was listed after the write (by default: from now on), even when versions have gone back
        since then (a restored backup).
        """
        part = self._part(key.namespace)
        if part is not None:
            watching = part.reflector.watching
            mark = watching.lists if mark is None else mark
            await self._wait_until(lambda: version <= part.store.version or watching.listed > mark)

    async def wait_for_deletion(self, key: Key, uid: str, mark: int) -> None:
        """Wait until the cache shows that this object (by its uid) is gone or being deleted."""
        part = self._part(key.namespace)
        if part is None:
            return

        def deleted() -> bool:
            record = part.store.get(key)
            gone = record is None or record.uid != uid or bool(record.meta.deletion_timestamp)
            return gone or part.reflector.watching.listed > mark

        await self._wait_until(deleted)

    async def wait_for_present(self, namespace: str, mark: int) -> None:
        """Wait until the cache shows what the server has now in a namespace, and nothing else.

        For a caller that does not know whether a write took effect, and hence not what to wait for.
        """
        part = self._part(namespace)
        if part is None or part.reflector.watching.listed > mark:
            return
        moment, present = await part.reflector.list_versions(namespace)
        newest = max((version for _, version in present.values()), default=0)
        uids = {key: uid for key, (uid, _) in present.items()}

        def shown() -> bool:
            if part.reflector.watching.listed > mark:
                return True
            return newest <= part.store.version and all(
                record.version > moment or uids.get(key) == record.uid
                for key, record in part.store.items(namespace or None)
            )

        await self._wait_until(shown)

    async def wait_for_list(self, mark: int) -> None:
        """Wait until every part of the cache shows a state that was listed after the mark."""
        await self._wait_until(lambda: all(part.reflector.watching.listed > mark for part in self._parts.values()))

    def restart_watch(self, namespace: str) -> None:
        """An event that should have arrived did not: the watch may be dead."""
        part = self._part(namespace)
        if part is not None:
            part.reflector.restart_watch()

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        if condition():
            return
        waiter = _Waiter(condition, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await waiter.future
        finally:
            self._waiters.remove(waiter)

    # -------------------------------------------------------------- reading

    def get(self, key: Key) -> Record | None:
        part = self._everywhere or self._parts.get(key.namespace)
        return None if part is None else part.store.get(key)

    def items(self, namespace: str | None = None) -> Iterator[tuple[Key, Record]]:
        if namespace is None:
            return (item for part in self._parts.values() for item in part.store.items())
        part = self._part(namespace)
        return iter(()) if part is None else part.store.items(namespace)

    def keys_by_index(self, index: str, value: str) -> list[Key]:
        return [key for part in self._parts.values() for key in part.store.keys_by_index(index, value)]

    def ensure_index(self, name: str, function: IndexFunction) -> str:
        """Declare an index, for one of several that share this cache. Returns the name under which it is kept here: an
        index of the same name with another function is another index.
        """
        here, number = name, 1
        while self._indexes.get(here, function) != function:
            number += 1
            here = f"{name} ({number})"
        if here not in self._indexes:
            self.add_index(here, function)
        return here

    def add_index(self, name: str, function: IndexFunction) -> None:
        self._indexes[name] = function
        for part in self._parts.values():
            part.store.add_index(name, function)

    def covers(self, namespaces: Iterable[str]) -> bool:
        if self.shows is not None:
            return all(self.shows(namespace) for namespace in namespaces)
        return "" in self._parts or all(namespace in self._parts for namespace in namespaces)

    def _part(self, namespace: str) -> _Part | None:
        if self.shows is not None and namespace and not self.shows(namespace):
            return None  # nothing of it will ever be shown
        return self._everywhere or self._parts.get(namespace)
