"""CronJobs: starts, concurrency, deadlines, history, suspension."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube.cronjob import controller as cronjob
from konverge.kube.cronjob.schedule import due, stamp
from konverge.kube.job import controller as jobs
from konverge.objects.codec import from_dict
from konverge.objects.cron import parse
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
async def test_a_job_is_created_at_every_time_and_only_the_latest_are_kept(client: Client, run: Run) -> None:
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
async def test_a_schedule_that_never_occurs_is_reported(client: Client, run: Run) -> None:
    async with run(cronjob):
        await client.create(tick("0 0 31 2 *"))
        await asyncio.sleep(330)
        [event] = (await client.list(Event, "default")).items
        assert (event.type, event.reason) == ("Warning", "InvalidSchedule")
        why = "time difference between two schedules is less than 1 second"
        assert event.message == f"invalid schedule: 0 0 31 2 * : {why}"
        assert event.count in (None, 1)  # not again and again
        assert await names(client) == []


@virtual
@pytest.mark.parametrize(("policy", "left"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
async def test_the_concurrency_policy_decides_while_a_job_still_runs(
    client: Client, run: Run, policy: str, left: int
) -> None:
    async with run(cronjob, jobs, Kubelet(runs)):
        await client.create(tick(concurrencyPolicy=policy))
        await asyncio.sleep(960)
        jobs_left = await names(client)
        assert len(jobs_left) == left
        first, last = f"tick-{minute(300)}", f"tick-{minute(900)}"
        assert (first in jobs_left, last in jobs_left) == (policy != "Replace", policy != "Forbid")
        status = (await client.get(CronJob, "tick", "default")).status
        assert [reference.name for reference in status.active] == jobs_left
        assert ("JobAlreadyActive" in await reasons(client)) == (policy == "Forbid")


@virtual
async def test_a_resumed_cronjob_makes_up_for_the_last_start_only(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(succeeds)):
        await client.create(tick(suspend=True))
        await asyncio.sleep(1000)
        assert await names(client) == []
        await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}), "default")
        await asyncio.sleep(10)
        assert await names(client) == [f"tick-{minute(900)}"]


@virtual
async def test_a_start_past_its_deadline_is_skipped(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(succeeds)):
        await client.create(tick(suspend=True, startingDeadlineSeconds=30))
        await asyncio.sleep(1000)  # 100 s after the last time
        await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}), "default")
        await asyncio.sleep(60)
        assert await names(client) == []
        await asyncio.sleep(200)
        assert await names(client) == [f"tick-{minute(1200)}"]


@virtual
async def test_a_time_zone_moves_the_start_times(client: Client, run: Run) -> None:
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
async def test_a_changed_schedule_takes_effect_at_once(client: Client, run: Run) -> None:
    async with run(cronjob, jobs, Kubelet(succeeds)):
        await client.create(tick("0 12 * * *"))
        await asyncio.sleep(30)
        await client.patch(CronJob, "tick", MergePatch({"spec": {"schedule": "* * * * *"}}), "default")
        await asyncio.sleep(60)
        assert await names(client) == [f"tick-{minute(60)}"]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_many_missed_starts_lead_to_the_last_one() -> None:
    cronjob_ = tick("* * * * *")
    cronjob_.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    now = at("2026-01-03T00:00:30Z")
    due_start = due(cronjob_, parse("* * * * *"), now)
    assert due_start.start == at("2026-01-03T00:00:00Z")
    assert due_start.missed > 100
    assert due_start.next == at("2026-01-03T00:01:00Z")
    cronjob_.spec.starting_deadline_seconds = 10
    assert due(cronjob_, parse("* * * * *"), now).start is None
    every = due(tick_made("2026-01-01T00:00:10Z"), parse("@every 1m"), at("2026-01-01T00:03:00Z"))
    assert every.start == at("2026-01-01T00:02:10Z")


def tick_made(created: str) -> CronJob:
    cronjob_ = tick()
    cronjob_.metadata.creation_timestamp = created
    return cronjob_


def test_a_timestamp_has_z_where_the_offset_is_zero() -> None:
    time = at("2026-01-01T12:00:00Z")
    assert stamp(time, UTC) == "2026-01-01T12:00:00Z"
    assert stamp(time, ZoneInfo("Europe/London")) == "2026-01-01T12:00:00Z"
    assert stamp(time, NEW_YORK) == "2026-01-01T07:00:00-05:00"
