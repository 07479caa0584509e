"""The client: a pool of kept-alive connections to one server.

**Which requests are sent a second time.** A server may close a kept-alive connection at the very moment we use it.
When a *reused* connection ends before the first byte of an answer, we do what Go's net/http does: GET, HEAD, OPTIONS
and TRACE are sent again on another connection; any other request is not, because the server may have acted on it
(the caller gets StaleConnection and decides). What is left for those is to make the case rare: before a connection that
has been idle for more than a moment is reused for one of them, its socket is asked whether the end of the stream
already waits there (one poll call), and such a connection is dropped before anything is written. Every attempt uses up
one stale connection, and a fresh one is never stale, so this ends.

**Cancellation.** A cancelled exchange closes its connection, unless its answer had already arrived whole.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from konverge.wire.address import Address
from konverge.wire.connection import Answer, Connection
from konverge.wire.connector import Connector
from konverge.wire.encode import RequestEncoder
from konverge.wire.errors import ConnectFailed, ConnectionLost, PoolClosed, PoolTimeout, StaleConnection, TotalTimeout
from konverge.wire.limits import ClientLimits
from konverge.wire.message import Request, Response
from konverge.wire.stream import ResponseStream
from konverge.wire.tls import TlsOptions

if TYPE_CHECKING:
    from konverge.wire.proxy import Proxy
    from konverge.wire.upgrade import Switching

_REPLAYABLE = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
ARRIVALS = 64 * 1024
"""Bytes taken from a socket at a time: four records of TLS."""
_CLOSE_TIME = 1.0
"""For TLS farewells when the pool closes; a peer that does not answer them is cut off."""


class ConnectionPool:
    """A `Transport` over sockets. Belongs to the event loop that uses it first."""

    def __init__(
        self,
        base_url: str,
        *,
        tls: TlsOptions | ssl.SSLContext | None = None,
        limits: ClientLimits | None = None,
        proxy: Proxy | None = None,
        gzip: bool = True,
    ) -> None:
        address = Address.parse(base_url)
        self.limits = limits or ClientLimits()
        self._name = address.host_and_port
        self._connector = Connector(address, tls, proxy, self.limits)
        prefix, extra = address.prefix, b""
        if proxy is not None and not proxy.socks and not address.tls:
            prefix, extra = f"http://{address.authority}{address.prefix}", proxy.authorization_line
        self._encoder = RequestEncoder(address.authority, prefix=prefix, gzip=gzip, extra=extra)
        self.arrivals = memoryview(bytearray(ARRIVALS))
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._upgraded: set[Switching] = set()
        self._slots = self.limits.connections
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()
        self._closed = False
        self._emptied: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"ConnectionPool({self._name}, {len(self._all)} open, {len(self._idle)} idle)"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def send(self, request: Request) -> Coroutine[Any, Any, Response]:
        timeout = request.timeout if request.timeout is not None else self.limits.total
        return cast("Coroutine[Any, Any, Response]", self._exchange(request, timeout, streaming=False))

    def stream(self, request: Request) -> Coroutine[Any, Any, ResponseStream]:
        """See `Transport`. A request's timeout covers the whole stream; the pool's total limit does not apply."""
        return cast("Coroutine[Any, Any, ResponseStream]", self._exchange(request, request.timeout, streaming=True))

    async def upgrade(self, request: Request) -> Response:
        """Ask for an upgrade, on a connection of its own. After a 101 the answer's `upgrade` is what follows."""
        from konverge.wire.upgrade import Switching  # needed by few

        if self._closed:
            raise self._is_closed()
        connection = Switching(self._name)
        await self._connector.reach(connection)
        self._upgraded.add(connection)
        connection.closed.add_done_callback(lambda _: self._upgraded.discard(connection))
        return await connection.ask(self._encoder.encode(request), request.body, self.limits)

    async def aclose(self) -> None:
        """Close every connection, also those in use, and wait until they are closed."""
        self._closed = True
        for upgraded in list(self._upgraded):
            upgraded.close()
            await asyncio.shield(upgraded.closed)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(self._is_closed())
        for connection in list(self._all):
            if connection.usable:
                connection.close()
            else:
                connection.abort(ConnectionLost(f"the pool of connections to {self._name} was closed meanwhile"))
        if not self._all:
            return
        if self._emptied is None:
            self._emptied = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(_CLOSE_TIME):
                await asyncio.shield(self._emptied)
        except TimeoutError:
            for connection in list(self._all):
                connection.abort()
            await asyncio.shield(self._emptied)

    # --- the exchange ---------------------------------------------------------------------------------------------

    async def _exchange(self, request: Request, timeout: float | None, *, streaming: bool) -> Answer:
        head = self._encoder.encode(request)
        method, body = request.method, request.body
        replayable = method in _REPLAYABLE
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while True:
            connection = self._take_idle(replayable) or await self._acquire(deadline)
            answer = connection.start(head, body, is_head=method == "HEAD", streaming=streaming, deadline=deadline)
            try:
                return await answer
            except asyncio.CancelledError:
                connection.abandon(answer)
                raise
            except StaleConnection:
                if not replayable:
                    raise

    def _take_idle(self, replayable: bool) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()  # the youngest: the others may grow old and be closed
            if connection.usable and (replayable or connection.silent()):
                return connection
            connection.abort()
        return None

    async def _acquire(self, deadline: float | None) -> Connection:
        """A connection that is not idle now: a new one, or the next one that is released."""
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    connection = await self._next_connection()
                    if connection.usable and not self._closed:
                        return connection
                    connection.abort()
        except TimeoutError as error:
            if isinstance(error, ConnectionError):
                raise
            raise TotalTimeout(f"no connection to {self._name} in the time of the request; allow more") from error

    async def _next_connection(self) -> Connection:
        if self._closed:
            raise self._is_closed()
        if self._slots > 0:
            self._slots -= 1
        else:
            connection = await self._wait_for_turn()
            if connection is not None:
                return connection
        try:
            connection = await self._connector.connect(self)
        except BaseException:
            self._free_slot()
            raise
        self._all.add(connection)
        if not connection.usable:
            self.connection_closed(connection)
            raise ConnectFailed(f"{self._name} accepted a connection and closed it; check its log and its limits")
        return connection

    async def _wait_for_turn(self) -> Connection | None:
        """A connection that was given back, or None: the right to make a new one."""
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(self.limits.acquire):
                return await waiter
        except BaseException as error:
            self._decline(waiter)
            if isinstance(error, TimeoutError):
                raise PoolTimeout(
                    f"all {self.limits.connections} connections to {self._name} stayed busy; "
                    "close streams that are no longer read, or raise the limit"
                ) from error
            raise

    def _decline(self, waiter: asyncio.Future[Connection | None]) -> None:
        """A waiter gives up: what it may have been given meanwhile goes to the next one."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        if not waiter.done() or waiter.cancelled() or waiter.exception() is not None:
            return
        connection = waiter.result()
        if connection is None:
            self._free_slot()
        elif connection.usable:
            self.connection_idle(connection)

    def _free_slot(self) -> None:
        waiter = self._first_waiter()
        if waiter is None:
            self._slots += 1
        else:
            waiter.set_result(None)

    def _first_waiter(self) -> asyncio.Future[Connection | None] | None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter
        return None

    def _is_closed(self) -> PoolClosed:
        return PoolClosed(f"the pool of connections to {self._name} is closed; make a new one")

    # --- Owner, for the connections -------------------------------------------------------------------------------

    def connection_idle(self, connection: Connection) -> None:
        if self._closed:
            connection.close()
        elif (waiter := self._first_waiter()) is not None:
            waiter.set_result(connection)
        else:
            self._idle.append(connection)

    def connection_closed(self, connection: Connection) -> None:
        if connection not in self._all:
            return  # lost while it was being made: the connector reports it
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._free_slot()
        if not self._all and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)
