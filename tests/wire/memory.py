"""A transport without a socket, so that connections can be driven byte by byte and in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any


class MemoryTransport(asyncio.Transport):
    """Collects what is written; `stuck` keeps it all in the write buffer, like a peer that does not read."""

    def __init__(self, protocol: Any, *, stuck: bool = False) -> None:
        super().__init__()
        self.protocol = protocol
        self.written = bytearray()
        self.reading = True
        self.stuck = stuck
        self.closing = False
        self.lost = False
        self.half_closed = False
        self._high = 65536
        protocol.connection_made(self)

    def write(self, data: Any) -> None:
        assert not self.lost, "written after the end"
        self.written += data
        if self.stuck and len(self.written) > self._high:
            self.protocol.pause_writing()

    def take(self, size: int) -> None:
        """The peer of a stuck transport reads so much."""
        del self.written[:size]
        if len(self.written) <= self._high // 4:
            self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return len(self.written) if self.stuck else 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or 0

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.half_closed = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        if not self.stuck or not self.written:
            self.abort()
        self.closing = True

    def abort(self) -> None:
        if not self.closing:
            self.closing = True
        if not self.lost:
            self.lost = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default
