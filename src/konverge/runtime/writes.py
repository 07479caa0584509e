"""Read-your-writes: a reconcile sees its own last writes, and their events do not start it again.

Two rules for a controller that writes:

- *It never acts on a cache older than its own last write.* The versions of its writes are kept per request; the next
  reconcile of that request waits until the caches concerned have reached them, however long that takes. A watch that
  does not show them in time is restarted, and if that does not help the state is listed again, so it does not take
  long. Where an answer was lost on the way, the server is asked for its state, and the cache is waited for to show it.
- *Its own echo does not wake it.* The event of a write comes back through the watch; the request that wrote it need not
  run again for it. The event is dropped only when no foreign change can hide behind it: the object went from the state
  we knew to the state we wrote, with no other version between (the rules that java-operator-sdk 5.5 arrived at). A
  difference that a list brought to light may hide anything, and is always delivered. Other requests that concern the
  same object receive the event in any case.

An event may arrive before the answer to the write that caused it. So events of an object with a write in flight are
held back until the answer is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge.cache.informer import Handler, Informer
from konverge.cache.record import Key, Record, number
from konverge.cache.store import Change
from konverge.client import ApiStatusError, Client, ConnectionLost, ServerTimeout, TimedOut
from konverge.client.call import Call, Caller
from konverge.objects import labels
from konverge.objects.labels import Selector
from konverge.objects.resource import Resource
from konverge.runtime.story.entry import Entry
from konverge.runtime.tasks.object_task import ObjectTask
from konverge.wire.message import Response, Stream

Deliver = Callable[[Change, Any], None]
"""Passes a change on; the second argument, if not None, is the request that wrote it and need not run."""


class _Object(msgspec.Struct, eq=False):
    """Our writes of one object that have not come back through the watch."""

    base: int = 0
    """The version that the cache had before our first write that has not come back."""
    in_flight: int = 0
    written: dict[int, Hashable] = msgspec.field(default_factory=dict)
    held: list[tuple[Change, Deliver]] = msgspec.field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Cached:
    """One cache that shows our writes, and its objects with writes that have not come back."""

    informer: Informer
    objects: dict[Key, _Object] = field(default_factory=dict)
    selector: Selector = field(init=False)
    whole: bool = field(init=False)

    def __post_init__(self) -> None:
        self.whole = self.informer.spec.whole
        self.selector = labels.parse(self.informer.spec.label_selector)

    def shows(self, key: Key, answer: bytes, meta: _VersionMeta) -> bool:
        """Whether a write comes back at all: an object that is not selected, and was not before, has no events, nor has
        one of another namespace."""
        if self.informer.get(key) is not None:
            return True
        if not self.informer.covers([key.namespace]):
            return False
        return self.selector.matches(meta.labels) and selected_by_fields(self.informer.spec.field_selector, answer)

    def version(self, key: Key) -> int:
        known = self.informer.get(key)
        return known.version if known else 0


class Writes:
    """The writes of one controller."""

    def __init__(self, informers: Mapping[Resource, Sequence[Informer]]) -> None:
        self._cached = {resource: [_Cached(informer) for informer in every] for resource, every in informers.items()}
        self._versions: dict[Hashable, dict[tuple[_Cached, Key], tuple[int, int]]] = {}
        """Version of a write, and the cache's mark at that time."""
        self._deleted: dict[Hashable, dict[tuple[_Cached, Key], tuple[str, int]]] = {}
        self._unknown: dict[Hashable, dict[tuple[_Cached, str], int]] = {}
        """Cache and namespace of writes whose answer was lost, so that it is not known whether they took effect."""

    # -------------------------------------------------------------- writing

    def begin(self, resource: Resource, key: Key) -> Sequence[_Cached]:
        """A write starts; the result is passed to `end`. It is empty for resources that are not cached."""
        caches = self._cached.get(resource, ())
        for cached in caches:
            state = cached.objects.get(key)
            if state is None:
                state = cached.objects[key] = _Object(cached.version(key))
            state.in_flight += 1
        return caches

    def end(self, caches: Sequence[_Cached], key: Key, request: Hashable, answer: bytes) -> _VersionMeta:
        """The write has ended; `answer` is the object as written, or nothing when it failed."""
        meta = _version_head.decode(answer).metadata if answer else _NOTHING_MADE
        for cached in caches:
            state = cached.objects[key]
            state.in_flight -= 1
            if answer and cached.shows(key, answer, meta):
                version = number(meta.resource_version)
                self._wrote(cached, key, request, version)
                state.written[version] = request
            if state.in_flight == 0:
                held, state.held = state.held, []
                for change, deliver in held:
                    self._deliver(cached, state, change, deliver)
                self._tidy(cached, key, state)
        return meta

    def known(self, call: Call) -> Record | None:
        """The object of a call as a cache that keeps whole objects has it."""
        for cached in self._cached.get(call.resource, ()) if call.resource is not None else ():
            if cached.whole and (record := cached.informer.get(Key(call.namespace, call.name))) is not None:
                return record
        return None

    def _wrote(self, cached: _Cached, key: Key, request: Hashable, version: int) -> None:
        self._versions.setdefault(request, {})[cached, key] = version, cached.informer.mark(key.namespace)

    def created(self, resource: Resource, namespace: str, request: Hashable, answer: bytes) -> _VersionMeta:
        """A create whose name only the answer says. Its event may have come before: then it was delivered to all."""
        made = _version_head.decode(answer).metadata
        key, version = Key(namespace, made.name), number(made.resource_version)
        for cached in self._cached.get(resource, ()):
            if not cached.shows(key, answer, made):
                continue
            self._wrote(cached, key, request, version)
            known = cached.version(key)
            if known < version:
                state = cached.objects.setdefault(key, _Object(known))
                state.written[version] = request
        return made

    def deleted(self, resource: Resource, key: Key, request: Hashable) -> None:
        """A delete was accepted. Its event is delivered (much may follow from it), and the caches are waited for."""
        for cached in self._cached.get(resource, ()):
            known = cached.informer.get(key)
            if known is not None:
                self._deleted.setdefault(request, {})[cached, key] = known.uid, cached.informer.mark(key.namespace)

    def lost(self, resource: Resource, namespace: str, request: Hashable) -> None:
        """There was no answer to a write: it may have taken effect or not."""
        for cached in self._cached.get(resource, ()):
            self._unknown.setdefault(request, {})[cached, namespace] = cached.informer.mark(namespace)

    # -------------------------------------------------------------- events

    def router(self, informer: Informer, deliver: Deliver) -> Handler:
        """Every event of a watched object passes here on its way to the queue."""
        cached = next(cached for cached in self._cached[informer.spec.resource] if cached.informer is informer)
        objects = cached.objects

        def route(change: Change) -> None:
            state = objects.get(change.key) if objects else None
            if state is None:
                deliver(change, None)
            elif state.in_flight:
                state.held.append((change, deliver))
            else:
                self._deliver(cached, state, change, deliver)
                self._tidy(cached, change.key, state)

        return route

    def _deliver(self, cached: _Cached, state: _Object, change: Change, deliver: Deliver) -> None:
        before = change.old.version if change.old else 0
        now = change.new.version if change.new else 0
        writer = state.written.pop(now, None)
        if writer is not None:
            self._came_back(cached, change.key, writer, now)
        echo = before == state.base and not change.listed
        state.base = now
        if change.new is None and state.written:
            self._left(cached, state, change)
        deliver(change, writer if echo else None)

    def _tidy(self, cached: _Cached, key: Key, state: _Object) -> None:
        """Forget what has come back, or never will: a write that changed nothing has no event."""
        if state.written:
            self._reached(cached, key, state, state.base)
        if not state.written:
            cached.objects.pop(key, None)

    def _left(self, cached: _Cached, state: _Object, change: Change) -> None:
        """An object left the cache, perhaps by a write that took it out of the selection: it has no other event.

        A list that does not have it says so before its version is known: its writes are forgotten as echoes, and waited
        for all the same. An object that is in the cache again has its events still to come.
        """
        if change.listed:
            state.written.clear()
        elif cached.informer.get(change.key) is None:
            self._reached(cached, change.key, state, cached.informer.version_in(change.key.namespace))

    def _reached(self, cached: _Cached, key: Key, state: _Object, reached: int) -> None:
        """The cache shows all writes up to this version."""
        for version in [version for version in state.written if version <= reached]:
            self._came_back(cached, key, state.written.pop(version), version)

    def _came_back(self, cached: _Cached, key: Key, request: Hashable, version: int) -> None:
        """The cache shows a write: to wait for it is over before the next reconcile, which may be hours away."""
        versions = self._versions.get(request)
        if versions is None:
            return
        noted = versions.get((cached, key))
        if noted is not None and noted[0] <= version:
            del versions[cached, key]
            if not versions:
                del self._versions[request]

    # -------------------------------------------------------------- waiting

    def has_written(self, request: Hashable) -> bool:
        # Mostly there is nothing to look for: that is cheaper to see than to hash a key three times.
        return (
            (bool(self._versions) and request in self._versions)
            or (bool(self._deleted) and request in self._deleted)
            or (bool(self._unknown) and request in self._unknown)
        )

    async def caught_up(self, request: Hashable) -> None:
        """Wait until every cache shows what the last reconcile of this request wrote. It can be cancelled and
        repeated."""
        versions = self._versions.get(request, {})
        while versions:
            (cached, key), (version, mark) = next(iter(versions.items()))
            await cached.informer.wait_for_version(key, version, mark)
            versions.pop((cached, key), None)
        self._versions.pop(request, None)
        deleted = self._deleted.get(request, {})
        while deleted:
            (cached, key), (uid, mark) = next(iter(deleted.items()))
            await cached.informer.wait_for_deletion(key, uid, mark)
            deleted.pop((cached, key), None)
        self._deleted.pop(request, None)
        unknown = self._unknown.get(request, {})
        while unknown:
            (cached, namespace), mark = next(iter(unknown.items()))
            await cached.informer.wait_for_present(namespace, mark)
            unknown.pop((cached, namespace), None)
        self._unknown.pop(request, None)

    def forget(self, request: Hashable) -> None:
        """It will not come again: its writes need not be waited for."""
        for waiting in (self._versions, self._deleted, self._unknown):
            waiting.pop(request, None)

    def restart_watches(self, request: Hashable) -> None:
        """It takes too long: the watches of the caches that should show these writes may be dead."""
        for cached, key in (*self._versions.get(request, ()), *self._deleted.get(request, ())):
            cached.informer.restart_watch(key.namespace)
        for cached, namespace in self._unknown.get(request, ()):
            cached.informer.restart_watch(namespace)


