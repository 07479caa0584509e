"""The informer: one resource, kept in memory, for everybody who asked for it.

Informers are shared by what they watch (resource, namespaces, selectors, form): six controllers that look at Secrets
have one cache. They are declared before the start, and never start in secret: a read of something undeclared goes to
the server instead, where it can be seen.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from konverge.cache.record import Key, Meta, Record, receiver
from konverge.cache.reflector import Reflector, Scope
from konverge.cache.store import Change, ChangeType, IndexFunction, Store
from konverge.cache.watching import Watching
from konverge.client.call import Caller
from konverge.objects.resource import Resource

Handler = Callable[[Change], None]


class CacheTooLarge(Exception):
    """More objects than the cache may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSpec:
    """What a cache holds, and in which form. Equal specifications share one informer.

    `projection` is a msgspec Struct with the fields that are read; the rest is not kept. `transform` changes or trims
    each object (as a dict) before it is stored. `metadata_only` asks the server for metadata alone.
    """

    resource: Resource
    namespaces: tuple[str, ...] = ()
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    field_manager: str = ""
    """Whose part of managedFields is kept; the others' are not."""
    projection: type[msgspec.Struct] | None = None
    transform: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    max_objects: int = 0
    """An upper bound (INFORMER_CACHE_SIZE); 0 is none."""
    list_timeout: float = 60.0
    streaming: bool = True
    """Ask for the first state as a stream (ENABLE_INCREMENTAL_SYNC); servers that cannot are asked for pages."""

    def scopes(self) -> list[Scope]:
        return [
            Scope(
                resource=self.resource,
                namespace=namespace,
                label_selector=self.label_selector,
                field_selector=self.field_selector,
                metadata_only=self.metadata_only,
            )
            for namespace in (self.namespaces or ("",))
        ]

    def __str__(self) -> str:
        where = f" in {', '.join(self.namespaces)}" if self.namespaces else ""
        which = f" with {self.label_selector}" if self.label_selector else ""
        return f"{self.resource.group_resource}{where}{which}"


def _receiver(spec: CacheSpec) -> Callable[[bytes], tuple[Key, Record, Meta]]:
    plain = receiver(spec.field_manager)
    if spec.projection is None and spec.transform is None:
        return plain
    decoder = msgspec.json.Decoder(spec.projection or dict[str, Any])
    encoder = msgspec.json.Encoder()
    transform = spec.transform

    def reshaped(data: bytes) -> tuple[Key, Record, Meta]:
        key, record, meta = plain(data)
        obj: Any = decoder.decode(record.raw)
        if transform is not None:
            obj = transform(obj)
        return key, msgspec.structs.replace(record, raw=encoder.encode(obj)), meta

    return reshaped


@dataclass(slots=True)
class _Part:
    """One namespace (or all of them): its own list, its own watch, its own store."""

    store: Store
    reflector: Reflector


