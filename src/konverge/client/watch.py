"""From the bytes of a watch to events.

A watch is one JSON object per line: `{"type":"ADDED","object":{…}}`. The server writes the two members in this order,
so an event is taken apart by slicing, and the object is scanned once only, by whoever decodes it; any other spelling
goes through a JSON decoder. `Lines` cuts chunks of any size into lines, `split_event` cuts a line into type and object,
and `EventReader` drives both over a stream.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

from konverge.client.errors import (
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
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
RawEvent = tuple[str, bytes]
"""The type of an event and the JSON of its object."""

MAX_EVENT = 64 << 20
"""Bytes of one event at most. The server stores objects of at most 1.5 MiB; a line past this is not a watch."""


class WatchEvent(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """One change. A BOOKMARK's object holds nothing but `metadata.resourceVersion`."""

    type: EventType
    object: K


class _AnyEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decode_any = msgspec.json.Decoder(_AnyEvent).decode
_PREFIX = b'{"type":"'
_BETWEEN = b'","object":'


def split_event(line: bytes) -> RawEvent:
    """
    >>> split_event(b'{"type":"ADDED","object":{"kind":"Pod"}}')
    ('ADDED', b'{"kind":"Pod"}')
    """
    if line.startswith(_PREFIX) and line.endswith(b"}"):
        middle = line.find(_BETWEEN, 9, 40)
        if middle > 0:
            return line[9:middle].decode("ascii"), line[middle + 11 : -1]
    try:
        event = _decode_any(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedAnswer(f"a line of the watch is not an event: {error}") from error
    return event.type, bytes(event.object)


class Lines:
    """Cuts chunks into lines. A line that spans many chunks is joined once, at its end.

    >>> lines = Lines()
    >>> lines.feed(b"a\\nb"), lines.feed(b"c\\n\\nd"), lines.rest
    ([b'a'], [b'bc'], b'd')
    """

    __slots__ = ("_limit", "_parts", "_size")

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._limit = limit

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends and without empty ones."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        *lines, rest = chunk.split(b"\n")
        if self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
        if rest:
            self._keep(rest)
        return [line for line in lines if line]

    @property
    def rest(self) -> bytes:
        """What has come of a line that has not ended."""
        return b"".join(self._parts)

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            raise MalformedAnswer(f"a line of the watch is longer than {self._limit} bytes")


class EventReader:
    """Reads the events of one stream, together as they arrived together."""

    __slots__ = ("_chunks", "_error", "_lines", "_request")

    def __init__(self, stream: Stream, request: str) -> None:
        self._chunks = aiter(stream)
        self._request = request
        self._lines = Lines()
        self._error: ApiStatusError | None = None

    async def read(self) -> list[RawEvent]:
        """The next events, at least one; none when the server has ended the watch.

        An ERROR event is raised as the error that it carries, after the events before it.
        """
        while self._error is None:
            try:
                chunk = await anext(self._chunks)
            except StopAsyncIteration:
                return self._end()
            except WireError as error:
                kind = TimedOut if isinstance(error, TimeoutError) else ConnectionLost
                raise kind(f"{self._request}: {error}") from error
            if events := self._take(self._lines.feed(chunk)):
                return events
        raise self._error

    def _take(self, lines: list[bytes]) -> list[RawEvent]:
        events: list[RawEvent] = []
        for line in lines:
            event = split_event(line)
            if event[0] == "ERROR":
                self._error = error_for(read_status(event[1]), request=self._request)
                break
            events.append(event)
        return events

    def _end(self) -> list[RawEvent]:
        if self._lines.rest:
            raise ConnectionLost(f"{self._request}: the watch ended in the middle of an event")
        return []