class _VersionMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    name: str = ""
    labels: dict[str, str] = {}


class _VersionHead(msgspec.Struct, gc=False):
    metadata: _VersionMeta = msgspec.field(default_factory=_VersionMeta)


_NOTHING_MADE = _VersionMeta()
"""Of a request whose answer is no object."""
_version_head = msgspec.json.Decoder(_VersionHead)


def selected_by_fields(selector: str, obj: bytes) -> bool:
    """Whether a field selector (`spec.nodeName=a,status.phase!=Failed`) chooses an object, given as JSON.

    >>> selected_by_fields("metadata.name=a,type!=Opaque", b'{"metadata": {"name": "a"}}')
    True
    """
    if not selector:
        return True
    content = msgspec.json.decode(obj)
    for term in selector.split(","):
        path, operator, wanted = term.partition("!=") if "!=" in term else term.replace("==", "=").partition("=")
        value = content
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        text = str(value).lower() if isinstance(value, bool) else str(value or "")
        if (text == wanted) is (operator == "!="):
            return False
    return True


def may_have_taken_effect(error: BaseException) -> bool:
    """Whether a write that ended so may have been made all the same.

    What the API server decides has a reason. Without one, it passes on what etcd said ("request timed out" while the
    leader changes), or a proxy before it speaks, and neither knows what became of the write.
    """
    if isinstance(error, ApiStatusError):
        return isinstance(error, ServerTimeout) or (error.code >= 500 and not error.status.reason)
    return isinstance(error, ConnectionLost | TimedOut | asyncio.CancelledError)


