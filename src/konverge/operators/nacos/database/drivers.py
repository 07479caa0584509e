"""What both drivers need: their import, and TLS contexts in the five modes of libpq.

A driver is imported when it is first needed, and on a thread: the import takes a tenth of a second of CPU (measured).
"""

from __future__ import annotations

import asyncio
import importlib
import ssl
from collections.abc import Awaitable, Callable, Collection
from types import ModuleType
from typing import Any, TypeVar

from konverge.operators.nacos.database.errors import DatabaseError
from konverge.operators.nacos.database.target import Tls

T = TypeVar("T")
_loaded: dict[str, ModuleType] = {}


async def driver(module: str) -> Any:
    """The module; a missing one is an error that names what to install."""
    if module not in _loaded:
        try:
            _loaded[module] = await asyncio.to_thread(importlib.import_module, module)
        except ImportError as error:
            text = f"the Python package {module} is not installed: pip install 'konverge[nacos]'"
            raise DatabaseError("DriverMissing", text) from error
    return _loaded[module]


async def connect_by_mode(
    tls: Tls, connect: Callable[[ssl.SSLContext | None], Awaitable[T]], fall_back_on: Collection[str]
) -> T:
    """Connects as the TLS mode demands. `prefer` falls back to plain text after errors of these reasons."""
    context = tls_context(tls)
    try:
        return await connect(context)
    except DatabaseError as error:
        if context is None or tls.mode != "prefer" or error.reason not in fall_back_on:
            raise
    return await connect(None)


class _Context(ssl.SSLContext):
    """Sends and verifies another name than that of the host: drivers know only the host that they connect to."""

    expected = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return super().wrap_bio(incoming, outgoing, server_side, self.expected or server_hostname, session)


def tls_context(tls: Tls) -> ssl.SSLContext | None:
    """None where the connection is not encrypted."""
    if tls.mode == "disable":
        return None
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.expected = tls.server_name
    context.check_hostname = tls.mode == "verify-full"
    if tls.mode in ("prefer", "require"):
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca:
        _trust(context, tls.ca)
    else:
        context.load_default_certs()
    return context


def _trust(context: ssl.SSLContext, ca: str) -> None:
    try:
        context.load_verify_locations(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        text = "the CA for the database is not a bundle of certificates in PEM: put the certificate into the Secret"
        raise DatabaseError("InvalidTarget", text) from error
