"""Where a streaming handler writes, over a socket: chunks for HTTP/1.1, plain bytes until the close for HTTP/1.0."""

from __future__ import annotations

import asyncio

_FAIRNESS = 64 * 1024
"""After so many bytes `drain` lets others run, even when the socket takes everything at once."""


class ChunkSink:
    """See `konverge.wire.message.Sink`."""

    __slots__ = ("_chunked", "_closed", "_paused", "_transport", "_waiters", "_written")

    def __init__(self, transport: asyncio.Transport, *, chunked: bool, paused: bool) -> None:
        self._transport = transport
        self._chunked = chunked
        self._paused = paused
        self._closed = False
        self._written = 0
        self._waiters: list[asyncio.Future[None]] = []

    def write(self, data: bytes) -> None:
        if not data or self.closed:  # an empty chunk would end the stream
            return
        self._written += len(data)
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        self._transport.write(data)

    async def drain(self) -> None:
        if self._paused and not self.closed:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
            self._written = 0
        elif self._written >= _FAIRNESS:
            self._written = 0
            await asyncio.sleep(0)
        if self.closed:
            raise ConnectionResetError("the reader of this stream has gone; stop writing")

    @property
    def buffered(self) -> int:
        return 0 if self._closed else self._transport.get_write_buffer_size()

    @property
    def closed(self) -> bool:
        return self._closed or self._transport.is_closing()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._wake()

    def finish(self) -> None:
        """The producer has returned: the stream ends as it should."""
        if self._chunked and not self.closed:
            self._transport.write(b"0\r\n\r\n")

    def close(self) -> None:
        """The reader has gone, or the stream has ended: later writes go nowhere."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
