"""Where the API server reaches the webhooks of a manager, and whose certificate they show.

A place serves for the time of its block. `Mounted` is for a pod whose certificate another program keeps (cert-manager);
the others are in modules of their own.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from konverge.client import Client
from konverge.runtime.rbac import Permission
from konverge.runtime.webhooks.registry import PORT, Webhooks
from konverge.runtime.webhooks.server import Reviews, server_limits
from konverge.wire.certificate import Certificate, ShownCertificate
from konverge.wire.server import Server

FILES = ("tls.crt", "tls.key")
"""In a Secret of type kubernetes.io/tls, and so in the folder where it is mounted."""
LOOK_EVERY = 10.0
"""Seconds between two looks at mounted files. Upstream: defaultWatchInterval (pkg/certwatcher)."""
DRAIN = 10.0
"""Seconds for reviews that are under way when the server closes."""


class Serving(msgspec.Struct, kw_only=True):
    """Webhooks at work, for one run of a manager."""

    name: str
    """Of the manager."""
    webhooks: Webhooks
    client: Client
    reviews: Reviews
    port: int = 0
    """Where they are served, once they are; 0 in process."""
    problem: str = "not served yet"
    """Why they are not served; empty when they are."""
    checks: list[Callable[[], str]] = msgspec.field(default_factory=list)
    """What else may be wrong."""

    def check(self) -> str:
        """For `/readyz`."""
        return next(filter(None, (check() for check in self.checks)), self.problem)


class Place(ABC):
    """How webhooks are reached."""

    behind_service = True
    """Whether traffic still arrives for a while after the pod is no longer ready."""

    def permissions(self, webhooks: Webhooks) -> list[Permission]:
        """What the operator must be allowed for this."""
        return []

    @abstractmethod
    def serving(self, at_work: Serving) -> AbstractAsyncContextManager[None]:
        """Inside the block they are served, and the API server can reach them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted(Place):
    """With a certificate from a folder, in cert-manager's layout (`tls.crt`, `tls.key`); a renewed one is taken over.

    Who keeps the certificate also keeps the caBundle: cert-manager's CA injector does.
    """

    folder: Path
    address: tuple[str, int] = ("", PORT)

    @asynccontextmanager
    async def serving(self, at_work: Serving) -> AsyncIterator[None]:
        certificate = await self._certificate(at_work)
        async with listening(at_work, certificate, self.address):
            following = asyncio.create_task(certificate.follow(LOOK_EVERY), name="webhook certificate")
            try:
                yield
            finally:
                following.cancel()
                await asyncio.wait([following])

    async def _certificate(self, at_work: Serving) -> Certificate:
        """The first one, which may be late: cert-manager issues it when everything else is installed."""
        while True:
            try:
                return Certificate(*(self.folder / name for name in FILES))
            except (OSError, ValueError) as error:
                at_work.problem = f"no certificate in {self.folder}: {error}"
            await asyncio.sleep(LOOK_EVERY)


@asynccontextmanager
async def listening(at_work: Serving, shown: ShownCertificate, address: tuple[str, int]) -> AsyncIterator[Server]:
    """Serve over HTTPS; at the end of the block, what was begun is finished."""
    server = Server(at_work.reviews.handle, limits=server_limits(at_work.webhooks))
    try:
        await server.start(*address, ssl=shown.context)
        at_work.port, at_work.problem = server.port, ""
        yield server
    finally:
        at_work.problem = "no longer served"
        await server.close(grace=DRAIN)
