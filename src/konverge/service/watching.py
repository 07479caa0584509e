"""The stream of changes: the instances that there are, then every change to them, as server-sent events.

    added, modified, deleted    an instance
    synced                      all that there was has been told; what follows are changes
    reset                       forget what was told: the stream begins anew
    problem                     why the stream ends

Ids are resourceVersions, so `Last-Event-ID` resumes where a reader stopped. What is told before `synced` has no id: the
first instances come in no order that could be resumed. When the API server no longer has the version that a reader
names, it is told `reset` and everything again.

The watch is opened before the answer begins, so that refusals are answers with a status; from there it belongs to the
producer. A stream ends after its time, when its reader takes nothing, and when the service stops.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

import msgspec

from konverge.client import ClientError, Expired
from konverge.client.call import Call as ApiCall
from konverge.client.watch import EventReader
from konverge.objects.codec import to_json
from konverge.service import sse
from konverge.service.access import digest
from konverge.service.call import Call
from konverge.service.instances import NACOS
from konverge.service.problems import Problem, from_client
from konverge.service.redaction import Obj
from konverge.service.views import instance
from konverge.wire.message import Headers, Response, Sink, Stream

_RECONNECT = 1000
_GRACE = 10.0
"""Seconds that a watch may outlive its time before it counts as lost."""
_KNOWN = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}
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
        if call.request.method != "GET":  # nobody would read, and so nobody would end, the stream of a HEAD
            raise Problem(405, "a stream has a body; use GET", headers={"Allow": "GET"})
        call.only("labelSelector")
        self._check_room(call)
        resume = _resume(call)
        course = _Course(call, self)
        with self.counted(call.token):  # also while it is opened, or many at once would get past the bounds
            await course.begin(resume)
        headers = {"Content-Type": sse.MEDIA_TYPE, "X-Accel-Buffering": "no"}
        return Response(200, Headers.of(headers), producer=course.produce)

    def _check_room(self, call: Call) -> None:
        options = call.options
        if self.count >= options.streams or self.stopping.is_set():
            raise Problem(503, "too many streams are open; try again later", headers={"Retry-After": "10"})
        if self._open[digest(call.token)] >= options.streams_of_one:
            raise Problem(429, f"you have {options.streams_of_one} streams open; close some of them")

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


class _Course:
    """One stream, from its first instance to its end."""

    def __init__(self, call: Call, streams: Streams) -> None:
        self._call = call
        self._streams = streams
        self._first: list[bytes] = []
        self._stream: Stream

    async def begin(self, version: str) -> None:
        """Open the watch, from a version or (without one) from all that there is now."""
        self._first = []
        if version:
            try:
                self._stream = await self._open(version)
                return
            except Expired:
                self._first.append(sse.event("reset", b"{}"))
        self._stream = await self._open(await self._list())

    async def _list(self) -> str:
        """What there is, ready to be told; the result is its version."""
        call, version = self._call, ""
        pages = call.client.pages(
            NACOS,
            call.namespace,
            field_selector=self._one(),
            label_selector=call.query.get("labelSelector", ""),
            timeout=call.options.request_time,
        )
        async with aclosing(pages):
            async for page in pages:
                self._first += [sse.event("added", to_json(instance(one))) for one in page]
                if len(self._first) > call.options.initial:
                    raise _too_many(call.options.initial)
                version = page.metadata.resource_version
        self._first.append(sse.event("synced", b"{}", version))
        return version

    async def _open(self, version: str) -> Stream:
        limit = self._call.options.stream_time
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": str(limit)}
        if one := self._one():
            query["fieldSelector"] = one
        if selector := self._call.query.get("labelSelector"):
            query["labelSelector"] = selector
        watch = ApiCall("watch", NACOS, self._call.namespace, query=query, timeout=limit + _GRACE)
        return await self._call.client.caller.stream(watch)

    def _one(self) -> str:
        return f"metadata.name={self._call.name}" if "name" in self._call.path else ""

    # --- the producer ---------------------------------------------------------------------------------------------

    async def produce(self, sink: Sink) -> None:
        with self._streams.counted(self._call.token):
            try:
                await self._until_first(sink)
            finally:
                await self._stream.aclose()

    async def _until_first(self, sink: Sink) -> None:
        """Until the watch ends, the reader stalls, or the service stops."""
        async with asyncio.TaskGroup() as group:
            parts = [
                group.create_task(self._tell(sink), name="konverge.service.stream"),
                group.create_task(self._beat(sink), name="konverge.service.heartbeat"),
                group.create_task(_until(self._streams.stopping), name="konverge.service.stopping"),
            ]
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                part.cancel()

    async def _tell(self, sink: Sink) -> None:
        try:
            sink.write(sse.retry(_RECONNECT))
            while True:
                async with aclosing(self._pieces()) as pieces:
                    async for piece in pieces:
                        sink.write(piece)
                        if not await self._taken(sink):
                            return
                if not self._first:
                    return
        except (Problem, ClientError) as error:
            problem = error if isinstance(error, Problem) else from_client(error)
            sink.write(sse.event("problem", to_json(problem.details)))

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """What is to be told; afterwards `_first` holds something when the stream has begun anew."""
        first, self._first = self._first, []
        for piece in first:
            yield piece
        reader = EventReader(self._stream, "watch of instances")
        try:
            while batch := await reader.raw():
                yield b"".join(_told(kind, _read(body)) for kind, body in batch)
        except Expired:
            await self._stream.aclose()
            await self.begin("")
            self._first.insert(0, sse.event("reset", b"{}"))

    async def _beat(self, sink: Sink) -> None:
        while True:
            await asyncio.sleep(self._call.options.heartbeat)
            sink.write(sse.HEARTBEAT)
            if not await self._taken(sink):
                return

    async def _taken(self, sink: Sink) -> bool:
        """Wait for a slow reader, but not for ever."""
        try:
            async with asyncio.timeout(self._call.options.stalled):
                await sink.drain()
        except TimeoutError:
            return False
        return True


def _resume(call: Call) -> str:
    text = call.request.headers.get("last-event-id").strip()
    if text and not sse.is_id(text):
        raise Problem(400, "Last-Event-ID is none that this service gave; leave it out to begin anew")
    return text


def _too_many(most: int) -> Problem:
    return Problem(413, f"there are more than {most} instances; name a namespace or a labelSelector")


def _told(kind: str, resource: Obj) -> bytes:
    version = str(resource.get("metadata", {}).get("resourceVersion", ""))
    if kind not in _KNOWN:  # a bookmark: nothing changed, but time went on
        return sse.mark(version)
    return sse.event(_KNOWN[kind], to_json(instance(resource)), version)


async def _until(event: asyncio.Event) -> None:
    await event.wait()
