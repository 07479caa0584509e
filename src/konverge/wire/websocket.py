"""WebSockets (RFC 6455), the server's side: the handshake, and messages over a connection that was handed over.

def handler(request):
    protocol = websocket.choose(request, ("v5.channel.k8s.io", "v4.channel.k8s.io"))
    return websocket.accept(request, protocol, talk)

async def talk(socket: WebSocket) -> None:
    while (data := await socket.receive()) is not None:
        await socket.send(data)
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from konverge.wire.message import Duplex, Headers, Request, Response
from konverge.wire.websocket_frames import (
    GOING_AWAY,
    NORMAL,
    FrameReader,
    Message,
    Opcode,
    Violation,
    close_payload,
    encode,
)

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
LIMIT = 1024 * 1024
"""Bytes of one message."""
FAREWELL = 2.0
"""Seconds for the peer to answer our close frame."""


class HandshakeError(Exception):
    """The request is no handshake that we can answer; `status` is the answer to give."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def is_asked_for(request: Request) -> bool:
    """Whether a request wants to become a WebSocket."""
    wanted = request.headers.get("upgrade").lower() == "websocket"
    return wanted and "upgrade" in _tokens(request, "connection")


def offered(request: Request) -> list[str]:
    """The subprotocols that the client offers, best first."""
    values = request.headers.get_all("sec-websocket-protocol")
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def choose(request: Request, spoken: Iterable[str]) -> str:
    """The first offered subprotocol that we speak; empty when there is none."""
    known = frozenset(spoken)
    return next((name for name in offered(request) if name in known), "")


def accept(
    request: Request, protocol: str, talk: Callable[[WebSocket], Awaitable[None]], *, limit: int = LIMIT
) -> Response:
    """The answer that turns the connection into a WebSocket. Raises HandshakeError."""
    key = _checked_key(request)
    digest = hashlib.sha1(key.encode("ascii") + _MAGIC, usedforsecurity=False).digest()
    fields = {"upgrade": "websocket", "sec-websocket-accept": base64.b64encode(digest).decode("ascii")}
    if protocol:
        fields["sec-websocket-protocol"] = protocol

    async def upgrade(connection: Duplex) -> None:
        socket = WebSocket(connection, limit)
        try:
            await talk(socket)
        finally:
            await socket.close()

    return Response(101, Headers.of(fields), upgrade=upgrade)


def _checked_key(request: Request) -> str:
    if request.method != "GET" or not is_asked_for(request):
        raise HandshakeError(400, "this is no WebSocket handshake: GET with `Upgrade: websocket` is")
    if request.headers.get("sec-websocket-version") != "13":
        raise HandshakeError(426, "the only WebSocket version spoken here is 13")
    key = request.headers.get("sec-websocket-key")
    with suppress(binascii.Error, ValueError):
        if len(base64.b64decode(key, validate=True)) == 16:
            return key
    raise HandshakeError(400, "Sec-WebSocket-Key is 16 bytes in base64")


def _tokens(request: Request, name: str) -> set[str]:
    return {token.strip().lower() for value in request.headers.get_all(name) for token in value.split(",")}


class WebSocket:
    """An open WebSocket. Pings are answered automatically while messages are being received."""

    def __init__(self, connection: Duplex, limit: int = LIMIT) -> None:
        self._connection = connection
        self._frames = FrameReader(limit)
        self._waiting: deque[Message] = deque()
        self._ended = False
        """The peer has sent its close frame, or has gone."""
        self._closing = False
        """We have sent ours."""
        self._owed = False
        """Pongs were written since the peer was last seen to take what we write."""

    async def receive(self) -> bytes | None:
        """The next message; None when the peer has closed, gone, or broken the protocol."""
        while not self._ended:
            while self._waiting:
                message = self._waiting.popleft()
                if message.opcode in (Opcode.TEXT, Opcode.BINARY):
                    return message.data
                self._control(message)
            if not self._ended:
                await self._more()
        return None

    async def send(self, data: bytes, *, text: bool = False) -> None:
        """Send one message, and wait for a slow reader. Raises ConnectionError when it has gone."""
        if self._closing:
            raise ConnectionResetError("this WebSocket is closed")
        self._connection.write(encode(Opcode.TEXT if text else Opcode.BINARY, data))
        await self._connection.drain()

    def ping(self, data: bytes = b"") -> None:
        if not self._closing:
            self._connection.write(encode(Opcode.PING, data))

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Say good-bye and wait a moment for the answer."""
        self._say_close(code, reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL):
                while not self._ended:
                    self._waiting.clear()
                    await self._more()
                    for message in self._waiting:
                        self._control(message)

    @property
    def closed(self) -> bool:
        return self._closing or self._ended or self._connection.closed

    async def _more(self) -> None:
        if self._owed and not await self._taken():
            return
        data = await self._connection.read()
        if not data:
            self._ended = True
            self._say_close(GOING_AWAY, "")
            return
        try:
            self._waiting.extend(self._frames.feed(data))
        except Violation as error:
            self._ended = True
            self._say_close(error.code, str(error))

    async def _taken(self) -> bool:
        """Wait for a peer that sends pings and takes no pongs: they would pile up here."""
        self._owed = False
        try:
            await self._connection.drain()
        except ConnectionError:
            self._ended = True
        return not self._ended

    def _control(self, message: Message) -> None:
        if message.opcode is Opcode.PING and not self._closing:
            self._connection.write(encode(Opcode.PONG, message.data))
            self._owed = True
        elif message.opcode is Opcode.CLOSE:
            self._ended = True
            self._say_close(int.from_bytes(message.data[:2], "big") or NORMAL, "")

    def _say_close(self, code: int, reason: str) -> None:
        if not self._closing:
            self._closing = True
            self._connection.write(encode(Opcode.CLOSE, close_payload(code, reason)))
