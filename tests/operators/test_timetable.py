"""When a schedule is due, by its creation, its last start and its deadline."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from konverge.objects.times import parse_time
from konverge.operators.timetable import Due, due, parsed

pytestmark = pytest.mark.spec("N-87")

CREATED = "2026-11-10T00:00:30Z"


def at(text: str) -> datetime:
    return parse_time(f"2026-11-{text}Z")


def look(now: str, schedule: str = "@every 6h", last: str = "", **more: Any) -> Due:
    before = at(last) if last else None
    given: dict[str, Any] = {"created": CREATED, "deadline": None, "immediate": False} | more
    return due(parsed(schedule, None), last=before, now=at(now), **given)


def test_an_interval_that_is_longer_than_the_deadline_has_its_starts() -> None:
    assert look("10T06:00:29", deadline=600) == Due(None, at("10T06:00:30"))
    assert look("10T06:00:35", deadline=600) == Due(at("10T06:00:30"), at("10T12:00:30"))
    assert look("10T12:00:35", deadline=600, last="10T06:00:30") == Due(at("10T12:00:30"), at("10T18:00:30"))


@pytest.mark.parametrize("schedule", ["@every 6h", "30 */6 * * *"])
def test_a_start_is_as_late_as_the_deadline_allows(schedule: str) -> None:
    start = look("10T06:30:00", schedule, last="10T00:30:00").start
    assert start == at("10T06:30:00")
    last: dict[str, Any] = {"last": "10T00:30:00", "deadline": 600}
    assert look("10T06:40:00", schedule, **last) == Due(start, at("10T12:30:00"))
    assert look("10T06:40:01", schedule, **last) == Due(None, at("10T12:30:00"))
    assert look("10T06:40:01", schedule, **last | {"deadline": 2**63 - 1}).start == start


def test_the_next_start_is_counted_from_the_last_one_whenever_it_is_looked_at() -> None:
    assert look("10T00:00:31").following == at("10T06:00:30")
    assert look("10T05:59:00").following == at("10T06:00:30"), "an operator that begins again moves nothing"
    assert look("10T13:00:00", last="10T06:00:30") == Due(at("10T12:00:30"), at("10T18:00:30"))
    assert look("20T13:00:00") == Due(at("20T12:00:30"), at("20T18:00:30")), "one for all that were missed"


def test_the_creation_is_a_start_where_the_spec_says_so() -> None:
    made = parse_time(CREATED)
    for schedule in ("@every 6h", "0 */6 * * *"):
        assert look("10T00:00:30", schedule, immediate=True).start == made
        assert look("10T00:00:30", schedule).start is None
        assert look("10T05:00:30", schedule, immediate=True, deadline=600).start == made
        assert look("10T00:01:00", schedule, immediate=True, last="10T00:00:30").start is None
    assert look("10T09:00:00", immediate=True).start == at("10T06:00:30"), "a later one is as good"
    assert look("10T09:00:00", immediate=True, deadline=600).start == made, "it was never made"


def test_what_never_occurs_is_never_due() -> None:
    assert look("20T00:00:00", "0 0 31 2 *") == Due(None, None)


def test_an_object_that_is_not_stored_yet_was_created_now() -> None:
    schedule, now = parsed("@every 1h", None), at("10T06:00:00")
    given: dict[str, Any] = {"created": None, "last": None, "deadline": None, "immediate": False}
    assert due(schedule, now=now, **given) == Due(None, now + timedelta(hours=1))
