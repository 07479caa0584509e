"""exec and attach for clients that speak SPDY alone: client-go before 0.29, kubectl before 1.31.

    POST …/exec?command=…  Upgrade: SPDY/3.1  X-Stream-Protocol-Version: v4.channel.k8s.io

The client opens a stream for the outcome and one for each of stdin, stdout, stderr and the size of its terminal; a
header names which it is. `SpdyChannels` shows them as the channels of a WebSocket. Upstream: createStreams
(k8s.io/kubelet/pkg/cri/streaming/remotecommand).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

from konverge.apiserver import status
from konverge.sim.kubelet.channels import ENDED, OUTCOME, RESIZE, STDERR, STDIN, STDOUT, Channels
from konverge.wire import spdy
from konverge.wire.message import Duplex, Headers, Request, Response

PROTOCOL = "v4.channel.k8s.io"
_CHANNELS = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": OUTCOME, "resize": RESIZE}
_OPENING = 30.0
"""Seconds for the client to open its streams (upstream: streamCreationTimeout)."""
_FAREWELL = 2.0
"""Seconds for the client to take what was sent last: closing at once could discard it."""


def is_asked_for(request: Request) -> bool:
    """Whether a request wants to become a SPDY connection."""
    return request.headers.get("upgrade").lower() == "spdy/3.1"


def accept(request: Request, streams: Collection[str], talk: Callable[[Channels], Awaitable[None]]) -> Response:
    """The answer that turns the connection into a session. `streams` are those that the client will open."""
    offered = {
        name.strip() for value in request.headers.get_all("x-stream-protocol-version") for name in value.split(",")
    }
    if PROTOCOL not in offered:
        raise status.bad_request(
            f"unable to upgrade: the stream protocol spoken here is {PROTOCOL}; the client offers "
            f"{', '.join(sorted(offered)) or 'none'}"
        )

    async def upgrade(connection: Duplex) -> None:
        session = SpdyChannels(connection)
        try:
            async with asyncio.timeout(_OPENING):
                await session.opened({"error", *streams})
            await talk(session)
        except (TimeoutError, spdy.SpdyError):
            return
        finally:
            await session.close()

    fields = {"upgrade": "SPDY/3.1", "x-stream-protocol-version": PROTOCOL}
    return Response(101, Headers.of(fields), upgrade=upgrade)


class SpdyChannels:
    """One session over one SPDY connection."""

    def __init__(self, connection: Duplex) -> None:
        self._connection = connection
        self._session = spdy.Session()
        self._streams: dict[int, int] = {}
        """Numbers of streams by channel."""
        self._waiting: list[bytes] = []
        self._gone = False

    async def opened(self, names: Collection[str]) -> None:
        """Wait until the client has opened these streams."""
        while not self._gone and any(_CHANNELS[name] not in self._streams for name in names):
            await self._more()

    async def receive(self) -> bytes | None:
        while not self._waiting and not self._gone:
            await self._more()
        return self._waiting.pop(0) if self._waiting else None

    async def send(self, data: bytes) -> None:
        stream = self._streams.get(data[0])
        if self._gone or stream is None or len(data) == 1:
            return
        self._connection.write(spdy.data(stream, data[1:]))
        await self._connection.drain()

    @property
    def closed(self) -> bool:
        return self._gone or self._connection.closed

    async def close(self) -> None:
        """End all streams, and wait a moment until the client has taken that."""
        with suppress(ConnectionError, TimeoutError, spdy.SpdyError):
            for channel in (STDOUT, STDERR, OUTCOME):
                if channel in self._streams and not self._gone:
                    self._connection.write(spdy.data(self._streams[channel], b"", final=True))
            async with asyncio.timeout(_FAREWELL):
                while not self._gone:
                    await self._more()

    async def _more(self) -> None:
        data = await self._connection.read()
        if not data:
            self._gone = True
            return
        for event in self._session.feed(data):
            match event:
                case spdy.Opened(stream, headers):
                    self._open(stream, headers)
                case spdy.Data(stream, payload, final):
                    self._take(stream, payload, final)
                case spdy.Pinged(answer):
                    self._connection.write(answer)
                case spdy.Leaving():
                    self._gone = True

    def _open(self, stream: int, headers: dict[str, str]) -> None:
        channel = _CHANNELS.get(headers.get("streamtype", ""))
        if channel is None or channel in self._streams:
            self._connection.write(spdy.reset(stream, spdy.REFUSED_STREAM))
            return
        self._streams[channel] = stream
        self._connection.write(self._session.reply(stream))

    def _take(self, stream: int, payload: bytes, final: bool) -> None:
        channel = next((channel for channel, number in self._streams.items() if number == stream), None)
        if channel not in (STDIN, RESIZE):
            return
        if payload:
            self._waiting.append(bytes((channel,)) + payload)
        if final and channel == STDIN:
            self._waiting.append(bytes((ENDED, STDIN)))
