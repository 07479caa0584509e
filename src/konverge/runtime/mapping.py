"""From a changed object to the requests that it concerns.

Predicates and mappers are the author's functions. What they raise is reported about the object (`Quarantine`), and goes
no further: a change whose predicate fails counts as one that matters, and a mapper that failed is called again every
minute, because it may have failed on another object that it looked up.

Upstream: controller-runtime's pkg/handler (enqueue_owner.go, enqueue_mapped.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from konverge import clock
from konverge.cache.informer import Informer
from konverge.cache.quarantine import Quarantine
from konverge.cache.record import Key, Meta, Record, new_key
from konverge.cache.store import Change, ChangeType
from konverge.objects.codec import decoder
from konverge.objects.resource import Resource
from konverge.runtime.context import Caches
from konverge.runtime.declare import Controller
from konverge.runtime.keys import AnyRequest, checked
from konverge.runtime.predicates import Test, When, bind
from konverge.runtime.relations import Owns, Watches
from konverge.runtime.result import Request

RETRY = 60.0
"""Seconds until a mapper that failed is called again, ± 10 %."""

Enqueue = Callable[[Request, str, Change, "Request | None"], None]
"""Queues a request because an object of some kind changed; the last argument is the request that wrote it, if known."""


def guarded(predicate: Test, quarantine: Quarantine, stage: str) -> Test:
    """A predicate that never raises: a change that it fails on matters."""

    def matters(change: Change) -> bool:
        try:
            result = predicate(change)
        except Exception as error:
            record = change.latest
            quarantine.report(change.key, record.version, record.uid, stage, error)
            return True
        quarantine.release(change.key, stage)
        return result

    return matters


Deliver = Callable[[Change, "Request | None"], None]
"""Takes a change, and the request that wrote it, if known."""


def predicate_of(controller: str, kind: type[Any], when: When[Any] | None, informer: Informer) -> Test | None:
    """What `when=…` of a declaration says, as it is called for every event; None when all changes count."""
    if when is None:
        return None
    stage = f"cannot be judged by the predicate of {controller}"
    return guarded(bind(when, _decode(informer, kind)), informer.quarantine, stage)


def _decode(informer: Informer, kind: type[Any]) -> Callable[[bytes], Any]:
    """Reads what the cache keeps of an object: a projection, or metadata only, where that was declared."""
    return decoder(informer.spec.read_as(kind)).decode


def filtered(predicate: Test | None, deliver: Deliver) -> Deliver:
    """Deliver only the changes that count."""
    if predicate is None:
        return deliver

    def deliver_some(change: Change, writer: Request | None) -> None:
        if predicate(change):
            deliver(change, writer)

    return deliver_some


def owned_mapper(controller: Controller[Any], owned: Owns[Any], informer: Informer, enqueue: Enqueue) -> Deliver:
    """What becomes of the changes of an owned kind."""
    mapper = EveryOwnerMapper if owned.every_owner else OwnedMapper
    counts = predicate_of(controller.name, owned.kind, owned.when, informer)
    return filtered(counts, mapper(controller.kind.resource, owned.kind.resource.kind, enqueue))


def watch_mapper(
    controller: Controller[Any], watch: Watches[Any], informer: Informer, caches: Caches, enqueue: Enqueue
) -> Deliver:
    """What becomes of the changes of a watched kind."""
    if watch.requests is not None or watch.lookup is not None:
        return WatchMapper(controller.name, watch, informer, caches, enqueue, controller.key)
    counts = predicate_of(controller.name, watch.kind, watch.when, informer)
    return filtered(counts, SameNameMapper(controller.kind.resource, watch.kind.resource.kind, enqueue))


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
        if change.old is not None:
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
                return new_key((meta.namespace if resource.namespaced else "", owner.name))
        return None


class EveryOwnerMapper:
    """An owned object changed: all its owners of a kind are queued, those before the change too."""

    def __init__(self, owner: Resource, kind: str, enqueue: Enqueue) -> None:
        self._owner = owner
        self._kind = kind
        self._enqueue = enqueue

    def __call__(self, change: Change, writer: Request | None) -> None:
        requests = dict.fromkeys(self._owners(change.meta))
        if change.old is not None:
            requests |= dict.fromkeys(self._owners(change.old.meta))
        for request in requests:
            self._enqueue(request, self._kind, change, writer)

    def _owners(self, meta: Meta) -> Iterable[Request]:
        resource = self._owner
        namespace = meta.namespace if resource.namespaced else ""
        for owner in meta.owner_references:
            if owner.kind == resource.kind and owner.api_version.rpartition("/")[0] == resource.group:
                yield Request(namespace, owner.name)


class SameNameMapper:
    """A watched object changed: the object of our kind with the same namespace and name is queued."""

    def __init__(self, own: Resource, kind: str, enqueue: Enqueue) -> None:
        self._namespaced = own.namespaced
        self._kind = kind
        self._enqueue = enqueue

    def __call__(self, change: Change, writer: Request | None) -> None:
        namespace, name = change.key
        self._enqueue(Request(namespace if self._namespaced else "", name), self._kind, change, writer)


class WatchMapper:
    """A watched object changed: the author's function maps its old and its new state to requests."""

    def __init__(
        self,
        controller: str,
        watch: Watches[Any],
        informer: Informer,
        caches: Caches,
        enqueue: Enqueue,
        key: type[Any] = Request,
    ) -> None:
        """`key` is the type of the controller's requests."""
        self._watch = watch
        self._key = key
        self._informer = informer
        self._caches = caches
        self._enqueue = enqueue
        self._decode = _decode(informer, watch.kind)
        self._stage = f"cannot be mapped to requests of {controller}"
        self._predicate = predicate_of(controller, watch.kind, watch.when, informer)
        self._failed: set[Key] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def __call__(self, change: Change, writer: Request | None) -> None:
        if self._predicate is not None and not self._predicate(change):
            return
        requests: dict[Request, None] = {}
        # The old state failed when it was the new one, if it fails; of a deleted object it is the only one.
        for record in filter(None, (change.old, change.new)):
            self._map(change.key, record, requests, report=record is change.latest)
        for request in requests:
            self._enqueue(request, self._watch.kind.resource.kind, change, writer)

    def stop(self) -> None:
        """Call no mapper again."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _map(self, key: Key, record: Record, requests: dict[Request, None], *, report: bool) -> None:
        quarantine = self._informer.quarantine
        try:
            for request in self._requests(self._decode(record.raw)):
                requests[checked(request, self._key)] = None
        except Exception as error:
            if report:
                quarantine.report(key, record.version, record.uid, self._stage, error)
                self._failed.add(key)
                self._retry_later()
        else:
            if report:
                quarantine.release(key, self._stage)

    def _requests(self, obj: Any) -> Iterable[AnyRequest]:
        if self._watch.lookup is not None:
            return self._watch.lookup(obj, self._caches)
        assert self._watch.requests is not None  # see watch_mapper
        return self._watch.requests(obj)

    def _retry_later(self) -> None:
        if self._timer is None and not self._stopped:
            delay = RETRY * clock.rng().uniform(0.9, 1.1)
            self._timer = asyncio.get_running_loop().call_later(delay, self._retry)

    def _retry(self) -> None:
        self._timer = None
        keys, self._failed = self._failed, set()
        for key in keys:
            record = self._informer.get(key)
            requests: dict[Request, None] = {}
            if record is not None:
                self._map(key, record, requests, report=True)
            for request in requests:
                change = Change(ChangeType.UPDATED, key, record, record)
                self._enqueue(request, self._watch.kind.resource.kind, change, None)
