"""Scaling without restarts: running servers follow a list of members that changes under them."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.nacos import names
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.nacos import SimulatedNacos
from tests.operators.nacos.content.world import ContentWorld
from tests.operators.nacos.test_hibernation import hibernate, wake
from tests.operators.nacos.test_killed import by_mortals
from tests.operators.nacos.upgrade.world import SECOND, THIRD, images, until_step
from tests.operators.nacos.world import EMBEDDED, SPACE, World, a_simulated_world, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180), pytest.mark.spec("N-47")]
IN_PLACE: dict[str, Any] = {**EMBEDDED, "scaleWithoutRestarts": True}
STORED: dict[str, Any] = {**IN_PLACE, "volume": {"enabled": True, "requests": {"storage": "1Gi"}}}
SLOW = [Rule(image="*nacos-server*", behave="ready after 4s")]


def grouped(simulated: SimulatedNacos) -> set[int]:
    """The sizes of the raft groups on the servers' disks."""
    return {len(member.peers) for member in simulated.ensemble.members.values()}


def listed(simulated: SimulatedNacos) -> set[int]:
    return {len(member.listed) for member in simulated.ensemble.members.values()}


def kept(before: dict[str, str], after: dict[str, str]) -> dict[str, bool]:
    """Of the pods that were there before and are there now, whether each is the same."""
    return {name: after[name] == uid for name, uid in before.items() if name in after}


async def servers_in_list(world: World) -> int:
    config = await world.client.get(ConfigMap, "nacos", SPACE)
    return len(config.data["servers"].split())


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("image", ["v2.0.4", "v2.4.3", "v3.0.3"])
async def test_from_three_to_five_and_back_restarts_no_server_that_stays(image: str, seed: int) -> None:
    async with a_simulated_world(nodes=5, nacos_seed=seed) as (world, simulated), world.operating():
        await world.up("nacos", {**STORED, "image": f"nacos/nacos-server:{image}"})
        content = ContentWorld(world, simulated)
        await content.config()
        await content.until("NacosConfig", "app")
        three = await world.uids()
        await world.update("nacos", replicas=5)
        five = await world.uids()
        assert kept(three, five) == dict.fromkeys(three, True)
        assert (grouped(simulated), listed(simulated)) == ({5}, {5})
        await world.update("nacos", replicas=3)
        assert await world.uids() == three
        assert (grouped(simulated), listed(simulated)) == ({3}, {3})
        assert await content.content() == "a: 1"
        assert content.writes_of() == [("I", "a: 1")], "it was there all the time"
        assert world.replaced() == []
        assert (await world.nacos("nacos")).status.leader == simulated.leader()
        assert not await world.events("Failed")


async def test_what_is_written_when_it_grows_and_what_is_not() -> None:
    async with a_world(nodes=5, rules=SLOW) as world, world.operating():
        await world.up("nacos", IN_PLACE)
        before = await world.client.get(StatefulSet, "nacos", SPACE)
        assert before.metadata.annotations[names.LISTED] == "3"
        await world.update("nacos", replicas=5)
        after = await world.client.get(StatefulSet, "nacos", SPACE)
        assert after.spec.template == before.spec.template
        assert after.metadata.annotations[names.LISTED] == "5"
        assert after.metadata.annotations[names.LISTED_SINCE] > before.metadata.annotations[names.LISTED_SINCE]
        assert await servers_in_list(world) == 5
        await world.advance(600.0)
        rest = await world.client.get(StatefulSet, "nacos", SPACE)
        assert rest.metadata.resource_version == after.metadata.resource_version, "no writes at rest"


async def test_a_server_leaves_when_no_other_lists_it_any_more() -> None:
    """A server that listed it after its end would wait for it."""
    async with a_simulated_world(nodes=4) as (world, simulated), world.operating():
        await world.up("nacos", {**STORED, "replicas": 4})
        await world.change("nacos", replicas=3)
        while len(await world.pods()) == 4:
            counts = {member.settings.pod: len(member.listed) for member in simulated.ensemble.members.values()}
            await world.advance(1.0)
        assert [counts[f"nacos-{number}"] for number in range(3)] == [3, 3, 3]
        assert counts["nacos-3"] == 4, "a server keeps itself in its list"


@pytest.mark.long
@pytest.mark.spec("N-20")
@pytest.mark.parametrize("writes", [1, 2])
async def test_killed_after_every_write(writes: int) -> None:
    async with a_world(nodes=5, rules=SLOW) as world:
        await world.create("nacos", IN_PLACE)
        await by_mortals(world, writes)
        three = await world.uids()
        await world.change("nacos", replicas=5)
        await by_mortals(world, writes)
        assert kept(three, await world.uids()) == dict.fromkeys(three, True)
        await world.change("nacos", replicas=3)
        await by_mortals(world, writes)
        assert await world.uids() == three
        assert await servers_in_list(world) == 3


async def test_an_hour_without_an_operator_in_the_middle_of_it() -> None:
    async with a_simulated_world(nodes=5) as (world, simulated):
        async with world.operating():
            await world.up("nacos", STORED)
            three = await world.uids()
            await world.change("nacos", replicas=5)
            await world.advance(3.0)
        await world.advance(3600.0)
        async with world.operating():
            await world.until("nacos")
            assert kept(three, await world.uids()) == dict.fromkeys(three, True)
            await world.change("nacos", replicas=3)
            while await servers_in_list(world) == 5:
                await world.advance(1.0)
        await world.advance(3600.0)
        async with world.operating():
            await world.until("nacos")
            assert await world.uids() == three
            assert grouped(simulated) == {3}


