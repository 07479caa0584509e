"""Listening sockets, and connections that the server owns from their first byte.

The loop's own server would do the TLS handshake before the server knows of the connection: such connections escape the
limit on their number, and a server that closes leaves their tasks behind. So sockets are accepted here, and each
handshake is a task of ours.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from konverge.wire.server_connection import ServerConnection

log = logging.getLogger("konverge.wire")

_AT_ONCE = 64
"""Connections accepted before others get their turn."""
_ACCEPT_PAUSE = 1.0
"""Seconds to wait when the process has no file descriptors left."""
_NOT_HERE = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""A name may stand for an IPv6 address on a machine where IPv6 is off: its other addresses are used."""


async def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listening sockets on every address of a host."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(addresses):
        try:
            sockets.append(_listening(family, address, backlog))
        except OSError as error:
            if error.errno in _NOT_HERE:
                missing = error
                continue
            for sock in sockets:
                sock.close()
            raise _cannot_listen(host, port, error) from error
    if missing is not None and not sockets:
        raise _cannot_listen(host, port, missing) from missing
    return sockets


def _listening(family: int, address: Any, backlog: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def _cannot_listen(host: str, port: int, error: OSError) -> OSError:
    advice = "choose another host" if error.errno in _NOT_HERE else "choose another port"
    return OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}; {advice}")


class Acceptor:
    """Accepts connections on one socket and brings them to their protocol, through TLS if there is a context."""

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext | None,
        *,
        handshake_time: float,
        connection: Callable[[], ServerConnection],
        room: Callable[[int], bool],
    ) -> None:
        """`room` says whether there is room for one more beside so many handshakes."""
        sock.setblocking(False)
        self._socket = sock
        self._context = context
        self._handshake_time = handshake_time if context is not None else None
        self._connection = connection
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[object]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._listen()

    async def close(self) -> None:
        """Stop listening and drop the handshakes in progress."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        for task in self._handshakes:
            task.cancel()
        if self._handshakes:
            await asyncio.wait(self._handshakes)

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        """Take what waits. A callback and not a task: a cancelled `sock_accept` would lose the socket it was given."""
        for _ in range(_AT_ONCE):
            try:
                sock, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("cannot accept connections (%s); trying again in %g s", error, _ACCEPT_PAUSE)
                self._loop.remove_reader(self._socket.fileno())
                self._pause = self._loop.call_later(_ACCEPT_PAUSE, self._listen)
                return
            if self._room(len(self._handshakes)):
                self._begin(sock)
            else:
                sock.close()

    def _begin(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = self._connection()
        made = self._loop.connect_accepted_socket(
            lambda: connection, sock, ssl=self._context, ssl_handshake_timeout=self._handshake_time
        )
        task: asyncio.Task[object] = self._loop.create_task(made, name="konverge.wire.handshake")
        self._handshakes.add(task)
        task.add_done_callback(partial(self._end, sock, connection))

    def _end(self, sock: socket.socket, connection: ServerConnection, task: asyncio.Task[object]) -> None:
        self._handshakes.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None and not task.cancelled():
            return
        sock.close()
        connection.give_up()
        # No TLS, a refused certificate, a peer that went: its own business, and common.
        if error is not None and not isinstance(error, OSError):
            log.error("a connection could not be set up", exc_info=error)
