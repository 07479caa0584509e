"""Streams from producer to reader, over sockets and in process: the same contract for both."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.wire import (
    BodyTooLarge,
    ClientLimits,
    ConnectionLost,
    Direct,
    Headers,
    ReadTimeout,
    Request,
    Response,
    Sink,
    TotalTimeout,
    WireError,
)

from .support import answering, holding, pool_to, raw_client, read_head, scripted, serving, spin, until

GET = Request("GET", "/")
BOTH = pytest.mark.parametrize("kind", ["sockets", "direct"])


@contextlib.asynccontextmanager
async def transport_to(kind: str, producer: Any, **limits: Any) -> AsyncIterator[Any]:
    async def handler(request: Request) -> Response:
        return Response(200, Headers.of({"x": "y"}), producer=producer)

    if kind == "direct":
        direct = Direct(handler, limits=ClientLimits(**limits))
        yield direct
        await direct.aclose()
    else:
        async with serving(handler) as server, pool_to(server, limits=ClientLimits(**limits)) as pool:
            yield pool


@BOTH
async def test_chunks_arrive_as_they_are_written(kind: str) -> None:
    turns: asyncio.Queue[bytes] = asyncio.Queue()

    async def producer(sink: Sink) -> None:
        while data := await turns.get():
            sink.write(data)

    async with transport_to(kind, producer) as transport:
        stream = await transport.stream(GET)  # the head comes before any chunk
        assert (stream.status, stream.headers.get("X")) == (200, "y")
        for data in (b"one", b"two", b"x" * 100_000):
            turns.put_nowait(data)
            got = b""
            while len(got) < len(data):
                got += await anext(stream)
            assert got == data
        turns.put_nowait(b"")
        assert await stream.read() == b""
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        await stream.aclose()
        await stream.aclose()


@BOTH
async def test_a_stream_as_a_whole_answer(kind: str) -> None:
    async def producer(sink: Sink) -> None:
        for n in range(100):
            sink.write(b"%d," % n)
            sink.write(b"")
            await sink.drain()

    async with transport_to(kind, producer) as transport:
        assert (await transport.send(GET)).body == b"".join(b"%d," % n for n in range(100))
        assert (await transport.send(Request("HEAD", "/"))).body == b""
        stream = await transport.stream(Request("HEAD", "/"))
        assert await stream.read() == b""


@BOTH
async def test_a_whole_answer_as_a_stream(kind: str) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, None, b"x" * 1_000_000)

    async with serving(handler) as server, pool_to(server) as pool:
        stream = await (Direct(handler) if kind == "direct" else pool).stream(GET)
        assert sum([len(piece) async for piece in stream]) == 1_000_000


@BOTH
async def test_a_reader_who_does_not_read_stops_the_writer(kind: str) -> None:
    """Backpressure by counting: the writer's own buffer fills, so nothing between the two ends keeps on swallowing."""
    written = 0
    full, ended = asyncio.Event(), asyncio.Event()
    piece = bytes(65536)

    async def producer(sink: Sink) -> None:
        nonlocal written
        try:
            while sink.buffered < 2_000_000:
                sink.write(piece)
                written += len(piece)
                await asyncio.sleep(0)
            full.set()
            await sink.drain()
        finally:
            ended.set()

    async with transport_to(kind, producer, stream_buffer=100_000) as transport:
        stream = await transport.stream(GET)
        await full.wait()
        assert written < 64_000_000
        if kind == "sockets":
            assert stream.buffered < 1_000_000
        assert not ended.is_set()
        total = 0
        async for data in stream:
            total += len(data)
        assert total == written
        assert ended.is_set()


@BOTH
async def test_drain_waits_for_the_reader(kind: str) -> None:
    written = 0

    async def producer(sink: Sink) -> None:
        nonlocal written
        for _ in range(1000):
            sink.write(bytes(65536))
            written += 65536
            await sink.drain()

    async with transport_to(kind, producer) as transport:
        stream = await transport.stream(GET)
        total = 0
        async for data in stream:
            total += len(data)
            assert written - total < 32_000_000
        assert total == 1000 * 65536


