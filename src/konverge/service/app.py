"""`Service`: one handler in front of the routes, the pages and the probes; and the server that listens for it.

This is the boundary where problems become answers, and where every answer gets the headers that restrict what browsers
do with it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any

from konverge.client import ApiStatusError, Client, ClientError
from konverge.objects.codec import to_json
from konverge.service import api, pages
from konverge.service.access import AGENT
from konverge.service.api import find
from konverge.service.call import Call
from konverge.service.openapi import document
from konverge.service.options import ServiceOptions
from konverge.service.problems import Problem, from_client
from konverge.service.watching import Streams
from konverge.wire.limits import ServerLimits
from konverge.wire.message import Headers, Request, Response, Transport
from konverge.wire.server import Server

log = logging.getLogger("konverge.service")

_GRACE = 10.0
"""Seconds for open requests to finish when the service stops."""
_PROBE = 5.0
_HOST = re.compile(r"[A-Za-z0-9.\-\[\]:]{1,255}").fullmatch
_HTML = "text/html; charset=utf-8"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_SECURITY = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Service:
    """The management service over a transport to an API server. The transport must have no credentials of its own.

    service = Service(Reconnecting(own_nothing(load_config())))
    async with service.serving("127.0.0.1", 8082) as (host, port): ...
    """

    def __init__(self, transport: Transport, options: ServiceOptions | None = None) -> None:
        self.options = options or ServiceOptions()
        self._transport = transport
        self._streams = Streams()
        self._routes = api.routes(self._streams.watch)
        self._scheme = "http"

    @asynccontextmanager
    async def serving(
        self, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[tuple[str, int]]:
        """Listen inside the block, which gets the address. At its end streams end, and requests have time to finish."""
        limits = ServerLimits(body=self.options.body, connections=self.options.connections)
        server = Server(self.handle, limits=limits, refusal=_refusal)
        await server.start(host, port, ssl=tls)
        self._scheme = "https" if tls is not None else "http"
        try:
            yield server.addresses[0]
        finally:
            self.stop()
            await server.close(grace=_GRACE)

    @property
    def streams(self) -> int:
        """How many event streams are open."""
        return self._streams.count

    def stop(self) -> None:
        """End the streams, and accept no new ones."""
        self._streams.stopping.set()

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        path = request.target.partition("?")[0]
        try:
            response = await self._answer(request, path)
        except Problem as problem:
            response = problem.response()
        except ClientError as error:
            response = from_client(error).response()
        log.debug("%s %s %d", request.method, path, response.status)
        return _with_headers(response)

    async def _answer(self, request: Request, path: str) -> Response:
        if path.startswith(api.ROOT):
            return await self._call(request, path)
        if request.method not in ("GET", "HEAD"):
            raise Problem(405, "only GET is answered here", headers={"Allow": "GET, HEAD"})
        if path in ("/healthz", "/livez"):
            return _text("ok")
        if path == "/readyz":
            return await self._readiness()
        if path == "/openapi.json":
            return Response(200, Headers.of({"Content-Type": "application/json"}), self._document)
        if path == "/docs":
            page = pages.reference(self._description, self._url(request))
            return Response(200, Headers.of({"Content-Type": _HTML}), page.encode())
        return self._file(request, path)

    async def _call(self, request: Request, path: str) -> Response:
        match = find(self._routes, request.method, path)
        if match.route is None and match.methods:
            allowed = ", ".join(match.methods)
            raise Problem(405, f"this path allows {allowed}", headers={"Allow": allowed})
        if match.route is None:
            raise Problem(404, "there is no such path; /docs lists all paths", reason="NotFound")
        call = Call(request, self.options, self._transport, match.path)
        return await match.route.handler(call)

    def _file(self, request: Request, path: str) -> Response:
        name = path.removeprefix("/static/")
        response = pages.static(request, name) if name != path else None
        if response is None:
            raise Problem(404, "there is no such page; /docs has the API", reason="NotFound")
        return response

    async def _readiness(self) -> Response:
        """Ready when the API server answers, even with a refusal: this request has no token."""
        if self._streams.stopping.is_set():
            raise Problem(503, "the service is stopping", reason="ServiceUnavailable")
        try:
            async with asyncio.timeout(_PROBE):
                await Client(self._transport, user_agent=AGENT).version()
        except ApiStatusError as error:
            if error.code >= 500:
                raise
        except TimeoutError as error:
            raise Problem(503, "the API server does not answer", reason="ServiceUnavailable") from error
        return _text("ok")

    @cached_property
    def _description(self) -> dict[str, Any]:
        from importlib.metadata import version  # slow to import, and most processes never show the page

        return document(self._routes, version("konverge"))

    @cached_property
    def _document(self) -> bytes:
        return to_json(self._description)

    def _url(self, request: Request) -> str:
        """Where the caller reached this service, also behind a proxy."""
        host = request.headers.get("host") or ""
        proto = request.headers.get("x-forwarded-proto") or self._scheme
        return f"{'https' if proto == 'https' else 'http'}://{host if _HOST(host) else 'HOST'}"


def _with_headers(response: Response) -> Response:
    for name, value in _SECURITY.items():
        response.headers.add(name, value)
    if "cache-control" not in response.headers:
        response.headers.add("Cache-Control", "no-store")
    return response


def _refusal(status: int, text: str) -> Response:
    """Refusals of the wire itself (too large, malformed, too many connections), in the same form as all others."""
    return _with_headers(Problem(status, text).response())


def _text(text: str) -> Response:
    return Response(200, Headers.of({"Content-Type": "text/plain; charset=utf-8"}), text.encode())
