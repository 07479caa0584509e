"""The pauses before something of the author's that failed is started again: a source, a task, a daemon.

It speaks to something that may be away. The pauses double up to a minute, so that work goes on soon after it is back,
and differ at random, so that many do not come back at once.
"""

from __future__ import annotations

from konverge import clock

FIRST_DELAY = 1.0
MAX_DELAY = 60.0
JITTER = 0.2
"""The largest random share that is added to a pause."""
HEALTHY_AFTER = 120.0
"""Seconds after which something counts as healthy: its next failure waits for the first pause again."""


class Restarts:
    """The pauses of one thing that is started again and again.

    >>> 1.0 <= Restarts().next_pause(0.0) <= 1.2
    True
    """

    def __init__(self) -> None:
        self._pause = FIRST_DELAY / 2

    def next_pause(self, ran: float) -> float:
        """Seconds to wait after it failed, when it had run for so many seconds."""
        self._pause = FIRST_DELAY if ran > HEALTHY_AFTER else min(2 * self._pause, MAX_DELAY)
        return self._pause * (1 + JITTER * clock.rng().random())
