"""Jobs are deleted `ttlSecondsAfterFinished` after they finished."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from konverge.client import Client, MergePatch
from konverge.kube import ttlafterfinished
from konverge.kube.gc.controller import GarbageCollector
from konverge.kube.job import controller as jobs
from konverge.kube.job.verdict import is_finished
from konverge.kube.ttlafterfinished import expires_in
from konverge.objects.codec import to_dict
from konverge.objects.kinds.batch_v1 import Job, JobCondition
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import now
from konverge.wire.message import Response
from tests.kube.conftest import Run, pods, running
from tests.kube.interposed import Interposed, reads
from tests.kube.kubelet import Kubelet
from tests.kube.objects import job

pytestmark = pytest.mark.spec("R-36")


virtual = pytest.mark.virtual


def succeeds(pod: Pod) -> str:
    return "Succeeded"


@virtual
async def test_a_finished_job_is_deleted_after_its_time_to_live(client: Client, run: Run) -> None:
    collecting = asyncio.create_task(GarbageCollector().run(client))
    async with run(jobs, ttlafterfinished, Kubelet(succeeds)):
        await client.create(job(ttlSecondsAfterFinished=60))
        await asyncio.sleep(50)
        assert is_finished(await client.get(Job, "work", "default"))
        await asyncio.sleep(30)
        assert (await client.list(Job, "default")).items == []
        assert await pods(client) == []
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)


def ended(kind: str = "Complete", status: str = "True", seconds: int | None = 60, **more: Any) -> Job:
    made = job(ttlSecondsAfterFinished=seconds)
    made.status.conditions = [
        JobCondition(type="SuccessCriteriaMet", status="True", last_transition_time="2025-01-01T00:00:00Z"),
        JobCondition(type=kind, status=status, last_transition_time=more.get("at", now())),
    ]
    return made


@virtual
async def test_the_time_runs_from_the_end() -> None:
    for kind in ("Complete", "Failed"):
        made = ended(kind)
        assert expires_in(made) == 60
    await asyncio.sleep(45)
    assert expires_in(made) == 15
    await asyncio.sleep(45)
    assert expires_in(made) == -30
    made.metadata.deletion_timestamp = now()
    assert expires_in(made) is None
    assert expires_in(ended(seconds=None)) is None
    assert expires_in(ended(seconds=0)) == 0
    assert expires_in(ended(status="False")) is None
    assert expires_in(ended("Suspended")) is None
    assert expires_in(ended(at=None)) is None


async def finish(client: Client, seconds: int) -> None:
    await client.create(job(ttlSecondsAfterFinished=seconds, suspend=True))
    at = now()
    done = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in ("SuccessCriteriaMet", "Complete")]
    status = {"conditions": done, "startTime": at, "completionTime": at}
    await client.patch(Job, "work", MergePatch({"status": status}), "default", subresource="status")


@virtual
async def test_a_job_is_deleted_in_the_foreground_and_by_uid(client: Client) -> None:
    await finish(client, 10)
    interposed = Interposed(client)
    async with running(interposed, ttlafterfinished):
        await asyncio.sleep(9)
        assert (await client.get(Job, "work", "default")).metadata.deletion_timestamp is None
        await asyncio.sleep(3)
        live = await client.get(Job, "work", "default")  # no garbage collector removes the finalizer here
        assert live.metadata.deletion_timestamp is not None
        assert live.metadata.finalizers == ["foregroundDeletion"]
    (call,) = [call for call in interposed.calls if call.verb == "delete"]
    assert live.metadata.uid.encode() in call.body


@virtual
@pytest.mark.parametrize("left", [30, None])
async def test_the_live_job_is_asked_before_it_is_deleted(client: Client, left: int | None) -> None:
    """The user has given it more time, and the cache does not know yet."""
    await finish(client, 10)
    live = to_dict(await client.get(Job, "work", "default"))
    live["spec"]["ttlSecondsAfterFinished"] = left
    interposed = Interposed(client)
    answer = Response(200, body=msgspec.json.encode(live))
    interposed.rules.append(lambda call: answer if reads(call, "work") else None)
    async with running(interposed, ttlafterfinished):
        await asyncio.sleep(20)
        assert (await client.get(Job, "work", "default")).metadata.deletion_timestamp is None
        interposed.rules.clear()
        await asyncio.sleep(15)
        deleted = (await client.get(Job, "work", "default")).metadata.deletion_timestamp is not None
    assert deleted is (left is not None)
