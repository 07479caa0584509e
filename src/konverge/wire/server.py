"""The server: listening sockets and the connections that came from them.

Routing belongs to the user: a server has one handler. It ends in two ways: `close` stops listening, lets what was
begun finish within a limit and then cuts the rest; `close(grace=0)` cuts at once.
"""

from __future__ import annotations

import asyncio
import socket
import ssl as tls
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from konverge.wire.acceptor import Acceptor, bind
from konverge.wire.handler import Refusal, plain_refusal
from konverge.wire.limits import ServerLimits
from konverge.wire.message import Handler
from konverge.wire.server_connection import ServerConnection

_REFUSED_AT_ONCE = 128
"""So many connections beyond the limit get a 503; those beyond even that are dropped without a word."""
_READ_SIZE = 64 * 1024


class Server:
    """Serves a handler over HTTP/1.1."""

    def __init__(
        self, handler: Handler, *, limits: ServerLimits | None = None, refusal: Refusal = plain_refusal
    ) -> None:
        self.handler = handler
        self.refusal = refusal
        self.limits = limits or ServerLimits()
        self.arrivals = memoryview(bytearray(_READ_SIZE))
        self._connections: set[ServerConnection] = set()
        self._acceptors: list[Acceptor] = []
        self._addresses: list[tuple[str, int]] = []
        self._closing = False
        self._emptied: asyncio.Future[None] | None = None

    async def start(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        ssl: tls.SSLContext | None = None,
        sockets: Sequence[socket.socket] = (),
        backlog: int = 1024,
    ) -> Self:
        """Listen on host and port (0: any free one), or on sockets that are bound already. May be called again."""
        loop = asyncio.get_running_loop()

        def connection() -> ServerConnection:
            return ServerConnection(self, loop)

        for sock in sockets or await bind(host, port, backlog):
            sock.listen(backlog)
            self._addresses.append(sock.getsockname()[:2])
            limit = self.limits.head_time
            acceptor = Acceptor(sock, ssl, handshake_time=limit, connection=connection, room=self._has_room)
            self._acceptors.append(acceptor)
        return self

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each listening socket."""
        return list(self._addresses)

    @property
    def port(self) -> int:
        return self._addresses[0][1]

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def close(self, *, grace: float = 10.0) -> None:
        """Stop listening, finish what was begun within `grace` seconds, cut off the rest. Returns when all is gone."""
        self._closing = True
        for acceptor in self._acceptors:
            await acceptor.close()
        self._acceptors.clear()
        if grace > 0:
            for connection in list(self._connections):
                connection.drain()
            try:
                async with asyncio.timeout(grace):
                    await self._until_empty()
            except TimeoutError:
                pass
        for connection in list(self._connections):
            connection.abort()
        await self._until_empty()

    async def _until_empty(self) -> None:
        while self._connections:
            if self._emptied is None or self._emptied.done():
                self._emptied = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._emptied)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(grace=0 if kind is not None else 10.0)

    # --- Host, for the connections --------------------------------------------------------------------------------

    def admit(self, connection: ServerConnection) -> bool:
        self._connections.add(connection)
        excess = len(self._connections) - self.limits.connections
        if self._closing or excess > _REFUSED_AT_ONCE:
            connection.abort()
        return excess <= 0

    def forget(self, connection: ServerConnection) -> None:
        self._connections.discard(connection)
        if not self._connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _has_room(self, handshakes: int) -> bool:
        return len(self._connections) + handshakes < self.limits.connections + _REFUSED_AT_ONCE
