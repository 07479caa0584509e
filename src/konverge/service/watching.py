"""The stream of changes: all present instances, then every change to them, as server-sent events.

    added, modified, deleted    an instance
    synced                      all present instances were sent; changes follow
    reset                       forget what was sent: the stream starts again
    problem                     why the stream ends

Ids are resourceVersions, so `Last-Event-ID` resumes where a reader stopped. Events before `synced` have no id: the
first instances come in no order that could be resumed. When the API server no longer has the version that a reader
names, the reader gets `reset` and everything again.

The watch is opened before the answer begins, so that a refusal is an answer with a status; from then on the producer
owns it. A stream ends after its time, when its reader stalls, and when the service stops.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

import msgspec

from konverge.client import ClientError, Expired
from konverge.client.call import Call as ApiCall
from konverge.client.watch import EventReader
from konverge.objects.codec import to_json
from konverge.service.access import digest
from konverge.service.call import Call
from konverge.service.instances import NACOS
from konverge.service.problems import Problem, from_client
from konverge.service.redaction import Obj
from konverge.service.views import instance
from konverge.wire.message import Headers, Response, Sink, Stream

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": still here\n\n"
_ID = re.compile(r"[0-9]{1,20}")
_RECONNECT = 1000
"""Milliseconds."""
_GRACE = 10.0
"""Seconds after its time before a watch counts as lost."""
_EVENT_NAMES = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}
_read = msgspec.json.Decoder(Obj).decode


class Streams:
    """All open streams: counted, bounded, and ended together."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self._open: Counter[bytes] = Counter()

    @property
    def count(self) -> int:
        return self._open.total()

    async def watch(self, call: Call) -> Response:
        if call.request.method != "GET":  # no reader would ever end the stream of a HEAD
            raise Problem(405, "a stream has a body; use GET", headers={"Allow": "GET"})
        call.only("labelSelector")
        self._check_room(call)
        resume = _resume(call)
        stream = _EventStream(call, self)
        with self.counted(call.token):  # also while it is opened, or many at once would exceed the limits
            await stream.begin(resume)
        headers = {"Content-Type": MEDIA_TYPE, "X-Accel-Buffering": "no"}
        return Response(200, Headers.of(headers), producer=stream.produce)

    def _check_room(self, call: Call) -> None:
        options = call.options
        if self.count >= options.streams or self.stopping.is_set():
            raise Problem(503, "too many streams are open; try again later", headers={"Retry-After": "10"})
        if self._open[digest(call.token)] >= options.streams_per_caller:
            raise Problem(429, f"you have {options.streams_per_caller} streams open; close some of them")

    @contextmanager
    def counted(self, token: str) -> Iterator[None]:
        caller = digest(token)
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


