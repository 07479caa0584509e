"""Watches: the present state if asked for, then every change, each exactly once and in order.

The store calls a watcher synchronously for each change, and the watcher writes it without waiting. While the initial
state is still being sent, changes queue up. The watch of a reader who falls too far behind is ended; the client resumes
from what it saw last. Upstream: apiserver/pkg/endpoints/handlers/watch.go, apiserver/pkg/storage/cacher.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from konverge import clock
from konverge.apiserver import status
from konverge.apiserver.config import WatchLimits
from konverge.apiserver.http import listing, negotiate, render, respond, watch_frames
from konverge.apiserver.http.options import ListOptions, list_options
from konverge.apiserver.http.selection import Selection, Test, select
from konverge.apiserver.request.call import Call
from konverge.apiserver.storage import Event, Record, Store, Table
from konverge.apiserver.storage.records import restamped
from konverge.wire.message import Headers, Response, Sink

INITIAL_END = {"k8s.io/initial-events-end": "true"}
_CHUNK = 64 * 1024
"""Bytes of events that are written at once."""


class WatchStream:
    """One watcher of a table."""

    __slots__ = ("_after", "_framer", "_limits", "_pending", "_sink", "_test", "ended")

    def __init__(
        self, framer: watch_frames.Framer, test: Test | None, limits: WatchLimits, sink: Sink, after: int = 0
    ) -> None:
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
        return isinstance(self._framer, watch_frames.Partial)

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
            self._sink.write(watch_frames.line("ERROR", error.status()))
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
    options = list_options(call.query, watch=True)
    namespace = call.info.namespace if served.resource.namespaced else ""
    selection = select(served, namespace, options)
    if call.info.legacy_watch and call.info.name:
        selection = Selection(f"{namespace}/{call.info.name}" if namespace else call.info.name, selection.test)
    try:
        since = listing.parse_version(options.resource_version)
    except ValueError as error:
        raise status.plain_500(str(error)) from None
    include = render.include_object(call) if accepted.form == "Table" else ""
    framer = watch_frames.framer(served, accepted, call.server.tables, include)
    headers = Headers(respond.headers(call, (b"content-type", b"application/json")))
    if framer is None:
        return Response(200, headers)
    return Response(200, headers, producer=_Watching(call, selection, options, since, framer).produce)


class _Watching:
    """The course of one watch."""

    def __init__(
        self, call: Call, selection: Selection, options: ListOptions, since: int, framer: watch_frames.Framer
    ) -> None:
        self._server = call.server
        self._store: Store = call.server.store
        self._table: Table = self._store.table(call.resource.table)
        self._selection, self._options, self._since, self._framer = selection, options, since, framer
        self._limits = call.server.config.watch

    @property
    def _wants_state(self) -> bool:
        wanted = self._options.send_initial_events
        return wanted if wanted is not None else self._since == 0

    async def produce(self, sink: Sink) -> None:
        if not self._wants_state and 0 < self._since < self._store.compacted:
            sink.write(self._too_old())
            return
        if self._options.send_initial_events and self._since > self._store.durable:
            try:
                await listing.wait_for(self._store, self._since)
            except status.ApiError as error:
                sink.write(watch_frames.line("ERROR", error.status()))
                return
        stream = WatchStream(self._framer, self._selection.test, self._limits, sink, self._since)
        stop = self._table.watch(self._selection.scope, stream)
        self._server.streams.add(stream)
        try:
            await self._run(stream, sink)
        except ConnectionError:
            pass  # the client has closed the connection
        finally:
            stop()
            self._server.streams.discard(stream)

    async def _run(self, stream: WatchStream, sink: Sink) -> None:
        seconds = self._options.timeout or self._limits.minimum * (1 + clock.rng().random())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        if self._wants_state:
            await self._initial(stream, sink)
        else:
            await _in_batches((stream.frame(event) for event in self._missed()), sink)
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
        table, selection = self._table, self._selection
        undone = table.undone(self._store.durable) if table.revision > self._store.durable else {}
        prefix = "" if selection.single else selection.scope
        keys = [selection.scope] if selection.single else table.keys(prefix)
        if undone:
            keys = sorted({*keys, *(key for key in undone if key.startswith(prefix) and not selection.single)})
        snapshot = [undone[key] if key in undone else table.records.get(key) for key in keys]
        test = selection.test
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
        return watch_frames.line("ERROR", error.status())


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
