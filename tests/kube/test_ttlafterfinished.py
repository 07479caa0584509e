"""Jobs are deleted `ttlSecondsAfterFinished` after they finished."""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import Client
from konverge.kube import ttlafterfinished
from konverge.kube.gc.controller import GarbageCollector
from konverge.kube.job import controller as jobs
from konverge.kube.job.verdict import is_finished
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import Pod
from tests.kube.conftest import Run, pods
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
