"""How long a failed key waits: per-key exponential back-off and one overall token bucket, whichever is longer.

Both are given the time. Upstream: client-go's util/workqueue/default_rate_limiters.go, whose numbers people know.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import msgspec

from konverge.token_bucket import TokenBucket


class Backoff(msgspec.Struct):
    """base · 2ⁿ for the n-th failure of a key in a row, at most `maximum`.

    Upstream: NewTypedItemExponentialFailureRateLimiter; 5 ms and 1000 s are the defaults of
    DefaultTypedControllerRateLimiter.
    """

    base: float = 0.005
    maximum: float = 1000.0
    _failures: dict[Hashable, int] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.base <= self.maximum:
            raise ValueError(f"backoff needs 0 < base <= maximum, got base {self.base} and maximum {self.maximum}")

    def delay(self, key: Hashable) -> float:
        """The wait after one more failure."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # The exponent is bounded so that a key that fails for years does not overflow a float.
        return min(self.base * 2.0 ** min(failures, 100), self.maximum)

    def failures(self, key: Hashable) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: Hashable) -> None:
        if self._failures:
            self._failures.pop(key, None)


def _default_bucket() -> TokenBucket:
    return TokenBucket(qps=10.0, burst=100)  # upstream: DefaultTypedControllerRateLimiter


class RateLimiter(msgspec.Struct):
    """The pair that controllers use; `bucket=None` leaves the overall limit out. Upstream: MaxOfRateLimiter."""

    backoff: Backoff = msgspec.field(default_factory=Backoff)
    bucket: TokenBucket | None = msgspec.field(default_factory=_default_bucket)

    def when(self, key: Hashable, now: float, *, at_most: float = math.inf, slowest: bool = False) -> float:
        """The seconds that a key waits after one more failure: of its own back-off at most `at_most`, or the longest
        one (`slowest`).
        """
        own = min(self.backoff.delay(key), at_most)
        if slowest:
            own = self.backoff.maximum
        return own if self.bucket is None else max(own, self.bucket.reserve(now))

    def failures(self, key: Hashable) -> int:
        return self.backoff.failures(key)

    def forget(self, key: Hashable) -> None:
        self.backoff.forget(key)
