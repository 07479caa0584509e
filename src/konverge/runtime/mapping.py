"""From a changed object to the requests that it concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from konverge.cache.record import Meta
from konverge.cache.store import Change
from konverge.objects.codec import decoder
from konverge.objects.resource import Resource
from konverge.runtime.context import Caches
from konverge.runtime.declare import Watch
from konverge.runtime.reasons import Changed
from konverge.runtime.result import Request

Want = Callable[[Request, Changed, "Request | None"], None]
"""Queue a request for a reason; the last argument is the request whose own write this may be."""


class OwnedMapper:
    """An owned object changed: its owner is asked. When ownership moved, both are."""

    def __init__(self, owner: Resource, kind: str, want: Want) -> None:
        self._owner = owner
        self._kind = kind
        self._want = want

    def __call__(self, change: Change, writer: Request | None) -> None:
        requests = dict.fromkeys(
            request for record in (change.new, change.old) if record for request in self._owners(record.meta)
        )
        for request in requests:
            self._want(request, Changed(self._kind, change), writer)

    def _owners(self, meta: Meta) -> Iterable[Request]:
        resource = self._owner
        for owner in meta.owner_references:
            if owner.controller and owner.kind == resource.kind and _group(owner.api_version) == resource.group:
                yield Request(meta.namespace if resource.namespaced else "", owner.name)


class WatchMapper:
    """A watched object changed: the author's function says who is asked, for what it was and for what it is."""

    def __init__(self, watch: Watch[Any], caches: Caches, want: Want) -> None:
        self._watch = watch
        self._caches = caches
        self._want = want
        self._decode = decoder(watch.kind).decode

    def __call__(self, change: Change, writer: Request | None) -> None:
        if self._watch.predicate is not None and not self._watch.predicate(change):
            return
        objects = (self._decode(record.raw) for record in (change.new, change.old) if record)
        requests = dict.fromkeys(request for obj in objects for request in self._requests(obj))
        for request in requests:
            self._want(request, Changed(self._watch.kind.__name__, change), writer)

    def _requests(self, obj: Any) -> Iterable[Request]:
        if self._watch.lookup is not None:
            return self._watch.lookup(obj, self._caches)
        return self._watch.requests(obj) if self._watch.requests is not None else ()


def _group(api_version: str) -> str:
    group, slash, _ = api_version.partition("/")
    return group if slash else ""
