"""Connections to a host by whichever of its addresses answers first (RFC 8305).

A name often has an address of IPv6 and one of IPv4, and one of the two may swallow packets without a word. The next
address is therefore tried beside the ones that have not answered yet, as browsers and Go's programs do. The loops do
not help: uvloop tries one after the other, and asyncio's own race leaves sockets behind when it is cancelled.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from konverge.wire import routes

P = TypeVar("P", bound=asyncio.BaseProtocol)
AddressEntry = tuple[int, int, int, str, Any]
"""What a lookup gives for each address."""

STAGGER = 0.25
"""Seconds before the next address is tried: most handshakes around the world are over by then."""


async def dial(
    protocol: Callable[[], P], host: str, port: int, context: ssl.SSLContext | None, server_name: str
) -> tuple[asyncio.Transport, P]:
    """Connect, through TLS if there is a context."""
    loop = asyncio.get_running_loop()
    name = server_name if context is not None else None
    if (way := routes.way_to(host)) is not None:
        return await _over(await way(host, port), protocol, context, name)
    if _is_address(host):
        return await loop.create_connection(protocol, host, port, ssl=context, server_hostname=name)
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return await _over(await _first_to_connect(_mixed(entries)), protocol, context, name)


async def _over(
    sock: socket.socket, protocol: Callable[[], P], context: ssl.SSLContext | None, name: str | None
) -> tuple[asyncio.Transport, P]:
    try:
        loop = asyncio.get_running_loop()
        return await loop.create_connection(protocol, sock=sock, ssl=context, server_hostname=name)
    except BaseException:
        sock.close()
        raise


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False


def _mixed(entries: Iterable[AddressEntry]) -> deque[AddressEntry]:
    """The families in turn, beginning with the one that the system prefers."""
    families: dict[int, list[AddressEntry]] = {}
    for entry in dict.fromkeys(entries):
        families.setdefault(entry[0], []).append(entry)
    turns = itertools.zip_longest(*families.values())
    return deque(entry for turn in turns for entry in turn if entry is not None)


async def _first_to_connect(addresses: deque[AddressEntry]) -> socket.socket:
    made: list[socket.socket] = []
    trying: set[asyncio.Task[None]] = set()
    failed: list[BaseException] = []
    winner: socket.socket | None = None
    try:
        while winner is None and (addresses or trying):
            if addresses:
                trying.add(asyncio.create_task(_connect(addresses.popleft(), made), name="konverge.wire.dial"))
            patience = STAGGER if addresses else None
            done, trying = await asyncio.wait(trying, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            failed += [error for task in done if (error := task.exception()) is not None]
            winner = made[0] if made else None
    finally:
        try:
            await _end(trying)
        except BaseException:
            winner = None
            raise
        finally:
            for sock in made:
                if sock is not winner:
                    sock.close()
    if winner is None:
        raise failed[0] if failed else OSError("the name has no address")
    return winner


async def _connect(address: AddressEntry, made: list[socket.socket]) -> None:
    family, kind, protocol, _, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    made.append(sock)


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
