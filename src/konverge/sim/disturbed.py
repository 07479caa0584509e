"""`Disturbed`: how operators reach the API server of a cluster, with disturbances that can be switched on at any time.

A plan of faults (`konverge.sim.faults`) is fixed before a run. Here a person, or a test, disturbs what is running: the
API server is away for a while, or events of watches come late.
"""

from __future__ import annotations

import asyncio

from konverge.wire.errors import ConnectFailed
from konverge.wire.in_process import Direct
from konverge.wire.message import Producer, Request, Response, Sink
from konverge.wire.stream import ResponseStream


class Disturbed(Direct):
    """A `Transport` over a handler."""

    late = 0.0
    """Seconds by which streams are late."""
    _away = 0

    async def send(self, request: Request) -> Response:
        self._check()
        return await super().send(request)

    async def stream(self, request: Request) -> ResponseStream:
        self._check()
        return await super().stream(request)

    async def cut(self, seconds: float) -> None:
        """The server is away for so long: streams break off, and nothing is answered. Returns when it is back."""
        self._away += 1
        try:
            await self.aclose()
            await asyncio.sleep(seconds)
        finally:
            self._away -= 1

    def _check(self) -> None:
        if self._away:
            raise ConnectFailed("an injected fault: the API server is away")

    async def _answer(self, request: Request) -> Response:
        response = await super()._answer(request)
        if response.producer is not None:
            response.producer = self._delayed(response.producer)
        return response

    def _delayed(self, producer: Producer) -> Producer:
        return lambda sink: producer(_LateSink(sink, self))


class _LateSink:
    """Writes later what it is given, in the same order."""

    def __init__(self, sink: Sink, disturbed: Disturbed) -> None:
        self._sink = sink
        self._disturbed = disturbed
        self._due = 0.0

    def write(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._due = max(self._due, now + self._disturbed.late)
        if self._due <= now:
            self._sink.write(data)
        else:
            loop.call_at(self._due, self._sink.write, data)

    async def drain(self) -> None:
        await self._sink.drain()

    @property
    def buffered(self) -> int:
        return self._sink.buffered

    @property
    def closed(self) -> bool:
        return self._sink.closed
