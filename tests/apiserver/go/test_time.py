"""Times as Go's time package reads them, and what the API server writes for them (see test_recorded for the errors)."""

from __future__ import annotations

import pytest

from konverge.apiserver.go.time import TimeError, canonical_micro_time, canonical_time


def test_the_zero_time_is_none() -> None:
    assert canonical_time("0001-01-01T00:00:00Z") is None


def test_micro_times_have_six_decimals() -> None:
    assert canonical_micro_time("2020-01-02T03:04:05.000006Z") == "2020-01-02T03:04:05.000006Z"
    with pytest.raises(TimeError, match=r'cannot parse "Z" as "\.000000"'):
        canonical_micro_time("2020-01-02T03:04:05Z")
    with pytest.raises(TimeError, match='cannot parse "789Z" as "Z07:00"'):
        canonical_micro_time("2020-01-02T03:04:05.123456789Z")
