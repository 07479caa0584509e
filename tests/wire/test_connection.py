"""One connection of the client: what its server may do to it between two answers, and in the midst of one."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading

import pytest

from konverge.wire import ClientLimits, ConnectionLost, ProtocolError, ReadTimeout, Request, Response, TlsOptions
from konverge.wire.connection import Connection
from konverge.wire.encode import JOIN_LIMIT

from .certificates import authority
from .memory import MemoryTransport
from .support import answering, pool_to, read_head, scripted, spin, until
from .test_time_limits import OK, Owner, now, start
from .test_tls import server_tls

GET = Request("GET", "/")
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_a_stream_that_ends_while_its_reader_rests_does_not_leave_the_socket_unread() -> None:
    size = 5000

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (size, bytes(size)))
        await read_head(reader)
        writer.write(OK)

    limits = ClientLimits(stream_buffer=1000)
    async with scripted(script) as port, pool_to(port, limits=limits) as pool:
        stream = await pool.stream(GET)
        await until(lambda: bool(pool._idle))
        assert (await pool.send(Request("POST", "/"))).body == b"ok"
        assert len(await stream.read()) == size


def connected(**limits: int | float) -> tuple[Connection, MemoryTransport]:
    connection = Connection(Owner(), ClientLimits(**limits), "server:1")  # type: ignore[arg-type]
    return connection, MemoryTransport(connection)


async def test_reading_goes_on_with_the_next_exchange_whoever_paused_it() -> None:
    connection, transport = connected(stream_buffer=100)
    answer = start(connection, streaming=True)
    connection.data_received(CHUNKED + b"fa\r\n" + bytes(250) + b"\r\n")
    stream = await answer
    assert not isinstance(stream, Response)
    assert not transport.reading
    connection.data_received(b"0\r\n\r\n")
    assert transport.reading
    assert connection.usable
    assert await stream.read() == bytes(250)
    transport.close()
    await spin(2)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("filler", [b"1;" + b"x" * 5000, b"0\r\nx: " + b"y" * 5000, b"0\r\n" + b"x: y\r\n" * 1000])
async def test_endless_extensions_and_trailers_are_cut_off(filler: bytes, streaming: bool) -> None:
    connection, transport = connected(head=2000)
    answer = start(connection, streaming=streaming)
    connection.data_received(CHUNKED + b"2\r\nab\r\n")
    for place in range(0, len(filler), 500):
        if not transport.lost:
            connection.data_received(filler[place : place + 500])
    assert transport.lost
    with pytest.raises(ProtocolError, match="trailers"):
        await (await answer).read()  # type: ignore[union-attr]


async def test_a_body_may_be_far_longer_than_the_head() -> None:
    connection, transport = connected(head=300)
    answer = start(connection)
    connection.data_received(CHUNKED)
    for _ in range(50):
        connection.data_received(b"64\r\n" + bytes(100) + b"\r\n")
    connection.data_received(b"0\r\nx: y\r\n\r\n")
    assert len((await answer).body) == 5000  # type: ignore[union-attr]
    transport.close()
    await spin(2)


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_answer_that_nobody_wants_any_more_does_not_come_with_the_next_one(streaming: bool) -> None:
    connection, transport = connected()
    answer = start(connection, streaming=streaming)
    connection.data_received(OK[:-1])
    answer.cancel()
    connection.data_received(OK[-1:])  # before the canceller gets its turn to close
    second = start(connection)
    connection.abandon(answer)
    connection.data_received(OK)
    assert (await second).body == b"ok"  # type: ignore[union-attr]
    transport.close()
    await spin(2)


@pytest.mark.virtual
async def test_a_large_request_that_is_slowly_taken_is_not_silence() -> None:
    connection = Connection(Owner(), ClientLimits(read=10), "server:1")
    transport = MemoryTransport(connection, stuck=True)
    body = bytes(20 * JOIN_LIMIT)
    answer = connection.start(b"PUT / HTTP/1.1\r\n\r\n", body, is_head=False, streaming=False, deadline=None)
    begin = now()
    while transport.written:
        await asyncio.sleep(4)
        transport.take(JOIN_LIMIT)
    assert not transport.lost
    with pytest.raises(ReadTimeout):
        await answer
    assert 80 < now() - begin < 110


# --- the end of TLS


def _serve_once(context: ssl.SSLContext, listener: socket.socket, answer: bytes, farewell: bool) -> None:
    plain, _ = listener.accept()
    with context.wrap_socket(plain, server_side=True) as secured:
        secured.recv(10_000)
        secured.sendall(answer)
        if farewell:
            secured.unwrap().close()
        else:
            socket.socket(fileno=secured.detach()).close()


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("farewell", [True, False])
async def test_over_tls_only_a_farewell_ends_a_body_of_unknown_length(farewell: bool, streaming: bool) -> None:
    """Anybody between the two can end the connection; without a farewell that would cut an answer unnoticed."""
    tls = TlsOptions(ca_data=authority().pem)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = b"HTTP/1.1 200 OK\r\n\r\nsome"
        server = threading.Thread(target=_serve_once, args=(server_tls(), listener, answer, farewell))
        server.start()
        async with pool_to(listener.getsockname()[1], scheme="https", tls=tls) as pool:
            try:
                body = await (await pool.stream(GET)).read() if streaming else (await pool.send(GET)).body
            except ConnectionLost:
                assert not farewell
            else:
                assert farewell
                assert body == b"some"
        await asyncio.to_thread(server.join)


async def test_in_the_clear_the_end_is_the_end() -> None:
    async with scripted(answering(b"HTTP/1.1 200 OK\r\n\r\nsome")) as port, pool_to(port) as pool:
        assert (await pool.send(GET)).body == b"some"