@BOTH
async def test_closing_a_stream_cancels_its_producer(kind: str) -> None:
    ended = asyncio.Event()
    sinks: list[Sink] = []

    async def producer(sink: Sink) -> None:
        sinks.append(sink)
        try:
            sink.write(b"first")
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with transport_to(kind, producer) as transport:
        stream = await transport.stream(GET)
        assert await anext(stream) == b"first"
        await stream.aclose()
        await ended.wait()
        assert sinks[0].closed
        sinks[0].write(b"ignored")
        assert sinks[0].buffered == 0
        with pytest.raises(ConnectionError, match="has gone"):
            await sinks[0].drain()
        assert [piece async for piece in stream] == []


@BOTH
async def test_a_closed_reader_wakes_a_waiting_drain(kind: str) -> None:
    outcome: list[BaseException] = []
    draining = asyncio.Event()

    async def producer(sink: Sink) -> None:
        try:
            while True:
                while sink.buffered < 1_000_000:
                    sink.write(bytes(100_000))
                    await asyncio.sleep(0)
                draining.set()
                await sink.drain()
        except BaseException as error:
            outcome.append(error)
            raise

    async with transport_to(kind, producer) as transport:
        stream = await transport.stream(GET)
        await draining.wait()
        await stream.aclose()
        await until(lambda: bool(outcome))
        assert isinstance(outcome[0], (ConnectionError, asyncio.CancelledError))


