"""Members of the raft groups while the number of servers changes; the simulated servers keep them on disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from konverge.operators.nacos.server import PORT, HttpNacosServers, Identity, NacosError
from konverge.sim.nacos import SimulatedNacos
from tests.operators.nacos.world import EMBEDDED, World, a_simulated_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-15"), pytest.mark.limit(180)]


class LosesFirstAnswer(HttpNacosServers):
    """The first removal is done, but the answer is lost after something else has happened (`between`)."""

    between: Callable[[], Awaitable[None]] | None = None
    removed: str = ""

    async def remove_peer(
        self, address: str, *, port: int = PORT, peer: str, identity: Identity | None = None, timeout: float = 5.0
    ) -> None:
        await super().remove_peer(address, port=port, peer=peer, identity=identity, timeout=timeout)
        if self.between is not None:
            between, self.between, self.removed = self.between, None, peer.partition(".")[0]
            await between()
            raise NacosError("Timeout", f"{address} did not answer within {timeout:g} s")


def grouped(simulated: SimulatedNacos) -> set[int]:
    """The sizes of the raft groups on the servers' disks."""
    return {len(member.peers) for member in simulated.ensemble.members.values()}


def leads(simulated: SimulatedNacos, pod: str) -> bool:
    member = simulated.member(pod)
    return any(belief.address == member.settings.raft_address for belief in member.beliefs.values())


async def up(world: World, replicas: int) -> None:
    """On volumes of their own: servers without their data would join as empty ones."""
    volume = {"enabled": True, "requests": {"storage": "1Gi"}}
    await world.up("nacos", {**EMBEDDED, "replicas": replicas, "allowSmallClusters": True, "volume": volume})


@pytest.mark.parametrize("seed", [0, 1])
async def test_a_shrink_that_is_taken_back_after_the_removal_brings_the_server_back(seed: int) -> None:
    async with a_simulated_world(nodes=4, nacos_seed=seed) as (world, simulated):
        servers = LosesFirstAnswer(simulated.connect)
        servers.between = lambda: world.change("nacos", replicas=4)
        world.asked = servers
        async with world.operating():
            await up(world, 4)
            await world.change("nacos", replicas=3)
            while not servers.removed:
                await world.advance(5.0)
            assert servers.removed == "nacos-3"
            await world.until("nacos")
            assert grouped(simulated) == {4}
            assert len((await world.nacos("nacos")).status.servers) == 4
            (message,) = await world.events("Readmitting")
            assert message.startswith("nacos-3 is restarted to rejoin the raft groups")


async def test_a_server_removed_by_another_client_comes_back_and_the_others_are_left_alone() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await up(world, 3)
        before = {name: simulated.member(name).began for name in ("nacos-0", "nacos-1", "nacos-2")}
        follower = next(name for name in before if not leads(simulated, name) or name != simulated.leader())
        member = simulated.member(follower)
        assert simulated.ensemble.remove_peer(member, member.address, simulated.ensemble.now)
        await world.advance(40.0)
        await world.until("nacos")
        assert grouped(simulated) == {3}
        assert {name for name, began in before.items() if simulated.member(name).began != began} == {follower}
        assert not await world.events("Failed")


@pytest.mark.parametrize("seed", [0, 1])
async def test_a_server_that_leads_a_group_can_leave(seed: int) -> None:
    """Its followers keep naming it. An operator that believed them would remove it again and again."""
    async with a_simulated_world(nodes=4, nacos_seed=seed) as (world, simulated), world.operating():
        await up(world, 4)
        assert leads(simulated, "nacos-3")
        await world.change("nacos", replicas=3)
        await world.until("nacos")
        assert grouped(simulated) == {3}
        named = [peers for member in simulated.ensemble.members.values() for peers in member.named.values()]
        assert any(len(peers) == 4 for peers in named), "one server is behind, as on real servers"


async def test_new_servers_are_left_alone_until_the_controller_reports_its_revision() -> None:
    """It creates their pods before it writes its status: by the old status they have another template."""
    async with a_simulated_world(nodes=5) as (world, _), world.operating():
        await up(world, 3)
        await world.change("nacos", replicas=5)
        await world.until("nacos")
        assert not await world.events("Replacing")
        assert sorted(world.replaced()) == ["nacos-0", "nacos-1", "nacos-2"], "those with too short a list"


async def test_a_server_that_does_not_get_in_is_not_restarted_over_and_over() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await up(world, 3)
        follower = next(name for name in ("nacos-0", "nacos-1", "nacos-2") if name != simulated.leader())
        processes = set()
        for _ in range(1200):  # each second: it is out again before the operator can see it in
            member = next((m for m in simulated.ensemble.members.values() if m.settings.pod == follower), None)
            if member is not None and member.open:
                processes.add(member.began)
                simulated.ensemble.remove_peer(member, member.address, simulated.ensemble.now)
            await world.advance(1.0)
        assert 2 <= len(processes) <= 5, "in twenty minutes"
        await world.advance(60.0)
        assert condition(await world.nacos("nacos"), "Ready") == ("False", "MembersNotUp")
        await world.until("nacos")
        assert grouped(simulated) == {3}
