"""What a Nacos holds, while it hibernates and after: with servers that keep their data where real ones do."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch, NotFound
from konverge.objects.kinds.core_v1 import Event
from konverge.operators.nacos.resource import Nacos
from tests.operators.nacos.content.world import SECOND, ContentWorld
from tests.operators.nacos.test_hibernation import hibernate, stateful_set, wake
from tests.operators.nacos.test_killed import by_mortals
from tests.operators.nacos.world import EMBEDDED, SPACE, a_simulated_world

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180), pytest.mark.spec("N-45")]
CONFIG = "NacosConfig"
STORED: dict[str, Any] = {**EMBEDDED, "volume": {"enabled": True, "requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize("base", [SECOND, STORED], ids=["standalone", "cluster"])
async def test_data_is_there_after_the_wake(base: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", base)
        content = ContentWorld(world, simulated)
        await content.config()
        await content.until(CONFIG, "app")
        await hibernate(world)
        await world.advance(3600.0)
        await wake(world)
        assert await content.content() == "a: 1"
        await content.until(CONFIG, "app")
        assert content.writes_of() == [("I", "a: 1")], "it was there, and not published again"
        assert {len(member.peers) for member in simulated.ensemble.members.values()} <= {1, 3}


@pytest.mark.parametrize(("first", "then"), [(5, 3), (3, 1), (3, 5)])
async def test_raft_groups_find_their_majority_whatever_the_size_is_by_then(first: int, then: int) -> None:
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        await world.up("nacos", {**STORED, "replicas": first, "allowSmallClusters": True})
        await hibernate(world)
        await world.change("nacos", replicas=then)
        await world.advance(60.0)
        nacos = await wake(world)
        assert len(nacos.status.servers) == then
        assert {len(member.peers) for member in simulated.ensemble.members.values()} == {then}
        assert nacos.status.leader == simulated.leader()


@pytest.mark.parametrize("seconds", [1.0, 15.0, 45.0, 90.0, 150.0])
async def test_a_cluster_that_shrinks_is_put_to_sleep_at_any_moment(seconds: float) -> None:
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        await world.up("nacos", {**STORED, "replicas": 5})
        await world.change("nacos", replicas=3)
        await world.advance(seconds)
        await hibernate(world)
        nacos = await wake(world)
        assert len(nacos.status.servers) == 3
        assert {len(member.peers) for member in simulated.ensemble.members.values()} == {3}


@pytest.mark.long
@pytest.mark.spec("N-14", "N-20", "N-44")
@pytest.mark.parametrize("writes", [1, 2])
async def test_a_night_of_killed_processes(writes: int) -> None:
    async with a_simulated_world(nodes=5) as (world, simulated):
        await world.create("nacos", {**STORED, "replicas": 4})
        await by_mortals(world, writes)
        await world.change("nacos", hibernate=True, replicas=3)
        last = await by_mortals(world, writes, phase="Hibernated")
        assert any("statefulsets" in write for write in last) or writes > 1
        assert await world.pods() == []
        await world.change("nacos", hibernate=False)
        await by_mortals(world, writes)
        assert (await stateful_set(world)).spec.replicas == 3
        assert {len(member.peers) for member in simulated.ensemble.members.values()} == {3}


# ------------------------------------------------------------------ content


@pytest.mark.spec("N-36")
async def test_content_waits_for_the_wake_and_is_written_then() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", SECOND)
        content = ContentWorld(world, simulated)
        await content.config()
        await content.until(CONFIG, "app")
        await hibernate(world)
        await content.create("NacosNamespace", "dev", id="dev")
        await content.until("NacosNamespace", "dev", "NacosHibernated")
        await content.change(CONFIG, "app", content="a: 2")
        await content.until(CONFIG, "app", "NacosHibernated")
        await world.advance(60.0)
        version = (await content.get(CONFIG, "app")).metadata.resource_version
        await world.advance(1800.0)
        assert (await content.get(CONFIG, "app")).metadata.resource_version == version
        events = await world.client.list(Event, SPACE)
        told = [event for event in events if event.reason == "NacosHibernated"]
        assert sorted((event.involved_object.kind, event.type, event.count or 1) for event in told) == [
            ("NacosConfig", "Normal", 1),
            ("NacosNamespace", "Normal", 1),
        ]
        await wake(world)
        await content.until(CONFIG, "app")
        await content.until("NacosNamespace", "dev")
        assert await content.content() == "a: 2"


@pytest.mark.spec("N-36")
async def test_content_that_is_deleted_meanwhile_is_released_unless_it_must_go() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", SECOND)
        content = ContentWorld(world, simulated)
        await content.config()
        await content.config("must", dataId="must.yaml", deletionPolicy="Delete")
        for name in ("app", "must"):
            await content.until(CONFIG, name)
        await hibernate(world)
        for name in ("app", "must"):
            await content.delete(CONFIG, name)
        await world.advance(60.0)
        assert await content.gone(CONFIG, "app")
        (event,) = await world.events("Released")
        assert "stays on the servers: Nacos default/nacos hibernates" in event
        assert not await content.gone(CONFIG, "must")
        assert (await content.ready(CONFIG, "must"))[1] == "NacosHibernated"
        await wake(world)
        await world.advance(30.0)
        assert await content.gone(CONFIG, "must")
        assert await content.content() == "a: 1"


@pytest.mark.spec("N-36")
async def test_a_nacos_that_is_deleted_in_its_sleep_releases_its_content() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", SECOND)
        content = ContentWorld(world, simulated)
        await content.config(deletionPolicy="Delete")
        await content.until(CONFIG, "app")
        await hibernate(world)
        await world.client.delete(Nacos, "nacos", SPACE)
        await content.delete(CONFIG, "app")
        await world.advance(60.0)
        assert await content.gone(CONFIG, "app")
        with pytest.raises(NotFound):
            await world.client.patch(Nacos, "nacos", MergePatch({}), SPACE)
