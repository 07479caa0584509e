"""The server over real sockets: framing, order, limits, refusals, ends."""

from __future__ import annotations

import asyncio
import logging

import pytest

from konverge.wire import Headers, Request, Response, Server, ServerLimits, Sink

from .support import echo, raw_client, serving, until

GET = b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n"


async def test_answers_over_one_connection() -> None:
    async with serving() as server, raw_client(server) as client:
        for body in (b"", b"one", b"two"):
            client.write(b"POST /p?q=1 HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            status, headers, got = await client.answer()
            assert (status, headers["x-target"], got) == (200, "/p?q=1", body or b"hello")
            assert "connection" not in headers
            assert headers["date"].endswith(" GMT")
        assert server.connections == 1


async def test_head_has_the_length_and_no_body() -> None:
    async with serving() as server, raw_client(server) as client:
        client.write(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n" + GET)
        status, headers, _ = await client.answer(head_only=True)
        assert (status, headers["content-length"]) == (200, "5")
        assert (await client.answer())[2] == b"hello"


@pytest.mark.parametrize("status", [204, 304])
async def test_statuses_without_a_body(status: int) -> None:
    async def handler(request: Request) -> Response:
        return Response(status, None, b"never sent")

    async with serving(handler) as server, raw_client(server) as client:
        client.write(GET + GET)
        for _ in range(2):
            got, headers, body = await client.answer()
            assert (got, body) == (status, b"")
            assert "content-length" not in headers


async def test_chunked_request_with_extension_and_trailer() -> None:
    async with serving() as server, raw_client(server) as client:
        client.write(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        client.write(b"3;name=value\r\nabc\r\n2\r\nde\r\n0\r\nhost: smuggled\r\n\r\n" + GET)
        assert (await client.answer())[2] == b"abcde"
        assert (await client.answer())[2] == b"hello"


async def test_http_1_0_closes_unless_it_asks_to_stay() -> None:
    async with serving() as server:
        async with raw_client(server) as client:
            client.write(b"GET / HTTP/1.0\r\n\r\n")
            status, headers, _ = await client.answer()
            assert (status, headers["connection"]) == (200, "close")
            assert await client.rest() == b""
        async with raw_client(server) as client:
            for _ in range(2):
                client.write(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
                assert (await client.answer())[1]["connection"] == "keep-alive"


async def test_connection_close_is_honoured_and_what_follows_ignored() -> None:
    async with serving() as server, raw_client(server) as client:
        client.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n" + GET)
        assert (await client.answer())[1]["connection"] == "close"
        assert await client.rest() == b""


async def test_the_handler_may_close() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, Headers.of({"connection": "close"}))

    async with serving(handler) as server, raw_client(server) as client:
        client.write(GET)
        assert (await client.answer())[1]["connection"] == "close"
        assert await client.rest() == b""


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    gates = [asyncio.Event() for _ in range(3)]
    running: list[int] = []

    async def handler(request: Request) -> Response:
        number = int(request.target[1:])
        running.append(number)
        await gates[number].wait()
        return Response(200, None, request.target.encode())

    async with serving(handler) as server, raw_client(server) as client:
        client.write(b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % n for n in range(3)))
        await until(lambda: bool(running))
        assert running == [0]  # one at a time: a later one must not overtake what an earlier one changes
        for gate in reversed(gates):
            gate.set()
        assert [(await client.answer())[2] for _ in range(3)] == [b"/0", b"/1", b"/2"]


async def test_a_long_pipeline_is_read_in_portions() -> None:
    count = 2000
    async with serving(limits=ServerLimits(pipeline=4)) as server, raw_client(server) as client:
        client.write(GET * count)
        for _ in range(count):
            assert (await client.answer())[0] == 200


async def test_expect_continue() -> None:
    async with serving(limits=ServerLimits(body=10)) as server:
        head = b"PUT / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n"
        async with raw_client(server) as client:
            client.write(head % 3)
            assert (await client.answer())[0] == 100
            client.write(b"abc")
            assert (await client.answer())[2] == b"abc"
        async with raw_client(server) as client:
            client.write(head % 11)
            assert (await client.answer())[0] == 413  # and not a word of 100 before
        async with raw_client(server) as client:
            client.write(b"PUT / HTTP/1.1\r\nhost: x\r\nexpect: tea\r\ncontent-length: 1\r\n\r\n")
            assert (await client.answer())[0] == 417


async def test_continue_waits_for_the_answer_before_it() -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        await gate.wait()
        return await echo(request)

    async with serving(handler) as server, raw_client(server) as client:
        client.write(GET + b"PUT / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
        gate.set()
        assert (await client.answer())[0] == 200
        assert (await client.answer())[0] == 100
        client.write(b"abc")
        assert (await client.answer())[2] == b"abc"


REFUSED = {
    "both framings": (
        400,
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "two lengths": (400, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd"),
    "huge length": (400, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\n"),
    "negative length": (400, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n"),
    "large length": (413, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n"),
    "large chunks": (413, b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001),
    "bad chunk size": (400, b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    "huge chunk size": (400, b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
    "endless extension": (
        400,
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"x" * 600_000,
    ),
    "unknown encoding": (501, b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "chunked in 1.0": (400, b"POST / HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    "NUL": (400, b"GET / HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n"),
    "folded": (400, b"GET / HTTP/1.1\r\nhost: x\r\nx: a\r\n b\r\n\r\n"),
    "space before colon": (400, b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length : 3\r\n\r\nabc"),
    "bare LF": (400, b"GET / HTTP/1.1\nhost: x\n\n"),
    "bare CR": (400, b"GET / HTTP/1.1\r\nhost: x\rx: y\r\n\r\n"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two hosts": (400, b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n"),
    "raw UTF-8 target": (400, "GET /ä HTTP/1.1\r\nhost: x\r\n\r\n".encode()),
    "space in target": (400, b"GET /a b HTTP/1.1\r\nhost: x\r\n\r\n"),
    "long target": (414, b"GET /" + b"a" * 500 + b" HTTP/1.1\r\nhost: x\r\n\r\n"),
    "long field": (431, b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 2000 + b"\r\n\r\n"),
    "endless field": (431, b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 600_000),
    "many fields": (431, b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a:b\r\n" * 50 + b"\r\n"),
    "0.9": (505, b"GET /\r\n\r\n"),
    "2.0": (505, b"GET / HTTP/2.0\r\nhost: x\r\n\r\n"),
    "h2 preface": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "tls hello": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "unknown method": (400, b"BREW / HTTP/1.1\r\nhost: x\r\n\r\n"),
    "connect": (501, b"CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n"),
    "target without a slash": (400, b"GET *foo HTTP/1.1\r\nhost: x\r\n\r\n"),
    "star for all but options": (400, b"GET * HTTP/1.1\r\nhost: x\r\n\r\n"),
    "port beyond all": (400, b"GET http://h:99999/ HTTP/1.1\r\nhost: x\r\n\r\n"),
    "upgrade with a broken body": (
        400,
        b"POST / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ),
    "endless trailer": (
        400,
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3e8\r\n%b\r\n0\r\nx: %b"
        % (b"b" * 1000, b"a" * 300_000),
    ),
}


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("name", REFUSED)
async def test_hostile_requests_are_refused(name: str) -> None:
    status, data = REFUSED[name]

    def refusal(code: int, text: str) -> Response:
        return Response(code, Headers.of({"content-type": "application/json"}), b'{"code":%d}' % code)

    limits = ServerLimits(body=1000, head=1024, request_line=256, header_fields=20)
    async with serving(limits=limits, refusal=refusal) as server:
        async with raw_client(server) as client:
            client.write(data)
            got, headers, body = await client.answer()
            assert (got, body) == (status, b'{"code":%d}' % status)
            assert headers["connection"] == "close"
            assert await client.rest() == b""
        async with raw_client(server) as client:
            client.write(GET)
            assert (await client.answer())[0] == 200
        await until(lambda: server.connections == 0)


@pytest.mark.parametrize("kind", ["raises", "bad header"])
async def test_a_failing_refusal_is_a_plain_one(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    def refusal(status: int, text: str) -> Response:
        if kind == "raises":
            raise ValueError
        return Response(status, Headers.of({"x": "a\r\nb"}))

    async def handler(request: Request) -> Response:
        raise ValueError

    caplog.set_level(logging.CRITICAL)
    async with serving(handler, refusal=refusal) as server, raw_client(server) as client:
        client.write(GET + b"garbage\r\n\r\n")
        assert (await client.answer())[0] == 500
        assert (await client.answer())[0] == 400


async def test_a_refusal_waits_for_the_answers_before_it() -> None:
    async with serving() as server, raw_client(server) as client:
        client.write(GET + b"garbage\r\n\r\n")
        assert (await client.answer())[0] == 200
        assert (await client.answer())[0] == 400
        assert await client.rest() == b""


async def test_an_upgrade_that_nobody_wants_is_a_plain_request() -> None:
    async with serving() as server, raw_client(server) as client:
        client.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x81\x05hello")
        assert (await client.answer())[:2][0] == 200
        assert await client.rest() == b""


async def test_absolute_targets() -> None:
    async with serving() as server, raw_client(server) as client:
        for target, wanted in ((b"http://h:1/p?q=1", "/p?q=1"), (b"http://h", "/"), (b"*", "*")):
            client.write(b"OPTIONS " + target + b" HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await client.answer())[1]["x-target"] == wanted


async def test_a_failing_handler_is_a_500_and_a_log_record(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        raise ValueError("secret detail")

    async with serving(handler) as server, raw_client(server) as client:
        client.write(b"GET /a?token=t HTTP/1.1\r\nhost: x\r\n\r\n" + GET)
        for _ in range(2):
            status, _, body = await client.answer()
            assert status == 500
            assert b"secret" not in body
    assert "GET /a" in caplog.text
    assert "token=t" not in caplog.text


@pytest.mark.parametrize("value", ["a\r\nset-cookie: x", "a\nb", "a\0b", "a\rb"])
async def test_no_line_break_leaves_through_a_header(value: str, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, Headers.of({"warning": value}))

    caplog.set_level(logging.CRITICAL)
    async with serving(handler) as server, raw_client(server) as client:
        client.write(GET)
        status, headers, _ = await client.answer()
        assert status == 500
        assert "set-cookie" not in headers


async def test_a_handler_that_gives_up_cuts_the_connection() -> None:
    async def handler(request: Request) -> Response:
        raise asyncio.CancelledError

    async with serving(handler) as server, raw_client(server) as client:
        client.write(GET)
        assert await client.rest() == b""
        await until(lambda: server.connections == 0)


async def test_too_many_connections_get_503() -> None:
    async with serving(limits=ServerLimits(connections=2)) as server:
        async with raw_client(server) as first, raw_client(server) as second:
            for client in (first, second):
                client.write(GET)
                assert (await client.answer())[0] == 200
            async with raw_client(server) as third:
                third.write(GET)
                assert (await third.answer())[0] == 503
                assert await third.rest() == b""
            first.write(GET)
            assert (await first.answer())[0] == 200
        await until(lambda: server.connections == 0)
        async with raw_client(server) as client:
            client.write(GET)
            assert (await client.answer())[0] == 200


async def test_a_half_closed_client_gets_its_answer() -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        await gate.wait()
        return await echo(request)

    async with serving(handler) as server, raw_client(server) as client:
        client.write(GET + GET)
        client.writer.write_eof()
        await until(lambda: any(connection._half_closed for connection in server._connections))
        gate.set()
        for connection in ("", "close"):
            status, headers, _ = await client.answer()
            assert (status, headers.get("connection", "")) == (200, connection)
        assert await client.rest() == b""
        await until(lambda: server.connections == 0)


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", GET[:-2], b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc"]
)
async def test_clients_that_vanish(sent: bytes) -> None:
    for way in ("eof", "close", "reset"):
        async with serving() as server, raw_client(server) as client:
            client.write(sent)
            await until(lambda: server.connections == 1)
            if way == "eof":
                client.writer.write_eof()
            elif way == "reset":
                client.reset()
            else:
                client.writer.close()
            await until(lambda: server.connections == 0)


async def test_a_vanished_client_cancels_its_handler() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Response(200)

    async with serving(handler) as server, raw_client(server) as client:
        client.write(GET)
        await started.wait()
        client.reset()
        await cancelled.wait()
        await until(lambda: server.connections == 0)


async def test_a_reader_who_does_not_read_stops_the_pipeline() -> None:
    begun = 0

    async def handler(request: Request) -> Response:
        nonlocal begun
        begun += 1
        return Response(200, None, bytes(1_000_000))

    async with serving(handler) as server, raw_client(server, limit=1000) as client:
        client.write(GET * 200)
        await until(lambda: server.connections == 1)
        (connection,) = server._connections
        await until(lambda: connection._writable is not None)
        assert begun < 50  # what the kernel holds, not what was asked for


@pytest.mark.parametrize("graceful", [True, False])
async def test_close(graceful: bool) -> None:
    started, gate = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        await gate.wait()
        return await echo(request)

    server = await Server(handler).start()
    async with raw_client(server) as idle, raw_client(server) as busy:
        busy.write(GET)
        await started.wait()
        closing = asyncio.create_task(server.close(grace=30 if graceful else 0))
        assert await idle.rest() == b""
        if graceful:
            gate.set()
            assert (await busy.answer())[1]["connection"] == "close"
        assert await busy.rest() == b""
        await closing
    assert server.connections == 0


async def test_close_cuts_what_does_not_end_in_time() -> None:
    async def endless(sink: Sink) -> None:
        await asyncio.Event().wait()

    async def handler(request: Request) -> Response:
        return Response(200, producer=endless)

    server = await Server(handler).start()
    async with raw_client(server) as client:
        client.write(GET)
        await client.answer(head_only=True)
        await server.close(grace=0.01)
        assert await client.rest() == b""
        assert server.connections == 0


async def test_close_waits_for_a_request_that_is_half_sent() -> None:
    server = await Server(echo).start()
    async with raw_client(server) as client:
        client.write(b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
        await client.answer()
        closing = asyncio.create_task(server.close(grace=30))
        await until(lambda: server._closing)
        client.write(b"abc")
        assert (await client.answer())[2] == b"abc"
        await closing


async def test_serving_on_given_sockets() -> None:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        server = await Server(echo).start(sockets=[sock])
        assert server.port == port
        async with raw_client(server) as client:
            client.write(GET)
            assert (await client.answer())[0] == 200
        await server.close()
