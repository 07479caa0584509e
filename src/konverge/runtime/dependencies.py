"""Dependencies of a controller: other controllers of this process by name, anything else by an address.

While a controller waits, readiness names what it waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

from konverge import clock
from konverge.wire import ConnectionPool
from konverge.wire.message import Request

RETRY = 1.0
"""Seconds between two attempts, up to 20 % more."""
ATTEMPT = 5.0
"""Seconds for one attempt."""


class DependencyError(ValueError):
    """A dependency that can never become ready."""


def check_names(name: str, depends_on: list[str], known: set[str]) -> None:
    """Refuse dependencies that can never be satisfied, before anything starts."""
    for dependency in depends_on:
        if "://" in dependency:
            scheme = urlsplit(dependency).scheme
            if scheme not in ("tcp", "http", "https"):
                raise DependencyError(f"{name} depends on {dependency}: use tcp://host:port or http(s)://…")
        elif dependency == name:
            raise DependencyError(f"{name} depends on itself")
        elif dependency not in known:
            raise DependencyError(f"{name} depends on {dependency}, which is not a controller of this manager")


async def wait_for(dependency: str, controller_ready: Callable[[str], bool]) -> None:
    """Wait until a dependency is ready."""
    while not await _is_ready(dependency, controller_ready):  # noqa: ASYNC110 - the other side cannot set an event
        await asyncio.sleep(RETRY * clock.rng().uniform(1.0, 1.2))


async def _is_ready(dependency: str, controller_ready: Callable[[str], bool]) -> bool:
    if "://" not in dependency:
        return controller_ready(dependency)
    try:
        async with asyncio.timeout(ATTEMPT):
            return await (_connects(dependency) if dependency.startswith("tcp://") else _answers(dependency))
    except (OSError, TimeoutError):  # errors of the wire are OSErrors
        return False


async def _connects(address: str) -> bool:
    parts = urlsplit(address)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.close()
    await writer.wait_closed()
    return True


async def _answers(url: str) -> bool:
    parts = urlsplit(url)
    target = parts.path or "/"
    pool = ConnectionPool(f"{parts.scheme}://{parts.netloc}")
    try:
        response = await pool.send(Request("GET", f"{target}?{parts.query}" if parts.query else target))
    finally:
        await pool.aclose()
    return response.status < 400
