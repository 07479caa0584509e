"""The API server away: every request is refused, every watch ends, and what the user does meanwhile is seen later."""

from __future__ import annotations

import asyncio

from konverge.check.gate.core import Gate, Perturber
from konverge.check.gate.errors import refusal
from konverge.check.model import Exchange, TimePasses
from konverge.wire.message import Request, Response


class Away(Perturber):
    """For the operator alone: from the rest after a step, for some seconds, or until the next rest."""

    def __init__(self, passes: TimePasses) -> None:
        self._passes = passes
        self._gate: Gate | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._cut: list[str] = []
        """Resources of the watches that were ended."""

    def attach(self, gate: Gate) -> None:
        self._gate = gate

    def between(self, step: int) -> bool:
        if step != self._passes.step or self._gate is None:
            return False
        self.done = True
        self._gate.note(f"the API server is away for {self._passes.seconds:g} s")
        self._timer = asyncio.get_running_loop().call_later(self._passes.seconds, self._return)
        self._cut = self._gate.views.cut()
        return True

    async def before(self, exchange: Exchange, request: Request) -> Response | None:
        if self._timer is None:
            return None
        exchange.error = "away, by the check"
        return refusal("unavailable", exchange)

    @property
    def holds(self) -> bool:
        return self._timer is not None

    async def rested(self, step: int) -> bool:
        if self._timer is None:
            return False
        self._return()
        return True

    def _return(self) -> None:
        if self._timer is not None and self._gate is not None:
            self._timer.cancel()
            self._timer = None
            self._gate.recorder.unwatch(self._cut)
