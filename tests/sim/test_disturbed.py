"""Disturbances of a running cluster: an API server that is away, events that are late, pods that crash."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import ConnectionFailed
from konverge.objects.kinds.core_v1 import ConfigMap, Pod
from konverge.objects.meta import ObjectMeta
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, pod

pytestmark = [pytest.mark.virtual, pytest.mark.spec("C-12")]


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=SPACE))


async def test_those_who_connected_lose_the_api_server_and_get_it_back(cluster: Cluster) -> None:
    operator = cluster.connect("operator")
    watch = operator.watch(ConfigMap, SPACE, bookmarks=False)
    first = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(1)
    cutting = asyncio.ensure_future(cluster.cut_api(3600))
    with pytest.raises(ConnectionFailed):
        await first
    with pytest.raises(ConnectionFailed):
        await operator.create(config_map("a"))
    assert await cluster.client.create(config_map("b"))  # others are not concerned
    await cutting
    assert await operator.create(config_map("a"))
    await watch.aclose()


async def test_two_absences_at_once_end_with_the_longer(cluster: Cluster) -> None:
    operator = cluster.connect("operator")
    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.cut_api(10))
        group.create_task(cluster.cut_api(3600))
        await asyncio.sleep(30)
        with pytest.raises(ConnectionFailed):
            await operator.list(ConfigMap, SPACE)
    assert (await operator.list(ConfigMap, SPACE)).items == []


async def test_late_events_keep_their_order_and_nothing_is_lost(cluster: Cluster) -> None:
    operator = cluster.connect("operator")
    loop = asyncio.get_running_loop()
    seen: list[tuple[str, float]] = []

    async def look() -> None:
        async for event in operator.watch(ConfigMap, SPACE, bookmarks=False):
            seen.append((event.object.metadata.name, loop.time()))

    looking = asyncio.ensure_future(look())
    await asyncio.sleep(1)
    cluster.delay_watches(20)
    began = loop.time()
    await cluster.client.create(config_map("a"))
    await asyncio.sleep(1)
    cluster.delay_watches(0)
    await cluster.client.create(config_map("b"))  # must not overtake
    await asyncio.sleep(60)
    await cluster.client.create(config_map("c"))
    await asyncio.sleep(1)
    looking.cancel()
    await asyncio.wait([looking])
    assert [name for name, _ in seen] == ["a", "b", "c"]
    times: dict[str, Any] = dict(seen)
    assert times["a"] - began == pytest.approx(20)
    assert times["c"] - began == pytest.approx(61)


async def test_a_pod_crashes_and_comes_back(cluster: Cluster) -> None:
    await cluster.client.create(pod("web"))
    await cluster.settle()
    assert cluster.crash_pod("web", SPACE) == ["main"]
    await asyncio.sleep(60)
    status = (await cluster.client.get(Pod, "web", SPACE)).status.container_statuses[0]
    assert (status.restart_count, status.ready) == (1, True)
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 137


async def test_only_what_runs_under_this_name_crashes(cluster: Cluster) -> None:
    await cluster.client.create(pod("web"))
    await cluster.client.create(pod("other"))
    await cluster.settle()
    assert cluster.crash_pod("none", SPACE) == []
    assert cluster.crash_pod("web", "elsewhere") == []
    assert cluster.crash_pod("web", SPACE, "sidecar") == []
    await asyncio.sleep(60)
    for name in ("web", "other"):
        assert (await cluster.client.get(Pod, name, SPACE)).status.container_statuses[0].restart_count == 0
