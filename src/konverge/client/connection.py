"""`Reconnecting`: the transport of a `Config`, which follows its certificates.

Certificates are files that are rotated, or come from an exec plugin (upstream: client-go/transport/cert_rotation.go).
When they change, new requests go through a new pool; the old pool is left to itself: what runs there ends there, and
its idle connections close after their time. Files that do not fit together (yet) change nothing.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from weakref import WeakSet

from konverge import clock
from konverge.client.config import Config
from konverge.client.credentials import Static, TokenFile
from konverge.client.errors import ConfigError
from konverge.wire.limits import ClientLimits
from konverge.wire.message import Request, Response, Stream
from konverge.wire.pool import ConnectionPool
from konverge.wire.tls import TlsOptions

log = logging.getLogger("konverge.client")

LOOK_PERIOD = 10.0
"""Seconds between two looks at the certificate files."""

Certificates = tuple[Any, ...]


class Reconnecting:
    """A `Transport` over connection pools, one after the other."""

    def __init__(self, config: Config, limits: ClientLimits | None = None, *, look_period: float = LOOK_PERIOD) -> None:
        self._config = config
        self._limits = limits or ClientLimits()
        self._look_period = look_period
        self._unplugged = isinstance(config.credentials, Static | TokenFile)  # these bring no certificates
        self._pool: ConnectionPool | None = None
        self._made_with: Certificates = ()
        self._next_look = float("-inf")
        # Open connections keep their pool alive, so this holds exactly those pools that have some.
        self._retired: WeakSet[ConnectionPool] = WeakSet()

    def send(self, request: Request) -> Coroutine[Any, Any, Response]:
        return self._current().send(request)

    def stream(self, request: Request) -> Coroutine[Any, Any, Stream]:
        return self._current().stream(request)

    def upgrade(self, request: Request) -> Coroutine[Any, Any, Response]:
        return self._current().upgrade(request)

    async def aclose(self) -> None:
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        for pool in pools:
            await pool.aclose()

    def _current(self) -> ConnectionPool:
        pool = self._pool
        if pool is None or clock.monotonic() >= self._next_look:
            return self._look()
        if self._unplugged or self._plugin_certificate() is self._made_with[0]:
            return pool
        return self._look()

    def _look(self) -> ConnectionPool:
        self._next_look = clock.monotonic() + self._look_period
        present = (self._plugin_certificate(), *map(_stamp, self._config.tls.files))
        pool = self._pool
        if pool is not None and present == self._made_with:
            self._made_with = present
            return pool
        try:
            tls = self._context()
        except ConfigError as error:
            if pool is None or present[0] != self._made_with[0]:
                raise
            # Files are replaced one after the other: until they fit together, those in use are still good.
            log.warning("%s; going on with those in use", error)
            return pool
        if pool is not None:
            self._retired.add(pool)
        self._pool = ConnectionPool(
            self._config.server,
            tls=tls,
            limits=self._limits,
            proxy=self._config.proxy,
            gzip=self._config.compression,
        )
        self._made_with = present
        return self._pool

    def _plugin_certificate(self) -> str:
        credential = self._config.credentials.current()
        return credential.certificate if credential is not None else ""

    def _context(self) -> TlsOptions | None:
        if not self._config.server.startswith("https:"):
            return None
        options = self._options()
        try:
            options.context()
        except (ssl.SSLError, ValueError, OSError) as error:
            raise ConfigError(
                f"{self._config.source}: the certificates cannot be used: {error}; check certificate-authority, "
                "client-certificate and client-key (PEM, and a key that belongs to its certificate)"
            ) from error
        return options

    def _options(self) -> TlsOptions:
        tls = self._config.tls
        credential = self._config.credentials.current()
        certificate, key = tls.certificate_data, tls.key_data
        if credential is not None and credential.certificate:
            certificate, key = credential.certificate, credential.key
        return TlsOptions(
            ca_file=tls.ca_file,
            ca_data=tls.ca_data.encode(),
            certificate_file=tls.certificate_file,
            certificate_data=certificate.encode(),
            key_file=tls.key_file,
            key_data=key.encode(),
            server_name=tls.server_name,
            insecure=tls.insecure,
        )


def _stamp(path: str) -> tuple[int, int, int]:
    """What changes when a file is replaced; also through a symbolic link, as the kubelet replaces whole folders."""
    try:
        stat = Path(path).stat()
    except OSError:
        return (0, 0, 0)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
