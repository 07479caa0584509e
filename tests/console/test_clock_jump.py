"""The clock of a cluster is moved: what waits for a time of day happens, on virtual and on real time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from konverge import clock
from konverge.cli.console_simulation import UpSimulation
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import Node
from konverge.objects.times import parse_time
from konverge.sim.cluster import Cluster
from tests.console.office import API, SPACE, Office, decoded, in_front_of
from tests.explain.samples import create

pytestmark = pytest.mark.spec("C-30")

HOUR = 3600.0
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}}


def batch(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "batch/v1", "kind": kind, "metadata": meta, "spec": spec}


async def jump(office: Office, seconds: float) -> dict[str, Any]:
    answer = await office.send("POST", f"{API}/simulation/faults/jump-clock", {"seconds": seconds})
    assert answer.status == 200, answer.body
    state: dict[str, Any] = decoded(answer)["clock"]
    return state


async def ready_nodes(cluster: Cluster) -> list[bool]:
    nodes = (await cluster.client.list(Node)).items
    return [any(entry.type == "Ready" and entry.status == "True" for entry in node.status.conditions) for node in nodes]


async def jobs(cluster: Cluster, quiet: float, happened: Callable[[list[Job]], object]) -> list[Job]:
    """The Jobs, once all has come to rest and this has happened; a test that waits in vain runs into its limit."""
    while True:
        await cluster.settle(quiet=quiet)
        found = (await cluster.client.list(Job, SPACE)).items
        if len(found) == 1 and happened(found):
            return found


async def what_a_jump_does(quiet: float) -> None:
    async with Cluster(nodes=2) as cluster:
        simulation = UpSimulation(cluster, [])
        async with in_front_of(cluster.server, cluster.client, simulation=simulation) as office:
            minute = (clock.utc_now() + timedelta(minutes=30)).minute
            hourly = batch("CronJob", "hourly", schedule=f"{minute} * * * *", jobTemplate={"spec": JOB})
            await create(cluster.client, hourly, batch("Job", "once", ttlSecondsAfterFinished=1800, **JOB))
            token = await office.account("jane", "list")
            [once] = await jobs(cluster, quiet, lambda found: found[0].status.succeeded)
            assert once.metadata.name == "once"
            before = clock.now()
            assert (await jump(office, HOUR))["ahead"] == HOUR
            assert HOUR <= clock.now() - before < HOUR + 60
            [started] = await jobs(cluster, quiet, lambda found: [job.metadata.name for job in found] != ["once"])
            assert started.metadata.name.startswith("hourly-"), "its hour has come, and the time of the other is over"
            assert parse_time(started.metadata.creation_timestamp or "").timestamp() > before + HOUR - 2
            assert await ready_nodes(cluster) == [True, True]
            await jump(office, HOUR)
            assert (await office.another().sign_in(token=token)).status == 401, "a token for an hour"
            assert (await office.send("GET", "/k8s/api/v1/nodes")).status == 200
            assert (await jump(office, -2 * HOUR))["ahead"] == 0
            assert (await office.another().sign_in(token=token)).status == 200
            await jump(office, HOUR)


@pytest.mark.virtual
async def test_on_virtual_time() -> None:
    await what_a_jump_does(quiet=1.0)


async def test_on_real_time_until_the_cluster_ends() -> None:
    await what_a_jump_does(quiet=0.3)
    assert abs(clock.now() - time.time()) < 1
