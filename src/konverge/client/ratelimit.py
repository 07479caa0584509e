"""An optional limit on a client's own requests: a token bucket.

Off by default, because the API server has priority and fairness of its own; it is here for servers without it, and for
programs that want to stay polite. Leases never pass through it.
"""

from __future__ import annotations

import asyncio

from konverge import clock


class TokenBucket:
    """At most `qps` requests per second in the long run, `burst` of them at once.

        client = await Client.connect(rate_limit=TokenBucket(qps=20, burst=30))

    Callers are served in the order of their asking: each takes the next free moment, then sleeps until then.
    """

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError("a rate limit needs qps > 0 and burst >= 1")
        self._interval = 1.0 / qps
        self._slack = self._interval * (burst - 1)
        self._next = float("-inf")

    def reserve(self, now: float) -> float:
        """Take the next token; returns the seconds until it is there."""
        moment = max(self._next, now - self._slack)
        self._next = moment + self._interval
        return max(0.0, moment - now)

    async def take(self) -> None:
        wait = self.reserve(clock.monotonic())
        if wait > 0:
            await asyncio.sleep(wait)
