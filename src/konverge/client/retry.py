"""When a failed call is made again, and after how long. Pure: the session does the waiting.

The rules, in the order of `Attempts.delay`:

- The server said `Retry-After` (429, 500, 503, 504 …; upstream: `withRetry`, client-go/rest/with_retry.go): it asks for
  another try, so any verb is tried again.
- The request never left (`NotConnected`): nothing can have happened, so any verb may be tried again, but only for as
  long as `refused_for` says, because a wrong address never gets better.
- A read failed (429, 5xx, a lost connection): reading twice does no harm.
- Everything else is the caller's business. A write whose connection broke may have taken effect, and an eviction
  that a disruption budget forbids (429 without Retry-After) will be forbidden in a second, too.

A wait that would pass the budget is not begun.
"""

from __future__ import annotations

import msgspec

from konverge import clock
from konverge.client.errors import ApiStatusError, ClientError, ConnectionLost, NotConnected

TRANSIENT = frozenset((429, 500, 502, 503, 504))


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How patient a client is.

    >>> impatient = RetryPolicy(retries=0)
    """

    retries: int = 5
    """Tries after the first. With the waits below: 0.1 + 0.2 + 0.4 + 0.8 + 1.6 s, 3.1 s in all."""
    budget: float = 30.0
    """Seconds spent waiting in all; the server's own deadline for a request is 60 s."""
    base: float = 0.1
    cap: float = 5.0
    refused_for: float = 0.0
    """Seconds to keep trying while no connection can be made; for programs that start beside their server."""

    def begin(self, *, reads: bool) -> Attempts:
        return Attempts(self, reads=reads)


class Attempts:
    """The tries of one call."""

    __slots__ = ("_policy", "_reads", "_started", "count", "waited")

    def __init__(self, policy: RetryPolicy, *, reads: bool) -> None:
        self._policy = policy
        self._reads = reads
        self._started = clock.monotonic()
        self.count = 0
        self.waited = 0.0

    def delay(self, error: ClientError) -> float | None:
        """Seconds to wait before the next try, or None when the error is final."""
        wait = self._wait_for(error)
        if wait is None or self.waited + wait > self._policy.budget:
            return None
        self.count += 1
        self.waited += wait
        return wait

    def _wait_for(self, error: ClientError) -> float | None:
        if isinstance(error, NotConnected):
            elapsed = clock.monotonic() - self._started
            return self._backoff() if elapsed < self._policy.refused_for else None
        if self.count >= self._policy.retries:
            return None
        if isinstance(error, ApiStatusError):
            return self._wait_for_status(error)
        return self._backoff() if self._reads and isinstance(error, ConnectionLost) else None

    def _wait_for_status(self, error: ApiStatusError) -> float | None:
        if error.code not in TRANSIENT:
            return None
        if error.retry_after is not None:
            # Jitter upwards only: earlier than asked is not what was asked.
            return error.retry_after * (1.0 + 0.1 * clock.rng().random())
        return self._backoff() if self._reads else None

    def _backoff(self) -> float:
        full = min(self._policy.cap, self._policy.base * 2.0 ** min(self.count, 32))
        return float(full * (0.5 + 0.5 * clock.rng().random()))
