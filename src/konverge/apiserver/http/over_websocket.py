"""A streamed answer as messages of a WebSocket: browsers, and some clients, read logs and watches in this way.

Upstream: streaming/pkg/httpstream/wsstream/stream.go (logs), HandleWS in apiserver/pkg/endpoints/handlers/watch.go.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from konverge.apiserver import status
from konverge.wire import websocket
from konverge.wire.message import Producer, Request, Response
from konverge.wire.websocket import WebSocket

BINARY, BASE64 = "binary.k8s.io", "base64.binary.k8s.io"
_CREDENTIALS = "base64url.bearer.authorization.k8s.io."
_AHEAD = 256 * 1024
"""Bytes that may wait for the client before a producer that drains has to wait."""
Cut = Callable[[bytes], Iterable[bytes]]
"""What was written at once, as messages."""


def log(request: Request, producer: Producer) -> Response:
    """Bytes as they come, after an empty message that says that the log has been found."""
    offered = _offered(request)
    protocol = websocket.choose(request, (BINARY, BASE64))
    if offered and not protocol:
        raise status.bad_request(
            f"requested protocol(s) are not supported: [{' '.join(offered)}]; supports [{BINARY} {BASE64}]"
        )
    text = protocol == BASE64
    encode: Cut = (lambda data: [base64.b64encode(data)]) if text else (lambda data: [data])
    return _accept(request, protocol, partial(_stream, producer, encode, text, first=(b"",)))


def watch(request: Request, producer: Producer) -> Response:
    """Each event is a message."""
    return _accept(request, next(iter(_offered(request)), ""), partial(_stream, producer, _lines, True))


def _offered(request: Request) -> list[str]:
    """The subprotocols that a client offers, without the one that carries its token."""
    return [name for name in websocket.offered(request) if not name.startswith(_CREDENTIALS)]


def _lines(data: bytes) -> Iterable[bytes]:
    return [line + b"\n" for line in data.split(b"\n") if line]


def _accept(request: Request, protocol: str, talk: Callable[[WebSocket], Awaitable[None]]) -> Response:
    try:
        return websocket.accept(request, protocol, talk)
    except websocket.HandshakeError as error:
        raise status.bad_request(f"unable to upgrade the connection: {error}") from None


async def _stream(producer: Producer, cut: Cut, text: bool, socket: WebSocket, *, first: Iterable[bytes] = ()) -> None:
    """Until the answer ends or the client goes; what the client says is left unread."""
    sink = _Messages(socket, cut, text, first)
    tasks = [
        asyncio.create_task(_until_gone(socket), name="websocket: client"),
        asyncio.create_task(sink.run(), name="websocket: messages"),
        asyncio.create_task(_produced(producer, sink), name="websocket: producer"),
    ]
    try:
        await asyncio.wait(tasks[:2], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    failures = [task.exception() for task in tasks if not task.cancelled()]
    for failure in failures:
        if failure is not None and not isinstance(failure, ConnectionError):
            raise failure


async def _until_gone(socket: WebSocket) -> None:
    while await socket.receive() is not None:
        continue


async def _produced(producer: Producer, sink: _Messages) -> None:
    try:
        await producer(sink)
    finally:
        sink.end()


class _Messages:
    """See `konverge.wire.message.Sink`: what is written becomes messages."""

    def __init__(self, socket: WebSocket, cut: Cut, text: bool, first: Iterable[bytes]) -> None:
        self._socket, self._cut, self._text = socket, cut, text
        self._waiting: deque[bytes] = deque(first)
        self._size = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._taken = asyncio.Event()

    def write(self, data: bytes) -> None:
        if data and not self.closed:
            for message in self._cut(data):
                self._waiting.append(message)
                self._size += len(message)
            self._changed.set()

    async def drain(self) -> None:
        while self._size > _AHEAD and not self.closed:
            self._taken.clear()
            await self._taken.wait()  # `_stream` ends this when the client goes
        if self.closed:
            raise ConnectionResetError("the reader of this stream has gone; stop writing")

    @property
    def buffered(self) -> int:
        return self._size

    @property
    def closed(self) -> bool:
        return self._socket.closed

    def end(self) -> None:
        """Nothing more is written."""
        self._ended = True
        self._changed.set()

    async def run(self) -> None:
        """Send until the end."""
        while True:
            while self._waiting:
                message = self._waiting.popleft()
                await self._socket.send(message, text=self._text)
                self._size -= len(message)
                self._taken.set()
            if self._ended:
                return
            self._changed.clear()
            await self._changed.wait()
