"""The token bucket, as arithmetic."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.token_bucket import TokenBucket

pytestmark = pytest.mark.spec("R-15")

gaps_between_calls = st.lists(st.floats(0, 5), min_size=1, max_size=60)


def assert_within(times: list[float], qps: float, burst: int) -> None:
    """Between any two of the times there are no more than the bucket allows."""
    for i, first in enumerate(times):
        for j in range(i, len(times)):
            assert j - i + 1 <= burst + qps * (times[j] - first) + 1e-6


@given(gaps_between_calls, st.integers(1, 10), st.floats(0.5, 20))
def test_a_bucket_never_lets_more_through_than_rate_and_burst_allow(gaps: list[float], burst: int, qps: float) -> None:
    bucket = TokenBucket(qps, burst)
    assert_within([now + bucket.reserve(now) for now in accumulate(gaps, initial=100.0)], qps, burst)


@given(gaps_between_calls, st.integers(1, 10), st.floats(0.5, 20))
def test_a_token_that_is_not_there_is_not_taken(gaps: list[float], burst: int, qps: float) -> None:
    bucket = TokenBucket(qps, burst)
    calls = list(accumulate(gaps, initial=100.0))
    taken = [now for now in calls if bucket.try_take(now)]
    assert_within(taken, qps, burst)
    assert len(taken) >= min(burst, len(calls))


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (1, 0)])
def test_a_bucket_with_impossible_numbers_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="qps > 0"):
        TokenBucket(qps, burst)
