"""gRPC probes, against a server that says what it is told; a real one is in tests/real (agnhost)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Container, Probe
from konverge.sim.processes.grpc_health import _number
from konverge.sim.processes.handlers import HandlerError, probe

pytestmark = pytest.mark.spec("S-16")

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("000000 04 00 00000000")
ACK = bytes.fromhex("000000 04 01 00000000")
PING, PONG = (bytes.fromhex(f"000008 06 {flag} 00000000") + b"12345678" for flag in ("00", "01"))
HEADERS = bytes.fromhex("000001 01 04 00000001 88")  # :status 200
TRAILERS = bytes.fromhex("000001 01 05 00000001 88")
REFUSED = TRAILERS
"""Only trailers: a call that the server does not know."""
PADDED = bytes.fromhex("00000a 00 08 00000001 02 00 00000002 08 01 0000")


def data(message: bytes) -> bytes:
    body = b"\0" + len(message).to_bytes(4, "big") + message
    return len(body).to_bytes(3, "big") + bytes.fromhex("00 00 00000001") + body


@asynccontextmanager
async def server(answer: bytes) -> AsyncIterator[tuple[int, bytearray]]:
    """Its port, and what it has heard."""
    heard, over = bytearray(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        while part := await reader.read(1000):
            heard.extend(part)
            if PREFACE in heard and not answer:
                break
        writer.close()
        over.set()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], heard
        await over.wait()
    finally:
        listening.close()


async def probed(port: int, **fields: Any) -> None:
    action = from_dict(Probe, {"grpc": {"port": port, **fields}, "timeoutSeconds": 20})

    async def no_command(command: Any, seconds: float) -> tuple[int, bytes]:
        raise AssertionError(command)

    await probe(action, from_dict(Container, {"name": "main"}), "127.0.0.1", no_command)


async def test_a_server_that_serves() -> None:
    async with server(SETTINGS + PING + ACK + HEADERS + data(b"\x08\x01") + TRAILERS) as (port, heard):
        await probed(port, service="shop")
    call = bytes(heard)
    assert call.startswith(PREFACE + SETTINGS)
    assert b"/grpc.health.v1.Health/Check" in call
    assert f"127.0.0.1:{port}".encode() in call
    assert call.index(b"\x0a\x04shop") < call.index(ACK) < call.index(PONG)


async def test_an_answer_in_parts_and_with_padding() -> None:
    async with server(SETTINGS + HEADERS + PADDED + TRAILERS) as (port, _):
        await probed(port)
    whole = data(b"\x08\x01")[9:]
    parts = [len(part).to_bytes(3, "big") + bytes.fromhex("00 00 00000001") + part for part in (whole[:3], whole[3:])]
    async with server(SETTINGS + HEADERS + b"".join(parts) + TRAILERS) as (port, _):
        await probed(port)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HEADERS + data(b"\x08\x02") + TRAILERS, 'service unhealthy (responded with "NOT_SERVING")'),
        (HEADERS + data(b"") + TRAILERS, 'service unhealthy (responded with "UNKNOWN")'),
        (HEADERS + data(b"\x08\x63") + TRAILERS, 'service unhealthy (responded with "99")'),
        (REFUSED, "the server refused the call"),
        (bytes.fromhex("000004 03 00 00000001 00000008"), "broke the call off"),
        (bytes.fromhex("000008 07 00 00000000 0000000000000000"), "broke the call off"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak HTTP/2"),
        (b"", "closed the connection"),
    ],
)
async def test_a_server_that_does_not(answer: bytes, words: str) -> None:
    async with server(answer) as (port, _):
        with pytest.raises(HandlerError) as raised:
            await probed(port)
    assert words in str(raised.value)


async def test_nobody_is_there() -> None:
    async with server(b"") as (port, _):
        with pytest.raises(HandlerError):
            await probed(port)
    with pytest.raises(HandlerError, match="failed to connect service at"):
        await probed(port)


@pytest.mark.parametrize(
    ("value", "bits", "data"), [(10, 5, "0a"), (1337, 5, "1f9a0a"), (42, 8, "2a"), (31, 4, "0f10")]
)
def test_numbers_are_written_as_in_the_examples_of_the_rfc(value: int, bits: int, data: str) -> None:
    assert _number(value, bits) == bytes.fromhex(data)
