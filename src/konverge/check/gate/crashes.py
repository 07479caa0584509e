"""Crashes: the operator ends right after (or right before) one of its writes took effect."""

from __future__ import annotations

import asyncio

from konverge.check.gate.core import WRITES, Gate, Perturber
from konverge.check.gate.expected import is_next
from konverge.check.model import Crash, Exchange
from konverge.wire.message import Request, Response


class Crashing(Perturber):
    """Ends the operator at a place, once. The answer is never heard."""

    def __init__(self, crash: Crash) -> None:
        self._crash = crash
        self._gate: Gate | None = None

    def attach(self, gate: Gate) -> None:
        self._gate = gate

    async def before(self, exchange: Exchange, request: Request) -> Response | None:
        if self.done or self._crash.when != "before" or exchange.verb not in WRITES or self._gate is None:
            return None
        if await is_next(self._gate, exchange, request, self._crash.place):
            await self._end(exchange)
        return None

    async def after(self, exchange: Exchange, request: Request, response: Response) -> Response:
        if not self.done and self._crash.when == "after" and exchange.place == self._crash.place:
            await self._end(exchange)
        return response

    async def _end(self, exchange: Exchange) -> None:
        self.done = True
        exchange.error = f"crash {self._crash.when} it"
        if self._gate is not None:
            self._gate.crash(f"crash {self._crash.when} {self._crash.place}")
        await asyncio.get_running_loop().create_future()  # never: who waits for the answer ends with the operator
