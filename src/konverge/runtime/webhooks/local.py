"""Webhooks without an installation: for a process on the machine of the API server, and for tests.

What an installation would have is made for the time of a run: an authority of its own, in memory, and configurations
that name a URL. They are removed at the end, and what was in definitions before is put back.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import AsyncIterator, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from urllib.parse import urlsplit

from konverge.runtime.webhooks.installing import installed
from konverge.runtime.webhooks.places import Place, Serving, listening
from konverge.wire.certificate import ShownCertificate
from konverge.wire.in_process import Direct
from konverge.wire.message import Transport

HOST = "127.0.0.1"


def is_elsewhere(server: str) -> bool:
    """Whether an API server (its URL) is on another machine, as far as its address says."""
    host = urlsplit(server).hostname
    if host is None or host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Loopback(Place):
    """On this machine, for an API server on this machine."""

    port: int = 0

    behind_service = False

    @asynccontextmanager
    async def serving(self, at_work: Serving) -> AsyncIterator[None]:
        from konverge.wire import x509

        if is_elsewhere(at_work.client.server):
            raise ValueError(
                f"the operator has webhooks, and the API server {at_work.client.server} cannot call {HOST} of this "
                "machine: say where it reaches them with Manager(webhooks=Webhooks(place=InCluster(…)))"
            )
        authority = x509.authority(f"{at_work.name}-webhooks")
        shown = ShownCertificate(*x509.issue(authority, HOST, x509.FOR_SERVERS, hosts=(HOST, "localhost")).pem)
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(listening(at_work, shown, (HOST, self.port)))
            url = f"https://{HOST}:{server.port}"
            await stack.enter_async_context(installed(at_work, url, authority.pem[0]))
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcess(Place):
    """For an API server in this process: without a socket and without a certificate, so also on virtual time."""

    transports: MutableMapping[str, Transport]
    """Where the API server looks for programs in its process: host name -> transport."""

    behind_service = False

    @asynccontextmanager
    async def serving(self, at_work: Serving) -> AsyncIterator[None]:
        name = re.sub(r"[^a-z0-9]+", "-", at_work.name.lower()).strip("-") or "operator"
        host = next(host for n in count(1) if (host := f"{name}-{n}.in-process") not in self.transports)
        self.transports[host] = Direct(at_work.reviews.handle)
        try:
            async with installed(at_work, f"https://{host}", b""):
                at_work.problem = ""
                yield
                at_work.problem = "no longer served"
        finally:
            del self.transports[host]
