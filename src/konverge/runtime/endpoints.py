"""What a manager serves over HTTP: health, metrics, and debug pages where they are asked for.

Without `MetricsServer`, all of it is at the health address. With one that authorises or has a certificate, metrics and
pages are there alone, and the health address answers probes. Debug pages are open to callers on this machine where
their address is a loopback one; everywhere else the API server is asked about the caller.

Upstream: metricsserver.Options of controller-runtime's pkg/metrics/server.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import msgspec

from konverge.client import Client
from konverge.observe.health import Gate, Health
from konverge.observe.metrics import Numbers
from konverge.runtime.config import ServingSettings
from konverge.wire.message import Handler, Headers, Request, Response
from konverge.wire.server import Server

if TYPE_CHECKING:
    from konverge.observe.authorization import Authorizer
    from konverge.runtime.story.story import Story
    from konverge.wire.certificate import ShownCertificate

FILES = ("tls.crt", "tls.key")
LOOK_EVERY = 10.0
"""Seconds between two looks at mounted files. Upstream: defaultWatchInterval (pkg/certwatcher)."""

_log = logging.getLogger("konverge.manager")


class MetricsServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where metrics are served, and to whom.

    Manager(metrics=MetricsServer(address=("", 8443)))
    """

    address: tuple[str, int] = ("", 8443)
    """Host (empty: all addresses) and port (0: any)."""
    tls: bool | Path = True
    """True: a certificate that the process makes for itself; a folder with `tls.crt` and `tls.key`, which is read again
    when they change; False: none."""
    authorize: bool = True
    """Callers need a bearer token, and the right to `get` the path (`nonResourceURLs: [/metrics]`)."""

    def __post_init__(self) -> None:
        if self.authorize and not self.tls and not is_loopback(self.address[0]):
            raise ValueError("callers would send their tokens unencrypted: give tls=True, or a folder with tls.crt")

    @property
    def closed(self) -> bool:
        """Whether the same must not be open elsewhere."""
        return self.authorize or self.tls is not False


def metrics_server(settings: ServingSettings) -> MetricsServer | None:
    """As configured."""
    if not settings.metrics_address:
        return None
    host, _, port = settings.metrics_address.rpartition(":")
    folder, secure = settings.metrics_certificates, settings.metrics_secure
    tls = Path(folder) if folder and secure else secure
    return MetricsServer(address=(host.strip("[]"), int(port)), tls=tls, authorize=secure)


class Served(Protocol):
    """What is needed of a manager."""

    numbers: Numbers
    health: Health
    story: Story
    debug_token: str
    metrics_port: int
    health_port: int

    @property
    def metrics(self) -> MetricsServer | None: ...
    @property
    def debug(self) -> bool: ...
    @property
    def health_address(self) -> tuple[str, int] | None: ...


def asks_about_callers(manager: Served) -> bool:
    """Whether the API server is asked who may see metrics or debug pages, which needs permissions."""
    metrics = manager.metrics
    if metrics is not None and metrics.authorize:
        return True
    if not manager.debug or manager.debug_token:
        return False
    addresses = [manager.health_address] if metrics is None else [metrics.address, manager.health_address]
    return any(address is not None and not is_loopback(address[0]) for address in addresses)


@asynccontextmanager
async def serving_endpoints(manager: Served, client: Client) -> AsyncIterator[None]:
    """Inside the block, health and metrics are served, and the process is measured."""
    metrics, address = manager.metrics, manager.health_address
    if metrics is None and address is None:
        yield
        return
    from konverge.observe.process import measuring  # not for managers that serve nothing, such as in tests

    pages = _Pages(manager, client)
    async with AsyncExitStack() as stack:
        stack.enter_context(measuring(manager.numbers))
        if metrics is not None:
            manager.metrics_port = await _serve_metrics(metrics, pages, stack)
        if address is not None:
            only_probes = metrics is not None and metrics.closed
            handler = manager.health.probes if only_probes else pages.handler(address[0])
            server = await _listening(stack, handler, address)
            manager.health_port = server.port
            _log.info("health is served at %s:%d", *server.addresses[0])
        yield


class _Pages:
    """Health, metrics and debug pages of a manager, for an address."""

    def __init__(self, manager: Served, client: Client) -> None:
        self._health = manager.health
        self._token = manager.debug_token
        self._client = client
        self._authorizer: Authorizer | None = None
        self._debug = manager.debug
        if self._debug:
            from konverge.runtime.story.page import PATH, page_of

            manager.health.guarded[PATH] = page_of(manager.story)

    @property
    def authorizer(self) -> Authorizer:
        if self._authorizer is None:
            from konverge.observe.authorization import Authorizer

            self._authorizer = Authorizer(self._client)
        return self._authorizer

    def handler(self, host: str) -> Handler:
        """Everything, with debug pages for those who may see them."""
        return self._health.handler(self._gate(host))

    def authorised(self) -> Handler:
        """Everything, for those who may see it."""
        handle, authorizer = self._health.handler(_open), self.authorizer

        async def answer(request: Request) -> Response:
            return await authorizer.refusal(request) or await handle(request)

        return answer

    def _gate(self, host: str) -> Gate:
        if self._token:
            return _with_token(self._token)
        if not is_loopback(host):
            return self.authorizer.refusal
        if self._debug:
            _log.info("debug pages are open to every user of this machine, at %s", host)
        return _from_here


async def _open(request: Request) -> Response | None:
    return None


def _with_token(token: str) -> Gate:
    import hmac

    async def refusal(request: Request) -> Response | None:
        from konverge.observe.authorization import bearer_token, unauthorized

        given = bearer_token(request.headers)
        return None if hmac.compare_digest(given.encode(), token.encode()) else unauthorized()

    return refusal


async def _from_here(request: Request) -> Response | None:
    """A page of another site must not read it through a browser, by a name of its own for this address."""
    name = urlsplit(f"//{request.headers.get('host')}").hostname or ""
    if is_loopback(name):
        return None
    fields = Headers.of({"Content-Type": "text/plain; charset=utf-8"})
    return Response(403, fields, b"ask for it by the address, such as 127.0.0.1\n")


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# ------------------------------------------------------------------ listening


async def _listening(
    stack: AsyncExitStack, handler: Handler, address: tuple[str, int], shown: ShownCertificate | None = None
) -> Server:
    server = await stack.enter_async_context(Server(handler))
    await server.start(*address, ssl=None if shown is None else shown.context)
    return server


async def _serve_metrics(metrics: MetricsServer, pages: _Pages, stack: AsyncExitStack) -> int:
    shown = None if metrics.tls is False else await _certificate(metrics.tls, stack)
    handler = pages.authorised() if metrics.authorize else pages.handler(metrics.address[0])
    server = await _listening(stack, handler, metrics.address, shown)
    how = "" if shown is None else " over TLS"
    how += ", to those who may get /metrics," if metrics.authorize else ""
    _log.info("metrics are served%s at %s:%d", how, *server.addresses[0])
    return server.port


async def _certificate(where: bool | Path, stack: AsyncExitStack) -> ShownCertificate:
    from konverge.wire.certificate import Certificate, ShownCertificate

    if isinstance(where, Path):
        certificate = Certificate(*(where / name for name in FILES))
        following = asyncio.create_task(certificate.follow(LOOK_EVERY), name="metrics certificate")
        stack.push_async_callback(_cancelled, following)
        return certificate
    from konverge.wire import x509

    authority = x509.authority("metrics")
    return ShownCertificate(*x509.issue(authority, "localhost", x509.FOR_SERVERS, hosts=("localhost",)).pem)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
