"""The client's pool over real sockets: reuse, stale connections, limits, cancellation, broken servers."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from konverge.wire import (
    BodyTooLarge,
    ClientLimits,
    ConnectFailed,
    ConnectionLost,
    ConnectionPool,
    ConnectTimeout,
    Headers,
    NotSent,
    PoolClosed,
    PoolTimeout,
    ProtocolError,
    ReadTimeout,
    Request,
    Response,
    Server,
    Sink,
    StaleConnection,
    TotalTimeout,
    WireError,
)

from .support import answering, both, echo, holding, pool_to, raw_client, read_head, scripted, serving, spin, until

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
GET = Request("GET", "/")


async def test_exchanges_share_one_connection() -> None:
    async with both() as (server, pool):
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            body = b"x" * 200_000 if method == "PUT" else b""
            response = await pool.send(Request(method, "/a?b=c", body=body))
            assert response.status == 200
            assert response.headers.get("X-Method") == method
            assert response.headers.get("x-target") == "/a?b=c"
            assert response.body == (b"" if method == "HEAD" else body or b"hello")
        assert server.connections == 1


async def test_concurrent_exchanges_get_connections_of_their_own() -> None:
    async with both() as (server, pool):
        answers = await asyncio.gather(*(pool.send(Request("POST", "/", body=b"%d" % n)) for n in range(20)))
        assert [answer.body for answer in answers] == [b"%d" % n for n in range(20)]
        assert server.connections == 20


async def test_the_base_urls_path_is_a_prefix() -> None:
    async with serving() as server, ConnectionPool(f"http://127.0.0.1:{server.port}/k8s/c-1/") as pool:
        assert (await pool.send(Request("GET", "/api"))).headers.get("x-target") == "/k8s/c-1/api"


async def test_what_a_request_looks_like() -> None:
    seen: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen.append(await read_head(reader))
            writer.write(OK)

    async with scripted(script) as port, pool_to(port) as pool:
        await pool.send(Request("GET", "/a", Headers.of({"Accept": "x"})))
        await pool.send(Request("POST", "/b", Headers.of({"Content-Length": "7", "Transfer-Encoding": "chunked"})))
        await pool.send(Request("GET", "/c", Headers.of({"host": "other", "accept-encoding": "identity"})))
    assert seen == [
        b"GET /a HTTP/1.1\r\nhost: 127.0.0.1:%d\r\naccept-encoding: gzip\r\naccept: x\r\n\r\n" % port,
        b"POST /b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\naccept-encoding: gzip\r\ncontent-length: 0\r\n\r\n" % port,
        b"GET /c HTTP/1.1\r\nhost: other\r\naccept-encoding: identity\r\n\r\n",
    ]


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", "/a b"),
        Request("GET", "/ä"),
        Request("GET", "/\r\nx: y"),
        Request("GET", ""),
        Request("get", "/"),
        Request("GET", "/", Headers.of({"x": "a\r\nb: c"})),
        Request("GET", "/", Headers.of({"x": "a\nb"})),
        Request("GET", "/", Headers.of({"x\r\n": "a"})),
        Request("GET", "/", Headers.of({"x": "\0"})),
        Request("GET", "/", Headers.of({"": "a"})),
        Request("GET", "/", Headers.of({"a b": "c"})),
        Request("GET", "/", Headers.of({"host: x": "a"})),
    ],
    ids=repr,
)
async def test_nothing_is_smuggled_into_a_request(request_: Request) -> None:
    async with both() as (server, pool):
        with pytest.raises(ValueError, match=r"percent-encode|line break|no name"):
            await pool.send(request_)
        assert server.connections == 0


# --- stale connections


async def _prepared(pool: ConnectionPool) -> None:
    assert (await pool.send(GET)).body == b"ok"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
async def test_a_stale_connection_is_replaced_for_a_safe_request(method: str) -> None:
    async def closes_on_second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(OK)
        await read_head(reader)

    async with scripted(closes_on_second, answering(OK)) as port, pool_to(port) as pool:
        await _prepared(pool)
        assert (await pool.send(Request(method, "/"))).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_stale_connection_is_reported_for_a_request_that_may_have_worked(method: str) -> None:
    received: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(OK)
        received.append(await read_head(reader))

    async with scripted(script) as port, pool_to(port) as pool:
        await _prepared(pool)
        with pytest.raises(StaleConnection, match="read before trying again"):
            await pool.send(Request(method, "/"))
        assert len(received) == 1


async def test_an_end_that_already_waits_is_seen_before_a_post() -> None:
    """The server's FIN is in the kernel, but the loop has not looked: nothing may be written to that connection."""
    async with serving() as server, pool_to(server) as pool:
        await pool.send(GET)
        (connection,) = pool._idle
        assert connection.silent()
        transport = connection._transport
        assert transport is not None
        transport.pause_reading()
        (theirs,) = server._connections
        theirs.abort()
        await until(lambda: not connection.silent())
        assert connection.usable
        assert (await pool.send(Request("POST", "/", body=b"x"))).body == b"x"
        assert connection not in pool._all or not connection.usable


