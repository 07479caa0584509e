"""The client's side of an upgrade: one request, its answer, and after a 101 both directions of the connection.

The answer is a `Response` as handlers give it: its `upgrade` copies bytes between the server and whoever asked. So what
stands between a browser and a server can hand on a WebSocket without knowing anything of its frames.
"""

from __future__ import annotations

import asyncio
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from konverge.wire.errors import ConnectionLost, ProtocolError, ReadTimeout, WireError
from konverge.wire.limits import ClientLimits
from konverge.wire.message import SPACE, Duplex, Headers, Response
from konverge.wire.sink import Tunnel

REFUSAL = 1024 * 1024
"""Bytes of an answer that is no 101, head and body together."""


class Switching(asyncio.Protocol):
    """A connection on which one request asks for an upgrade."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parser = HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._status = 0
        self._transport: asyncio.Transport | None = None
        self._tunnel: Tunnel | None = None
        self._answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, head: bytes, body: bytes, limits: ClientLimits) -> Response:
        """Send the request. The answer's `upgrade`, if it has one, must be run or `close` be called."""
        assert self._transport is not None
        self._transport.write(head + body)
        try:
            async with asyncio.timeout(limits.read):
                return await self._answer
        except TimeoutError as error:
            self.close()
            raise ReadTimeout(f"{self._name} has not answered for {limits.read:g} s; try again") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            self._tunnel.feed(data)
            return
        self._size += len(data)
        try:
            if self._size > REFUSAL:
                raise ProtocolError(f"{self._name} sent more than {REFUSAL} bytes in place of an upgrade")
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._switch(data[upgrade.args[0] :])
        except (HttpParserError, WireError) as error:
            self._fail(ProtocolError(f"{self._name} did not answer the upgrade in HTTP/1.1 ({error})"))

    def eof_received(self) -> None:
        if self._tunnel is not None:
            self._tunnel.end()

    def connection_lost(self, error: Exception | None) -> None:
        if self._tunnel is not None:
            self._tunnel.end()
            self._tunnel.resume()
        self._fail(ConnectionLost(f"{self._name} closed the connection before it answered"))
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        if self._tunnel is not None:
            self._tunnel.pause()

    def resume_writing(self) -> None:
        if self._tunnel is not None:
            self._tunnel.resume()

    # --- httptools ------------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value.rstrip(SPACE)))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 200 and self._status != 101:
            self._headers = []

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        if self._status >= 200 and not self._answer.done():
            self._answer.set_result(Response(self._status, Headers(self._headers), b"".join(self._body)))
            self.close()

    # --- inner steps ----------------------------------------------------------------------------------------------

    def _switch(self, rest: bytes) -> None:
        assert self._transport is not None
        if self._answer.done():  # its asker has gone
            self.close()
            return
        tunnel = self._tunnel = Tunnel(self._transport, paused=False)
        if rest:
            tunnel.feed(rest)

        async def upgrade(asker: Duplex) -> None:
            try:
                await copied(asker, tunnel)
            finally:
                self.close()

        self._answer.set_result(Response(101, Headers(self._headers), upgrade=upgrade))

    def _fail(self, error: WireError) -> None:
        if not self._answer.done():
            self._answer.set_exception(error)
            self._answer.exception()  # read here: whoever asked may have gone
        if self._transport is not None:
            self._transport.abort()


async def copied(one: Duplex, other: Duplex) -> None:
    """Copy both ways until either side ends. What the side that ended has sent by then reaches the other."""
    ways = [
        asyncio.create_task(_copy(one, other), name="konverge.wire.upgrade.out"),
        asyncio.create_task(_copy(other, one), name="konverge.wire.upgrade.in"),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)
    for way in ways:
        if not way.cancelled() and (error := way.exception()) is not None:
            raise error


async def _copy(source: Duplex, target: Duplex) -> None:
    while data := await source.read():
        target.write(data)
        await target.drain()
