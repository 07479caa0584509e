"""Containers that are added to a running pod, the log that is followed, and what is allocated."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from konverge.client import StrategicPatch
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, pod, shown

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-16")]


async def test_an_ephemeral_container_runs_beside_the_others(cluster: Cluster) -> None:
    await cluster.client.create(pod("web", "main: exit 0 after 60s", restartPolicy="Never"))
    await cluster.settle()
    added = StrategicPatch({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}})
    await cluster.client.patch(Pod, "web", added, SPACE, subresource="ephemeralcontainers")
    await cluster.settle()
    web = await cluster.client.get(Pod, "web", SPACE)
    [debug] = web.status.ephemeral_container_statuses
    assert debug.name == "debug"
    assert debug.state is not None
    assert debug.state.running is not None
    assert await shown(cluster.client, "web") == "Running True 0"
    await cluster.clock.advance(61)
    web = await cluster.client.get(Pod, "web", SPACE)
    assert web.status.phase == "Succeeded"
    [debug] = web.status.ephemeral_container_statuses
    assert debug.state is not None
    assert debug.state.terminated is not None


async def test_what_containers_asked_for_is_allocated(cluster: Cluster) -> None:
    main = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
    await cluster.client.create(pod("web", containers=[main]))
    await cluster.settle()
    status = (await cluster.client.get(Pod, "web", SPACE)).status.container_statuses[0]
    assert {name: str(amount) for name, amount in status.allocated_resources.items()} == {"cpu": "1"}
    change = StrategicPatch({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]}})
    await cluster.client.patch(Pod, "web", change, SPACE, subresource="resize")
    await cluster.settle()
    status = (await cluster.client.get(Pod, "web", SPACE)).status.container_statuses[0]
    assert {name: str(amount) for name, amount in status.allocated_resources.items()} == {"cpu": "500m"}


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_followed_log_ends_with_its_container(cluster: Cluster, deleted: bool) -> None:
    await cluster.client.create(pod("web", "runs, stop 1s" if deleted else "exit 3 after 60s", restartPolicy="Never"))
    await cluster.settle()
    lines: list[str] = []

    async def follow() -> None:
        async with aclosing(cluster.client.log_lines("web", SPACE)) as log:
            async for line in log:
                lines.append(line)

    following = asyncio.create_task(follow())
    await cluster.clock.advance(30)
    assert [line.partition(" ")[2] for line in lines] == ["main: simulated run 1 began"]
    assert not following.done()
    if deleted:
        await cluster.client.delete(Pod, "web", SPACE)
    await cluster.clock.advance(40)
    await following
    end = "exit 143 (Error)" if deleted else "exit 3 (Error)"
    assert [line.partition(" ")[2] for line in lines] == ["main: simulated run 1 began", f"main: {end}"]
