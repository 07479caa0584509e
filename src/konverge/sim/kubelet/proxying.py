"""`pods/proxy` and `services/proxy`: requests that are passed on to what listens at a pod's address.

The server behind sees the request without the caller's credentials. Links to it in redirects and pages are made to lead
through the proxy. Upstream: UpgradeAwareHandler (apimachinery/pkg/util/proxy/upgradeaware.go).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from konverge.sim.kubelet import proxy_targets, proxy_upgrades
from konverge.sim.kubelet.proxy_links import Links
from konverge.sim.kubelet.proxy_targets import Target, unreachable
from konverge.wire.errors import WireError
from konverge.wire.limits import ClientLimits
from konverge.wire.message import Headers, Request, Response, Sink, Stream
from konverge.wire.pool import ConnectionPool
from konverge.wire.tls import TlsOptions

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

PAGE_LIMIT = 4 * 1024 * 1024
"""Bytes of a page of HTML, which is held in memory while its links are rewritten; a longer one passes as it is."""
_HOPS = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "content-length", "host", "accept-encoding"),
    )
)
"""Of one connection, not of the message (RFC 9110, 7.6.1), and what each side writes itself."""
_OURS = ("authorization", "impersonate-", "x-remote-", "x-forwarded-")


async def pass_on(call: Call) -> Response:
    """GET (or any other method) pods/proxy or services/proxy. Raises ApiError where no server answers."""
    target = proxy_targets.of_pod(call) if call.info.plural == "pods" else proxy_targets.of_service(call)
    request = call.request
    path, mark, query = request.target.partition("?")
    prefix, behind = _divided(path)
    if proxy_upgrades.is_asked_for(request):
        return await _upgraded(_inner(request, (behind or "/") + mark + query, target, prefix), target, request)
    if not behind and request.method in ("GET", "HEAD"):
        return Response(301, Headers.of({"location": f"{path}/{mark}{query}"}))
    inner = _inner(request, (behind or "/") + mark + query, target, prefix)
    limits = ClientLimits(connect=proxy_upgrades.CONNECT_TIME, body=PAGE_LIMIT)
    pool = ConnectionPool(target.url, tls=TlsOptions(insecure=True) if target.tls else None, limits=limits, gzip=False)
    try:
        stream = await pool.stream(inner)
        return await _answer(stream, pool, request, Links(prefix, request.headers.get("host"), "https", _name(target)))
    except (OSError, WireError) as error:
        await pool.aclose()
        raise unreachable(_why(target, error)) from error
    except BaseException:
        await pool.aclose()
        raise


def _divided(path: str) -> tuple[str, str]:
    """The path of the proxy, and what is asked of the server behind it."""
    before, _, after = path.partition("/proxy")
    return f"{before}/proxy", after


def _inner(request: Request, target: str, at: Target, prefix: str) -> Request:
    """The request as the server behind gets it."""
    named = {token.strip().lower() for value in request.headers.get_all("connection") for token in value.split(",")}
    left_out = _HOPS | named
    fields = [(name, value) for name, value in request.headers if name not in left_out and not name.startswith(_OURS)]
    fields += [
        ("host", request.headers.get("host") or _name(at)),
        ("x-forwarded-for", request.peer.address.rpartition(":")[0] or request.peer.address),
        ("x-forwarded-host", request.headers.get("host")),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-uri", prefix + target.partition("?")[0]),
    ]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields if value]
    return Request(request.method, target, Headers(raw), request.body)


def _name(target: Target) -> str:
    return f"{target.address}:{target.port}"


def _why(target: Target, error: BaseException) -> str:
    """As Go says it, where the cause is known."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return f"dial tcp {_name(target)}: connect: {os.strerror(cause.errno).lower()}"
        cause = cause.__cause__
    return f"{_name(target)}: {error}"


async def _answer(stream: Stream, pool: ConnectionPool, request: Request, links: Links) -> Response:
    fields = [(name, value) for name, value in stream.headers if name not in _HOPS]
    fields = [(name, links.outside(value) if name == "location" else value) for name, value in fields]
    if request.method == "HEAD" and (length := stream.headers.get("content-length")):
        fields.append(("content-length", length))
    headers = Headers([(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields])
    if request.method == "HEAD" or stream.status in (204, 304):
        await stream.aclose()
        await pool.aclose()
        return Response(stream.status, headers)
    if _is_page(stream):
        page = await stream.read()
        await pool.aclose()
        with suppress(UnicodeDecodeError):
            page = links.in_page(page.decode()).encode()
        return Response(stream.status, headers, page)

    async def produce(sink: Sink) -> None:
        try:
            async for block in stream:
                sink.write(block)
                await sink.drain()
        finally:
            await stream.aclose()
            await pool.aclose()

    return Response(stream.status, headers, producer=produce)


def _is_page(stream: Stream) -> bool:
    headers = stream.headers
    if headers.get("content-type").partition(";")[0].strip() != "text/html" or "location" in headers:
        return False
    return "content-encoding" not in headers and int(headers.get("content-length", "0")) <= PAGE_LIMIT


async def _upgraded(inner: Request, target: Target, request: Request) -> Response:
    inner.headers.add("connection", "Upgrade")
    inner.headers.add("upgrade", request.headers.get("upgrade"))
    try:
        return await proxy_upgrades.pass_on(inner, target)
    except (OSError, proxy_upgrades.BadAnswer) as error:
        raise unreachable(_why(target, error)) from error