async def test_a_fresh_connection_is_not_tried_again() -> None:
    count = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await read_head(reader)

    async with scripted(script) as port, pool_to(port) as pool:
        with pytest.raises(ConnectionLost, match="before it answered"):
            await pool.send(GET)
        assert count == 1


async def test_bytes_that_nobody_asked_for_end_an_idle_connection() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(OK)
        await writer.drain()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async with scripted(script, answering(OK)) as port, pool_to(port) as pool:
        await _prepared(pool)
        await _prepared(pool)


# --- answers of all kinds

WHOLE = {
    "length": (OK, b"ok"),
    "chunks": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\nt: x\r\n\r\n",
        b"ok",
    ),
    "until the end": (b"HTTP/1.1 200 OK\r\n\r\nok", b"ok"),
    "1.0": (b"HTTP/1.0 200 OK\r\n\r\nok", b"ok"),
    "no reason": (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok", b"ok"),
    "continue first": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" + OK, b"ok"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "304": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", b""),
    "close": (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok", b"ok"),
    "gzip": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b"
        % (len(gzip.compress(b"ok")), gzip.compress(b"ok")),
        b"ok",
    ),
    "space behind values": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip \r\ntransfer-encoding: chunked  \r\n\r\n16\r\n%b\r\n0\r\n\r\n"
        % gzip.compress(b"ok"),
        b"ok",
    ),
    "gzip, empty": (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n", b""),
    "gzip, two members": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"o") + gzip.compress(b"k"),
        b"ok",
    ),
    "garbage behind": (OK + b"garbage", b"ok"),
    "a second answer": (OK + OK, b"ok"),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_whole_answers(name: str) -> None:
    data, body = WHOLE[name]
    async with scripted(answering(data), answering(OK)) as port, pool_to(port) as pool:
        response = await pool.send(GET)
        assert response.body == body
        assert "content-encoding" not in response.headers
        assert (await pool.send(GET)).body == b"ok"
    async with scripted(answering(data), answering(OK)) as port, pool_to(port) as pool:
        stream = await pool.stream(GET)
        assert await stream.read() == body
        await stream.aclose()
        assert (await pool.send(GET)).body == b"ok"


BROKEN = {
    "not HTTP": (b"SSH-2.0-OpenSSH\r\n", ProtocolError),
    "both framings": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ProtocolError,
    ),
    "two lengths": (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!", ProtocolError),
    "huge status": (b"HTTP/1.1 99999 OK\r\n\r\n", ProtocolError),
    "bad chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", ProtocolError),
    "huge chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n", ProtocolError),
    "other encoding": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nx", ProtocolError),
    "switching": (b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", ProtocolError),
    "long head": (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 600_000, ProtocolError),
    "many fields": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1200 + b"content-length: 0\r\n\r\n", ProtocolError),
    "endless 1xx": (b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000, ProtocolError),
    "NUL": (b"HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n", ProtocolError),
    "bare LF": (b"HTTP/1.1 200 OK\ncontent-length: 0\n\n", ProtocolError),
    "nothing": (b"", ConnectionLost),
    "half a head": (b"HTTP/1.1 200 OK\r\ncont", ConnectionLost),
    "short body": (b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nok", ConnectionLost),
    "no last chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", ConnectionLost),
    "too large": (b"HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n" + bytes(2000), BodyTooLarge),
    "bad gzip": (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope", ProtocolError),
    "short gzip": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"ok" * 99)[:-9],
        ProtocolError,
    ),
    "gzip bomb": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(bytes(50_000_000)),
        BodyTooLarge,
    ),
}


async def _streamed(pool: ConnectionPool) -> bytes:
    stream = await pool.stream(GET)
    return await stream.read()


