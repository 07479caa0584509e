"""How simulated pods end: on their own where they are not restarted, and visibly when they are deleted."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, condition, pod, shown

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-16")]


async def test_a_pod_that_is_not_restarted_succeeds(cluster: Cluster) -> None:
    await cluster.client.create(pod("never", restartPolicy="Never"))
    await cluster.client.create(pod("on-failure", restartPolicy="OnFailure"))
    await cluster.client.create(pod("kept", "runs", restartPolicy="Never"))
    await cluster.client.create(pod("always"))
    await cluster.settle()
    assert await shown(cluster.client, "never") == "Succeeded False 0 Completed 0"
    assert await shown(cluster.client, "on-failure") == "Succeeded False 0 Completed 0"
    assert await shown(cluster.client, "kept") == "Running True 0"
    assert await shown(cluster.client, "always") == "Running True 0"


@pytest.mark.parametrize("behaviour", ["stop 0s", "stop 5s", "ignore-term"])
async def test_a_deleted_pod_shows_its_end_before_it_goes(cluster: Cluster, behaviour: str) -> None:
    await cluster.client.create(pod("web", behaviour))
    await cluster.settle()
    running = await cluster.client.get(Pod, "web", SPACE)
    await cluster.client.delete(Pod, "web", SPACE)
    await cluster.clock.advance(40)
    states: list[Pod] = []
    watch = cluster.client.watch(Pod, SPACE, resource_version=running.metadata.resource_version)
    async with aclosing(watch) as events:
        async for event in events:
            if event.type == "DELETED":
                break
            states.append(event.object)
    last = states[-1]
    assert condition(last, "Ready")[0] == condition(last, "ContainersReady")[0] == "False"
    [main] = last.status.container_statuses
    assert main.ready is False
    assert main.state is not None
    assert main.state.terminated is not None
    assert main.state.terminated.exit_code == (137 if behaviour == "ignore-term" else 0)
    assert last.status.phase == ("Failed" if behaviour == "ignore-term" else "Succeeded")


async def test_a_pod_deleted_without_grace_goes_at_once(cluster: Cluster) -> None:
    await cluster.client.create(pod("web", "ignore-term"))
    await cluster.settle()
    await cluster.client.delete(Pod, "web", SPACE, grace_period=0)
    await cluster.settle()
    assert [item.metadata.name for item in await cluster.client.list(Pod, SPACE)] == []
