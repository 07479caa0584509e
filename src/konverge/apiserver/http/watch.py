"""Watches: the present state if asked for, then every change, each exactly once and in order.

The store calls a watcher synchronously for each change, and the watcher writes it without waiting. While the initial
state is still being sent, changes queue up. The watch of a reader who falls too far behind is ended; the client resumes
from what it saw last. Upstream: apiserver/pkg/endpoints/handlers/watch.go, apiserver/pkg/storage/cacher.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from konverge import clock
from konverge.apiserver import status
from konverge.apiserver.config import WatchLimits
from konverge.apiserver.http import listing, negotiate, over_websocket, render, respond
from konverge.apiserver.http.listing import Selection, Test, selected
from konverge.apiserver.http.options import ListOptions, flag, list_options
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Accepted, Call
from konverge.apiserver.request.protocols import TableMaker
from konverge.apiserver.schema.zero_values import zero
from konverge.apiserver.storage import Event, Record, Store, Table
from konverge.apiserver.storage.records import restamped
from konverge.apiserver.strategy import Obj
from konverge.wire import websocket
from konverge.wire.message import Headers, Response, Sink

INITIAL_END = {"k8s.io/initial-events-end": "true"}
_CHUNK = 64 * 1024
"""Bytes of events that are written at once."""


class WatchStream:
    """One watcher of a table."""

    __slots__ = ("_after", "_framer", "_limits", "_pending", "_sink", "_test", "ended")

    def __init__(self, framer: Framer, test: Test | None, limits: WatchLimits, sink: Sink, after: int = 0) -> None:
        self._after = after
        """Only later changes are sent: a watch may begin at a revision that is still to come."""
        self._framer = framer
        self._test = test
        self._limits = limits
        self._sink = sink
        self._pending: list[Event] | None = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def metadata_only(self) -> bool:
        return isinstance(self._framer, Partial)

    def deliver(self, event: Event) -> None:
        if event.revision <= self._after or self.ended.done():  # an ended watch takes no more
            return
        if self._pending is not None:
            self._pending.append(event)
            if len(self._pending) > self._limits.pending:
                self.end()
            return
        try:
            frame = self.frame(event)
        except status.ApiError as error:  # a conversion webhook that does not answer
            self._sink.write(line("ERROR", error.status()))
            self.end()
            return
        if frame:
            self._sink.write(frame)
            if self._sink.buffered > self._limits.buffered:
                self.end()

    def frame(self, event: Event) -> bytes:
        """The event as this watcher sees it, or nothing."""
        test = self._test
        now = event.record is not None and (test is None or test(event.record))
        before = event.old is not None and (test is None or test(event.old))
        if now:
            assert event.record is not None
            return self._encoded(event, "MODIFIED" if before else "ADDED", event.record)
        if not before:
            return b""
        if event.final is not None:
            return self._encoded(event, "DELETED", event.final)
        assert event.old is not None
        return self._encoded(event, "DELETED", restamped(event.old, event.revision))

    def _encoded(self, event: Event, type_: str, record: Record) -> bytes:
        shared, key = event.frames, self._framer.key
        if shared is None or key is None:
            return self._framer.frame(type_, record)
        frame = shared.get((key, type_))
        if frame is None:
            frame = shared[key, type_] = self._framer.frame(type_, record)
        return frame

    def go_live(self) -> None:
        """From now on changes are written as they come, those that queued up first."""
        queued, self._pending = self._pending or [], None
        for event in queued:
            self.deliver(event)

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def watch(call: Call) -> Response:
    served = call.resource
    accepted = respond.settle_form(call, custom=served.custom, streams=True)
    negotiate.for_stream(accepted)
    # The real server reads the options of the older paths as those of a list, unless they ask for a watch as well.
    asked = not call.info.legacy_watch or flag(call.query, "watch")
    options = list_options(call.query, watch=asked, sharded=call.server.config.sharded)
    namespace = call.info.namespace if served.resource.namespaced else ""
    selection = await selected(served, namespace, options)
    if call.info.legacy_watch and call.info.name:
        selection = Selection(f"{namespace}/{call.info.name}" if namespace else call.info.name, selection.test)
    try:
        since = listing.parse_version(options.resource_version)
    except ValueError as error:
        raise status.plain_500(str(error)) from None
    include = render.include_object(call) if accepted.form == "Table" else ""
    framer = framer_of(served, accepted, call.server.tables, include)
    headers = Headers(respond.headers(call, (b"content-type", b"application/json")))
    if framer is None:
        return Response(200, headers)
    producer = _Watching(call, selection, options, since, framer).produce
    if websocket.is_asked_for(call.request):
        return over_websocket.watch(call.request, producer)
    return Response(200, headers, producer=producer)


class _Watching:
    """The course of one watch."""

    def __init__(self, call: Call, selection: Selection, options: ListOptions, since: int, framer: Framer) -> None:
        self._server = call.server
        self._store: Store = call.server.store
        self._table: Table = self._store.table(call.resource.table)
        self._selection, self._options, self._since, self._framer = selection, options, since, framer
        self._limits = call.server.config.watch
        self._watchers = call.resource.watchers
        self._prepare_past = call.resource.prepare_past

    @property
    def _wants_state(self) -> bool:
        wanted = self._options.send_initial_events
        return wanted if wanted is not None else self._since == 0

    async def produce(self, sink: Sink) -> None:
        if not self._wants_state and 0 < self._since < self._store.compacted:
            sink.write(self._too_old())
            return
        try:
            await self._produce(sink)
        except status.ApiError as error:  # a revision that does not come, a conversion webhook that does not answer
            sink.write(line("ERROR", error.status()))

    async def _produce(self, sink: Sink) -> None:
        if self._options.send_initial_events and self._since > self._store.durable:
            await listing.wait_for(self._store, self._since)
        stream = WatchStream(self._framer, self._selection.test, self._limits, sink, self._since)
        stop = self._table.watch(self._selection.scope, stream)
        self._server.streams.add(stream)
        self._watchers.add(stream)
        try:
            await self._run(stream, sink)
        except ConnectionError:
            pass  # the client has closed the connection
        finally:
            stop()
            self._server.streams.discard(stream)
            self._watchers.discard(stream)

    async def _run(self, stream: WatchStream, sink: Sink) -> None:
        seconds = self._options.timeout or self._limits.minimum * (1 + clock.rng().random())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        if self._wants_state:
            await self._initial(stream, sink)
        else:
            missed = self._missed()
            if self._prepare_past is not None:
                await self._prepare_past([record for event in missed for record in _states(event)])
            await _in_batches((stream.frame(event) for event in missed), sink)
        stream.go_live()
        await self._until(stream, sink, deadline)

    def _missed(self) -> list[Event]:
        """The changes between the requested revision and now (without those that are not on disk yet)."""
        since = self._since or self._store.durable
        return [
            event for event in self._table.since(since) if event.revision <= self._store.durable and self._sees(event)
        ]

    def _sees(self, event: Event) -> bool:
        scope = self._selection.scope
        return not scope or event.key == scope or (scope.endswith("/") and event.key.startswith(scope))

    def _state(self) -> Iterator[Record | None]:
        """The durable state in the order of its keys; None for what is not selected."""
        table, selection, durable = self._table, self._selection, self._store.durable
        test, scope = selection.test, selection.scope
        snapshot = [table.get_at(durable, scope)] if selection.single else table.at(durable, scope)
        return (record if record is not None and (test is None or test(record)) else None for record in snapshot)

    async def _initial(self, stream: WatchStream, sink: Sink) -> None:
        revision = self._store.durable
        await _in_batches((self._framer.frame("ADDED", record) if record else b"" for record in self._state()), sink)
        if self._options.send_initial_events and self._options.bookmarks:
            sink.write(self._framer.bookmark(revision, INITIAL_END))

    async def _until(self, stream: WatchStream, sink: Sink, deadline: float) -> None:
        """Wait for the end, with bookmarks on the way."""
        loop, limits = asyncio.get_running_loop(), self._limits
        if not self._options.bookmarks:
            await asyncio.wait([stream.ended], timeout=deadline - loop.time())
            return
        last = deadline - limits.bookmark_before_end
        while True:
            now = loop.time()
            upcoming = min(now + limits.bookmark_every, last if now < last else deadline)
            done, _ = await asyncio.wait([stream.ended], timeout=upcoming - now)
            if done or sink.closed or loop.time() >= deadline:
                return
            sink.write(self._framer.bookmark(self._store.durable, None))

    def _too_old(self) -> bytes:
        error = status.expired(f"too old resource version: {self._since} ({self._store.compacted})")
        return line("ERROR", error.status())


def _states(event: Event) -> list[Record]:
    return [record for record in (event.record, event.final, event.old) if record is not None]


async def _in_batches(frames: Iterable[bytes], sink: Sink) -> None:
    """Write many frames as few chunks, no faster than the reader takes them; other requests get their turn."""
    batch: list[bytes] = []
    size = 0
    for number, frame in enumerate(frames, 1):
        batch.append(frame)
        size += len(frame)
        if size > _CHUNK:
            sink.write(b"".join(batch))
            batch, size = [], 0
            await sink.drain()
        elif number % listing.BATCH == 0:  # a selector may let almost nothing through
            await asyncio.sleep(0)
    if size:
        sink.write(b"".join(batch))


# --- events as bytes on the wire: a line of JSON for each
# They depend on the served version and the form only, so they are made once and shared by all watchers that see the
# same (`Event.frames`).


class Plain:
    """Objects as they are."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.key: Any = served.prefix
        self._heads = {
            type_: b'{"type":"%b","object":' % type_.encode() + served.prefix
            for type_ in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
        }

    def frame(self, type_: str, record: Record) -> bytes:
        if self._served.conversion is None:
            return b"".join((self._heads[type_], record.data[1:], b"}\n"))
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), render.plain(self._served, record))

    def bookmark(self, revision: int, annotations: Obj | None) -> bytes:
        obj = {**_empty(self._served), "metadata": mark(revision, annotations)}
        return self._heads["BOOKMARK"] + msgspec.json.encode(obj)[1:] + b"}\n"


