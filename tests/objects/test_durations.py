"""Durations: read and printed as Go does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.durations import DurationError, duration_seconds, format_duration, parse_duration

from .upstream import differences


def test_durations_agree_with_go() -> None:
    assert not differences("duration", lambda text: format_duration(parse_duration(text)))


@given(st.integers(-(2**63), 2**63 - 1))
def test_durations_print_and_parse_back(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


def test_durations_for_timers() -> None:
    assert duration_seconds("1m30s") == 90.0
    assert format_duration(timedelta(minutes=90)) == "1h30m0s"
    with pytest.raises(DurationError, match="invalid duration"):
        parse_duration("1" * 300 + "s")
