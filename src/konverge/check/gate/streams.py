"""A watch of the operator, event by event: what passes, what is held back, and how it ends early.

The API server writes to a `Tap` as to any reader. Events leave it in their order: when one is held, all behind it wait.
When the API server ends a watch, what is held is dropped with it: the client goes on from the last version that it saw,
and gets the rest there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Protocol

import msgspec

from konverge.check.model import Exchange, Ref
from konverge.wire.message import Producer, Response, Sink

INITIAL_END = "k8s.io/initial-events-end"
_PROTOBUF = "application/vnd.kubernetes.protobuf"


class Frame(msgspec.Struct, frozen=True):
    """One event as it is on the wire. An ERROR has no revision."""

    data: bytes
    type: str
    revision: int
    namespace: str = ""
    name: str = ""
    ends_state: bool = False
    """The bookmark after the last event of a streamed list."""


class Judge(Protocol):
    """Decides what passes."""

    def passes(self, tap: Tap, frame: Frame) -> bool: ...

    def delivered(self, tap: Tap, frame: Frame) -> None:
        """The client has it."""

    def closed(self, tap: Tap) -> None: ...


class Tap:
    """Between the API server and one reader of a watch."""

    def __init__(
        self, judge: Judge, exchange: Exchange, producer: Producer, *, streams_state: bool, start: int
    ) -> None:
        self.resource = exchange.resource
        self.incarnation = exchange.incarnation
        self.streams_state = streams_state
        """It begins with the whole state, which is fresh: revisions up to `start`."""
        self.start = start
        self._judge = judge
        self._producer = producer
        self._out: Sink | None = None
        self._held: deque[Frame] = deque()
        self._rest = b""
        self._over = asyncio.get_running_loop().create_future()

    async def produce(self, sink: Sink) -> None:
        """The body of the answer."""
        self._out = sink
        inner = asyncio.ensure_future(self._producer(self))
        try:
            await asyncio.wait([inner, self._over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._out = None
            self._judge.closed(self)
            if not inner.done():
                inner.cancel()
                await asyncio.wait([inner])
        if not inner.cancelled():
            inner.result()

    def release(self) -> None:
        """Write what passes by now."""
        while self._held and self._judge.passes(self, self._held[0]):
            self._deliver(self._held.popleft())

    def end(self, last: bytes = b"") -> None:
        """End the watch now, with what is held, and with a last event of our own."""
        self._held.clear()
        if self._out is not None and last:
            self._out.write(last)
        self._out = None
        if not self._over.done():
            self._over.set_result(None)

    def _deliver(self, frame: Frame) -> None:
        if self._out is not None:
            self._out.write(frame.data)
            self._judge.delivered(self, frame)

    # -------------------------------------------------------------- what the API server writes to

    def write(self, data: bytes) -> None:
        for frame in self._frames(data):
            if self._held or not self._judge.passes(self, frame):
                self._held.append(frame)
            else:
                self._deliver(frame)

    def _frames(self, data: bytes) -> Iterator[Frame]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return (frame_of(line + b"\n") for line in lines)

    async def drain(self) -> None:
        if self._out is None:
            raise ConnectionResetError("the reader of this watch has gone; stop writing")
        await self._out.drain()

    @property
    def buffered(self) -> int:
        return 0 if self._out is None else self._out.buffered

    @property
    def closed(self) -> bool:
        return self._out is None or self._out.closed


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Event(msgspec.Struct):
    type: str
    object: _Object


_event = msgspec.json.Decoder(_Event)


def frame_of(line: bytes) -> Frame:
    """An event of a line of JSON."""
    event = _event.decode(line)
    meta = event.object.metadata
    revision = int(meta.resource_version) if meta.resource_version.isdigit() else 0
    ends = event.type == "BOOKMARK" and INITIAL_END in (meta.annotations or {})
    return Frame(line, event.type, revision, meta.namespace, meta.name, ends)


def ref_of(resource: str, frame: Frame) -> Ref | None:
    return Ref(resource, frame.namespace, frame.name) if frame.name else None


def is_tappable(response: Response) -> bool:
    """Lines of JSON; the server writes nothing else at present."""
    return response.producer is not None and not response.headers.get("content-type").startswith(_PROTOBUF)
