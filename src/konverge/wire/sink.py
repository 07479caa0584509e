"""Where handlers write, over a socket: `ChunkSink` for a stream, `Tunnel` for a connection that no longer speaks HTTP.

Both tell a fast writer to wait: while the socket is full, `drain` does not return.
"""

from __future__ import annotations

import asyncio

from konverge.wire.transports import unsent_bytes

_FAIRNESS = 64 * 1024
"""After so many bytes `drain` lets others run, even when the socket takes everything at once."""
BUFFER = 256 * 1024
"""Unread bytes of a tunnel at which its socket is no longer read."""


class Pausable:
    """A writer that a slow reader pauses; `await self._resumed()` waits until it may go on."""

    __slots__ = ("_paused", "_waiters")

    def __init__(self, *, paused: bool) -> None:
        self._paused = paused
        self._waiters: list[asyncio.Future[None]] = []

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._wake()

    def _resumed(self) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class ChunkSink(Pausable):
    """See `konverge.wire.message.Sink`. Chunks for HTTP/1.1, plain bytes until the close for HTTP/1.0."""

    __slots__ = ("_chunked", "_closed", "_transport", "_written")

    def __init__(self, transport: asyncio.Transport, *, chunked: bool, paused: bool) -> None:
        super().__init__(paused=paused)
        self._transport = transport
        self._chunked = chunked
        self._closed = False
        self._written = 0

    def write(self, data: bytes) -> None:
        if not data or self.closed:  # an empty chunk would end the stream
            return
        self._written += len(data)
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        self._transport.write(data)

    async def drain(self) -> None:
        if self._paused and not self.closed:
            await self._resumed()
            self._written = 0
        elif self._written >= _FAIRNESS:
            self._written = 0
            await asyncio.sleep(0)
        if self.closed:
            raise ConnectionResetError("the reader of this stream has gone; stop writing")

    @property
    def buffered(self) -> int:
        return 0 if self._closed else unsent_bytes(self._transport)

    @property
    def closed(self) -> bool:
        return self._closed or self._transport.is_closing()

    def finish(self) -> None:
        """The producer has returned: the stream ends as it should."""
        if self._chunked and not self.closed:
            self._transport.write(b"0\r\n\r\n")

    def close(self) -> None:
        """The reader has gone, or the stream has ended: later writes go nowhere."""
        self._closed = True
        self._wake()


class Tunnel(Pausable):
    """See `konverge.wire.message.Duplex`. Both directions as plain bytes, after a 101.

    Bytes are buffered up to a limit, then the socket is no longer read.
    """

    __slots__ = ("_arrived", "_ended", "_reader", "_stopped", "_transport")

    def __init__(self, transport: asyncio.Transport, *, paused: bool) -> None:
        super().__init__(paused=paused)
        self._transport = transport
        self._arrived = bytearray()
        self._ended = False
        self._stopped = False
        self._reader: asyncio.Future[None] | None = None

    # --- for the user of the connection ---------------------------------------------------------------------------

    async def read(self) -> bytes:
        while not self._arrived and not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        data = bytes(self._arrived)
        self._arrived.clear()
        if self._stopped and not self._ended:
            self._stopped = False
            self._transport.resume_reading()
        return data

    def write(self, data: bytes) -> None:
        if not self.closed:
            self._transport.write(data)

    async def drain(self) -> None:
        if self._paused and not self.closed:
            await self._resumed()
        if self.closed:
            raise ConnectionResetError("the other side of this connection has gone; stop writing")

    @property
    def closed(self) -> bool:
        return self._transport.is_closing()

    # --- for the connection ---------------------------------------------------------------------------------------

    def feed(self, data: bytes | memoryview) -> None:
        self._arrived += data
        if len(self._arrived) > BUFFER and not self._stopped:
            self._stopped = True
            self._transport.pause_reading()
        self._wake_reader()

    def end(self) -> None:
        """Nothing more will arrive."""
        self._ended = True
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
