"""Simulated servers on real sockets, at their pods' addresses: `curl 127.1.0.5:8848/nacos/…` finds them.

One task opens and closes what is wanted. Where an address cannot be had (macOS has 127.0.0.1 alone, and a port may be
taken), the server is not heard from outside, and a line in the log says what to do.
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
Place = tuple[str, int]


class Sockets:
    """Listens at the places that are wanted."""

    def __init__(self, serve: Serve, told: Callable[[], None]) -> None:
        """`told` is called when something was opened or closed."""
        self._serve = serve
        self._told = told
        self._wanted: frozenset[Place] = frozenset()
        self._open: dict[Place, Server] = {}
        self._impossible: set[Place] = set()
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

    def want(self, places: Iterable[Place]) -> None:
        wanted = frozenset(places)
        if wanted != self._wanted:
            self._wanted = wanted
            self._changed.set()

    def done_with(self, places: Iterable[Place]) -> bool:
        """They are open, or cannot be opened."""
        return all(place in self._open or place in self._impossible for place in places)

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            for place in [place for place in self._open if place not in self._wanted]:
                await self._open.pop(place).close(grace=0)
            for place in sorted(self._wanted - self._open.keys() - self._impossible):
                await self._listen(*place)
            self._told()

    async def _listen(self, address: str, port: int) -> None:
        server = Server(partial(self._serve, address, port))
        try:
            await server.start(address, port)
        except OSError as error:
            self._impossible.add((address, port))
            _log.warning(
                "the simulated Nacos at %s:%s cannot listen there (%s): free the port, or give the address to the "
                "loopback interface; within this process it answers all the same",
                address,
                port,
                error.strerror or error,
            )
            return
        self._open[address, port] = server
