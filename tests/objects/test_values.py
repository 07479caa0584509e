"""Small values: durations, times, integers or strings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import times
from konverge.objects.durations import DurationError, duration_seconds, format_duration, parse_duration
from konverge.objects.int_or_string import PercentageError, parse_int_or_string, scale

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


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [("25%", 10, 3, 2), ("0%", 7, 0, 0), ("100%", 7, 7, 7), (4, 7, 4, 4), ("150%", 3, 5, 4), ("-50%", 3, -1, -2)],
)
def test_percentages(value: int | str, total: int, up: int, down: int) -> None:
    assert scale(value, total, round_up=True) == up
    assert scale(value, total, round_up=False) == down


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("5", "invalid value for IntOrString: invalid type: string is not a percentage"),
        ("x%", 'invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax'),
        ("%", 'invalid value for IntOrString: invalid value "%": strconv.Atoi: parsing "": invalid syntax'),
        ("+%", 'invalid value for IntOrString: invalid value "+%": strconv.Atoi: parsing "+": invalid syntax'),
        (
            "9223372036854775808%",
            'invalid value for IntOrString: invalid value "9223372036854775808%": '
            'strconv.Atoi: parsing "9223372036854775808": value out of range',
        ),
    ],
)
def test_percentages_refused(value: str, words: str) -> None:
    with pytest.raises(PercentageError) as refused:
        scale(value, 10, round_up=True)
    assert str(refused.value) == words


def test_int_or_string() -> None:
    assert parse_int_or_string("80") == 80
    assert parse_int_or_string("http") == "http"
    assert parse_int_or_string("3000000000") == "3000000000"
    assert parse_int_or_string("0" * 70 + "5") == 5
    assert [parse_int_or_string(text) for text in ("-5", "+5", "-0", "", "+", "1_0", "\u0663", "9" * 70)] == [
        *(-5, 5, 0),
        *("", "+", "1_0", "\u0663", "9" * 70),
    ]


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
