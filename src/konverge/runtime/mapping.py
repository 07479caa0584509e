"""From a changed object to the requests that it concerns.

Upstream: controller-runtime's pkg/handler (enqueue_owner.go, enqueue_mapped.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from konverge.cache.record import Meta
from konverge.cache.store import Change
from konverge.objects.codec import decoder
from konverge.objects.resource import Resource
from konverge.runtime.context import Caches
from konverge.runtime.declare import Watch
from konverge.runtime.result import Request

Enqueue = Callable[[Request, str, Change, "Request | None"], None]
"""Queues a request because an object of some kind changed; the last argument is the request that wrote it, if known."""


class OwnedMapper:
    """An owned object changed: its owner is queued. When the owner changed, both owners are."""

    def __init__(self, owner: Resource, kind: str, enqueue: Enqueue) -> None:
        self._owner = owner
        self._kind = kind
        self._enqueue = enqueue

    def __call__(self, change: Change, writer: Request | None) -> None:
        request = self._controller(change.meta)
        if request is not None:
            self._enqueue(request, self._kind, change, writer)
        if change.old is not None and change.new is not None:
            before = self._controller(change.old.meta)
            if before is not None and before != request:
                self._enqueue(before, self._kind, change, writer)

    def _controller(self, meta: Meta) -> Request | None:
        """The owner of our kind that controls the object; an object has one controller at most."""
        resource = self._owner
        for owner in meta.owner_references:
            if (
                owner.controller
                and owner.kind == resource.kind
                and owner.api_version.rpartition("/")[0] == resource.group
            ):
                return Request(meta.namespace if resource.namespaced else "", owner.name)
        return None


class WatchMapper:
    """A watched object changed: the author's function maps its old and its new state to requests."""

    def __init__(self, watch: Watch[Any], caches: Caches, enqueue: Enqueue) -> None:
        self._watch = watch
        self._caches = caches
        self._enqueue = enqueue
        self._decode = decoder(watch.kind).decode

    def __call__(self, change: Change, writer: Request | None) -> None:
        if self._watch.predicate is not None and not self._watch.predicate(change):
            return
        objects = (self._decode(record.raw) for record in (change.new, change.old) if record)
        requests = dict.fromkeys(request for obj in objects for request in self._requests(obj))
        for request in requests:
            self._enqueue(request, self._watch.kind.__name__, change, writer)

    def _requests(self, obj: Any) -> Iterable[Request]:
        if self._watch.lookup is not None:
            return self._watch.lookup(obj, self._caches)
        return self._watch.requests(obj) if self._watch.requests is not None else ()
