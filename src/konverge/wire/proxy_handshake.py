"""The handshake with a proxy, before the connection carries requests to the server."""

from __future__ import annotations

import asyncio
from typing import cast

from konverge.wire.errors import ProxyFailed

_LIMIT = 16 * 1024
"""Bytes of one answer."""


class ProxyHandshake(asyncio.Protocol):
    """Write, then read as much as the protocol says; bytes that are left over are an error."""

    def __init__(self) -> None:
        self._arrived = bytearray()
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    def write(self, data: bytes) -> None:
        cast(asyncio.Transport, self._transport).write(data)

    async def exactly(self, size: int) -> bytes:
        while len(self._arrived) < size:
            await self._more()
        data = bytes(self._arrived[:size])
        del self._arrived[:size]
        return data

    async def until(self, mark: bytes) -> bytes:
        """Everything before the mark, which is taken away too."""
        while mark not in self._arrived:
            if len(self._arrived) > _LIMIT:
                raise ProxyFailed("the proxy's answer is not HTTP/1.1; check its address")
            await self._more()
        data, _, rest = self._arrived.partition(mark)
        self._arrived = rest
        return bytes(data)

    def finish(self) -> None:
        """The server's turn begins: it has not been asked yet, so nothing may be here."""
        if self._arrived:
            raise ProxyFailed("the proxy sent more than its protocol allows; check its address and scheme")

    async def _more(self) -> None:
        if self._ended:
            raise ProxyFailed("the proxy closed the connection; check its log")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # --- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        if len(self._arrived) > 2 * _LIMIT:
            cast(asyncio.Transport, self._transport).abort()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def ask_for_tunnel(handshake: ProxyHandshake, target: str, authorization: bytes) -> None:
    """The tunnel of an HTTP proxy: CONNECT."""
    line = target.encode("ascii")
    handshake.write(b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (line, line, authorization))
    status_line, _, _ = (await handshake.until(b"\r\n\r\n")).partition(b"\r\n")
    parts = status_line.split(None, 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise ProxyFailed("the proxy did not answer in HTTP/1.1; check its address and scheme")
    if not 200 <= int(parts[1]) < 300:
        advice = "check its user and password" if parts[1] == b"407" else "check its rules, or NO_PROXY"
        raise ProxyFailed(f"the proxy refused a tunnel to {target} with {parts[1].decode()}; {advice}")
    handshake.finish()
