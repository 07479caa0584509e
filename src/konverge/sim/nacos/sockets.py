"""Simulated servers on real sockets, at their pods' addresses: `curl 127.1.0.5:8848/nacos/…` reaches them.

One task opens and closes the sockets. Where an address is not available (macOS has 127.0.0.1 only, and a port may be in
use), the server cannot be reached from outside, and a line in the log says what to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from konverge.wire.message import Request, Response
from konverge.wire.server import Server

_log = logging.getLogger("konverge.sim.nacos")
Serve = Callable[[str, int, Request], Awaitable[Response]]
Endpoint = tuple[str, int]


class Sockets:
    """Listens on a set of endpoints that may change."""

    def __init__(self, serve: Serve, on_change: Callable[[], None]) -> None:
        """`on_change` is called after sockets were opened or closed."""
        self._serve = serve
        self._on_change = on_change
        self._desired: frozenset[Endpoint] = frozenset()
        self._open: dict[Endpoint, Server] = {}
        self._unavailable: set[Endpoint] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="simulated-nacos-sockets")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        for server in self._open.values():
            await server.close(grace=0)
        self._open.clear()

    def listen(self, endpoints: Iterable[Endpoint]) -> None:
        """From now on, listen on these endpoints and no others."""
        desired = frozenset(endpoints)
        if desired != self._desired:
            self._desired = desired
            self._changed.set()

    def settled(self, endpoints: Iterable[Endpoint]) -> bool:
        """They are open, or cannot be opened."""
        return all(endpoint in self._open or endpoint in self._unavailable for endpoint in endpoints)

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            for endpoint in sorted(self._open.keys() - self._desired):
                await self._open.pop(endpoint).close(grace=0)
            for endpoint in sorted(self._desired - self._open.keys() - self._unavailable):
                await self._start(*endpoint)
            self._on_change()

    async def _start(self, address: str, port: int) -> None:
        server = Server(partial(self._serve, address, port))
        try:
            await server.start(address, port)
        except OSError as error:
            self._unavailable.add((address, port))
            _log.warning(
                "the simulated Nacos cannot listen on %s:%s (%s): free the port, or add the address to the loopback "
                "interface; within this process the server answers nevertheless",
                address,
                port,
                error.strerror or error,
            )
            return
        self._open[address, port] = server
