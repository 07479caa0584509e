"""Running a handler: the one place where its exceptions end, for sockets and in process alike."""

from __future__ import annotations

import logging
from collections.abc import Callable

from konverge.wire.encode import response_head
from konverge.wire.message import Handler, Headers, Request, Response

log = logging.getLogger("konverge.wire")

Refusal = Callable[[int, str], Response]
"""Makes the answer that the wire itself gives (400, 413, 431, 500, 503, …) from a status and a text for people."""


def plain_refusal(status: int, text: str) -> Response:
    headers = Headers([(b"content-type", b"text/plain; charset=utf-8")])
    return Response(status, headers, f"{text}\n".encode())


async def answer(handler: Handler, request: Request, refusal: Refusal) -> Response:
    """The handler's answer. Its exceptions are logged and become 500: the boundary between wire and user code."""
    try:
        return await handler(request)
    except Exception:
        log.exception("the handler failed on %s %s", request.method, request.target.partition("?")[0])
        return refuse(refusal, 500, "the server failed to answer; its log says why")


def refuse(refusal: Refusal, status: int, text: str) -> Response:
    """An answer of the wire's own; a plain one when the user's function for it fails."""
    try:
        response = refusal(status, text)
        response_head(response.status, response.headers, b"", b"")
    except Exception:
        log.exception("the function that makes refusals failed on status %d", status)
        return plain_refusal(status, text)
    return response
