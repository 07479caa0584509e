"""What goes wrong while servers are replaced: the upgrade halts, names the reason, and resumes."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.upgrade.world import (
    FIRST,
    SECOND,
    THIRD,
    allow,
    images,
    until_halted,
    until_step,
)
from tests.operators.nacos.world import CLUSTER, MYSQL, a_simulated_world, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("N-53")]
OLD: dict[str, Any] = {**CLUSTER, "image": FIRST}
BROKEN = "nacos/nacos-server:v2.3.9"
RULES = [Rule(image=BROKEN, behave="image-pull-error"), Rule(image="*nacos-server*", behave="ready after 4s")]


async def test_a_server_that_never_becomes_a_member_is_named_and_no_other_follows_it() -> None:
    async with a_world(rules=RULES) as world, world.operating():
        await world.up("nacos", OLD)
        await world.change("nacos", image=SECOND)
        while not world.replaced():
            await world.advance(1.0)
        world.servers.fail("nacos-2", "Unreachable", "no answer from nacos-2")
        upgrade = await until_halted(world, "MembersNotUp")
        assert upgrade.step == "Rolling"
        assert "nacos-2" in upgrade.message
        assert upgrade.members_done == []
        await world.advance(1800.0)
        assert set(world.replaced()) == {"nacos-2"}, "restarted to heal it, but no other, however long it takes"
        assert (await images(world))["nacos-1"] == (await images(world))["nacos-0"] == FIRST
        world.servers.faults.clear()
        await until_step(world, "Done")
        assert len(await world.events("UpgradeResumed")) >= 1


async def test_a_slow_start_is_no_halt() -> None:
    rules = [Rule(image="*nacos-server*", behave="ready after 60s")]
    async with a_world(rules=rules) as world, world.operating():
        await world.up("nacos", OLD)
        await world.change("nacos", image=SECOND)
        await until_step(world, "Done")
        assert not await world.events("UpgradeHalted")


async def test_the_way_back_from_a_version_that_does_not_start() -> None:
    async with a_world(rules=RULES) as world, world.operating():
        await world.up("nacos", OLD)
        uids = await world.uids()
        await world.change("nacos", image=BROKEN)
        await until_halted(world, "MembersNotUp")
        await world.change("nacos", image=FIRST)
        upgrade = await until_step(world, "Done")
        assert (upgrade.from_version, upgrade.to) == ("2.3.9", "2.0.4")
        await world.until("nacos")
        assert await world.restarted(uids) == ["nacos-2"]


async def test_a_third_version_in_place_of_one_that_does_not_start() -> None:
    async with a_world(rules=RULES) as world, world.operating():
        world.mysql()
        await world.up("nacos", {**MYSQL, "image": FIRST})
        await world.change("nacos", image=BROKEN)
        await until_halted(world, "MembersNotUp")
        await world.change("nacos", image=THIRD)
        upgrade = await until_step(world, "Done")
        assert (upgrade.from_version, upgrade.to) == ("2.0.4", "2.5.0"), "its schema is not in the way: none has it"
        assert set((await images(world)).values()) == {THIRD}


async def test_no_way_is_known_to_the_third() -> None:
    async with a_world(rules=RULES) as world, world.operating():
        await world.up("nacos", OLD)
        await world.change("nacos", image=SECOND)
        await until_step(world, "Rolling", done=1)
        await world.change("nacos", image="nacos/nacos-server:v4.1.0")
        upgrade = await until_halted(world, "VersionPathUnknown")
        assert upgrade.to == "2.4.3"
        replaced = world.replaced()
        await world.advance(300.0)
        assert world.replaced() == replaced, "the second is not wanted any more"
        await world.change("nacos", image=SECOND)
        await until_step(world, "Done")


async def test_going_back_to_an_older_version_that_data_was_written_with_is_held_and_stops_the_roll() -> None:
    async with a_world(rules=RULES) as world, world.operating():
        await world.up("nacos", OLD)
        await world.change("nacos", image=SECOND)
        await until_step(world, "Rolling", done=1)
        await world.change("nacos", image=FIRST)
        await until_halted(world, "ChangeHeld")
        replaced = world.replaced()
        await world.advance(300.0)
        assert world.replaced() == replaced
        await allow(world, "version=2.0.4")
        upgrade = await until_step(world, "Done")
        assert (upgrade.from_version, upgrade.to) == ("2.4.3", "2.0.4")
        assert set((await images(world)).values()) == {FIRST}


@pytest.mark.spec("N-50")
async def test_a_database_that_goes_away_in_the_middle() -> None:
    async with a_world(rules=RULES) as world, world.operating():
        server = world.mysql()
        await world.up("nacos", {**MYSQL, "image": FIRST})
        await world.change("nacos", image=SECOND)
        while not world.replaced():
            await world.advance(1.0)
        server.down = True
        await until_halted(world, "DatabaseUnreachable")
        assert world.replaced() == ["nacos-2"], "asked before each server, not once a minute"
        await world.advance(300.0)
        assert world.replaced() == ["nacos-2"]
        server.down = False
        await until_step(world, "Done")


@pytest.mark.spec("N-46")
async def test_a_server_outside_of_its_raft_groups_is_not_upgraded_by_the_restart_that_would_bring_it_back() -> None:
    """It was removed by another client while the upgrade is paused: it waits, and comes back with the new version."""
    volume = {"enabled": True, "requests": {"storage": "1Gi"}}
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", {**OLD, "volume": volume})
        await world.change("nacos", image=SECOND)
        while not world.replaced():
            await world.advance(1.0)
        await world.change("nacos", upgrade={"paused": True})
        await until_step(world, "Rolling", done=1)
        await until_halted(world, "UpgradePaused")
        before = await world.uids()
        old = [name for name, image in (await images(world)).items() if image == FIRST]
        assert len(old) == 2
        removed = next(name for name in old if name != simulated.leader())
        member = simulated.member(removed)
        assert simulated.ensemble.remove_peer(member, member.address, simulated.ensemble.now)
        await world.advance(900.0)
        assert await world.restarted(before) == []
        assert (await images(world))[removed] == FIRST
        await world.change("nacos", upgrade={"paused": False})
        await until_step(world, "Done")
        await world.until("nacos")
        assert {len(entry.peers) for entry in simulated.ensemble.members.values()} == {3}
