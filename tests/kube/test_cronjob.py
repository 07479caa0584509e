"""CronJobs: schedules and zones, concurrency, deadlines, history, suspension."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube.cronjob import controller as cronjob
from konverge.kube.cronjob.due import due, stamp
from konverge.kube.cronjob.schedule import ScheduleError, parse
from konverge.kube.job import controller as jobs
from konverge.objects.codec import from_dict
from konverge.objects.kinds.batch_v1 import CronJob, CronJobSpec, Job
from konverge.objects.kinds.core_v1 import Event, Pod
from konverge.sim.loop import EPOCH
from tests.kube.conftest import Run
from tests.kube.kubelet import Kubelet

pytestmark = pytest.mark.spec("R-37")
virtual = pytest.mark.virtual

NEW_YORK = ZoneInfo("America/New_York")


def tick(schedule: str = "*/5 * * * *", **spec: Any) -> CronJob:
    container = {"name": "main", "image": "app:1"}
    template = {
        "metadata": {"labels": {"of": "tick"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    return CronJob(
        metadata=ObjectMeta(name="tick", namespace="default"),
        spec=from_dict(CronJobSpec, {"schedule": schedule, "jobTemplate": template, **spec}),
    )


def succeeds(pod: Pod) -> str:
    return "Succeeded"


def runs(pod: Pod) -> str:
    return "Running"


async def names(client: Client) -> list[str]:
    return [job.metadata.name for job in (await client.list(Job, "default")).items]


async def reasons(client: Client) -> set[str]:
    return {event.reason or "" for event in (await client.list(Event, "default")).items}


def minute(after: float) -> int:
    return int(EPOCH + after) // 60


@virtual
async def test_a_job_at_every_time_and_only_so_many_are_kept(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(succeeds)):
        await client.create(tick(successfulJobsHistoryLimit=2))
        await asyncio.sleep(330)
        assert await names(client) == [f"tick-{minute(300)}"]
        job = await client.get(Job, f"tick-{minute(300)}", "default")
        assert job.metadata.annotations == {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:05:00Z"}
        assert job.metadata.labels["of"] == "tick"
        assert [owner.kind for owner in job.metadata.owner_references] == ["CronJob"]
        await asyncio.sleep(1200)
        assert await names(client) == [f"tick-{minute(1200)}", f"tick-{minute(1500)}"]
        status = (await client.get(CronJob, "tick", "default")).status
        assert (status.active, status.last_schedule_time) == ([], "2026-01-01T00:25:00Z")
        assert status.last_successful_time
        assert status.last_successful_time > "2026-01-01T00:25:00Z"
        assert {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} <= await reasons(client)


@virtual
@pytest.mark.parametrize(("policy", "left"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
async def test_what_happens_while_one_still_runs(client: Client, run: Run, policy: str, left: int) -> None:
    async with run(cronjob, jobs, Kubelet(runs)):
        await client.create(tick(concurrencyPolicy=policy))
        await asyncio.sleep(960)
        found = await names(client)
        assert len(found) == left
        first, last = f"tick-{minute(300)}", f"tick-{minute(900)}"
        assert (first in found, last in found) == (policy != "Replace", policy != "Forbid")
        status = (await client.get(CronJob, "tick", "default")).status
        assert [reference.name for reference in status.active] == found
        assert ("JobAlreadyActive" in await reasons(client)) == (policy == "Forbid")


@virtual
async def test_a_suspended_one_waits_and_then_makes_up_for_the_last_start_only(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(succeeds)):
        await client.create(tick(suspend=True))
        await asyncio.sleep(1000)
        assert await names(client) == []
        await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}), "default")
        await asyncio.sleep(10)
        assert await names(client) == [f"tick-{minute(900)}"]


@virtual
async def test_a_start_that_is_too_old_is_not_made(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(succeeds)):
        await client.create(tick(suspend=True, startingDeadlineSeconds=30))
        await asyncio.sleep(1000)  # 100 s after the last time
        await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}), "default")
        await asyncio.sleep(60)
        assert await names(client) == []
        await asyncio.sleep(200)
        assert await names(client) == [f"tick-{minute(1200)}"]


@virtual
async def test_a_zone_moves_the_times(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(succeeds)):
        await client.create(tick("30 6 * * *", timeZone="Asia/Kolkata"))  # 01:00 UTC
        await asyncio.sleep(3700)
        job = await client.get(Job, f"tick-{minute(3600)}", "default")
        assert job.metadata.annotations[cronjob.SCHEDULED] == "2026-01-01T06:30:00+05:30"


@virtual
async def test_a_job_that_went_missing_is_forgotten(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(runs)):
        await client.create(tick(concurrencyPolicy="Forbid"))
        await asyncio.sleep(310)
        await client.delete(Job, f"tick-{minute(300)}", "default", propagation="Background")
        await asyncio.sleep(10)
        assert (await client.get(CronJob, "tick", "default")).status.active == []
        await asyncio.sleep(300)
        assert await names(client) == [f"tick-{minute(600)}"]


@virtual
async def test_a_changed_schedule_counts_at_once(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(succeeds)):
        await client.create(tick("0 12 * * *"))
        await asyncio.sleep(30)
        await client.patch(CronJob, "tick", MergePatch({"spec": {"schedule": "* * * * *"}}), "default")
        await asyncio.sleep(60)
        assert await names(client) == [f"tick-{minute(60)}"]


# ------------------------------------------------------------------ schedules


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
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
    ],
)
def test_the_next_time(schedule: str, after: str, expected: str) -> None:
    assert parse(schedule).next(at(after)) == at(expected)


def test_no_time_at_all() -> None:
    assert parse("0 0 31 2 *").next(at("2026-01-01T00:00:00Z")) is None


@pytest.mark.parametrize(
    "text",
    ["", "* * * *", "60 * * * *", "* * 0 * *", "*/0 * * * *", "5-3 * * * *", "x * * * *", "@often", "@every soon"],
)
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse(text)


def test_when_clocks_change() -> None:
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
    words = {"nov": "11", "mon": "1", "sun": "0", "wed": "3"}

    def named(field: str, value: int, low: int, high: int) -> bool:
        for part in field.split(","):
            span, _, step = part.partition("/")
            ends = [words.get(end, end) for end in span.split("-")]
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
    found = parse(" ".join(parts), zone).next(moment)
    time = moment + timedelta(minutes=1)
    for _ in range(3 * 1440):
        if matches(parts, time.astimezone(zone)):
            assert found == time
            return
        time += timedelta(minutes=1)
    assert found is None or found >= time
    assert found is None or matches(parts, found.astimezone(zone))


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


def test_many_missed_starts_lead_to_the_last_one() -> None:
    wish = tick("* * * * *")
    wish.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    now = at("2026-01-03T00:00:30Z")
    found = due(wish, parse("* * * * *"), now)
    assert found.start == at("2026-01-03T00:00:00Z")
    assert found.missed > 100
    assert found.next == at("2026-01-03T00:01:00Z")
    wish.spec.starting_deadline_seconds = 10
    assert due(wish, parse("* * * * *"), now).start is None
    every = due(tick_made("2026-01-01T00:00:10Z"), parse("@every 1m"), at("2026-01-01T00:03:00Z"))
    assert every.start == at("2026-01-01T00:02:10Z")


def tick_made(created: str) -> CronJob:
    wish = tick()
    wish.metadata.creation_timestamp = created
    return wish


def test_a_stamp_has_z_where_the_offset_is_nothing() -> None:
    time = at("2026-01-01T12:00:00Z")
    assert stamp(time, UTC) == "2026-01-01T12:00:00Z"
    assert stamp(time, ZoneInfo("Europe/London")) == "2026-01-01T12:00:00Z"
    assert stamp(time, NEW_YORK) == "2026-01-01T07:00:00-05:00"
