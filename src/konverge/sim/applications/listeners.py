"""Sockets of stand-in servers, on the addresses of their pods, with the faults that a check switches on and off.

A socket listens from the moment in which the container runs, before the API shows the pod as running: an operator that
connects at once waits in the backlog instead of being refused. On a virtual loop there are no sockets.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from konverge.sim.applications.application import (
    CUT,
    ERROR,
    REFUSE,
    SLOW,
    WRONG,
    Application,
    HttpApplication,
    Member,
)
from konverge.sim.loop import end
from konverge.wire.message import Request, Response
from konverge.wire.server import Server
from konverge.wire.server_connection import ServerConnection

log = logging.getLogger("konverge.sim.applications")
_BACKLOG = 128
_AT_ONCE = 64
_LINE = 4 * 1024 * 1024
"""The longest line or frame that a stand-in reads at once."""


class Listener:
    """One port of one member."""

    def __init__(
        self,
        application: Application,
        member: Member,
        port: int,
        *,
        slow: float,
        connected: Callable[[], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`connected` is called before every connection is served."""
        self._application = application
        self._member = member
        self._port = port
        self._slow = slow
        self._connected = connected
        self._tls = tls
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._http: Server | None = None
        if isinstance(application, HttpApplication):
            self._http = Server(partial(answer, application, member))
        self.open()

    def open(self) -> None:
        """Listen, unless it does or must not."""
        if self._socket is not None or self._member.fault == REFUSE:
            return
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setblocking(False)
            sock.bind((self._member.address, self._port))
            sock.listen(_BACKLOG)
        except OSError as error:
            sock.close()
            log.warning(
                "the stand-in %s of pod %s cannot listen on %s:%s (%s): free the port, or run the check in a network "
                "namespace of its own",
                self._member.server, self._member.name, self._member.address, self._port,
                os.strerror(error.errno or 0),
            )  # fmt: skip
            return
        self._socket = sock
        asyncio.get_running_loop().add_reader(sock.fileno(), self._accept)

    def obey(self) -> None:
        """The member's fault has changed. Open connections end with the old one's rules."""
        if self._member.fault == REFUSE:
            self.hang_up()
        else:
            self.open()
        for task in self._tasks:
            task.cancel()

    def hang_up(self) -> None:
        """Accept no more connections, from now on."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    async def close(self) -> None:
        self.hang_up()
        await end(self._tasks)
        if self._http is not None:
            await self._http.close(grace=0)

    # -------------------------------------------------------------- connections

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            if self._socket is None:
                return
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            connection.setblocking(False)
            self._connected()  # before its task: a fault that ends now ends the connections that met it
            name = f"{self._member.server} of {self._member.name}"
            task = asyncio.get_running_loop().create_task(self._talk(connection), name=name)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _talk(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        handed_over = False
        try:
            if self._member.fault == SLOW:
                await asyncio.sleep(self._slow)
            if self._member.fault == CUT:
                await loop.sock_recv(connection, 1)
                return
            handed_over = True
            if self._http is not None:
                made = ServerConnection(self._http, loop)
                await loop.connect_accepted_socket(lambda: made, connection, ssl=self._tls)
            else:
                await self._stream(connection)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            log.debug("a connection to %s ended: %s", self._member.name, error)
        finally:
            if not handed_over:
                connection.close()

    async def _stream(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_LINE)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=self._tls)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            await self._application.serve(self._member, reader, writer)
            await writer.drain()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def answer(application: HttpApplication, member: Member, request: Request) -> Response:
    """One HTTP request, under the member's fault."""
    if member.fault == ERROR:
        return Response(500, body=b'{"error": "the stand-in was asked to fail"}')
    if member.fault == WRONG:
        return await application.answer_wrong(member, request)
    return await application.answer(member, request)