@pytest.mark.parametrize("name", BROKEN)
async def test_broken_answers_are_errors_and_leave_a_working_pool(name: str) -> None:
    data, error = BROKEN[name]
    limits = ClientLimits(body=1000, head=100_000)
    async with scripted(answering(data), answering(data), answering(OK)) as port, pool_to(port, limits=limits) as pool:
        with pytest.raises(error):
            await pool.send(GET)
        with pytest.raises(error):
            await _streamed(pool)
        assert (await pool.send(GET)).body == b"ok"


async def test_a_head_answer_may_state_a_length() -> None:
    async with (
        scripted(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n", OK)) as port,
        pool_to(port) as pool,
    ):
        assert (await pool.send(Request("HEAD", "/"))).headers.get("content-length") == "500"
        assert (await pool.send(GET)).body == b"ok"


async def test_a_head_answer_with_a_body_is_the_last_of_its_connection() -> None:
    wrong = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno"
    async with scripted(answering(wrong, OK), answering(OK)) as port, pool_to(port) as pool:
        assert (await pool.send(Request("HEAD", "/"))).body == b""
        assert (await pool.send(GET)).body == b"ok"


async def test_an_early_answer_to_a_large_upload_closes_the_connection() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        await reader.read()

    async with scripted(script, answering(OK)) as port, pool_to(port) as pool:
        assert (await pool.send(Request("PUT", "/", body=bytes(50_000_000)))).status == 413
        assert (await pool.send(GET)).body == b"ok"


async def test_idle_connections_keep_no_bodies() -> None:
    async with both() as (server, pool):
        await pool.send(Request("POST", "/", body=bytes(1_000_000)))
        (ours,) = pool._all
        (theirs,) = server._connections
        for body in (ours._body, theirs._reader._body):
            assert (body.size, body._pieces, body._joined) == (0, [], [])


# --- limits


async def test_connect_failures_say_what_to_do() -> None:
    async with serving() as server:
        port = server.port
    async with pool_to(port) as pool:
        with pytest.raises(ConnectFailed, match="check that it runs") as caught:
            await pool.send(GET)
    assert isinstance(caught.value, NotSent)
    assert isinstance(caught.value, ConnectionError)


async def test_connect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*args: object, **options: object) -> None:
        await asyncio.Event().wait()

    async with pool_to(1, limits=ClientLimits(connect=0.01)) as pool:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
        with pytest.raises(ConnectTimeout, match="firewall") as caught:
            await pool.send(GET)
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(TotalTimeout):
            await pool.send(Request("GET", "/", timeout=0.001))


async def test_the_systems_own_connect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(*args: object, **options: object) -> None:
        raise TimeoutError(110, "Connection timed out")

    async with pool_to(1, limits=ClientLimits(connect=None)) as pool:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", late)
        with pytest.raises(ConnectTimeout):
            await pool.send(GET)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", OK[:-1]])
async def test_silence(sent: bytes) -> None:
    scripts = (holding(sent), holding(sent), answering(OK))
    async with scripted(*scripts) as port, pool_to(port, limits=ClientLimits(read=0.25)) as pool:
        with pytest.raises(ReadTimeout, match=r"silent for 0\.25 s"):
            await pool.send(GET)
        with pytest.raises(TotalTimeout, match="allow more"):
            await pool.send(Request("GET", "/", timeout=0.01))
        pool._connector._limits = ClientLimits()  # a machine may be too busy to answer within a quarter of a second
        assert (await pool.send(GET)).body == b"ok"


async def test_a_pool_total_limit_is_the_default() -> None:
    async with scripted(holding(b"")) as port, pool_to(port, limits=ClientLimits(total=0.01)) as pool:
        with pytest.raises(TotalTimeout):
            await pool.send(GET)


async def test_an_idle_connection_is_closed_after_its_time() -> None:
    async with serving() as server, pool_to(server, limits=ClientLimits(idle=0.01)) as pool:
        await pool.send(GET)
        await until(lambda: server.connections == 0)
        assert not pool._all
        assert (await pool.send(GET)).status == 200


async def test_waiting_for_a_free_connection() -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        await gate.wait()
        return await echo(request)

    limits = ClientLimits(connections=2, acquire=0.01)
    async with serving(handler) as server, pool_to(server, limits=limits) as pool:
        busy = [asyncio.create_task(pool.send(GET)) for _ in range(2)]
        await until(lambda: server.connections == 2)
        with pytest.raises(PoolTimeout, match="close streams"):
            await pool.send(GET)
        with pytest.raises(TotalTimeout):
            await pool.send(Request("GET", "/", timeout=0.001))
        gate.set()
        await asyncio.gather(*busy)


