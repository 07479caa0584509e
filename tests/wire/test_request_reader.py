"""Requests that are odd but sound, and ones whose cost is not in what they say."""

from __future__ import annotations

import tracemalloc

import pytest

from konverge.wire import LOCAL_PEER, ServerLimits
from konverge.wire.request_reader import Incoming, Refused, RequestReader

CHUNKED = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


def read(data: bytes, size: int, limits: ServerLimits | None = None) -> RequestReader:
    reader = RequestReader(limits or ServerLimits(), LOCAL_PEER)
    for place in range(0, len(data), size):
        reader.feed(data[place : place + size])
    return reader


H2C = (
    b"PUT /p HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    "body", [b"content-length: 3\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"]
)
def test_a_body_is_read_though_its_request_asks_for_an_upgrade(body: bytes, size: int) -> None:
    reader = read(H2C + body + b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", size)
    (item,) = reader.items
    assert isinstance(item, Incoming)
    assert (item.request.method, item.request.target, item.request.body) == ("PUT", "/p", b"abc")
    assert item.request.headers.get("upgrade") == "h2c"
    assert not item.keep
    assert reader.rest is None


def test_the_body_of_such_a_request_has_its_limit() -> None:
    data = H2C + b"transfer-encoding: chunked\r\n\r\nff\r\n" + bytes(255)
    (item,) = read(data, 50, ServerLimits(body=100)).items
    assert isinstance(item, Refused)
    assert item.status == 413


@pytest.mark.parametrize("field", [b"transfer-encoding: chunked  ", b"Transfer-Encoding:\t Chunked"])
def test_space_around_a_value_is_no_part_of_it(field: bytes) -> None:
    data = b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue \r\n" + field + b"\r\nx:\t y z \t \r\n\r\n"
    (item,) = read(data + b"1\r\na\r\n0\r\n\r\n", 10).items
    assert isinstance(item, Incoming)
    assert item.request.body == b"a"
    assert item.request.headers.get("x") == "y z"


def test_trailers_do_not_grow_with_the_body_before_them() -> None:
    limits = ServerLimits(head=1000, body=1_000_000)
    reader = read(CHUNKED + b"%x\r\n%b\r\n0\r\nx: " % (200_000, bytes(200_000)), 1000, limits)
    for _ in range(30):
        reader.feed(b"y" * 100)
    (item,) = reader.items
    assert isinstance(item, Refused)
    assert item.status == 400


def test_a_body_in_tiny_chunks_costs_about_what_it_holds() -> None:
    chunks = b"".join(b"2\r\n%b\r\n" % number.to_bytes(2, "big") for number in range(5_000))
    reader = RequestReader(ServerLimits(), LOCAL_PEER)
    reader.feed(CHUNKED)
    tracemalloc.start()
    try:
        for _ in range(4):
            reader.feed(chunks)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 200_000  # for 40,000 bytes, with what waits to be joined