class _EventStream:
    """One stream, from its first instance to its end."""

    def __init__(self, call: Call, streams: Streams) -> None:
        self._call = call
        self._streams = streams
        self._pending: list[bytes] = []
        """Events to send before those of the watch."""
        self._watch: Stream

    async def begin(self, version: str) -> None:
        """Open the watch from a version, or without one after a list of all present instances."""
        self._pending = []
        if version:
            try:
                self._watch = await self._open(version)
                return
            except Expired:
                self._pending.append(event("reset", b"{}"))
        self._watch = await self._open(await self._list())

    async def _list(self) -> str:
        """Read the present instances into `_pending`; the result is their version."""
        call, version = self._call, ""
        pages = call.client.pages(
            NACOS,
            call.namespace,
            field_selector=self._field_selector(),
            label_selector=call.query.get("labelSelector", ""),
            timeout=call.options.request_time,
        )
        async with aclosing(pages):
            async for page in pages:
                self._pending += [event("added", to_json(instance(resource))) for resource in page]
                if len(self._pending) > call.options.initial:
                    raise _too_many(call.options.initial)
                version = page.metadata.resource_version
        self._pending.append(event("synced", b"{}", version))
        return version

    async def _open(self, version: str) -> Stream:
        limit = self._call.options.stream_time
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": str(limit)}
        if field_selector := self._field_selector():
            query["fieldSelector"] = field_selector
        if selector := self._call.query.get("labelSelector"):
            query["labelSelector"] = selector
        watch = ApiCall("watch", NACOS, self._call.namespace, query=query, timeout=limit + _GRACE)
        return await self._call.client.caller.stream(watch)

    def _field_selector(self) -> str:
        return f"metadata.name={self._call.name}" if "name" in self._call.path else ""

    # --- the producer ---------------------------------------------------------------------------------------------

    async def produce(self, sink: Sink) -> None:
        with self._streams.counted(self._call.token):
            try:
                await self._run(sink)
            finally:
                await self._watch.aclose()

    async def _run(self, sink: Sink) -> None:
        """Until the watch ends, the reader stalls, or the service stops."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._send(sink), name="konverge.service.stream"),
                group.create_task(self._send_heartbeats(sink), name="konverge.service.heartbeat"),
                group.create_task(self._streams.stopping.wait(), name="konverge.service.stopping"),
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()

    async def _send(self, sink: Sink) -> None:
        try:
            sink.write(retry(_RECONNECT))
            while True:
                async with aclosing(self._pieces()) as pieces:
                    async for piece in pieces:
                        sink.write(piece)
                        if not await self._drained(sink):
                            return
                if not self._pending:
                    return
        except (Problem, ClientError) as error:
            problem = error if isinstance(error, Problem) else from_client(error)
            sink.write(event("problem", to_json(problem.details)))

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """What to send; afterwards `_pending` is not empty when the stream starts again."""
        pending, self._pending = self._pending, []
        for piece in pending:
            yield piece
        reader = EventReader(self._watch, "watch of instances")
        try:
            while batch := await reader.raw():
                yield b"".join(_change(kind, _read(body)) for kind, body in batch)
        except Expired:
            await self._watch.aclose()
            await self.begin("")
            self._pending.insert(0, event("reset", b"{}"))

    async def _send_heartbeats(self, sink: Sink) -> None:
        while True:
            await asyncio.sleep(self._call.options.heartbeat)
            sink.write(HEARTBEAT)
            if not await self._drained(sink):
                return

    async def _drained(self, sink: Sink) -> bool:
        """Wait for a slow reader, but not for ever."""
        try:
            async with asyncio.timeout(self._call.options.stalled):
                await sink.drain()
        except TimeoutError:
            return False
        return True


def _resume(call: Call) -> str:
    text = call.request.headers.get("last-event-id").strip()
    if text and not is_id(text):
        raise Problem(400, "Last-Event-ID is not from this service; leave it out to start again")
    return text


def _too_many(most: int) -> Problem:
    return Problem(413, f"there are more than {most} instances; name a namespace or a labelSelector")


def _change(kind: str, resource: Obj) -> bytes:
    version = str(resource.get("metadata", {}).get("resourceVersion", ""))
    if kind not in _EVENT_NAMES:  # a bookmark: a newer version, and no change
        return bookmark(version)
    return event(_EVENT_NAMES[kind], to_json(instance(resource)), version)


# --- server-sent events as bytes ----------------------------------------------------------------------------------


def event(name: str, data: bytes, id: str = "") -> bytes:
    """One event. The data is JSON on one line, so it needs no splitting.

    >>> event("deleted", b"{}", "12")
    b'id: 12\\nevent: deleted\\ndata: {}\\n\\n'
    """
    head = f"id: {id}\n" if id else ""
    return b"%bevent: %b\ndata: %b\n\n" % (head.encode(), name.encode(), data)


def bookmark(id: str) -> bytes:
    """A block without data: readers remember the id and see nothing."""
    return f"id: {id}\n\n".encode()


def retry(milliseconds: int) -> bytes:
    """How long a reader waits before it reconnects."""
    return f"retry: {milliseconds}\n\n".encode()


def is_id(text: str) -> bool:
    """Whether a text has the form of our ids: a resourceVersion."""
    return _ID.fullmatch(text) is not None
