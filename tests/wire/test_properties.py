"""Whatever way bytes are cut, and whatever bytes they are."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.wire import LOCAL_PEER, ClientLimits, Response, Server, ServerLimits, WireError
from konverge.wire.connection import Connection
from konverge.wire.request_reader import Incoming, Refused, RequestReader
from konverge.wire.server_connection import ServerConnection

from .memory import MemoryTransport
from .support import echo, spin
from .test_pool import BROKEN, WHOLE
from .test_server import REFUSED
from .test_time_limits import Owner

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
LIMITS = ServerLimits(body=5000, head=2000, request_line=500, header_fields=20)

token = st.from_regex(r"[a-z][a-z0-9-]{0,12}", fullmatch=True).filter(
    lambda name: name not in ("host", "content-length", "transfer-encoding", "expect", "connection", "upgrade")
)
value = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
body = st.binary(max_size=300)
cuts = st.lists(st.integers(0, 3000), max_size=30)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    method = draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]))
    target = "/" + draw(st.text("abc/?=&%._-", max_size=30))
    fields = "".join(f"{name}: {text}\r\n" for name, text in draw(st.lists(st.tuples(token, value), max_size=5)))
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\n{fields}".encode()
    content = draw(body)
    if not content:
        return head + b"\r\n"
    if draw(st.booleans()):
        return head + b"content-length: %d\r\n\r\n%b" % (len(content), content)
    return head + b"transfer-encoding: chunked\r\n\r\n" + chunked(content, draw(st.integers(1, 100)))


def chunked(content: bytes, size: int) -> bytes:
    parts = [content[start : start + size] for start in range(0, len(content), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def pieces(data: bytes, places: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return (data[start:end] for start, end in itertools.pairwise(edges))


def read(parts: Iterator[bytes]) -> list[tuple[object, ...]]:
    reader = RequestReader(LIMITS, LOCAL_PEER)
    for part in parts:
        reader.feed(part)
    return [seen(item) for item in reader.items]


def seen(item: Incoming | Refused) -> tuple[object, ...]:
    if isinstance(item, Refused):
        return ("refused", item.status)
    request = item.request
    return (request.method, request.target, request.headers.raw, request.body, item.keep, item.http_1_0)


@given(st.lists(requests(), min_size=1, max_size=4), cuts)
def test_requests_do_not_depend_on_how_they_are_cut(messages: list[bytes], places: list[int]) -> None:
    data = b"".join(messages)
    whole = read(iter([data]))
    assert len(whole) == len(messages)
    assert all(item[0] != "refused" for item in whole)
    assert read(pieces(data, places)) == whole
    assert read(iter([bytes([byte]) for byte in data])) == whole


@pytest.mark.parametrize("name", [name for name in REFUSED if len(REFUSED[name][1]) < 3000])
def test_refusals_do_not_depend_on_how_the_bytes_are_cut(name: str) -> None:
    status, data = REFUSED[name]
    limits = ServerLimits(body=1000, head=1024, request_line=256, header_fields=20)
    for size in (1, 2, 3, 7, 50, len(data)):
        reader = RequestReader(limits, LOCAL_PEER)
        for start in range(0, len(data), size):
            reader.feed(data[start : start + size])
        assert [seen(item) for item in reader.items] == [("refused", status)], size


@st.composite
def spoiled(draw: st.DrawFn, sound: st.SearchStrategy[bytes]) -> bytes:
    """Sound bytes with some of them changed, doubled or missing."""
    data = bytearray(draw(sound))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(data) - 1)))
        patch = draw(
            st.sampled_from([b"", b"\0", b"\n", b"\r", b"\r\n", b" ", b":", b"\xff", b"0", b"ffffffff", b"\r\n\r\n"])
        )
        data[place : place + draw(st.integers(0, 2))] = patch
    return bytes(data)


@given(st.one_of(st.binary(max_size=400), spoiled(requests())), cuts)
def test_no_bytes_break_the_reader(data: bytes, places: list[int]) -> None:
    whole = read(iter([data]))
    assert [item for item in whole[:-1] if item[0] == "refused"] == []
    assert [item[:2] if item[0] == "refused" else item for item in read(pieces(data, places))] == whole


@given(st.one_of(st.binary(max_size=300), spoiled(requests())), cuts)
async def test_no_bytes_break_a_server_connection(data: bytes, places: list[int]) -> None:
    server = Server(echo, limits=LIMITS)
    connection = ServerConnection(server, asyncio.get_running_loop())
    transport = MemoryTransport(connection)
    for part in pieces(data, places):
        if not transport.lost:
            connection.data_received(part)
        await spin(1)
    await spin(10)
    for line in bytes(transport.written).split(b"\r\n"):
        if line.startswith(b"HTTP/1.1 "):
            assert int(line[9:12]) in (100, 200, 400, 413, 414, 417, 431, 501, 505)
    if not transport.lost and not connection.eof_received():
        transport.close()
    await spin(10)
    assert server.connections == 0
    assert len(asyncio.all_tasks()) == 1


async def exchange(parts: Iterator[bytes], *, streaming: bool) -> object:
    """What the caller of a client connection gets for these bytes, followed by the end of the stream."""
    owner = Owner()
    connection = Connection(owner, ClientLimits(body=1000, head=100_000), "server:1")
    transport = MemoryTransport(connection)
    answer = connection.start(GET, b"", is_head=False, streaming=streaming, deadline=None)
    for part in parts:
        if not transport.lost:
            connection.data_received(part)
    if not transport.lost:
        transport.close()
    await spin(2)
    try:
        got = await answer
        content = got.body if isinstance(got, Response) else await got.read()
        return (got.status, got.headers.raw, content)
    except WireError as error:
        return type(error)
    finally:
        assert owner.closed == [connection]


@given(st.sampled_from(sorted(WHOLE)), cuts, st.booleans())
async def test_answers_do_not_depend_on_how_they_are_cut(name: str, places: list[int], streaming: bool) -> None:
    data, content = WHOLE[name]
    whole = await exchange(iter([data]), streaming=streaming)
    assert isinstance(whole, tuple)
    assert whole[2] == content
    assert await exchange(pieces(data, places), streaming=streaming) == whole


@given(st.sampled_from([name for name in sorted(BROKEN) if len(BROKEN[name][0]) < 10_000]), cuts, st.booleans())
async def test_broken_answers_stay_broken_however_they_are_cut(name: str, places: list[int], streaming: bool) -> None:
    data, error = BROKEN[name]
    assert await exchange(pieces(data, places), streaming=streaming) is error


answers = st.sampled_from([data for data, _ in WHOLE.values()])


@given(st.one_of(st.binary(max_size=300), spoiled(answers)), cuts, st.booleans())
async def test_no_bytes_break_a_client_connection(data: bytes, places: list[int], streaming: bool) -> None:
    outcome = await exchange(pieces(data, places), streaming=streaming)
    assert isinstance(outcome, tuple) or issubclass(outcome, WireError)  # type: ignore[arg-type]
    assert len(asyncio.all_tasks()) == 1


@given(st.binary(max_size=2000), st.integers(1, 500), cuts)
async def test_compressed_chunked_answers(content: bytes, size: int, places: list[int]) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
    data = head + chunked(gzip.compress(content, 1), size)
    for streaming in (True, False):
        outcome = await exchange(pieces(data, places), streaming=streaming)
        if len(content) > 1000:
            assert isinstance(outcome, type)
        else:
            assert isinstance(outcome, tuple)
            assert outcome[2] == content
