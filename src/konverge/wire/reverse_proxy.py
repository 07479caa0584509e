"""Requests that a server passes on to another one: which header fields go along, and answers that stream through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container

from konverge.wire.message import Duplex, Headers, Request, Response, Sink, Stream, UpgradingTransport

HOPS = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "content-length", "host"),
    )
)
"""Of one connection, not of the message (RFC 9110, 7.6.1), and what each side writes itself."""


def end_to_end(headers: Headers, without: Container[str] = ()) -> list[tuple[str, str]]:
    """The fields that go along: not those of the connection, nor those that it names."""
    named = {token.strip().lower() for value in headers.get_all("connection") for token in value.split(",")}
    return [(name, value) for name, value in headers if name not in HOPS and name not in named and name not in without]


def of_fields(fields: list[tuple[str, str]]) -> Headers:
    """Header fields from names and values."""
    return Headers([(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields])


def streamed(stream: Stream, headers: Headers, closed: Callable[[], Awaitable[None]]) -> Response:
    """The answer of another server as it comes. `closed` is called when it has ended, or its reader has gone."""

    async def produce(sink: Sink) -> None:
        try:
            async for block in stream:
                sink.write(block)
                await sink.drain()
        finally:
            await stream.aclose()
            await closed()

    return Response(stream.status, headers, producer=produce)


async def without_body(request: Request, stream: Stream, headers: Headers) -> Response | None:
    """The answer if it can have no body (HEAD, 204, 304), with the length that it would have."""
    if request.method != "HEAD" and stream.status not in (204, 304):
        return None
    if request.method == "HEAD" and (length := stream.headers.get("content-length")):
        headers.add("content-length", length)
    await stream.aclose()
    return Response(stream.status, headers)


def is_upgrade(request: Request) -> bool:
    """Whether a request asks that its connection becomes something else, such as a WebSocket."""
    tokens = [token.strip().lower() for value in request.headers.get_all("connection") for token in value.split(",")]
    return "upgrade" in tokens and bool(request.headers.get("upgrade"))


async def upgraded(
    transport: UpgradingTransport, inner: Request, request: Request, closed: Callable[[], Awaitable[None]]
) -> Response:
    """The answer to a request for an upgrade; `inner` is the request as the other server gets it."""
    inner.headers.add("connection", "Upgrade")
    inner.headers.add("upgrade", request.headers.get("upgrade"))
    response = await transport.upgrade(inner)
    goes_on = response.upgrade
    fields = [(name, text) for name, text in response.headers if name not in HOPS or name == "upgrade"]
    if goes_on is None:
        await closed()
        return Response(response.status, of_fields(fields), response.body)

    async def upgrade(connection: Duplex) -> None:
        try:
            await goes_on(connection)
        finally:
            await closed()

    return Response(response.status, of_fields(fields), upgrade=upgrade)
