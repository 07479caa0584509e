"""A deadline that is moved far more often than it passes.

A connection's deadline changes with every request. Arming and cancelling a timer of the loop each time would cost more
than parsing a small answer, so the timer stays where it is when the deadline moves away, and looks again when it rings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

TICK = 0.002
"""Timers may ring a little early (uvloop counts in milliseconds), so a deadline this near has passed."""


class Alarm:
    """Calls `ring` once when the deadline has passed."""

    __slots__ = ("_armed_for", "_deadline", "_handle", "_loop", "_ring")

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._deadline: float | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = 0.0

    def set(self, deadline: float | None) -> None:
        """Move the deadline (in loop time); None means that there is none."""
        self._deadline = deadline
        if deadline is not None and (self._handle is None or deadline < self._armed_for):
            self._arm(deadline)

    def cancel(self) -> None:
        self._deadline = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self, deadline: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed_for = deadline
        self._handle = self._loop.call_at(deadline, self._wake)

    def _wake(self) -> None:
        self._handle = None
        deadline = self._deadline
        if deadline is None:
            return
        if self._loop.time() + TICK < deadline:
            self._arm(deadline)
            return
        self._deadline = None
        self._ring()
