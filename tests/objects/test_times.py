"""Times: RFC 3339 as API servers write and read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import times


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2999, 1, 1), timezones=st.just(UTC)))
def test_times_print_and_parse_back(moment: datetime) -> None:
    assert times.parse_time(times.format_micro_time(moment)) == moment
    assert times.parse_time(times.format_time(moment)) == moment.replace(microsecond=0)


def test_micro_times_always_have_six_decimals() -> None:
    assert times.format_micro_time(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05.000000Z"
    assert times.parse_time("2026-01-02T05:04:05+02:00") == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-02T05:04:05",
        "2026-01-02",
        "2026-01-02 05:04:05Z",
        "2026-01-02t05:04:05Z",
        "2026-01-02T05:04:05z",
        "20260102T050405Z",
        "2026-W01-1T00:00:00Z",
        "2026-01-02T05:04:05+0200",
        "2026-01-02T05:04:05+02",
        "2026-01-02T05:04:05.Z",
        "2026-01-02T05:04Z",
        "2026-02-30T05:04:05Z",
        "\u06f2026-01-02T05:04:05Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_other_forms_of_time_are_refused_as_servers_do(text: str) -> None:
    with pytest.raises(ValueError):
        times.parse_time(text)


def test_now_is_the_clock() -> None:
    assert times.parse_time(times.now()) <= times.parse_time(times.micro_now())
