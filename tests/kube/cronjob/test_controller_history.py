"""CronJobs and the Jobs that exist already: limits of the history, active ones, foreign ones, refused requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch
from konverge.kube.cronjob import controller as cronjob
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.batch_v1 import CronJob, Job
from konverge.objects.kinds.core_v1 import Event
from konverge.runtime import set_controller_reference
from tests.kube.conftest import Run, running
from tests.kube.cronjob.test_controller import minute, names, tick
from tests.kube.interposed import Interposed, refusing
from tests.kube.objects import job

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-37")]

YEARLY = "0 0 1 7 *"


def of(owner: CronJob | None, name: str) -> Job:
    made = job()
    made.metadata = ObjectMeta(name=name, namespace="default")
    if owner is not None:
        set_controller_reference(owner, made)
    return made


async def ended(client: Client, owner: CronJob, name: str, start: int, outcome: str = "Complete", end: int = 50) -> Job:
    """A Job that ran from one minute to another, on the evening before the test begins."""
    made = await client.create(of(owner, name))
    before = "SuccessCriteriaMet" if outcome == "Complete" else "FailureTarget"
    at = f"2025-12-31T20:{end:02}:00Z"
    status: dict[str, Any] = {
        "startTime": f"2025-12-31T20:{start:02}:00Z",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in (before, outcome)],
    }
    if outcome == "Complete":
        status["completionTime"] = at
    await client.patch(Job, name, MergePatch({"status": status}), "default", subresource="status")
    return made


async def activate(client: Client, *jobs: Job, **more: Any) -> None:
    active = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": made.metadata.name, "uid": made.metadata.uid} for made in jobs
    ]
    status = MergePatch({"status": {"active": active, **more}})
    await client.patch(CronJob, "tick", status, "default", subresource="status")


async def events(client: Client) -> list[Event]:
    return (await client.list(Event, "default")).items


async def reported(client: Client) -> list[tuple[str, str, str]]:
    """Type and reason of each event, and the last word of its message."""
    made = await events(client)
    assert {event.source.component for event in made if event.source} <= {"cronjob-controller"}
    return sorted((event.type or "", event.reason or "", (event.message or "").split()[-1]) for event in made)


async def test_the_oldest_jobs_beyond_the_limits_are_deleted(client: Client, run: Run) -> None:
    owner = await client.create(tick(YEARLY, successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1))
    for name, start in (("c", 1), ("a", 3), ("b", 2), ("d", 3)):
        await ended(client, owner, name, start)
    for name, start in (("x", 9), ("y", 8), ("z", 7)):
        await ended(client, owner, name, start, "Failed")
    await client.create(of(owner, "running"))
    async with run(cronjob):
        await asyncio.sleep(1)
        assert await names(client) == ["a", "d", "running", "x"]
    deleted = [word for _, reason, word in await reported(client) if reason == "SuccessfulDelete"]
    assert deleted == ["b", "c", "y", "z"]
    status = (await client.get(CronJob, "tick", "default")).status
    assert status.last_successful_time == "2025-12-31T20:50:00Z"


async def test_a_limit_of_none_at_all_keeps_none(client: Client, run: Run) -> None:
    owner = await client.create(tick(YEARLY, successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0, suspend=True))
    await ended(client, owner, "a", 1)
    await ended(client, owner, "b", 1, "Failed")
    async with run(cronjob):
        await asyncio.sleep(1)
        assert await names(client) == []


async def test_the_jobs_of_others_are_left_alone(client: Client, run: Run) -> None:
    """An owner reference alone does not make a Job ours: the controller is another."""
    owner = await client.create(tick(YEARLY, successfulJobsHistoryLimit=0))
    foreign = of(owner, "foreign")
    foreign.metadata.owner_references[0].controller = False
    await client.create(foreign)
    other = await client.create(from_dict(CronJob, {**to_dict(tick(YEARLY)), "metadata": {"name": "other"}}), "default")
    await ended(client, other, "theirs", 1)
    async with run(cronjob):
        await asyncio.sleep(1)
        assert await names(client) == ["foreign", "theirs"]
        assert (await client.get(CronJob, "tick", "default")).status.last_successful_time is None
    assert await reported(client) == []


async def test_the_last_success_is_the_latest_and_a_failure_is_none(client: Client, run: Run) -> None:
    owner = await client.create(tick(YEARLY, suspend=True))
    late = await ended(client, owner, "a", 1, end=40)
    await ended(client, owner, "b", 2, end=30)
    failed = await ended(client, owner, "c", 3, "Failed", end=55)
    await activate(client, late, failed)
    async with run(cronjob):
        await asyncio.sleep(1)
        status = (await client.get(CronJob, "tick", "default")).status
        assert status.last_successful_time == "2025-12-31T20:40:00Z"
        assert status.active == []
    assert [(kind, reason) for kind, reason, _ in await reported(client)] == [("Normal", "SawCompletedJob")] * 2
    messages = sorted((event.message or "").removeprefix("Saw completed job: ") for event in await events(client))
    assert messages == ["a, condition: Complete", "c, condition: Failed"]


async def test_a_job_that_is_not_listed_and_one_that_is_gone_are_reported(client: Client, run: Run) -> None:
    owner = await client.create(tick(YEARLY, suspend=True))
    unlisted, listed = await client.create(of(owner, "unlisted")), await client.create(of(owner, "listed"))
    foreign = await client.create(of(None, "foreign"))
    gone = of(None, "gone")
    gone.metadata.uid = "0" * 8
    await activate(client, listed, gone, foreign)
    async with run(cronjob):
        await asyncio.sleep(1)
        active = (await client.get(CronJob, "tick", "default")).status.active
    assert {(reference.name, reference.uid) for reference in active} == {
        ("listed", listed.metadata.uid),
        ("foreign", foreign.metadata.uid),  # it exists, whoever it belongs to
    }
    assert await reported(client) == [
        ("Normal", "MissingJob", "gone"),
        ("Warning", "UnexpectedJob", unlisted.metadata.name),
    ]


async def test_a_start_is_recorded_as_a_reference_to_its_job(client: Client, run: Run) -> None:
    desired = tick("* * * * *", suspend=False)
    desired.spec.job_template.metadata.annotations = {"team": "a"}
    await client.create(desired)
    async with run(cronjob):
        await asyncio.sleep(61)
        made = await client.get(Job, f"tick-{minute(60)}", "default")
        (reference,) = (await client.get(CronJob, "tick", "default")).status.active
    assert made.metadata.annotations["team"] == "a"
    assert to_dict(reference) == {
        "apiVersion": "batch/v1", "kind": "Job", "name": made.metadata.name, "namespace": "default",
        "uid": made.metadata.uid, "resourceVersion": made.metadata.resource_version,
    }  # fmt: skip
    assert await reported(client) == [("Normal", "SuccessfulCreate", made.metadata.name)]


@pytest.mark.parametrize("left", ["unrecorded", "recorded", "foreign"])
async def test_a_start_whose_job_exists_already(client: Client, left: str) -> None:
    """Left by a crash before the status was written, it counts, once; made by another, it does not."""
    owner = await client.create(tick("* * * * *"))
    name = f"tick-{minute(60)}"
    made = await client.create(of(None if left == "foreign" else owner, name))
    if left == "recorded":
        await activate(client, made)
    interposed = Interposed(client)
    async with running(interposed, cronjob):
        await asyncio.sleep(90)
        status = (await client.get(CronJob, "tick", "default")).status
    assert [reference.name for reference in status.active] == ([] if left == "foreign" else [name])
    assert status.last_schedule_time == ("2026-01-01T00:01:00Z" if left == "unrecorded" else None)
    creations = [call for call in interposed.calls if call.verb == "create" and call.target().endswith("/jobs")]
    assert len(creations) == (0 if left == "recorded" else 1)
    assert "SuccessfulCreate" not in {reason for _, reason, _ in await reported(client)}


async def test_a_start_is_made_once_although_its_job_is_deleted(client: Client, run: Run) -> None:
    await client.create(tick("*/5 * * * *"))
    async with run(cronjob):
        await asyncio.sleep(301)
        await client.delete(Job, f"tick-{minute(300)}", "default", propagation="Background")
        await asyncio.sleep(100)
        assert await names(client) == []


async def test_replacing_deletes_by_uid(client: Client, run: Run) -> None:
    """The active Job is gone, and another object has its name: that one stays."""
    await client.create(tick("* * * * *", concurrencyPolicy="Replace"))
    stale = of(None, "work")
    stale.metadata.uid = "0" * 8
    await client.create(of(None, "work"))
    await activate(client, stale)
    async with run(cronjob):
        await asyncio.sleep(70)
        assert "work" in await names(client)


@pytest.mark.parametrize(("policy", "refused"), [("Replace", "running"), ("Allow", "done")])
async def test_a_deletion_that_is_refused_is_reported_and_tried_again(
    client: Client, policy: str, refused: str
) -> None:
    owner = await client.create(tick("* * * * *", concurrencyPolicy=policy, successfulJobsHistoryLimit=0))
    before = await client.create(of(owner, "running"))
    if refused == "done":
        await ended(client, owner, "done", 1)
    await activate(client, before)
    interposed = Interposed(client)
    interposed.rules.append(refusing(refused, 500, verb="delete"))
    async with running(interposed, cronjob):
        await asyncio.sleep(70)
        assert refused in await names(client)
        active = (await client.get(CronJob, "tick", "default")).status.active
        assert [reference.name for reference in active] == ["running"]  # and the start waits
        assert ("Warning", "FailedDelete") in {(kind, reason) for kind, reason, _ in await reported(client)}
        interposed.rules.clear()
        await asyncio.sleep(45)
        assert refused not in await names(client)
        assert f"tick-{minute(60)}" in await names(client)


async def test_a_suspended_or_deleted_cronjob_starts_nothing_but_counts(client: Client, run: Run) -> None:
    owner = await client.create(tick("* * * * *", suspend=True))
    done = await ended(client, owner, "a", 1)
    await activate(client, done)
    async with run(cronjob):
        await asyncio.sleep(130)
        status = (await client.get(CronJob, "tick", "default")).status
        assert (status.active, status.last_successful_time) == ([], "2025-12-31T20:50:00Z")
        await client.delete(Job, "a", "default", propagation="Background")
        kept = MergePatch({"metadata": {"finalizers": ["tests.konverge.dev/kept"]}})
        await client.patch(CronJob, "tick", kept, "default")
        await client.delete(CronJob, "tick", "default")
        await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}), "default")
        await asyncio.sleep(130)
        assert await names(client) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"schedule": "often"}, "UnparseableSchedule"),
        ({"timeZone": "Mars/Base"}, "UnknownTimeZone"),
        ({"schedule": "TZ=Mars/Base * * * * *"}, "UnknownTimeZone"),
    ],
)
async def test_a_schedule_that_cannot_be_read_is_reported_and_starts_nothing(
    server: ApiServer, client: Client, run: Run, spec: dict[str, str], expected: str
) -> None:
    """The server refuses such an object today; one that an older server stored is still there."""
    owner = await client.create(tick("* * * * *"))
    await activate(client, await ended(client, owner, "a", 1))
    server.objects.update("batch", "cronjobs", "default", "tick", lambda stored: stored["spec"].update(spec))
    async with run(cronjob):
        await asyncio.sleep(130)
        assert await names(client) == ["a"]
        assert (await client.get(CronJob, "tick", "default")).status.active == []
    reasons = {(kind, reason) for kind, reason, _ in await reported(client)}
    assert reasons - {("Warning", "UnsupportedSchedule")} == {("Warning", expected), ("Normal", "SawCompletedJob")}
    unsupported = {event.message for event in await events(client) if event.reason == "UnsupportedSchedule"}
    assert unsupported == (
        {
            'CRON_TZ or TZ used in schedule "TZ=Mars/Base * * * * *" is not officially supported, see '
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        }
        if "TZ=" in spec.get("schedule", "")
        else set()
    )


@pytest.mark.parametrize(("schedule", "events"), [("0 0 31 2 *", 1), (YEARLY, 0)])
async def test_a_schedule_that_is_far_away_starts_nothing(client: Client, schedule: str, events: int) -> None:
    """One that never comes is said once."""
    interposed = Interposed(client, near=False)
    await client.create(tick(schedule))
    async with running(interposed, cronjob):
        await asyncio.sleep(3600)
    of_start = ("/version", "/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/")
    sent = [call.target() for call in interposed.calls if not call.target().startswith(of_start)]
    assert sent == ["/api/v1/namespaces/default/events"] * events


async def test_many_missed_starts_are_reported(client: Client, run: Run) -> None:
    await client.create(tick("* * * * *", suspend=True))
    async with run(cronjob):
        await asyncio.sleep(100 * 60 + 10)
        await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}), "default")
        await asyncio.sleep(1)
        assert {reason for _, reason, _ in await reported(client)} == {"SuccessfulCreate"}
        await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": True}}), "default")
        await asyncio.sleep(101 * 60)
        await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}), "default")
        await asyncio.sleep(1)
        assert "TooManyMissedTimes" in {reason for _, reason, _ in await reported(client)}
        assert len(await names(client)) == 2
