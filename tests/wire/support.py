"""What the wire's tests share: servers and pools on loopback, peers that send bytes of our choosing."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from konverge.wire import ConnectionPool, Handler, Headers, Request, Response, Server

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(request: Request) -> Response:
    """Answers with what it was asked."""
    headers = Headers.of({"content-type": "text/plain", "x-method": request.method, "x-target": request.target})
    return Response(200, headers, request.body or b"hello")


@contextlib.asynccontextmanager
async def serving(handler: Handler = echo, *, ssl: Any = None, **options: Any) -> AsyncIterator[Server]:
    server = Server(handler, **options)
    await server.start(ssl=ssl)
    try:
        yield server
    finally:
        await server.close(grace=0)


@contextlib.asynccontextmanager
async def pool_to(server: Server | int, *, scheme: str = "http", **options: Any) -> AsyncIterator[ConnectionPool]:
    port = server if isinstance(server, int) else server.port
    async with ConnectionPool(f"{scheme}://127.0.0.1:{port}", **options) as pool:
        yield pool


@contextlib.asynccontextmanager
async def both(handler: Handler = echo, **options: Any) -> AsyncIterator[tuple[Server, ConnectionPool]]:
    async with serving(handler, **options) as server, pool_to(server) as pool:
        yield server, pool


@contextlib.asynccontextmanager
async def scripted(*scripts: Script, ssl: Any = None) -> AsyncIterator[int]:
    """A server that plays one script per connection, in order (the last one for all further ones); gives its port."""
    count = 0
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        script = scripts[min(count, len(scripts) - 1)]
        count += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await script(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=ssl)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await spin(3)  # a connection that was just accepted gets its task
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
        await spin(2)


async def read_head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def answering(*answers: bytes) -> Script:
    """Gives one answer per request and then closes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await read_head(reader)
            writer.write(answer)
            await writer.drain()

    return script


def holding(answer: bytes) -> Script:
    """Gives one answer and then neither says anything nor closes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(answer)
        await reader.read()

    return script


class RawClient:
    """A client made of bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, *, head_only: bool = False) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, header fields, body (with a length or in chunks)."""
        head = await read_head(self.reader)
        line, *fields = head[:-4].decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
        status = int(line.split()[1])
        body = b""
        if status < 200 or head_only:
            return status, headers, body
        if headers.get("transfer-encoding") == "chunked":
            body = await self._chunks()
        elif "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        return status, headers, body

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)
        return body

    async def rest(self) -> bytes:
        """Everything until the server closes, cleanly or not."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    def reset(self) -> None:
        """Close with a TCP reset."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def raw_client(server: Server, **options: Any) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, **options)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def spin(times: int) -> None:
    """Let the loop run some rounds."""
    for _ in range(times):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the test's time limit is the only limit."""
    while not condition():
        await asyncio.sleep(0)
