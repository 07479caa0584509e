"""Objects that are gone: `on_gone` of a controller is called at least once for each that disappeared while it ran.

A disappearance is a change like any other: the event of a watch, or, after the watch was cut, the difference to the
next list. It waits here until `on_gone` has succeeded, and its key goes through the queue: so it is retried like a
reconcile, and an object that was made under the same name is not reconciled before. Nothing is stored in the cluster:
what disappears while no process runs is never known. Where that matters, a finalizer (`cleanup`) is the way.

A process that stands by sees the same events. It keeps the latest: if it takes over from a leader that crashed, the
calls that the leader owed are made, and some a second time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from konverge.cache.record import Key, Record
from konverge.cache.store import Change
from konverge.client import Client
from konverge.objects.codec import from_json
from konverge.objects.meta import Object, ObjectMeta, PartialObjectMetadata
from konverge.runtime.base_context import BaseContext, Caches, Recorder
from konverge.runtime.result import Request

_log = logging.getLogger("konverge.controller")

STANDBY_MEMORY = 600.0
"""Seconds for which a process that does not lead remembers an object that is gone: many times a Lease."""


class Gone(BaseContext):
    """One object that is gone, and what `on_gone` works with.

    async def forget(gone: Gone) -> None:
        await directory.remove(gone.metadata.uid)

    Gone means: from what the controller watches. With a selector, that includes an object that is no longer selected.
    """

    def __init__(
        self,
        request: Request,
        metadata: ObjectMeta,
        *,
        client: Client,
        caches: Caches,
        recorder: Recorder,
        manager: str,
    ) -> None:
        self.request = request
        self.metadata = metadata
        """As it was last seen."""
        self.client = client
        self.log = _log
        self._caches = caches
        self._recorder = recorder
        self._manager = manager

    def _default_namespace(self) -> str:
        return self.request.namespace

    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None:
        """Record an event about another object."""
        self._recorder.event(reason, message, about=about, type=type)


class GoneObjects:
    """Those of one controller that wait for their call. `queue` adds a key to the controller's queue."""

    def __init__(
        self,
        on_gone: Callable[[Gone], Awaitable[object]],
        queue: Callable[[Request, Change], None],
        make: Callable[[Request, ObjectMeta], Gone],
    ) -> None:
        self.leads = False
        """Whether the controller runs."""
        self.owns: Callable[[Request], bool] = lambda request: True
        """Whether a key is this process's to work on, while the controller runs."""
        self.shows: Callable[[str], bool] = lambda namespace: True
        """Whether the cache shows what is in a namespace, or may leave it out."""
        self._on_gone = on_gone
        self._queue = queue
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Request, dict[str, ObjectMeta]] = {}
        """Key -> uid -> metadata."""
        self._seen: dict[tuple[Request, str], float] = {}
        """When each disappeared whose key was not ours, oldest first."""

    def __contains__(self, request: object) -> bool:
        return request in self._waiting

    def waiting(self) -> list[Request]:
        """The keys of all that wait for their call."""
        return list(self._waiting)

    def changed(self, change: Change) -> None:
        """A handler of the cache of the controller's kind."""
        old, new = change.old, change.new
        if old is None or (new is not None and new.uid == old.uid):
            return
        if change.listed and not self.shows(change.key.namespace):
            return  # the cache shows another share now: the object may well be there
        if not self.leads or not self.owns(change.key):
            self._forget_old()
            self._seen[change.key, old.uid] = self._loop.time()
        self._waiting.setdefault(change.key, {})[old.uid] = _metadata(change.key, old)
        self._queue(change.key, change)

    async def call(self, request: Request) -> None:
        """Call `on_gone` for each that had this key, in order. Raises what it raises: then it is called again."""
        waiting = self._waiting.get(request)
        while waiting:
            uid = next(iter(waiting))
            await self._on_gone(self._make(request, waiting[uid]))
            waiting.pop(uid, None)
        self._waiting.pop(request, None)

    def _forget_old(self) -> None:
        now = self._loop.time()
        while self._seen and next(iter(self._seen.values())) < now - STANDBY_MEMORY:
            request, uid = next(iter(self._seen))
            del self._seen[request, uid]
            waiting = self._waiting.get(request, {})
            if uid in waiting and self.leads and self.owns(request):
                self._seen[request, uid] = now  # it came to us: its call is owed, however long that takes
                continue
            waiting.pop(uid, None)
            if not waiting:
                self._waiting.pop(request, None)


def _metadata(key: Key, record: Record) -> ObjectMeta:
    try:
        obj: Any = from_json(PartialObjectMetadata, record.raw)
    except msgspec.DecodeError:  # it could not be read while it was there, either
        return ObjectMeta(name=key.name, namespace=key.namespace, uid=record.uid)
    metadata: ObjectMeta = obj.metadata
    return metadata
