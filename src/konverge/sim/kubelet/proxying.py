"""`pods/proxy` and `services/proxy`: requests that are passed on to what listens at a pod's address.

The server behind sees the request without the caller's credentials. Links to it in redirects and pages are made to lead
through the proxy. Upstream: UpgradeAwareHandler (apimachinery/pkg/util/proxy/upgradeaware.go).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from konverge.sim.kubelet import proxy_targets
from konverge.sim.kubelet.proxy_links import Links
from konverge.sim.kubelet.proxy_targets import Target, unreachable
from konverge.wire.errors import WireError
from konverge.wire.limits import ClientLimits
from konverge.wire.message import Headers, Request, Response, Stream
from konverge.wire.pool import ConnectionPool
from konverge.wire.reverse_proxy import end_to_end, is_upgrade, of_fields, streamed, upgraded, without_body
from konverge.wire.tls import TlsOptions

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

PAGE_LIMIT = 4 * 1024 * 1024
"""Bytes of a page of HTML, which is held in memory while its links are rewritten; a longer one passes as it is."""
_OURS = ("authorization", "impersonate-", "x-remote-", "x-forwarded-", "accept-encoding")
"""Fields that are for this server, by their beginnings."""
_SEGMENTS = "/api/v1/namespaces/NAMESPACE/pods/NAME/proxy".count("/") + 1


async def pass_on(call: Call) -> Response:
    """GET (or any other method) pods/proxy or services/proxy. Raises ApiError where no server answers."""
    target = proxy_targets.of_pod(call) if call.info.plural == "pods" else proxy_targets.of_service(call)
    request = call.request
    path, mark, query = request.target.partition("?")
    prefix, behind = _divided(path)
    upgrading = is_upgrade(request)
    if not behind and not upgrading and request.method in ("GET", "HEAD"):
        return Response(301, Headers.of({"location": f"{path}/{mark}{query}"}))
    inner = _inner(request, (behind or "/") + mark + query, target, prefix)
    limits = ClientLimits(body=PAGE_LIMIT)
    pool = ConnectionPool(target.url, tls=TlsOptions(insecure=True) if target.tls else None, limits=limits, gzip=False)
    try:
        if upgrading:
            return await upgraded(pool, inner, request, pool.aclose)
        stream = await pool.stream(inner)
        return await _answer(stream, pool, request, Links(prefix, request.headers.get("host"), _name(target)))
    except (OSError, WireError) as error:
        await pool.aclose()
        raise unreachable(_why(target, error)) from error
    except BaseException:
        await pool.aclose()
        raise


def _divided(path: str) -> tuple[str, str]:
    """The path of the proxy, and what is asked of the server behind it."""
    parts = path.split("/", _SEGMENTS)  # a namespace may be called `proxy` too
    return "/".join(parts[:_SEGMENTS]), "".join(f"/{part}" for part in parts[_SEGMENTS:])


def _inner(request: Request, target: str, at: Target, prefix: str) -> Request:
    """The request as the server behind gets it."""
    fields = [(name, value) for name, value in end_to_end(request.headers) if not name.startswith(_OURS)]
    fields += [
        ("host", request.headers.get("host") or _name(at)),
        ("x-forwarded-for", request.peer.address.rpartition(":")[0] or request.peer.address),
        ("x-forwarded-host", request.headers.get("host")),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-uri", prefix + target.partition("?")[0]),
    ]
    return Request(request.method, target, of_fields([field for field in fields if field[1]]), request.body)


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
    fields = end_to_end(stream.headers)
    headers = of_fields([(name, links.outside(value) if name == "location" else value) for name, value in fields])
    response = await without_body(request, stream, headers)
    if response is None and _is_page(stream):
        page = await stream.read()
        with suppress(UnicodeDecodeError):
            page = links.in_page(page.decode()).encode()
        response = Response(stream.status, headers, page)
    if response is None:
        return streamed(stream, headers, pool.aclose)
    await pool.aclose()
    return response


def _is_page(stream: Stream) -> bool:
    headers = stream.headers
    if headers.get("content-type").partition(";")[0].strip() != "text/html" or "location" in headers:
        return False
    return "content-encoding" not in headers and int(headers.get("content-length", "0")) <= PAGE_LIMIT
