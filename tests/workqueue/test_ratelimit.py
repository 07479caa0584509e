"""How long a failed key waits."""

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


def test_a_forgotten_key_starts_from_the_base_again_and_keys_do_not_share_failures() -> None:
    backoff = Backoff(1, 60)
    backoff.delay("a"), backoff.delay("a")
    assert backoff.delay("b") == 1
    backoff.forget("a")
    assert backoff.delay("a") == 1


def test_the_longer_of_back_off_and_bucket_is_the_delay() -> None:
    limiter = RateLimiter(Backoff(0.1, 10), TokenBucket(qps=1, burst=1))
    assert limiter.when("a", 0.0) == 0.1
    assert limiter.when("b", 0.0) == 1.0


@pytest.mark.parametrize(("base", "maximum"), [(0, 1), (-1, 1), (2, 1)])
def test_a_backoff_with_impossible_numbers_is_refused(base: float, maximum: float) -> None:
    with pytest.raises(ValueError, match="0 < base <= maximum"):
        Backoff(base, maximum)


def test_a_limiter_counts_and_forgets_the_failures_of_each_key() -> None:
    limiter = RateLimiter(Backoff(1, 60), None)
    assert [limiter.when("a", 0.0) for _ in range(3)] == [1, 2, 4]
    assert (limiter.failures("a"), limiter.failures("b")) == (3, 0)
    limiter.forget("a")
    limiter.forget("b")
    assert limiter.failures("a") == 0
    assert limiter.when("a", 0.0) == 1


def test_a_delay_may_be_bounded_or_the_longest() -> None:
    limiter = RateLimiter(Backoff(8, 60), None)
    assert limiter.when("a", 0.0, at_most=5) == 5
    assert limiter.when("a", 0.0, at_most=50) == 16
    assert limiter.when("a", 0.0, slowest=True) == 60
    assert limiter.failures("a") == 3
