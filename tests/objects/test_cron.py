"""Cron schedules and time zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.cron import ScheduleError, parse

pytestmark = pytest.mark.spec("R-37")


NEW_YORK = ZoneInfo("America/New_York")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("@hourly", "2026-01-01T00:30:59Z", "2026-01-01T01:00:00Z"),
        ("@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@monthly", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("@every 1h30m", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"),
        ("15/20 3 * * *", "2026-01-01T03:15:00Z", "2026-01-01T03:35:00Z"),
        ("0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),  # either day is enough
        ("0 0 13 * *", "2026-01-01T00:00:00Z", "2026-01-13T00:00:00Z"),
        ("0 0 */2 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),  # a step is no star
        ("0 0 1-7 JAN mon-fri", "2026-01-08T00:00:00Z", "2026-01-09T00:00:00Z"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 29 2 *", "2099-06-01T00:00:00Z", "2104-02-29T00:00:00Z"),  # five years are searched
        ("0 0 13 * */1", "2026-01-01T00:00:00Z", "2026-01-13T00:00:00Z"),  # a step of one is a star
        ("0 0 13 * ?", "2026-01-01T00:00:00Z", "2026-01-13T00:00:00Z"),
        ("0 0 ?/1 * 5", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"),
        ("0 0 13,* * 5", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"),
        ("0 0 * * SUN", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"),
        ("0 0 1 12 6", "2026-12-06T00:00:00Z", "2026-12-12T00:00:00Z"),
        ("59 23 31 12 *", "2026-01-01T00:00:00Z", "2026-12-31T23:59:00Z"),
        ("5-9/2 * * * *", "2026-01-01T00:07:00Z", "2026-01-01T00:09:00Z"),
        ("5-9/2 * * * *", "2026-01-01T00:09:00Z", "2026-01-01T01:05:00Z"),
        ("3,,5 * * * *", "2026-01-01T00:03:00Z", "2026-01-01T00:05:00Z"),
        ("30 * * * *", "2026-01-01T00:29:59.999999Z", "2026-01-01T00:30:00Z"),
        ("@every 1h30m", "2026-01-01T00:00:00.7Z", "2026-01-01T01:30:00Z"),
        ("@every 10ms", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),  # whole seconds, one at least
        ("@every 2500ms", "2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("CRON_TZ=Asia/Tokyo  @daily", "2026-01-01T00:00:00Z", "2026-01-01T15:00:00Z"),
    ],
)
def test_the_next_time_of_a_schedule(schedule: str, after: str, expected: str) -> None:
    assert parse(schedule).next(at(after)) == at(expected)


def test_a_schedule_that_never_occurs_has_no_next_time() -> None:
    assert parse("0 0 31 2 *").next(at("2026-01-01T00:00:00Z")) is None
    assert parse("0 0 29 2 *").next(at("2098-06-01T00:00:00Z")) is None  # too far away


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 7",
        "*/0 * * * *",
        "*/x * * * *",
        "5/-1 * * * *",
        "5-3 * * * *",
        "5-x * * * *",
        "-5 * * * *",
        "x * * * *",
        "jan * * * *",
        "* * * mon *",
        "@often",
        "@hourly * * * *",
        "@every soon",
        "@every",
    ],
)
def test_an_invalid_schedule_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse(text)


def test_schedules_follow_changes_of_the_clocks() -> None:
    half_past_two, half_past_one = parse("30 2 * * *", NEW_YORK), parse("30 1 * * *", NEW_YORK)
    # 8 March 2026: 02:30 does not exist.
    assert half_past_two.next(at("2026-03-07T12:00:00-05:00")) == at("2026-03-09T02:30:00-04:00")
    # 1 November 2026: 01:30 comes twice.
    first = half_past_one.next(at("2026-11-01T00:00:00-04:00"))
    assert first == at("2026-11-01T01:30:00-04:00")
    assert half_past_one.next(first) == at("2026-11-01T01:30:00-05:00")


fields = st.tuples(
    st.sampled_from(["*", "0", "7", "*/15", "10-12", "3,50", "55/2"]),
    st.sampled_from(["*", "0", "2", "1-3", "*/6", "23"]),
    st.sampled_from(["*", "1", "31", "*/10", "8-9", "?"]),
    st.sampled_from(["*", "3", "nov", "10-12", "*/3"]),
    st.sampled_from(["*", "0", "mon", "1-5", "*/2", "sun,wed"]),
)


zones = st.sampled_from([UTC, NEW_YORK, ZoneInfo("Asia/Kolkata"), ZoneInfo("America/Sao_Paulo")])


# Around the changes of 2026 as well as anywhere.
moments = st.one_of(
    st.integers(0, 365 * 1440).map(lambda minutes: at("2026-01-01T00:00:00Z") + timedelta(minutes=minutes)),
    st.integers(-300, 300).map(lambda minutes: at("2026-03-08T07:00:00Z") + timedelta(minutes=minutes)),
    st.integers(-300, 300).map(lambda minutes: at("2026-11-01T06:00:00Z") + timedelta(minutes=minutes)),
)


def matches(parts: tuple[str, ...], local: datetime) -> bool:
    """The rule, minute by minute, in the plainest way."""
    bounds = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    values = (local.minute, local.hour, local.day, local.month, local.isoweekday() % 7)
    names = {"nov": "11", "mon": "1", "sun": "0", "wed": "3"}

    def named(field: str, value: int, low: int, high: int) -> bool:
        for part in field.split(","):
            span, _, step = part.partition("/")
            ends = [names.get(end, end) for end in span.split("-")]
            start = low if ends[0] in ("*", "?") else int(ends[0])
            end = high if ends[0] in ("*", "?") or (step and len(ends) == 1) else int(ends[-1])
            if start <= value <= end and (value - start) % int(step or 1) == 0:
                return True
        return False

    hits = [named(f, v, *b) for f, v, b in zip(parts, values, bounds, strict=True)]
    stars = [parts[2] in ("*", "?"), parts[4] == "*"]
    day = (hits[2] and hits[4]) if any(stars) else (hits[2] or hits[4])
    return hits[0] and hits[1] and hits[3] and day


@given(fields, zones, moments)
def test_the_next_time_is_the_first_minute_that_matches(parts: tuple[str, ...], zone: Any, moment: datetime) -> None:
    next_time = parse(" ".join(parts), zone).next(moment)
    time = moment + timedelta(minutes=1)
    for _ in range(3 * 1440):
        if matches(parts, time.astimezone(zone)):
            assert next_time == time
            return
        time += timedelta(minutes=1)
    assert next_time is None or next_time >= time
    assert next_time is None or matches(parts, next_time.astimezone(zone))


@given(fields, zones, moments, st.integers(0, 40 * 1440))
def test_the_latest_time_is_the_last_before_now(
    parts: tuple[str, ...], zone: Any, moment: datetime, minutes: int
) -> None:
    schedule = parse(" ".join(parts), zone)
    first, until = schedule.next(moment), moment + timedelta(minutes=minutes)
    if first is None or first > until:
        return
    latest = schedule.latest(first, until)
    following = schedule.next(latest)
    assert first <= latest <= until
    assert matches(parts, latest.astimezone(zone))
    assert following is None or following > until
