"""Ways to addresses that this machine has no route to: those of pods in network namespaces of their own.

Who keeps such a network registers a way to it. All of this process that connects to addresses goes that way then, as if
the machine itself knew it: the API server's proxies, its calls of webhooks, probes, operators in this process.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

Way = Callable[[str, int], Awaitable[socket.socket]]
"""(address, port) -> a connected socket. Raises OSError."""

_ways: dict[ipaddress.IPv4Network, Way] = {}


@contextmanager
def route(block: ipaddress.IPv4Network, way: Way) -> Iterator[None]:
    """All addresses of a block are reached this way until the end of the `with` block. No two blocks may overlap."""
    if is_taken(block):
        raise ValueError(f"there is a way to {block} already")
    _ways[block] = way
    try:
        yield
    finally:
        del _ways[block]


def is_taken(block: ipaddress.IPv4Network) -> bool:
    """Whether there is a way to an address of this block."""
    return any(block.overlaps(other) for other in _ways)


def way_to(host: str) -> Way | None:
    """None for names, and for addresses that this machine reaches by itself."""
    if not _ways:
        return None
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        return None
    return next((way for block, way in _ways.items() if address in block), None)


def is_local(address: str) -> bool:
    """Whether it is of this machine's loopback or of a pod network: all that a pod, which may claim any, is sent to."""
    try:
        return ipaddress.ip_address(address).is_loopback or way_to(address) is not None
    except ValueError:
        return False


async def open_connection(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As `asyncio.open_connection`, by the way that there is."""
    way = way_to(host)
    if way is None:
        return await asyncio.open_connection(host, port)
    sock = await way(host, port)
    try:
        return await asyncio.open_connection(sock=sock)
    except BaseException:
        sock.close()
        raise
