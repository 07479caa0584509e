"""The client's side of an upgrade, against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.wire.errors import ConnectFailed, ConnectionLost, PoolClosed, ProtocolError, ReadTimeout
from konverge.wire.limits import ClientLimits
from konverge.wire.message import Duplex, Headers, Request, Response, Sink
from konverge.wire.pool import ConnectionPool
from konverge.wire.upgrade import REFUSAL
from tests.wire.support import pool_to, scripted, serving

pytestmark = pytest.mark.spec("C-05")

ASKED = Request("GET", "/shell", Headers.of({"connection": "Upgrade", "upgrade": "echo"}))
SWITCHES = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: Upgrade\r\n\r\n"


class Ends:
    """A duplex whose other side is the test."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[bytes] = asyncio.Queue()
        self.written = b""
        self.closed = False

    async def read(self) -> bytes:
        return await self.incoming.get()

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        await asyncio.sleep(0)


async def echo(request: Request) -> Response:
    async def talk(connection: Duplex) -> None:
        while data := await connection.read():
            connection.write(b"<" + data + b">")
            await connection.drain()

    return Response(101, Headers.of({"upgrade": "echo", "x-saw": request.target}), upgrade=talk)


async def until(ends: Ends, text: bytes) -> None:
    async with asyncio.timeout(60):
        while text not in ends.written:
            await asyncio.sleep(0.005)


async def test_after_a_101_bytes_go_both_ways_until_one_side_ends() -> None:
    async with serving(echo) as server, pool_to(server) as pool:
        answer = await pool.upgrade(ASKED)
        assert (answer.status, answer.headers.get("x-saw")) == (101, "/shell")
        assert answer.upgrade is not None
        ends = Ends()
        going = asyncio.create_task(answer.upgrade(ends))
        ends.incoming.put_nowait(b"hello")
        await until(ends, b"<hello>")
        ends.incoming.put_nowait(b"")
        await going
        async with asyncio.timeout(60):
            while pool._upgraded or server.connections:
                await asyncio.sleep(0.005)


async def test_what_came_with_the_101_and_before_the_end_arrives() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(SWITCHES + b"early ")
        await writer.drain()
        writer.write(b"late")
        writer.close()

    async with scripted(script) as port, pool_to(port) as pool:
        answer = await pool.upgrade(ASKED)
        assert answer.upgrade is not None
        ends = Ends()
        await answer.upgrade(ends)
        assert ends.written == b"early late"


async def test_a_refusal_is_an_ordinary_answer() -> None:
    async def refuse(request: Request) -> Response:
        async def produce(sink: Sink) -> None:
            sink.write(b"not ")
            sink.write(b"you")

        return Response(403, Headers.of({"x-why": "rights"}), producer=produce)

    async with serving(refuse) as server, pool_to(server) as pool:
        answer = await pool.upgrade(ASKED)
        assert (answer.status, answer.body, answer.headers.get("x-why")) == (403, b"not you", "rights")
        assert answer.upgrade is None


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"", ConnectionLost),
        (b"SSH-2.0-OpenSSH\r\n", ProtocolError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhal", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * (REFUSAL + 1), ProtocolError),
    ],
)
async def test_a_server_that_says_something_else(said: bytes, error: type[Exception]) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        writer.close()

    async with scripted(script) as port, pool_to(port) as pool:
        with pytest.raises(error):
            await pool.upgrade(ASKED)


async def test_an_interim_answer_is_passed_over() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early Hints\r\nx-early: 1\r\n\r\n" + SWITCHES)
        await writer.drain()
        writer.close()

    async with scripted(script) as port, pool_to(port) as pool:
        answer = await pool.upgrade(ASKED)
        assert (answer.status, "x-early" in answer.headers) == (101, False)
        assert answer.upgrade is not None
        await answer.upgrade(Ends())


async def test_silence_has_a_limit_and_a_pool_that_is_closed_takes_all_with_it() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with scripted(silent) as port, pool_to(port, limits=ClientLimits(read=0.05)) as pool:
        with pytest.raises(ReadTimeout):
            await pool.upgrade(ASKED)
    with pytest.raises(PoolClosed):
        await pool.upgrade(ASKED)
    async with serving(echo) as server:
        pool = ConnectionPool(f"http://127.0.0.1:{server.port}")
        answer = await pool.upgrade(ASKED)
        assert answer.upgrade is not None
        going = asyncio.create_task(answer.upgrade(Ends()))
        await asyncio.sleep(0)
        await pool.aclose()
        await going
        assert not pool._upgraded
    with pytest.raises(ConnectFailed):
        await ConnectionPool("http://127.0.0.1:1").upgrade(ASKED)


async def test_what_a_handler_opened_for_a_client_that_went_is_let_go() -> None:
    """The connection is lost while the handler works: its producer, or what follows its 101, still gets to its end."""
    begun, gone, ended = asyncio.Event(), asyncio.Event(), []

    async def handler(request: Request) -> Response:
        begun.set()
        await gone.wait()

        async def produce(sink: Sink) -> None:
            try:
                while True:
                    sink.write(b"x")
                    await sink.drain()
            finally:
                ended.append("stream")

        async def talk(connection: Duplex) -> None:
            try:
                while await connection.read():
                    pass
            finally:
                ended.append("upgrade")

        if request.target == "/stream":
            return Response(200, producer=produce)
        return Response(101, upgrade=talk)

    async with serving(handler) as server:
        for target in ("/stream", "/upgrade"):
            begun.clear()
            gone.clear()
            transport = await _asked(server.port, target)
            await begun.wait()
            gone.set()  # the handler is the next to run …
            for connection in list(server._connections):
                connection._transport.close()  # … with a connection that is closing, and not yet reported as lost
            async with asyncio.timeout(60):
                while len(ended) < (1 if target == "/stream" else 2):
                    await asyncio.sleep(0.005)
            transport.close()
    assert ended == ["stream", "upgrade"]


async def _asked(port: int, target: str) -> Any:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n".encode())
    await writer.drain()
    return writer
