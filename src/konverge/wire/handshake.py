"""TLS on the server's side, by hand.

asyncio would do the handshake before anybody hears of the connection: such connections escape the limit on their
number, and a server that closes leaves their tasks behind. So a socket is accepted in the clear, counted, and made
into TLS by a task that the server owns.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from konverge.wire.server_connection import ServerConnection


class Porter(Protocol):
    """The server, as handshakes see it."""

    def begin(self, handshake: Handshake) -> bool:
        """Count a handshake; False when there are too many connections already."""

    def end(self, handshake: Handshake) -> None: ...


class Handshake(asyncio.Protocol):
    """Holds a socket's place until TLS is there, then hands it over, with what came meanwhile."""

    def __init__(
        self, porter: Porter, context: ssl.SSLContext, limit: float, connection: Callable[[], ServerConnection]
    ) -> None:
        self._porter = porter
        self._context = context
        self._limit = limit
        self._connection = connection
        self._task: asyncio.Task[None] | None = None
        self._early: list[bytes] = []
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast(asyncio.Transport, transport)
        if not self._porter.begin(self):
            plain.abort()
            return
        self._task = asyncio.get_running_loop().create_task(self._run(plain), name="konverge.wire.handshake")

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, plain: asyncio.Transport) -> None:
        try:
            secure = await asyncio.get_running_loop().start_tls(
                plain, self, self._context, server_side=True, ssl_handshake_timeout=self._limit
            )
            if secure is not None and not self._lost:
                self._hand_over(secure)
        except OSError:  # no TLS, a refused certificate, a peer that went: its own business, and common
            plain.abort()
        except BaseException:
            plain.abort()
            raise
        finally:
            self._porter.end(self)

    def _hand_over(self, secure: asyncio.Transport) -> None:
        connection = self._connection()
        secure.set_protocol(connection)
        connection.connection_made(secure)
        for data in self._early:
            connection.data_received(data)
