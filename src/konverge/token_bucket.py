"""The token bucket: so many per second in the long run, a burst of them at once.

One implementation for the retries of controllers, the requests of clients and the events about an object. It is given
the time; only `take` reads the clock. Upstream: golang.org/x/time/rate, which client-go's flowcontrol and workqueue
use.
"""

from __future__ import annotations

import asyncio

from konverge import clock


class TokenBucket:
    """At most `qps` tokens per second in the long run, `burst` of them at once.

        client = await Client.connect(rate_limit=TokenBucket(qps=20, burst=30))

    Callers are served in the order in which they ask: each takes the next free moment and waits until then.
    """

    __slots__ = ("_interval", "_next", "_slack")

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs qps > 0 and burst >= 1, got qps {qps} and burst {burst}")
        self._interval = 1.0 / qps
        self._slack = self._interval * (burst - 1)
        self._next = float("-inf")

    def reserve(self, now: float) -> float:
        """Take the next token; returns the seconds until it may be used."""
        moment = max(self._next, now - self._slack)
        self._next = moment + self._interval
        return max(0.0, moment - now)

    def try_take(self, now: float) -> bool:
        """Take a token if one is there; returns whether it was."""
        moment = max(self._next, now - self._slack)
        if moment > now:
            return False
        self._next = moment + self._interval
        return True

    async def take(self) -> None:
        """Take the next token and wait until it may be used."""
        wait = self.reserve(clock.monotonic())
        if wait > 0:
            await asyncio.sleep(wait)