async def test_many_exchanges_over_few_connections() -> None:
    async with serving() as server, pool_to(server, limits=ClientLimits(connections=2)) as pool:
        await asyncio.gather(*(pool.send(GET) for _ in range(50)))
        assert server.connections == 2


async def test_a_waiter_takes_over_when_a_connection_dies() -> None:
    limits = ClientLimits(connections=1)
    async with scripted(answering(b""), answering(OK)) as port, pool_to(port, limits=limits) as pool:
        first, second = await asyncio.gather(pool.send(GET), pool.send(GET), return_exceptions=True)
        assert isinstance(first, ConnectionLost)
        assert isinstance(second, Response)


# --- cancellation


async def test_cancellation_at_every_step_never_poisons_the_pool() -> None:
    limits = ClientLimits(connections=2)
    async with serving() as server, pool_to(server, limits=limits) as pool:
        finished = 0
        for steps in range(60):
            if steps % 2:
                await pool.send(GET)  # from an idle connection as well as from a new one
            else:
                for connection in list(pool._all):
                    connection.abort()
            task = asyncio.create_task(pool.send(Request("POST", "/", body=b"cancelled")))
            await spin(steps // 2)
            task.cancel()
            result = (await asyncio.gather(task, return_exceptions=True))[0]
            finished += isinstance(result, Response)
            assert isinstance(result, (Response, asyncio.CancelledError))
            for n in range(2):
                assert (await pool.send(Request("POST", "/", body=b"%d" % n))).body == b"%d" % n
        assert 0 < finished < 60
        assert pool._slots + len(pool._all) == 2
        assert not pool._waiters


async def test_cancelled_waiters_pass_their_turn_on() -> None:
    limits = ClientLimits(connections=1)
    async with serving() as server, pool_to(server, limits=limits) as pool:
        for steps in range(30):
            tasks = [asyncio.create_task(pool.send(GET)) for _ in range(4)]
            await spin(steps)
            tasks[1].cancel()
            tasks[2].cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(results[0], Response)
            assert isinstance(results[3], Response)
        assert pool._slots + len(pool._all) == 1


async def test_a_cancelled_exchange_ends_its_handler() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.target == "/":
            return await echo(request)

        async def producer(sink: Sink) -> None:
            try:
                started.set()
                await asyncio.Event().wait()
            finally:
                ended.set()

        return Response(200, producer=producer)

    async with both(handler) as (server, pool):
        task = asyncio.create_task(pool.send(Request("GET", "/long")))
        await started.wait()
        task.cancel()
        await ended.wait()
        assert (await pool.send(GET)).status == 200
        assert server.connections <= 2


# --- closing


async def test_a_closed_pool_refuses_and_ends_what_runs() -> None:
    started = asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        await asyncio.Event().wait()
        return Response(200)

    async with serving(handler) as server:
        limits = ClientLimits(connections=1)
        async with pool_to(server, limits=limits) as pool:
            running = asyncio.create_task(pool.send(GET))
            await started.wait()
            waiting = asyncio.create_task(pool.send(GET))
            await spin(3)
            await pool.aclose()
            results = await asyncio.gather(running, waiting, return_exceptions=True)
            assert [type(result) for result in results] == [ConnectionLost, PoolClosed]
            with pytest.raises(PoolClosed, match="make a new one"):
                await pool.send(GET)
            await pool.aclose()


async def test_a_server_restart_is_not_noticed_by_readers() -> None:
    server = await Server(echo).start()
    port = server.port
    async with pool_to(server) as pool:
        await asyncio.gather(*(pool.send(GET) for _ in range(5)))
        await server.close(grace=0)
        server = await Server(echo).start(port=port)
        answers = await asyncio.gather(*(pool.send(GET) for _ in range(5)))
        assert [answer.status for answer in answers] == [200] * 5
    await server.close()


async def test_a_reset_in_the_middle() -> None:
    async with serving() as server, raw_client(server) as client:
        client.reset()
        await until(lambda: server.connections == 0)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(OK[:-1])
        await writer.drain()
        writer.transport.abort()

    async with scripted(script, answering(OK)) as port, pool_to(port) as pool:
        with pytest.raises(WireError):
            await pool.send(GET)
        assert (await pool.send(GET)).body == b"ok"


@pytest.mark.parametrize("url", ["ftp://x", "x:1", "http://", "http://u:p@h", "http://h/?q", ""])
def test_base_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        ConnectionPool(url)
