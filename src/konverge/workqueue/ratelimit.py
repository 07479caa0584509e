"""How long a failed key waits: per-key exponential backoff and one overall token bucket, whichever is longer.

Both are pure: they are told the time. Numbers and meaning are those of client-go, which people know.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec


class Backoff(msgspec.Struct):
    """base · 2ⁿ for the n-th failure of a key in a row, at most `maximum`."""

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


class TokenBucket(msgspec.Struct):
    """At most `rate` per second on average and `burst` at once. `reserve` never refuses: it says how long to wait."""

    rate: float = 10.0
    burst: int = 100
    _tokens: float = 0.0
    _updated: float = 0.0

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.burst < 1:
            raise ValueError(f"a token bucket needs rate > 0 and burst >= 1, got rate {self.rate}, burst {self.burst}")
        self._tokens = float(self.burst)

    def reserve(self, now: float) -> float:
        """Take one token; the seconds until it is really there."""
        elapsed = max(0.0, now - self._updated)
        self._tokens = min(float(self.burst), self._tokens + elapsed * self.rate)
        self._updated = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self.rate)


class RateLimiter(msgspec.Struct):
    """The pair that controllers use; `bucket=None` leaves the overall limit out."""

    backoff: Backoff = msgspec.field(default_factory=Backoff)
    bucket: TokenBucket | None = msgspec.field(default_factory=TokenBucket)

    def when(self, key: Hashable, now: float) -> float:
        own = self.backoff.delay(key)
        return own if self.bucket is None else max(own, self.bucket.reserve(now))

    def failures(self, key: Hashable) -> int:
        return self.backoff.failures(key)

    def forget(self, key: Hashable) -> None:
        self.backoff.forget(key)
