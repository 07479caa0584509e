"""Requests that a server passes on and that stop being HTTP (WebSockets and others): both connections become one.

Upstream: tryUpgrade (apimachinery/pkg/util/proxy/upgradeaware.go).
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from functools import partial

from konverge.wire.message import Duplex, Headers, Request, Response

CONNECT_TIME = 10.0
ANSWER_TIME = 30.0
BODY_LIMIT = 64 * 1024
"""Bytes of a refusal that are passed on."""
_BLOCK = 32 * 1024


class BadAnswer(Exception):
    """What came back is no answer to the request; the text is for the user."""


def is_asked_for(request: Request) -> bool:
    tokens = [token.strip().lower() for value in request.headers.get_all("connection") for token in value.split(",")]
    return "upgrade" in tokens and bool(request.headers.get("upgrade"))


async def pass_on(
    request: Request, upgrade: str, address: tuple[str, int], tls: ssl.SSLContext | None = None, server_name: str = ""
) -> Response:
    """What the server behind says to a request for an upgrade. Raises OSError and BadAnswer."""
    host, port = address
    name = server_name or host if tls is not None else None
    try:
        async with asyncio.timeout(CONNECT_TIME):
            reader, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=name)
    except TimeoutError:
        raise BadAnswer("it does not take the connection") from None
    try:
        async with asyncio.timeout(ANSWER_TIME):
            writer.write(_head(request, upgrade))
            status, headers = await _read_head(reader)
            if status != 101:
                body = await _read_refusal(reader, headers)
                writer.close()
                return Response(status, headers, body)
    except TimeoutError:
        writer.close()
        raise BadAnswer("it does not answer") from None
    except BaseException:
        writer.close()
        raise
    return Response(status, headers, upgrade=partial(_bridge, reader, writer))


def _head(request: Request, upgrade: str) -> bytes:
    lines = [f"{request.method} {request.target} HTTP/1.1".encode("ascii")]
    lines += [name + b": " + value for name, value in request.headers.raw]
    lines += (b"connection: Upgrade", b"upgrade: " + upgrade.encode("latin-1"))
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, Headers]:
    try:
        text = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise BadAnswer("its answer is no HTTP") from None
    first, *lines = text.rstrip(b"\r\n").split(b"\r\n")
    version, _, rest = first.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise BadAnswer("its answer is no HTTP")
    fields = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    return int(rest[:3]), Headers([(name, value) for name, value in fields if name != b"connection"])


async def _read_refusal(reader: asyncio.StreamReader, headers: Headers) -> bytes:
    length = headers.get("content-length")
    if not length.isdigit():
        return b""
    with suppress(asyncio.IncompleteReadError):
        return await reader.readexactly(min(int(length), BODY_LIMIT))
    return b""


async def _bridge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: Duplex) -> None:
    """Carry bytes both ways until one side ends."""
    tasks = [
        asyncio.create_task(_inwards(client, writer), name="proxy: inwards"),
        asyncio.create_task(_outwards(reader, client), name="proxy: outwards"),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        writer.close()


async def _inwards(client: Duplex, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while block := await client.read():
            writer.write(block)
            await writer.drain()


async def _outwards(reader: asyncio.StreamReader, client: Duplex) -> None:
    with suppress(ConnectionError):
        while block := await reader.read(_BLOCK):
            client.write(block)
            await client.drain()