def _empty(served: Served) -> Obj:
    """The object of a bookmark has no content: for a built-in kind it is what Go writes for an empty one."""
    if served.typing is None or not served.typing.go:
        return {}
    obj: Obj = zero(served.typing)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return obj


class Partial:
    """Metadata alone."""

    def __init__(self, served: Served, version: str) -> None:
        self._served, self._version = served, version
        self.key: Any = (served.prefix, version)

    def frame(self, type_: str, record: Record) -> bytes:
        return line(type_, render.partial(render.internal(self._served, record), self._version))

    def bookmark(self, revision: int, annotations: Obj | None) -> bytes:
        return line("BOOKMARK", render.partial({"metadata": mark(revision, annotations)}, self._version))


class Rows:
    """Tables of one row; only the first names the columns, so frames are each watcher's own."""

    key: Any = None

    def __init__(self, served: Served, maker: TableMaker, version: str, include: str) -> None:
        self._served, self._maker, self._version, self._include = served, maker, version, include
        self._first = True

    def _table(self, revision: int) -> Obj:
        """Without rows."""
        metadata = {"resourceVersion": str(revision)}
        made = render.table(self._maker, self._served, [], metadata, self._version, self._include)
        if not self._first:
            made["columnDefinitions"] = None
        self._first = False
        return made

    _shown: ClassVar[deque[tuple[int, Any, msgspec.Raw]]] = deque(maxlen=4)
    """The rows of the last events, with the second they were made in, since they show ages: all watchers get the same
    ones, and a large object is decoded and encoded once.
    """

    def frame(self, type_: str, record: Record) -> bytes:
        made = self._table(record.revision)
        made["rows"] = self._rows(record)
        return line(type_, made)

    def _rows(self, record: Record) -> msgspec.Raw:
        wanted = (record, self._served, self._version, self._include)
        second = int(clock.now())
        for made_in, shown, rows in tuple(Rows._shown):  # servers on other threads add to it
            if made_in == second and all(a is b for a, b in zip(shown, wanted, strict=True)):
                return rows
        objects = [render.internal(self._served, record)]
        made = render.table(self._maker, self._served, objects, {}, self._version, self._include)["rows"]
        encoded = msgspec.Raw(msgspec.json.encode(made))
        Rows._shown.append((second, wanted, encoded))
        return encoded

    def bookmark(self, revision: int, annotations: Obj | None) -> bytes:
        made = self._table(revision)
        obj = render.with_kind(self._served, {"metadata": mark(revision, annotations)})
        cells = ["" for _ in self._maker.columns(self._served)]
        made["rows"] = [{"cells": cells, "object": render.row_object(self._served, obj, self._version, self._include)}]
        return line("BOOKMARK", made)


Framer = Plain | Partial | Rows


def line(type_: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": type_, "object": obj}) + b"\n"


def mark(revision: int, annotations: Obj | None) -> Obj:
    metadata: Obj = {"resourceVersion": str(revision)}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


def framer_of(served: Served, accepted: Accepted, maker: TableMaker, include: str) -> Framer | None:
    """How events are encoded; None when the asked form has no events: no object can be shown as a list."""
    if accepted.form == "PartialObjectMetadataList":
        return None
    if accepted.form == "Table":
        return Rows(served, maker, accepted.version, include)
    return Partial(served, accepted.version) if accepted.form else Plain(served)
