"""After how many seconds a refused request may come again: the more are refused, the later.

Upstream: apiserver/pkg/util/flowcontrol/dropped_requests_tracker.go.
"""

from __future__ import annotations

from collections import deque

MOST = 32


class RetryAfter:
    """Of one priority level."""

    def __init__(self) -> None:
        self.seconds = 1
        self._refused: deque[tuple[int, int]] = deque()
        """How many in which second, for the last seconds in which some were."""
        self._doubled = 0

    def note(self, now: int) -> None:
        """A request is refused in this second."""
        if self._refused and self._refused[-1][0] == now:
            self._refused.append((now, self._refused.pop()[1] + 1))
            return
        self._adapt(now)
        self._refused.append((now, 1))
        while now - self._refused[0][0] > MOST:
            self._refused.popleft()

    def _adapt(self, now: int) -> None:
        recent = sum(count for second, count in self._refused if now - second <= self.seconds)
        if recent >= 3 * self.seconds and now - self._doubled >= self.seconds:
            self.seconds = min(MOST, 2 * self.seconds)
            self._doubled = now
        elif recent < self.seconds and self.seconds > 1:
            self.seconds -= 1
