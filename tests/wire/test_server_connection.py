"""One connection of the server: its last answer, and peers that are slow to take it."""

from __future__ import annotations

import asyncio
import errno
import gc
import itertools

import pytest

from konverge.wire import Headers, Request, Response, Server, Sink
from konverge.wire.server_connection import ServerConnection

from .memory import MemoryTransport
from .support import echo, raw_client, serving, spin, until
from .test_time_limits import lost, now, server

GET = b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n"


async def test_nothing_is_begun_behind_an_answer_that_says_close() -> None:
    """A client takes what it asked behind such an answer for not begun, and asks again elsewhere."""
    begun: list[str] = []

    async def handler(request: Request) -> Response:
        begun.append(request.target)
        close = request.target == "/1"
        return Response(200, Headers.of({"connection": "close"}) if close else None, request.target.encode())

    async with serving(handler) as server, raw_client(server) as client:
        client.write(b"".join(GET % number for number in range(2000)))
        assert (await client.answer())[2] == b"/0"
        status, headers, body = await client.answer()
        assert (status, headers["connection"], body) == (200, "close", b"/1")
        assert await client.rest() == b""
        assert begun == ["/0", "/1"]
    await until(lambda: server.connections == 0)


async def test_a_closing_server_says_so_with_the_last_of_what_it_has_read() -> None:
    started, gate = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        await gate.wait()
        return Response(200, None, request.target.encode())

    host = await Server(handler).start()
    async with raw_client(host) as client:
        client.write(b"".join(GET % number for number in range(3)))
        await started.wait()
        closing = asyncio.create_task(host.close(grace=30))
        await until(lambda: host._closing)
        gate.set()
        for number, connection in enumerate(("", "", "close")):
            _, headers, body = await client.answer()
            assert (body, headers.get("connection", "")) == (b"/%d" % number, connection)
        assert await client.rest() == b""
        await closing


@pytest.mark.virtual
@pytest.mark.parametrize("last", [True, False])
async def test_a_slow_reader_gets_its_answer_as_long_as_it_reads(last: bool) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, Headers.of({"connection": "close"}) if last else None, bytes(1_000_000))

    host, connection, transport = server(handler, stuck=True, write_time=60)
    connection.data_received(GET % 1)
    begin = now()
    while len(transport.written) > 500_000 or not transport.written:
        await asyncio.sleep(50)
        transport.take(50_000)
        assert not transport.lost
    assert now() - begin > 400
    await lost(transport)  # it has stopped reading
    assert now() - begin < 700
    await asyncio.sleep(1)
    assert host.connections == 0


class Reset(MemoryTransport):
    """The socket of a peer that has reset the connection, as asyncio shows it until it reads again."""

    def write_eof(self) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")


async def test_a_refusal_to_a_peer_that_has_gone_ends_quietly() -> None:
    host = Server(echo)
    connection = ServerConnection(host, asyncio.get_running_loop())
    transport = Reset(connection)
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context))
    connection.data_received(b"garbage\r\n\r\n")
    await until(lambda: transport.lost)
    await spin(3)
    gc.collect()
    assert failures == []
    assert host.connections == 0


@pytest.mark.parametrize("sent", [GET % 1, b"garbage\r\n\r\n"])
async def test_nothing_is_written_to_a_connection_that_is_lost_and_has_not_said_so(sent: bytes) -> None:
    """uvloop refuses to write from the moment of the loss; we hear of it a round of the loop later."""
    host = Server(echo)
    connection = ServerConnection(host, asyncio.get_running_loop())
    transport = MemoryTransport(connection)
    connection.data_received(sent)
    transport.closing = True
    await spin(5)
    assert transport.written == b""
    connection.connection_lost(None)
    assert host.connections == 0


async def test_a_burst_of_requests_lets_others_run() -> None:
    rounds: list[int] = []
    loop = asyncio.get_running_loop()

    def count() -> None:
        rounds.append(len(answered))
        if len(answered) < 1000:
            loop.call_soon(count)

    answered: list[str] = []

    async def handler(request: Request) -> Response:
        answered.append(request.target)
        return Response(200)

    host = Server(handler)
    connection = ServerConnection(host, loop)
    transport = MemoryTransport(connection)
    connection.data_received((GET % 1) * 1000)
    count()
    await until(lambda: len(answered) == 1000)
    assert max(after - before for before, after in itertools.pairwise(rounds)) <= 20
    transport.close()
    await spin(3)


async def test_nothing_follows_a_stream_that_was_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(sink: Sink) -> None:
        sink.write(b"begun")
        raise ValueError("what happened")

    async def handler(request: Request) -> Response:
        return Response(200, producer=fail) if request.target == "/0" else Response(200, None, b"smuggled")

    async with serving(handler) as server, raw_client(server) as client:
        client.write(b"".join(GET % number for number in range(3)))
        await client.answer(head_only=True)
        assert await client.rest() == b"5\r\nbegun\r\n"
    assert "what happened" in caplog.text