_CHANGES = ("patch", "update")

_current: ContextVar[tuple[Writes, Hashable, Entry | None] | None] = ContextVar("current_reconcile", default=None)


def attribute_to(writes: Writes, request: Hashable, entry: Entry | None = None) -> None:
    """From here on, writes of this task belong to this reconcile, and its requests to its story."""
    _current.set((writes, request, entry))


def current_request() -> Hashable | None:
    """The request whose reconcile (or timer, or daemon) the present task belongs to; None outside of these."""
    current = _current.get()
    if current is None:
        return None
    request = current[1]
    return request.key if isinstance(request, ObjectTask) else request


class Tracked(Client):
    """A client whose writes are attributed to the reconcile that makes them."""

    def __init__(self, inner: Client) -> None:
        self._use_caller(TrackedCalls(inner.caller), inner.mapper)


class TrackedCalls:
    """A `Caller` that records the writes of the reconcile that it is called from. Everything else passes through."""

    def __init__(self, inner: Caller) -> None:
        self._inner = inner

    @property
    def near(self) -> bool:
        return self._inner.near

    async def stream(self, call: Call) -> Stream:
        return await self._inner.stream(call)

    async def call(self, call: Call) -> Response:
        current = _current.get()
        if current is None:
            return await self._inner.call(call)
        writes, request, entry = current
        resource = call.resource if call.writes and "dryRun" not in call.query else None
        note = None
        if entry is not None:
            note = entry.called(call, writes.known(call) if call.verb in _CHANGES else None)
        key = Key(call.namespace, call.name)
        # Without a name there is nothing to hold events of: only the answer says which object it is.
        caches = writes.begin(resource, key) if resource is not None and call.name else ()
        try:
            response = await self._inner.call(call)
        except BaseException as error:
            if resource is not None and may_have_taken_effect(error):
                writes.lost(resource, call.namespace, request)
            writes.end(caches, key, request, b"")
            if note is not None:
                note.failed(error)
            raise
        made = _NOTHING_MADE if resource is None else _taken(writes, call, resource, caches, request, response)
        if note is not None:
            note.name = made.name or call.name
            note.answered(response.status, response.body if made.resource_version else b"", made.resource_version)
        return response


def _taken(
    writes: Writes, call: Call, resource: Resource, caches: Sequence[_Cached], request: Hashable, response: Response
) -> _VersionMeta:
    """The server took a write; returns name and version of what it made, where its answer says them."""
    if call.name:
        key, answer = Key(call.namespace, call.name), b""
        if call.verb == "delete":
            writes.deleted(resource, key, request)
        elif call.subresource in ("", "status"):
            answer = response.body
        return writes.end(caches, key, request, answer)
    if call.verb == "create":
        return writes.created(resource, call.namespace, request, response.body)
    return _NOTHING_MADE
