"""Jobs: what survives a crash or a refusal, events, and pods that no Job will count any more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube.job import controller as jobs
from konverge.kube.job.job_pods import TRACKING
from konverge.objects.codec import to_dict
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import Event, Pod
from konverge.objects.meta import OwnerReference
from konverge.runtime import set_controller_reference
from tests.kube.conftest import Run, make_ready, pods, running
from tests.kube.interposed import Interposed, refusing
from tests.kube.job.test_controller import conditions, counts, live
from tests.kube.kubelet import Kubelet
from tests.kube.objects import job
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-36")]


async def events(client: Client) -> set[tuple[str | None, str | None]]:
    found = [event for event in (await client.list(Event, "default")).items if event.involved_object.kind == "Job"]
    assert {event.source.component for event in found if event.source} <= {"job-controller"}
    return {(event.type, event.reason) for event in found}


async def make_pod(client: Client, owner: Job, name: str, phase: str = "", *, tracked: bool = True) -> Pod:
    template = owner.spec.template
    meta = ObjectMeta(name=name, namespace="default", labels=dict(template.metadata.labels))
    meta.finalizers = [TRACKING] if tracked else []
    made = Pod(metadata=meta, spec=template.spec)
    set_controller_reference(owner, made)
    made = await client.create(made)
    if phase:
        await make_ready(client, made, ready=False, phase=phase)
    return made


async def test_a_deadline_needs_no_event_to_pass(client: Client, run: Run) -> None:
    async with run(jobs):
        await client.create(job(activeDeadlineSeconds=100))
        await asyncio.sleep(98)
        assert await conditions(client) == {}
        await asyncio.sleep(5)
        assert await conditions(client) == {"FailureTarget": "DeadlineExceeded", "Failed": "DeadlineExceeded"}
        status = (await live(client)).status
        assert (counts(status), status.completion_time) == ((0, 0, 1), None)
    assert await events(client) >= {("Normal", "SuccessfulCreate"), ("Warning", "DeadlineExceeded")}


async def test_pods_whose_uids_are_in_the_status_are_counted_once_after_a_crash(client: Client, run: Run) -> None:
    owner = await client.create(job(completions=4, parallelism=1))
    noted = await make_pod(client, owner, "noted", "Succeeded")
    released = await make_pod(client, owner, "released", "Succeeded", tracked=False)
    uncounted = {"succeeded": [noted.metadata.uid, released.metadata.uid, "gone"], "failed": ["lost"]}
    status = {"uncountedTerminatedPods": uncounted, "ready": 0, "startTime": "2026-01-01T00:00:00Z"}
    await client.patch(Job, "work", MergePatch({"status": status}), "default", subresource="status")
    async with run(jobs):
        await asyncio.sleep(20)
        found = (await live(client)).status
        assert counts(found) == (1, 3, 1)
        assert to_dict(found.uncounted_terminated_pods) == {}
        assert (await client.get(Pod, "noted", "default")).metadata.finalizers == []


async def test_a_job_is_not_complete_before_all_its_pods_are_counted(client: Client) -> None:
    owner = await client.create(job(completions=2, parallelism=2))
    await make_pod(client, owner, "a", "Succeeded")
    await make_pod(client, owner, "b", "Succeeded")
    interposed = Interposed(client)
    interposed.rules.append(refusing("b", 500, verb="patch"))
    async with running(interposed, jobs):
        await asyncio.sleep(20)
        found = (await live(client)).status
        assert set(await conditions(client)) == {"SuccessCriteriaMet"}
        assert (counts(found), found.completion_time) == ((0, 1, 0), None)
        assert found.uncounted_terminated_pods
        assert len(found.uncounted_terminated_pods.succeeded) == 1
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert set(await conditions(client)) == {"SuccessCriteriaMet", "Complete"}
        found = (await live(client)).status
        assert counts(found) == (0, 2, 0)
        assert found.completion_time
    assert await events(client) == {("Normal", "Completed")}


async def test_a_failure_that_cannot_be_recorded_is_no_finished_job(client: Client) -> None:
    """The failed pod keeps its finalizer: the failure is noted, and not counted yet."""
    owner = await client.create(job(backoffLimit=0))
    await make_pod(client, owner, "a", "Failed")
    interposed = Interposed(client)
    interposed.rules.append(refusing("a", 500, verb="patch"))
    async with running(interposed, jobs):
        await asyncio.sleep(20)
        assert set(await conditions(client)) == {"FailureTarget"}
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert set(await conditions(client)) == {"FailureTarget", "Failed"}
        assert counts((await live(client)).status) == (0, 0, 1)


@pytest.mark.parametrize("succeeded", [1, 2])
async def test_more_successes_than_completions_are_reported(client: Client, run: Run, succeeded: int) -> None:
    owner = await client.create(job(completions=1))
    for number in range(succeeded):
        await make_pod(client, owner, f"p{number}", "Succeeded")
    async with run(jobs):
        await asyncio.sleep(5)
        assert counts((await live(client)).status) == (0, succeeded, 0)
    assert await events(client) == {("Normal", "Completed")} | (
        {("Warning", "TooManySucceededPods")} if succeeded > 1 else set()
    )


async def test_pods_that_cannot_be_deleted_keep_a_job_from_failing(client: Client) -> None:
    owner = await client.create(job(backoffLimit=0, parallelism=2))
    await make_pod(client, owner, "bad", "Failed")
    await make_pod(client, owner, "runs", "Running")
    interposed = Interposed(client)
    interposed.rules.append(refusing("runs", 500, verb="delete"))
    async with running(interposed, jobs, Kubelet(lambda pod: "Running")):
        await asyncio.sleep(10)
        assert await conditions(client) == {}
        assert counts((await live(client)).status)[0] == 1
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert set(await conditions(client)) == {"FailureTarget", "Failed"}
        assert counts((await live(client)).status) == (0, 0, 2)


async def test_a_surplus_pod_that_cannot_be_released_is_not_deleted(client: Client) -> None:
    owner = await client.create(job(parallelism=1, completions=5))
    for name in ("a", "b"):
        await make_pod(client, owner, name, "Running")
    interposed = Interposed(client)
    interposed.rules += [refusing(name, 500, verb="patch") for name in ("a", "b")]
    async with running(interposed, jobs):
        await asyncio.sleep(10)
        assert len(await pods(client)) == 2
        assert ("delete", "a") not in interposed.writes()
        assert ("delete", "b") not in interposed.writes()
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert len(await pods(client)) == 1
        status = (await live(client)).status
        assert counts(status) == (1, 0, 0)  # a surplus pod is no failure


async def test_a_job_that_is_being_deleted_creates_nothing(client: Client, run: Run) -> None:
    desired = job(suspend=True)
    desired.metadata.finalizers = ["tests.konverge.dev/kept"]
    await client.create(desired)
    await client.delete(Job, "work", "default", propagation="Background")
    async with run(jobs):
        await client.patch(Job, "work", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
        await asyncio.sleep(5)
        assert await pods(client) == []
        assert await conditions(client) == {}


async def test_suspending_and_resuming_are_reported_once(client: Client, run: Run) -> None:
    async with run(jobs):
        await client.create(job())
        await asyncio.sleep(5)
        assert await events(client) == {("Normal", "SuccessfulCreate")}
        for suspend in (True, False):
            await client.patch(Job, "work", MergePatch({"spec": {"suspend": suspend}}), "default")
            await asyncio.sleep(10)
        found = (await client.list(Event, "default")).items
        reasons = [event.reason for event in found if event.involved_object.kind == "Job"]
        assert (reasons.count("Suspended"), reasons.count("Resumed")) == (1, 1)


async def test_ready_and_terminating_pods_are_counted(client: Client, run: Run) -> None:
    async with run(jobs):
        await client.create(job(parallelism=3, completions=3))
        await asyncio.sleep(2)
        made = await pods(client)
        for pod in made:
            await client.bind_pod(pod.metadata.name, "node", "default")
            await make_ready(client, pod)
        await asyncio.sleep(2)
        await client.delete(Pod, made[0].metadata.name, "default")
        await asyncio.sleep(5)
        status = (await live(client)).status
        assert (status.ready, status.terminating, counts(status)) == (2, 1, (2, 0, 1))
        await client.patch(Job, "work", MergePatch({"spec": {"parallelism": 0}}), "default")
        await asyncio.sleep(5)
        status = (await live(client)).status
        assert (status.ready, status.terminating, counts(status)) == (0, 3, (0, 0, 1))


# ------------------------------------------------------------------ pods whose Job is gone


async def finish(client: Client, name: str = "work") -> None:
    done = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z"}
    status = MergePatch({"status": {"conditions": done, **times}})
    await client.patch(Job, name, status, "default", subresource="status")


@pytest.mark.parametrize(
    ("state", "released"),
    [
        ("running", False),
        ("finished", True),
        ("deleted", True),
        ("recreated", True),
        ("elsewhere", False),
        ("elsewhere finished", False),
        ("other kind", False),
        ("no owner", True),
        ("untracked", False),
    ],
)
async def test_a_pod_that_no_job_will_count_is_released(client: Client, state: str, released: bool) -> None:
    spec: dict[str, Any] = {"managedBy": "example.com/other"} if state.startswith("elsewhere") else {}
    owner = await client.create(job(suspend=True, **spec))
    pod = await make_pod(client, owner, "p", tracked=state != "untracked")
    if state in ("no owner", "other kind"):
        owners = [] if state == "no owner" else [
            to_dict(OwnerReference(api_version="apps/v1", kind="Job", name="work", uid="u", controller=True))
        ]  # fmt: skip
        await client.patch(Pod, "p", MergePatch({"metadata": {"ownerReferences": owners}}), "default")
    if state in ("deleted", "recreated", "other kind"):
        await client.delete(Job, "work", "default", propagation="Orphan")
        await client.patch(Job, "work", MergePatch({"metadata": {"finalizers": None}}), "default")
    if state == "recreated":
        await client.create(job(suspend=True))
    if state.endswith("finished"):
        await finish(client)
    interposed = Interposed(client)
    (_, orphans) = jobs.controllers()

    class Orphans:
        @staticmethod
        def controllers() -> list[Any]:
            return [orphans]

    async with running(interposed, Orphans):
        await asyncio.sleep(5)
    assert (("patch", "p") in interposed.writes()) is released
    live_pod = await client.get(Pod, "p", "default")
    assert (live_pod.metadata.finalizers == []) == (released or state == "untracked")
    assert live_pod.metadata.uid == pod.metadata.uid


def test_which_pods_may_have_to_be_released() -> None:
    trigger = Triggers(*jobs.controllers()[1:])
    owner = job()
    owner.metadata.uid = "u"
    tracked = Pod(
        metadata=ObjectMeta(name="p", namespace="default", finalizers=[TRACKING]), spec=owner.spec.template.spec
    )
    plain = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=owner.spec.template.spec)
    assert trigger.of(None, tracked) == {"job-orphans default/p"}
    assert trigger.of(None, plain) == set()
    assert trigger.of(tracked, None) == set()
    set_controller_reference(owner, tracked)
    assert trigger.of(owner, None, cached=[tracked]) == {"job-orphans default/p"}
    assert trigger.of(owner, owner, cached=[tracked]) == set()
    owner.metadata.uid = "v"
    assert trigger.of(owner, None, cached=[tracked]) == set()
