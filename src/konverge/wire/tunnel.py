"""A connection that no longer speaks HTTP: both directions as plain bytes, after a 101.

Bytes are buffered up to a limit, then the socket is no longer read; `drain` waits for a slow reader.
"""

from __future__ import annotations

import asyncio

BUFFER = 256 * 1024
"""Unread bytes at which the socket is no longer read."""


class Tunnel:
    """See `konverge.wire.message.Duplex`."""

    __slots__ = ("_arrived", "_ended", "_paused", "_reader", "_stopped", "_transport", "_writers")

    def __init__(self, transport: asyncio.Transport, *, paused: bool) -> None:
        self._transport = transport
        self._arrived = bytearray()
        self._ended = False
        self._paused = paused
        self._stopped = False
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []

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
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._writers.append(waiter)
            await waiter
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

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        waiters, self._writers = self._writers, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
