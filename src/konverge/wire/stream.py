"""A streaming answer on the client's side.

The connection pushes, the reader pulls, and the bytes between them are bounded: beyond the limit the connection stops
reading its socket, TCP's window fills, and the server feels the slow reader. Pieces that arrived together are given
out together: a reader of a busy stream wakes once per read of the socket, not once per chunk.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from konverge.wire.errors import ProtocolError
from konverge.wire.inflate import Inflater, too_large
from konverge.wire.message import Headers


class Source(Protocol):
    """The connection that feeds a stream."""

    def pause(self) -> None:
        """Bring no more for now."""

    def resume(self) -> None: ...

    def reader_waits(self) -> None:
        """The reader has nothing left: silence counts from now."""

    async def discard(self, stream: ResponseStream) -> None:
        """The reader has gone before the end: bring no more."""


class ResponseStream:
    """See `konverge.wire.message.Stream`. Fed by `push`, `end` and `fail`; read by one task at a time."""

    __slots__ = (
        "_body_limit",
        "_chunks",
        "_ended",
        "_error",
        "_high",
        "_inflater",
        "_paused",
        "_size",
        "_source",
        "_waiter",
        "headers",
        "status",
    )

    def __init__(
        self,
        source: Source,
        status: int,
        headers: Headers,
        *,
        high: int,
        gzip: bool,
        body_limit: int | None,
        sealed: bool = False,
    ) -> None:
        self.status = status
        self.headers = headers
        self._source: Source | None = source
        self._high = high
        self._body_limit = body_limit
        self._inflater = Inflater(sealed=sealed) if gzip else None
        self._chunks: list[bytes] = []
        self._size = 0
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"ResponseStream({self.status}, {self._size} bytes waiting{', ended' if self._ended else ''})"

    def push(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        if self._size > self._high and not self._paused and self._source is not None:
            self._paused = True
            self._source.pause()
        if self._waiter is not None:
            self._wake()

    def end(self) -> None:
        """The body is complete; what is buffered may still be read."""
        self._ended = True
        self._source = None
        self._wake()

    def fail(self, error: Exception) -> None:
        """The body is cut off; what is buffered may still be read, then the reader gets the error."""
        if not self._ended:
            self._error = error
            self.end()

    @property
    def buffered(self) -> int:
        """Bytes that arrived and were not yet read."""
        return self._size

    @property
    def awaited(self) -> bool:
        """Whether a reader waits for more."""
        return self._waiter is not None

    def __aiter__(self) -> ResponseStream:
        return self

    async def __anext__(self) -> bytes:
        while True:
            if self._inflater is not None and (piece := self._inflater.pull()):
                return piece
            if self._chunks:
                data = self._take()
                if self._inflater is None:
                    return data
                self._inflater.feed(data)
            elif self._ended:
                self._finish()
                raise StopAsyncIteration
            else:
                await self._wait()

    async def read(self) -> bytes:
        """The rest of the body, within the limit for whole bodies."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self:
            pieces.append(piece)
            size += len(piece)
            if self._body_limit is not None and size > self._body_limit:
                await self.aclose()
                raise too_large(self._body_limit)
        return b"".join(pieces)

    async def rest(self, seconds: float) -> None:
        """Bring nothing for a while, unless something is here already: what comes meanwhile is then read at once."""
        if self._source is None or self._chunks or self._paused:
            return
        self._paused = True
        self._source.pause()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._go_on()

    async def aclose(self) -> None:
        """Give the rest up. Before the end of the body this closes the connection. Idempotent."""
        source, self._source = self._source, None
        self._chunks.clear()
        self._size = 0
        self._inflater = None
        self._error = None
        self._ended = True
        self._wake()
        if source is not None:
            await source.discard(self)

    def _take(self) -> bytes:
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._size = 0
        if self._paused:
            self._go_on()
        return data

    def _go_on(self) -> None:
        self._paused = False
        if self._source is not None:
            self._source.resume()

    def _finish(self) -> None:
        if self._error is not None:
            raise self._error
        if self._inflater is not None and not self._inflater.complete:
            raise ProtocolError("the server's gzip stream ends too early; ask for it uncompressed")

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise RuntimeError("this stream is already being read by another task; give it one reader")
        self._waiter = asyncio.get_running_loop().create_future()
        if self._source is not None:
            self._source.reader_waits()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