@BOTH
async def test_a_failing_producer_cuts_the_stream_off(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def producer(sink: Sink) -> None:
        sink.write(b"some")
        raise ValueError("broken")

    caplog.set_level(logging.ERROR, "konverge.wire")
    async with transport_to(kind, producer) as transport:
        stream = await transport.stream(GET)
        assert await anext(stream) == b"some"
        with pytest.raises(ConnectionLost):
            await anext(stream)
        with pytest.raises(ConnectionLost):
            await transport.send(GET)
    assert "the stream of GET / failed" in caplog.text


@BOTH
async def test_cancelling_a_reader_keeps_the_stream(kind: str) -> None:
    gate = asyncio.Event()

    async def producer(sink: Sink) -> None:
        await gate.wait()
        sink.write(b"late")

    async with transport_to(kind, producer) as transport:
        stream = await transport.stream(GET)
        reader = asyncio.create_task(anext(stream))
        await spin(3)
        with pytest.raises(RuntimeError, match="one reader"):
            await anext(stream)
        reader.cancel()
        await asyncio.wait([reader])
        gate.set()
        assert await stream.read() == b"late"


@BOTH
async def test_cancellation_while_a_stream_opens(kind: str) -> None:
    async def producer(sink: Sink) -> None:
        sink.write(b"x")
        await asyncio.Event().wait()

    async with transport_to(kind, producer) as transport:
        for steps in range(20):
            task = asyncio.create_task(transport.stream(GET))
            await spin(steps)
            if task.cancel():
                await asyncio.wait([task])
            if not task.cancelled():
                await task.result().aclose()


@BOTH
async def test_a_whole_body_is_bounded(kind: str) -> None:
    async def producer(sink: Sink) -> None:
        while not sink.closed:
            sink.write(bytes(10_000))
            await sink.drain()

    async with transport_to(kind, producer, body=1_000_000) as transport:
        with pytest.raises(BodyTooLarge, match="pages"):
            await transport.send(GET)
        stream = await transport.stream(GET)
        with pytest.raises(BodyTooLarge):
            await stream.read()


@BOTH
async def test_a_requests_timeout_covers_the_stream(kind: str) -> None:
    async def producer(sink: Sink) -> None:
        await asyncio.Event().wait()

    async with transport_to(kind, producer) as transport:
        with pytest.raises(TotalTimeout):
            await _read_all(transport, Request("GET", "/", timeout=0.05))
        with pytest.raises(TotalTimeout):
            await transport.send(Request("GET", "/", timeout=0.01))


async def _read_all(transport: Any, request: Request) -> bytes:
    stream = await transport.stream(request)
    return await stream.read()


async def test_a_quiet_stream_has_a_limit_of_its_own() -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    limits = ClientLimits(stream_read=0.02)
    async with scripted(holding(head)) as port, pool_to(port, limits=limits) as pool:
        quiet = await pool.stream(GET)
        with pytest.raises(ReadTimeout, match=r"silent for 0\.02 s"):
            await anext(quiet)


async def test_closing_a_stream_ends_its_waiting_reader() -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    async with scripted(holding(head)) as port, pool_to(port) as pool:
        stream = await pool.stream(GET)
        reader = asyncio.create_task(stream.read())
        await spin(3)
        await stream.aclose()
        assert await reader == b""


async def test_buffered_chunks_come_before_the_error() -> None:
    data = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\nzz"
    async with scripted(answering(data)) as port, pool_to(port) as pool:
        stream = await pool.stream(GET)
        await until(lambda: not pool._all)
        assert await anext(stream) == b"onetwo"
        with pytest.raises(WireError):
            await anext(stream)
        await stream.aclose()


async def test_a_finished_connection_goes_back_before_the_buffer_is_read() -> None:
    async def producer(sink: Sink) -> None:
        sink.write(b"x" * 1000)

    async with transport_to("sockets", producer) as pool:
        stream = await pool.stream(GET)
        await until(lambda: bool(pool._idle))
        assert await (await pool.stream(GET)).read() == b"x" * 1000
        assert len(pool._all) == 1
        assert await stream.read() == b"x" * 1000


async def test_a_compressed_stream_in_bounded_pieces() -> None:
    plain = bytes(30_000_000)
    packed = gzip.compress(plain)
    assert len(packed) < 50_000

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n")
        for start in range(0, len(packed), 1000):
            part = packed[start : start + 1000]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        writer.write(b"0\r\n\r\n")

    async with scripted(script) as port, pool_to(port) as pool:
        stream = await pool.stream(GET)
        sizes = [len(piece) async for piece in stream]
        assert sum(sizes) == len(plain)
        assert max(sizes) <= 256 * 1024


async def test_http_1_0_streams_end_with_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        async def producer(sink: Sink) -> None:
            sink.write(b"some")
            if request.target == "/broken":
                raise ValueError

        return Response(200, producer=producer)

    caplog.set_level(logging.CRITICAL)
    async with serving(handler) as server, raw_client(server) as client:
        client.write(b"GET / HTTP/1.0\r\n\r\n")
        _, headers, _ = await client.answer()
        assert "transfer-encoding" not in headers
        assert await client.rest() == b"some"


async def test_a_half_closed_client_ends_its_stream() -> None:
    ended = asyncio.Event()

    async def handler(request: Request) -> Response:
        async def producer(sink: Sink) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        return Response(200, producer=producer)

    async with serving(handler) as server, raw_client(server) as client:
        client.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await client.answer(head_only=True)
        client.writer.write_eof()
        await ended.wait()
        await until(lambda: server.connections == 0)


@pytest.mark.parametrize("way", ["waits", "writes"])
async def test_a_client_that_half_closes_before_its_stream_begins_ends_it_too(way: str) -> None:
    """The producer runs all the same, for a moment: what the handler has opened for it is the producer's to let go."""
    gate, ended = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        await gate.wait()
        return Response(200, producer=producer)

    async def producer(sink: Sink) -> None:
        try:
            while way == "writes":
                sink.write(b"x")
                await sink.drain()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(handler) as server, raw_client(server) as client:
        client.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        client.writer.write_eof()
        await until(lambda: server.connections == 1)
        await spin(20)
        gate.set()
        assert (await client.answer(head_only=True))[0] == 200
        await ended.wait()
        assert await client.rest() == b"", "no last chunk: the reader can tell that this is not the whole stream"
        await until(lambda: server.connections == 0)


@pytest.mark.parametrize("error", [ValueError("x"), None])
async def test_direct_answers_like_a_server(error: Exception | None, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        if error is not None:
            raise error
        return Response(200, None, b"body")

    caplog.set_level(logging.CRITICAL)
    response = await Direct(handler).send(GET)
    assert response.status == (500 if error else 200)


async def test_direct_lets_others_run() -> None:
    async def handler(request: Request) -> Response:
        return Response(200)

    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    direct = Direct(handler)
    for _ in range(1000):
        await direct.send(GET)
    task.cancel()
    assert turns > 10


async def test_a_rest_that_is_cut_short_ends_like_any_other() -> None:
    sent = asyncio.Event()

    async def producer(sink: Sink) -> None:
        await sent.wait()
        sink.write(b"after")

    async with transport_to("sockets", producer) as pool:
        stream = await pool.stream(GET)
        resting = asyncio.create_task(stream.rest(1000))
        await spin(3)
        resting.cancel()
        await asyncio.wait([resting])
        sent.set()
        assert await stream.read() == b"after"
