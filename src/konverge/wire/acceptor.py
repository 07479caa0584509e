"""Listening sockets, and TLS connections that the server owns from their first byte.

The loop's own server would do the handshake before anybody hears of the connection: such connections escape the limit
on their number, and a server that closes leaves their tasks behind. So for TLS the sockets are accepted here, and
each handshake is a task of ours.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

log = logging.getLogger("konverge.wire")

_BREATH = 1.0
"""Seconds to wait when the process has no file descriptors left."""


async def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listening sockets on every address of a host."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            sock = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(address)
            sock.listen(backlog)
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}; choose another port") from error
    return sockets


class TlsAcceptor:
    """Accepts connections on one socket and brings them to TLS."""

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        handshake_time: float,
        connection: Callable[[], asyncio.Protocol],
        room: Callable[[int], bool],
    ) -> None:
        """`room` says whether there is room for one more beside so many handshakes."""
        sock.setblocking(False)
        self._socket = sock
        self._context = context
        self._handshake_time = handshake_time
        self._connection = connection
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._task = self._loop.create_task(self._accept(), name="konverge.wire.accept")

    def close(self) -> None:
        """Stop listening and drop the handshakes in progress."""
        self._task.cancel()
        for task in self._handshakes:
            task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.wait([self._task, *self._handshakes])
        self._socket.close()

    async def _accept(self) -> None:
        while True:
            try:
                sock, _ = await self._loop.sock_accept(self._socket)
            except OSError as error:
                log.error("cannot accept a connection (%s); trying again", error)
                await asyncio.sleep(_BREATH)
                continue
            if self._room(len(self._handshakes)):
                task = self._loop.create_task(self._handshake(sock), name="konverge.wire.handshake")
                self._handshakes.add(task)
                task.add_done_callback(self._handshakes.discard)
            else:
                sock.close()

    async def _handshake(self, sock: socket.socket) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                self._connection, sock, ssl=self._context, ssl_handshake_timeout=self._handshake_time
            )
        except OSError:  # no TLS, a refused certificate, a peer that went: its own business, and common
            sock.close()
        except BaseException:
            sock.close()
            raise