@pytest.mark.parametrize("seconds", [0.0, 0.5, 20.0, 100.0])
async def test_up_and_back(seconds: float) -> None:
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        await world.up("nacos", STORED)
        three = await world.uids()
        await world.change("nacos", replicas=5)
        await world.advance(seconds)
        await world.update("nacos", replicas=3)
        assert await world.uids() == three
        assert (grouped(simulated), listed(simulated)) == ({3}, {3})


@pytest.mark.parametrize("seconds", [5.0, 60.0, 120.0])
async def test_down_and_back_restarts_at_most_the_server_that_was_leaving(seconds: float) -> None:
    """The others removed it from the raft groups when they read the list, and it joins them when it starts."""
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        await world.up("nacos", {**STORED, "replicas": 5})
        five = await world.uids()
        await world.change("nacos", replicas=3)
        await world.advance(seconds)
        await world.update("nacos", replicas=5)
        await world.advance(60.0)
        await world.until("nacos")
        same = kept(five, await world.uids())
        assert all(same[f"nacos-{number}"] for number in range(3)), same
        assert (grouped(simulated), listed(simulated)) == ({5}, {5})


async def test_a_new_member_that_never_starts_leaves_the_others_alone() -> None:
    rules = [Rule(name="nacos-4", behave="never-ready"), Rule(image="*nacos-server*", behave="ready after 4s")]
    async with a_world(nodes=5, rules=rules) as world, world.operating():
        await world.up("nacos", IN_PLACE)
        three = await world.uids()
        await world.change("nacos", replicas=5)
        await world.until("nacos", "Failed")
        await world.advance(900.0)
        assert kept(three, await world.uids()) == dict.fromkeys(three, True)
        await world.update("nacos", replicas=3)
        assert await world.uids() == three


# ------------------------------------------------------------------ servers that do not follow


async def test_servers_that_do_not_follow_are_restarted_one_by_one_and_the_leader_last() -> None:
    """A hook of the user takes the place of ours."""
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "true"]}}}
    wrapper = {"PodSpec": {"containers": [{"name": "nacos", "lifecycle": hook}]}}
    async with a_simulated_world(nodes=4) as (world, simulated), world.operating():
        await world.up("nacos", {**STORED, "k8sWrapper": wrapper})
        three, leader = await world.uids(), simulated.leader()
        await world.change("nacos", replicas=4)
        await world.advance(145.0)
        assert world.replaced() == [], "they had no time yet"
        assert await world.until_ready() >= 3, "one at a time"
        assert sorted(world.replaced()) == ["nacos-0", "nacos-1", "nacos-2"]
        assert world.replaced()[-1] == leader
        assert kept(three, await world.uids()) == dict.fromkeys(three, False)
        assert (grouped(simulated), listed(simulated)) == ({4}, {4})
        messages = await world.events("Relisting")
        assert sorted(messages)[0] == (
            "nacos-0 is restarted with its list of members: it has 3 of 4, and did not follow"
        )
        assert not await world.events("Failed")


# ------------------------------------------------------------------ with other changes


async def test_choosing_it_and_giving_it_up_roll_the_servers_once() -> None:
    async with a_world(nodes=5, rules=SLOW) as world, world.operating():
        await world.up("nacos", EMBEDDED)
        await world.update("nacos", scaleWithoutRestarts=True)
        assert sorted(world.replaced()) == ["nacos-0", "nacos-1", "nacos-2"]
        uids = await world.uids()
        await world.update("nacos", replicas=4)
        assert kept(uids, await world.uids()) == dict.fromkeys(uids, True)
        uids = await world.uids()
        await world.change("nacos", scaleWithoutRestarts=False)
        while len(await world.restarted(uids)) < 4:
            assert await servers_in_list(world) == 4, "servers of the earlier template may have to start with it"
            await world.advance(1.0)
        await world.until("nacos")
        live = await world.client.get(StatefulSet, "nacos", SPACE)
        assert names.LISTED not in live.metadata.annotations
        assert "servers" not in (await world.client.get(ConfigMap, "nacos", SPACE)).data


async def test_an_upgrade_comes_first_and_each_server_restarts_once() -> None:
    async with a_world(nodes=5, rules=SLOW) as world, world.operating():
        await world.up("nacos", {**IN_PLACE, "image": SECOND})
        await world.change("nacos", image=THIRD, replicas=5)
        await until_step(world, "Done")
        await world.until("nacos")
        assert sorted(world.replaced()) == ["nacos-0", "nacos-1", "nacos-2"]
        assert set((await images(world)).values()) == {THIRD}
        assert len(await world.pods()) == await servers_in_list(world) == 5


@pytest.mark.parametrize("seconds", [1.0, 45.0, 90.0])
async def test_asleep_in_the_middle_of_it(seconds: float) -> None:
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        await world.up("nacos", {**STORED, "replicas": 5})
        await world.change("nacos", replicas=3)
        await world.advance(seconds)
        await hibernate(world)
        nacos = await wake(world)
        assert len(nacos.status.servers) == 3
        assert (grouped(simulated), listed(simulated)) == ({3}, {3})


async def test_a_list_that_others_change_or_delete_comes_back() -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        await world.up("nacos", IN_PLACE)
        uids = await world.uids()
        await world.client.delete(ConfigMap, "nacos", SPACE)
        await world.advance(60.0)
        assert await servers_in_list(world) == 3
        await world.until("nacos")
        assert condition(await world.nacos("nacos"), "Ready")[0] == "True"
        assert await world.uids() == uids
