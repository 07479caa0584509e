"""Streams as WebSockets: browsers open six connections to a host, and hundreds of WebSockets.

Each piece is a binary message. A refusal is the last message, and the code of the end is 4000 plus its HTTP status: a
page learns nothing else about a WebSocket that failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress

from konverge.client import ClientError
from konverge.console.answers import problem_of, refusal
from konverge.service.problems import Problem
from konverge.wire import websocket
from konverge.wire.errors import WireError
from konverge.wire.message import Request, Response, Stream
from konverge.wire.websocket import HandshakeError, WebSocket
from konverge.wire.websocket_frames import NORMAL

CODE = 4000
Pieces = AbstractAsyncContextManager[AsyncIterator[bytes]]


class Ended(Exception):
    """The stream ends with this status, and with a last message if there is one."""

    def __init__(self, status: int, body: bytes = b"") -> None:
        super().__init__(f"status {status}")
        self.status, self.body = status, body


def in_messages(request: Request, pieces: Callable[[], Pieces]) -> Response:
    """The answer that sends pieces as messages. Raises a problem for a bad handshake."""

    async def talk(socket: WebSocket) -> None:
        code = NORMAL
        try:
            async with pieces() as source:
                await _sent(socket, source)
        except Ended as end:
            code = await _last(socket, end)
        except (Problem, ClientError, WireError) as error:
            problem = problem_of(error)
            code = await _last(socket, Ended(problem.details.status, refusal(problem).body))
        await socket.close(code)

    try:
        return websocket.accept(request, "", talk)
    except HandshakeError as error:
        raise Problem(error.status, str(error)) from error


async def _last(socket: WebSocket, end: Ended) -> int:
    with suppress(ConnectionError):
        if end.body:
            await socket.send(end.body)
    return CODE + end.status


async def _sent(socket: WebSocket, pieces: AsyncIterator[bytes]) -> None:
    """Send until there is no more, or until the other side closes. Raises what the pieces raise."""
    sending = asyncio.create_task(_send(socket, pieces), name="konverge.console.send")
    listening = asyncio.create_task(_listen(socket), name="konverge.console.listen")
    try:
        await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
    finally:
        sending.cancel()
        listening.cancel()
        await asyncio.wait((sending, listening))
    if not sending.cancelled() and (error := sending.exception()) is not None:
        raise error


async def _send(socket: WebSocket, pieces: AsyncIterator[bytes]) -> None:
    async for piece in pieces:
        try:
            await socket.send(piece)
        except ConnectionError:
            return


async def _listen(socket: WebSocket) -> None:
    while await socket.receive() is not None:
        pass  # there is nothing to say in this direction; pings are answered meanwhile


async def lines(stream: Stream) -> AsyncIterator[bytes]:
    """The lines of a stream that are not empty: the events of a watch."""
    begun: list[bytes] = []
    async for chunk in stream:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for following in others:
            if line := b"".join(begun).strip():
                yield line
            begun = [following]
    if line := b"".join(begun).strip():
        yield line
