"""From the bytes of a watch to events.

A watch is one JSON object per line: `{"type":"ADDED","object":{…}}`. There are two ways to read it, both of which touch
each byte once. Typed: what arrived together is decoded together, with the garbage collector off, as long as it is not
much: among many new objects at once the collector costs more than the decoding (measured on a quarter of a megabyte of
Deployments: 96 against 38 µs each), so beyond a limit each event is decoded when its turn comes. Raw, for caches: the
server writes the two members in this order, so an event is taken apart by slicing, and the object is not looked into at
all; any other spelling goes through a decoder.

`Blocks` cuts chunks of any size at line ends, and `EventReader` drives it over a stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from konverge.client.errors import (
    UNREADABLE,
    ApiStatusError,
    ConnectionLost,
    MalformedAnswer,
    TimedOut,
    error_for,
    read_status,
)
from konverge.wire.errors import WireError
from konverge.wire.message import Stream

K = TypeVar("K")
T = TypeVar("T")
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
RawEvent = tuple[str, bytes]
"""The type of an event and the JSON of its object."""

DECODED_TOGETHER = 128 << 10
"""Bytes of events that are decoded together at most: what is read or inflated at a time, and a line begun before it."""
MAX_EVENT = 64 << 20
"""Bytes of one event at most. The server stores objects of at most 1.5 MiB; a line past this is not a watch."""


class WatchEvent(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """One change. Of a BOOKMARK's object only the metadata says something: its resourceVersion."""

    type: EventType
    object: K


class EventDecoder(Protocol[T]):
    """Makes the events of one kind. Raises `msgspec.DecodeError` for whatever does not fit it."""

    def decode_event(self, line: bytes) -> WatchEvent[T]: ...

    def decode_events(self, lines: bytes) -> list[WatchEvent[T]]: ...

    def bookmark(self, metadata: bytes) -> WatchEvent[T]: ...


class _AnyEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_decode_any = msgspec.json.Decoder(_AnyEvent).decode
_decode_metadata = msgspec.json.Decoder(_Metadata).decode
_PREFIX = b'{"type":"'
_ADDED = b'{"type":"ADDED","object":'
_BETWEEN = b'","object":'


def split_event(line: bytes) -> RawEvent:
    """
    >>> split_event(b'{"type":"ADDED","object":{"kind":"Pod"}}')
    ('ADDED', b'{"kind":"Pod"}')
    """
    if line.startswith(_ADDED) and line.endswith(b"}"):  # nearly all of them
        return "ADDED", line[25:-1]
    if line.startswith(_PREFIX) and line.endswith(b"}"):
        middle = line.find(_BETWEEN, 9, 40)
        if middle > 0:
            return line[9:middle].decode("ascii"), line[middle + 11 : -1]
    try:
        event = _decode_any(line)
    except UNREADABLE as error:
        raise MalformedAnswer(f"a line of the watch is not an event: {error}") from error
    return event.type, bytes(event.object)


class Blocks:
    """Cuts chunks into blocks of whole lines. A line that spans many chunks is joined once, at its end.

    >>> blocks = Blocks()
    >>> blocks.feed(b"a\\nb"), blocks.feed(b"c\\nd\\ne"), blocks.rest
    (b'a', b'bc\\nd', b'e')
    """

    __slots__ = ("_limit", "_parts", "_size")

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._limit = limit

    def feed(self, chunk: bytes) -> bytes | None:
        """The lines that this chunk completes, without the last line end; None when it completes none."""
        end = chunk.rfind(b"\n")
        if end < 0:
            self._keep(chunk)
            return None
        if self._parts:
            block = b"".join((*self._parts, memoryview(chunk)[:end]))
            self._parts.clear()
            self._size = 0
        else:
            block = chunk[:end]
        if end + 1 < len(chunk):
            self._keep(chunk[end + 1 :])
        return block

    @property
    def rest(self) -> bytes:
        """What has come of a line that has not ended."""
        return b"".join(self._parts)

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            raise MalformedAnswer(f"a line of the watch is longer than {self._limit} bytes")


async def next_chunk(chunks: AsyncIterator[bytes], request: str) -> bytes | None:
    """The next piece of a stream; None at its end. The wire's errors become the client's."""
    try:
        return await anext(chunks)
    except StopAsyncIteration:
        return None
    except WireError as error:
        kind = TimedOut if isinstance(error, TimeoutError) else ConnectionLost
        raise kind(f"{request}: {error}") from error


class EventReader:
    """Reads the events of one stream, together as they arrived together: at least one, or none at the end of it."""

    __slots__ = ("_blocks", "_chunks", "_error", "_request")

    def __init__(self, stream: Stream, request: str) -> None:
        self._chunks = aiter(stream)
        self._request = request
        self._blocks = Blocks()
        self._error: ApiStatusError | None = None

    async def events(self, decoder: EventDecoder[K]) -> Iterable[WatchEvent[K]] | None:
        """The next events; None at the end. An ERROR event is raised after the events before it."""
        block = await self._block()
        if not block:
            return None
        if len(block) <= DECODED_TOGETHER:
            try:
                return decoder.decode_events(block)
            except UNREADABLE:
                pass  # one of them is out of the ordinary
        return (self._event(line, decoder) for line in block.split(b"\n") if line)

    async def raw(self) -> list[RawEvent]:
        """The next events, not decoded. An ERROR event is raised after the events before it."""
        while block := await self._block():
            if events := self._split(block):
                return events
        return []

    async def _block(self) -> bytes:
        """The next whole lines; empty at the end of the stream."""
        while self._error is None:
            chunk = await next_chunk(self._chunks, self._request)
            if chunk is None:
                return self._end()
            if block := self._blocks.feed(chunk):
                return block
        raise self._error

    def _split(self, block: bytes) -> list[RawEvent]:
        events: list[RawEvent] = []
        for line in block.split(b"\n"):
            if not line:
                continue
            event = split_event(line)
            if event[0] == "ERROR":
                self._error = error_for(read_status(event[1]), request=self._request)
                break
            events.append(event)
        return events

    def _event(self, line: bytes, decoder: EventDecoder[K]) -> WatchEvent[K]:
        """One event. An ERROR event is raised as the error that it carries."""
        try:
            return decoder.decode_event(line)
        except UNREADABLE:
            return self._decode_unusual(line, decoder)

    def _decode_unusual(self, line: bytes, decoder: EventDecoder[K]) -> WatchEvent[K]:
        """For what does not fit the class: an ERROR, which is no WatchEvent, and a bookmark.

        The object of a bookmark is the zero value of its Go type (`"selector":null`); what it says is in its metadata.
        """
        kind, body = split_event(line)
        if kind == "ERROR":
            raise error_for(read_status(body), request=self._request)
        try:
            if kind == "BOOKMARK":
                return decoder.bookmark(bytes(_decode_metadata(body).metadata))
            return decoder.decode_event(b'{"type":"%b","object":%b}' % (kind.encode(), body))
        except UNREADABLE as error:
            raise MalformedAnswer(f"{self._request}: an object does not fit its class: {error}") from error

    def _end(self) -> bytes:
        if self._blocks.rest:
            raise ConnectionLost(f"{self._request}: the watch ended in the middle of an event")
        return b""
