"""Time limits of both sides, in virtual time and without sockets."""

from __future__ import annotations

import asyncio

import pytest

from konverge.wire import ClientLimits, ReadTimeout, Request, Response, Server, ServerLimits, TotalTimeout
from konverge.wire.connection import Answer, Connection
from konverge.wire.deadline import Alarm
from konverge.wire.server_connection import ServerConnection

from .memory import MemoryTransport
from .support import echo, spin

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Owner:
    def __init__(self) -> None:
        self.idle: list[Connection] = []
        self.closed: list[Connection] = []

    def connection_idle(self, connection: Connection) -> None:
        self.idle.append(connection)

    def connection_closed(self, connection: Connection) -> None:
        self.closed.append(connection)


def client(owner: Owner, **limits: float | None) -> tuple[Connection, MemoryTransport]:
    connection = Connection(owner, ClientLimits(**limits), "server:1")  # type: ignore[arg-type]
    return connection, MemoryTransport(connection)


def start(connection: Connection, *, streaming: bool = False, deadline: float | None = None) -> asyncio.Future[Answer]:
    return connection.start(GET, b"", is_head=False, streaming=streaming, deadline=deadline)


def server(
    handler: object = echo, *, stuck: bool = False, **limits: float
) -> tuple[Server, ServerConnection, MemoryTransport]:
    host = Server(handler, limits=ServerLimits(**limits))  # type: ignore[arg-type]
    connection = ServerConnection(host, asyncio.get_running_loop())
    return host, connection, MemoryTransport(connection, stuck=stuck)


async def lost(transport: MemoryTransport) -> None:
    while not transport.lost:
        await asyncio.sleep(1)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.virtual
async def test_an_alarm_rings_once_at_the_last_deadline_set() -> None:
    rung: list[float] = []
    alarm = Alarm(asyncio.get_running_loop(), lambda: rung.append(now()))
    begin = now()
    alarm.set(begin + 10)
    alarm.set(begin + 100)
    alarm.set(begin + 5)
    alarm.set(begin + 50)
    await asyncio.sleep(1000)
    assert rung == [pytest.approx(begin + 50)]
    alarm.set(now() + 10)
    alarm.set(None)
    await asyncio.sleep(1000)
    alarm.set(now() + 10)
    alarm.cancel()
    await asyncio.sleep(1000)
    assert len(rung) == 1


@pytest.mark.virtual
async def test_silence_counts_from_the_last_byte() -> None:
    owner = Owner()
    connection, transport = client(owner, read=10)
    answer = start(connection)
    begin = now()
    for byte in OK[:-1]:
        await asyncio.sleep(9)
        connection.data_received(bytes([byte]))
    with pytest.raises(ReadTimeout):
        await answer
    assert transport.lost
    # In the head silence counts from the request: a head that drips is no progress.
    assert now() - begin < 9 * len(OK) + 10


@pytest.mark.virtual
async def test_the_total_limit_ends_an_answer_that_keeps_dripping() -> None:
    connection, _ = client(Owner(), read=10)
    begin = now()
    answer = start(connection, deadline=begin + 35)
    connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while not answer.done():
        await asyncio.sleep(5)
        if not answer.done():
            connection.data_received(b"x")
    assert isinstance(answer.exception(), TotalTimeout)
    assert now() == pytest.approx(begin + 35, abs=0.01)


@pytest.mark.virtual
async def test_an_idle_connection_goes_after_its_time_and_use_renews_it() -> None:
    owner = Owner()
    connection, transport = client(owner, idle=90)
    for _ in range(3):
        answer = start(connection)
        connection.data_received(OK)
        assert isinstance(await answer, Response)
        await asyncio.sleep(80)
        assert connection.usable
    await asyncio.sleep(20)
    assert transport.lost
    assert owner.closed == [connection]


@pytest.mark.virtual
async def test_a_busy_reader_is_not_called_silent() -> None:
    connection, transport = client(Owner(), stream_read=10)
    answer = start(connection, streaming=True)
    connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nfirst")
    stream = await answer
    assert not isinstance(stream, Response)
    assert await anext(stream) == b"first"
    waiting = asyncio.ensure_future(anext(stream))
    await spin(2)
    connection.data_received(b"second")
    assert await waiting == b"second"
    await asyncio.sleep(1000)  # no reader waits, so nothing is late
    assert not transport.lost
    with pytest.raises(ReadTimeout):
        await anext(stream)


@pytest.mark.virtual
async def test_a_stream_may_be_quiet_without_a_limit() -> None:
    connection, transport = client(Owner(), read=10)
    answer = start(connection, streaming=True)
    connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    stream = await answer
    assert not isinstance(stream, Response)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(100_000)
    assert not transport.lost
    connection.data_received(b"late")
    assert await waiting == b"late"


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("sent", "after"),
    [
        (b"", 15),
        (b"GET / HT", 15),
        (GET, 180),
        (GET[:-2].replace(b"GET", b"POST") + b"content-length: 3\r\n\r\na", 120),
    ],
    ids=["silent", "half a head", "idle", "half a body"],
)
async def test_the_servers_patience(sent: bytes, after: float) -> None:
    host, connection, transport = server()
    begin = now()
    if sent:
        connection.data_received(sent)
    await spin(5)
    transport.written.clear()
    await lost(transport)
    linger = host.limits.linger
    assert now() - begin == pytest.approx(after, abs=linger + 1.1)
    assert transport.written.startswith(b"HTTP/1.1 408") == (sent not in (b"", GET))
    await spin(2)
    assert host.connections == 0


@pytest.mark.virtual
async def test_a_slow_loris_gains_nothing_by_dripping() -> None:
    _, connection, transport = server(head_time=15)
    begin = now()
    connection.data_received(b"GET / HTTP/1.1\r\n")
    while not transport.closing and not transport.half_closed:
        await asyncio.sleep(1)
        if not transport.half_closed:
            connection.data_received(b"x: y\r\n")
    assert now() - begin <= 17
    assert transport.written.startswith(b"HTTP/1.1 408")


@pytest.mark.virtual
async def test_a_handler_takes_the_time_it_needs() -> None:
    async def handler(request: Request) -> Response:
        await asyncio.sleep(10_000)
        return Response(200)

    _, connection, transport = server(handler)
    connection.data_received(GET)
    await asyncio.sleep(10_001)
    assert transport.written.startswith(b"HTTP/1.1 200")
    assert not transport.lost


@pytest.mark.virtual
@pytest.mark.parametrize("count", [1, 2])
async def test_a_peer_that_does_not_take_its_answer_is_cut_off(count: int) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, None, bytes(1_000_000))

    host, connection, transport = server(handler, stuck=True, write_time=60)
    connection.data_received(GET * count)
    begin = now()
    await lost(transport)
    assert now() - begin <= 62
    await spin(3)
    assert host.connections == 0
