"""How the console listens: apart from it, so that a program can listen before it has made the console."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from konverge.wire.limits import ServerLimits
from konverge.wire.message import Handler, Response
from konverge.wire.server import Server

BODY = 4 * 1024 * 1024
"""Bytes of a request: more than the API server takes."""
CONNECTIONS = 1000
_GRACE = 2.0


@asynccontextmanager
async def listening(
    handle: Handler, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, int]]:
    """Listen inside the block, which gets the address."""
    limits = ServerLimits(body=BODY, connections=CONNECTIONS)
    server = Server(handle, limits=limits, refusal=_wire_refusal)
    await server.start(host, port, ssl=tls)
    try:
        yield server.addresses[0]
    finally:
        await server.close(grace=_GRACE)


def _wire_refusal(status: int, text: str) -> Response:
    """Refusals of the wire itself (too large, malformed, too many connections), in the same form as all others."""
    from konverge.console.answers import guarded, refusal
    from konverge.service.problems import Problem

    return guarded(refusal(Problem(status, text)))