@dataclass(slots=True, eq=False)
class _Waiter:
    """Somebody who has written and waits to see it."""

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
        """Synced, or told by the server that it has no such resource."""
        self._handlers: list[tuple[Handler, Callable[[], bool]]] = []
        self._waiters: list[_Waiter] = []
        self._parts: dict[str, _Part] = {}
        for scope in spec.scopes():
            store = Store(indexes)
            watching = Watching(store, _receiver(spec))
            reflector = Reflector(
                caller,
                scope,
                watching,
                self._deliver,
                list_timeout=spec.list_timeout,
                streaming=spec.streaming,
                plenty=self._plenty,
                on_missing=self.answered.set,
            )
            self._parts[scope.namespace] = _Part(store, reflector)
        self._everywhere = self._parts.get("")

    # -------------------------------------------------------------- life

    async def run(self) -> None:
        """Keep the cache current. Ends only by cancellation, or because the cache outgrew its bound."""
        async with asyncio.TaskGroup() as group:
            for namespace, part in self._parts.items():
                name = f"reflector {self.spec.resource.group_resource}"
                group.create_task(part.reflector.run(), name=f"{name} in {namespace}" if namespace else name)

    def add_handler(self, handler: Handler, plenty: Callable[[], bool] = lambda: False) -> Callable[[], None]:
        """Be told of every change from now on; what is cached already is told at once as initial.

        `plenty` says that the handler has enough to do for now: as long as all of them say so, changes are fetched in
        batches. Returns the function that ends it.
        """
        for key, record in list(self.items()):
            handler(Change(ChangeType.ADDED, key, None, record, initial=True))
        entry = (handler, plenty)
        self._handlers.append(entry)
        return functools.partial(self._handlers.remove, entry)

    def _plenty(self) -> bool:
        return self._handlers != [] and all(plenty() for _, plenty in self._handlers)

    def _deliver(self, changes: list[Change]) -> None:
        self._check_size()
        for change in changes:
            for handler, _ in self._handlers:
                handler(change)
            change.forget_meta()
        self._after_progress()

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
        if self._waiters:
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

    @property
    def error(self) -> str:
        """Why the cache is not current, if it is not."""
        return next((part.reflector.health.error for part in self._parts.values() if part.reflector.health.error), "")

    @property
    def served(self) -> bool:
        """Whether the server has this resource, and the cache its state. A definition may come and go."""
        return self.synced.is_set() and not any(part.reflector.health.missing for part in self._parts.values())

    @property
    def reflectors(self) -> list[Reflector]:
        return [part.reflector for part in self._parts.values()]

    def mark(self, namespace: str) -> int:
        """The present moment, for those who write now and wait later: lists from here on show what was written."""
        part = self._part(namespace)
        return 0 if part is None else part.reflector.watching.lists

    async def wait_for_version(self, key: Key, version: int, mark: int | None = None) -> None:
        """Until the cache shows the object at this version or a later state of the world.

        That is any state that was listed after the write (by default: from now on), also when versions have gone back
        since (a restored backup).
        """
        part = self._part(key.namespace)
        if part is not None:
            watching = part.reflector.watching
            mark = watching.lists if mark is None else mark
            await self._wait_until(lambda: version <= part.store.version or watching.listed > mark)

    async def wait_for_deletion(self, key: Key, uid: str, mark: int) -> None:
        """Until the cache shows that this very object is gone, or about to go."""

        def going() -> bool:
            record, part = self.get(key), self._part(key.namespace)
            gone = record is None or record.uid != uid or bool(record.meta.deletion_timestamp)
            return gone or part is None or part.reflector.watching.listed > mark

        await self._wait_until(going)

    async def wait_for_present(self, namespace: str, mark: int) -> None:
        """Until the cache shows all that the server has just now in a namespace, and nothing else.

        For those who do not know whether a write took effect, and hence not what to wait for.
        """
        part = self._part(namespace)
        if part is None or part.reflector.watching.listed > mark:
            return
        moment, there = await part.reflector.look(namespace)
        newest = max((version for _, version in there.values()), default=0)

        def shown() -> bool:
            if part.reflector.watching.listed > mark:
                return True
            return newest <= part.store.version and all(
                record.version > moment or there.get(key, ("", 0))[0] == record.uid
                for key, record in part.store.items(namespace or None)
            )

        await self._wait_until(shown)

    def doubt(self, namespace: str) -> None:
        """What somebody waits for must have come long ago: the watch is to prove that it lives."""
        part = self._part(namespace)
        if part is not None:
            part.reflector.doubt()

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

    def add_index(self, name: str, function: IndexFunction) -> None:
        for part in self._parts.values():
            part.store.add_index(name, function)

    def covers(self, namespaces: Iterable[str]) -> bool:
        return "" in self._parts or all(namespace in self._parts for namespace in namespaces)

    def _part(self, namespace: str) -> _Part | None:
        return self._everywhere or self._parts.get(namespace)
