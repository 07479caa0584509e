"""The whole operator with simulated Nacos servers that boot, elect, fail and answer over its own HTTP client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.server import HttpNacosServers
from konverge.sim.nacos import Fault, SimulatedNacos, Timings
from tests.operators.nacos.world import CLUSTER, SPACE, STANDALONE, ScriptedServers, World, a_world, told

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-18")]
VERSIONS = ["2.1.1", "2.4.3", "3.0.3"]
BRISK = Timings(boot=(15.0, 20.0))
"""A start of a minute is simulated elsewhere; here it would only be waited for."""


@asynccontextmanager
async def a_world_with_servers(**options: Any) -> AsyncIterator[tuple[World, SimulatedNacos]]:
    options = {"timings": BRISK} | options
    async with a_world() as world, SimulatedNacos(world.cluster, **options) as nacos:
        world.servers = cast("ScriptedServers", HttpNacosServers(nacos.connect))
        async with world.operating():
            yield world, nacos


def image(version: str) -> dict[str, Any]:
    return {"image": f"nacos/nacos-server:v{version}"}


async def restarts(world: World) -> int:
    pods = (await world.client.list(Pod, SPACE)).items
    return sum(one.restart_count for pod in pods for one in pod.status.container_statuses)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_standalone(version: str) -> None:
    async with a_world_with_servers() as (world, _):
        await world.create("nacos", STANDALONE | image(version))
        found = await world.until("nacos")
        assert found.status.version == version


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_cluster_comes_up_and_survives_the_loss_of_its_leader(version: str) -> None:
    async with a_world_with_servers(seed=5) as (world, nacos):
        await world.create("nacos", CLUSTER | image(version))
        found = await world.until("nacos")
        assert (found.status.version, found.status.leader) == (version, nacos.leader())
        assert await restarts(world) == 0
        old = nacos.leader()
        nacos.kill(old)
        await world.advance(30)
        during = await world.nacos("nacos")
        assert during.status.phase == "Running", told(during)
        assert during.status.leader == nacos.leader() != old
        await world.advance(200)
        assert (await world.until("nacos")).status.ready_replicas == 3


@pytest.mark.spec("N-14")
async def test_a_lost_majority_heals_when_the_servers_are_back() -> None:
    async with a_world_with_servers() as (world, nacos):
        await world.create("nacos", CLUSTER | image("2.4.3"))
        await world.until("nacos")
        nacos.kill("nacos-0")
        nacos.kill("nacos-1")
        await world.advance(60)
        await world.until("nacos")


@pytest.mark.spec("N-08")
async def test_scaling_from_three_to_five() -> None:
    async with a_world_with_servers() as (world, nacos):
        await world.create("nacos", CLUSTER | image("2.4.3"))
        await world.until("nacos")
        await world.change("nacos", replicas=5)
        found = await world.until("nacos", limit=3000.0)
        assert found.status.ready_replicas == 5
        assert len(nacos.member("nacos-0").settings.members) == 5


@pytest.mark.spec("N-08")
async def test_scaling_from_five_to_three() -> None:
    async with a_world_with_servers() as (world, nacos):
        await world.create("nacos", {**CLUSTER, "replicas": 5} | image("2.4.3"))
        await world.until("nacos")
        await world.change("nacos", replicas=3)
        found = await world.until("nacos", limit=6000.0)
        assert found.status.ready_replicas == 3
        assert len(nacos.member("nacos-0").settings.members) == 3


@pytest.mark.spec("N-15")
async def test_an_upgrade_keeps_the_majority() -> None:
    async with a_world_with_servers() as (world, nacos):
        await world.create("nacos", CLUSTER | image("2.4.2"))
        await world.until("nacos")
        await world.change("nacos", **image("2.4.3"))
        lowest = 3
        for _ in range(1500):
            await world.advance(1.0)
            lowest = min(lowest, sum(one.open for one in nacos.ensemble.members.values()))
            found = await world.nacos("nacos")
            if found.status.version == "2.4.3" and found.status.ready_replicas == 3:
                break
        assert (await world.until("nacos")).status.version == "2.4.3"
        assert lowest == 2


@pytest.mark.spec("N-20")
@pytest.mark.parametrize("fault", list(Fault))
async def test_bad_answers_are_survived(fault: Fault) -> None:
    async with a_world_with_servers() as (world, nacos):
        await world.create("nacos", STANDALONE | image("2.4.3"))
        await world.until("nacos")
        nacos.spoil("nacos-0", fault)
        await world.advance(90)
        assert (await world.nacos("nacos")).status.healthy is False
        nacos.mend()
        await world.advance(120)
        await world.until("nacos")
