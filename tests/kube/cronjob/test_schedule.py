"""The start of a CronJob that is due."""

from __future__ import annotations

from datetime import datetime

import pytest

from konverge import ObjectMeta
from konverge.kube.cronjob.schedule import Due, due
from konverge.objects.codec import from_dict
from konverge.objects.cron import parse
from konverge.objects.kinds.batch_v1 import CronJob, CronJobSpec

pytestmark = pytest.mark.spec("R-37")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def made(since: str, *, deadline: int | None = None) -> CronJob:
    spec = from_dict(CronJobSpec, {"schedule": "", "jobTemplate": {}, "startingDeadlineSeconds": deadline})
    return CronJob(metadata=ObjectMeta(creation_timestamp=since), spec=spec)


@pytest.mark.parametrize(
    ("schedule", "deadline", "now", "start", "missed", "following"),
    [
        ("*/5 * * * *", None, "00:04:59", None, 0, "00:05:00"),
        ("*/5 * * * *", None, "00:05:00", "00:05:00", 1, "00:10:00"),
        ("*/5 * * * *", None, "00:05:10", "00:05:00", 1, "00:10:00"),
        ("*/5 * * * *", None, "00:09:59", "00:05:00", 1, "00:10:00"),
        ("*/5 * * * *", None, "00:10:00", "00:10:00", 2, "00:15:00"),
        ("*/5 * * * *", None, "00:21:00", "00:20:00", 4, "00:25:00"),
        ("*/5 * * * *", 30, "00:20:29", "00:20:00", 1, "00:25:00"),
        ("*/5 * * * *", 30, "00:20:31", None, 0, "00:25:00"),
        ("*/5 * * * *", 600, "00:21:00", "00:20:00", 2, "00:25:00"),
        ("*/5 * * * *", 6000, "00:21:00", "00:20:00", 4, "00:25:00"),
        ("*/5 * * * *", 10**12, "00:21:00", "00:20:00", 4, "00:25:00"),
        ("*/5 * * * *", 2**63 - 1, "00:21:00", None, 0, "00:25:00"),  # it wraps around in Go
        ("@every 7m", None, "00:06:59", None, 0, "00:07:00"),
        ("@every 7m", None, "00:07:00", "00:07:00", 1, "00:14:00"),
        ("@every 7m", None, "00:30:00", "00:28:00", 4, "00:35:00"),
        ("0 0 31 2 *", None, "00:30:00", None, 0, None),
    ],
)
def test_the_start_that_is_due(
    schedule: str, deadline: int | None, now: str, start: str | None, missed: int, following: str | None
) -> None:
    def time(text: str | None) -> datetime | None:
        return at(f"2026-01-01T{text}Z") if text else None

    cronjob = made("2026-01-01T00:00:00Z", deadline=deadline)
    moment = time(now)
    assert moment is not None
    assert due(cronjob, parse(schedule), moment) == Due(time(start), missed, time(following))
    cronjob.metadata.creation_timestamp = "2025-01-01T00:00:00Z"
    cronjob.status.last_schedule_time = "2026-01-01T00:00:00Z"  # it counts, if there is one
    assert due(cronjob, parse(schedule), moment) == Due(time(start), missed, time(following))


def test_a_schedule_whose_second_time_is_too_far_away_missed_one() -> None:
    due_start = due(made("2096-02-28T00:00:00Z"), parse("0 0 29 2 *"), at("2096-03-01T00:00:00Z"))
    assert due_start == Due(at("2096-02-29T00:00:00Z"), 1, None)
