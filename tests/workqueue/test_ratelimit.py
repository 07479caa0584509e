"""Backoff and token bucket, as arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.workqueue import Backoff, RateLimiter, TokenBucket

pytestmark = pytest.mark.spec("R-15")


@given(st.floats(0.001, 10), st.floats(10, 1000), st.integers(1, 200))
def test_backoff_doubles_up_to_its_maximum(base: float, maximum: float, failures: int) -> None:
    backoff = Backoff(base, maximum)
    delays = [backoff.delay("key") for _ in range(failures)]
    assert delays == [min(base * 2.0**n, maximum) for n in range(failures)]
    assert backoff.failures("key") == failures


def test_success_starts_from_the_base_again_and_keys_do_not_share() -> None:
    backoff = Backoff(1, 60)
    backoff.delay("a"), backoff.delay("a")
    assert backoff.delay("b") == 1
    backoff.forget("a")
    assert backoff.delay("a") == 1


@given(st.lists(st.floats(0, 5), min_size=1, max_size=60), st.integers(1, 10), st.floats(0.5, 20))
def test_a_bucket_never_lets_more_through_than_rate_and_burst_allow(gaps: list[float], burst: int, rate: float) -> None:
    bucket = TokenBucket(rate, burst)
    now, times = 100.0, []
    for gap in gaps:
        now += gap
        times.append(now + bucket.reserve(now))
    for i, first in enumerate(times):
        for j in range(i, len(times)):
            assert j - i + 1 <= burst + rate * (times[j] - first) + 1e-6


def test_the_longer_of_both_delays_counts() -> None:
    limiter = RateLimiter(Backoff(0.1, 10), TokenBucket(rate=1, burst=1))
    assert limiter.when("a", 0.0) == 0.1
    assert limiter.when("b", 0.0) == 1.0


@pytest.mark.parametrize(("base", "maximum"), [(0, 1), (-1, 1), (2, 1)])
def test_impossible_backoff_is_refused(base: float, maximum: float) -> None:
    with pytest.raises(ValueError, match="0 < base <= maximum"):
        Backoff(base, maximum)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (1, 0)])
def test_impossible_bucket_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="rate > 0"):
        TokenBucket(rate, burst)
