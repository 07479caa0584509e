"""The operator with simulated servers, which behave like real ones: elections, restarts, splits."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.operators.nacos.server import PORT
from konverge.sim.nacos import Fault
from tests.operators.nacos.world import CLUSTER, EMBEDDED, POSTGRES, SPACE, STANDALONE, a_simulated_world, condition

pytestmark = [pytest.mark.long, pytest.mark.virtual, pytest.mark.spec("N-18"), pytest.mark.limit(180)]


@pytest.mark.spec("N-07", "N-10")
@pytest.mark.parametrize("tag", ["v2.0.4", "v2.4.3", "v3.0.3"])
@pytest.mark.parametrize("base", [STANDALONE, CLUSTER], ids=["standalone", "cluster"])
async def test_every_line_comes_up(tag: str, base: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        nacos = await world.up(
            "nacos", {**base, "image": f"nacos/nacos-server:{tag}", "certification": {"enabled": True}}
        )
        assert nacos.status.version == tag[1:]
        assert nacos.status.leader == (simulated.leader() or "nacos-0")
        assert {node.status for node in nacos.status.servers} == {"true"}


@pytest.mark.spec("N-15")
async def test_scaling_keeps_the_quorum_and_the_raft_groups() -> None:
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)
        await world.change("nacos", replicas=5)
        assert await world.until_ready() >= 3
        await world.change("nacos", replicas=3)
        assert await world.until_ready() >= 3
        nacos = await world.nacos("nacos")
        assert len(nacos.status.servers) == 3
        sizes = {len(member.peers) for member in simulated.ensemble.members.values()}
        assert sizes == {3}, "the raft groups no longer count the servers that left"
        assert nacos.status.leader == simulated.leader()


@pytest.mark.spec("N-15")
async def test_shrinking_while_the_set_is_recreated_keeps_the_quorum() -> None:
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        volume = {"enabled": True, "requests": {"storage": "1Gi"}}
        await world.up("nacos", {**EMBEDDED, "replicas": 5, "volume": volume})
        await world.change("nacos", replicas=3, volume={"requests": {"storage": "2Gi"}})
        assert await world.until_ready() >= 3
        assert {len(member.peers) for member in simulated.ensemble.members.values()} == {3}
        assert any("is recreated" in text for text in await world.events("Recreating"))


@pytest.mark.spec("N-15")
async def test_down_to_one_and_back() -> None:
    async with a_simulated_world(nodes=3) as (world, simulated), world.operating():
        await world.up("nacos", {**EMBEDDED, "allowSmallClusters": True})
        for replicas in (1, 3):
            await world.change("nacos", replicas=replicas)
            await world.until_ready()
            nacos = await world.nacos("nacos")
            assert len(nacos.status.servers) == replicas
            assert nacos.status.leader == simulated.leader()
            assert {len(member.peers) for member in simulated.ensemble.members.values()} == {replicas}


@pytest.mark.spec("N-15")
async def test_an_upgrade_leaves_the_leader_for_last() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)
        leader = simulated.leader()
        await world.change("nacos", image="nacos/nacos-server:v3.0.3")
        assert await world.until_ready() >= 2
        followers = [name for name in ("nacos-2", "nacos-1", "nacos-0") if name != leader]
        assert world.replaced() == [*followers, leader]
        assert (await world.nacos("nacos")).status.version == "3.0.3"


@pytest.mark.spec("N-14")
async def test_a_lost_leader_is_noticed_and_another_one_shown() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)
        leader = simulated.leader()
        simulated.kill(leader)
        await world.advance(20.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready")[0] == "False"
        await world.until_ready()
        nacos = await world.nacos("nacos")
        assert nacos.status.leader == simulated.leader()


@pytest.mark.spec("N-14")
async def test_a_frozen_server_is_restarted_when_nothing_else_helps() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)
        await world.advance(400.0)
        simulated.freeze("nacos-1")
        await world.advance(60.0)
        assert condition(await world.nacos("nacos"), "Ready")[0] == "False"
        await world.until_ready()  # the kubelet's liveness probe, or the operator


@pytest.mark.spec("N-14")
async def test_a_split_is_noticed_and_passes() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)
        leader = simulated.leader()
        others = [name for name in ("nacos-0", "nacos-1", "nacos-2") if name != leader]
        simulated.split([leader], others)
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready")[0] == "False"
        assert nacos.status.event[-1].code in (401, -1)
        simulated.heal()
        await world.until_ready()


@pytest.mark.spec("N-10", "N-20")
@pytest.mark.parametrize("fault", list(Fault))
async def test_bad_answers_of_every_sort(fault: Fault) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)
        simulated.spoil("nacos-2", fault)
        await world.advance(90.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready")[0] == "False"
        assert "nacos-2" in nacos.status.event[-1].message
        simulated.mend()
        await world.until_ready()


@pytest.mark.spec("N-06", "N-10")
async def test_the_rotated_password_opens_the_servers() -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await world.postgres()
        nacos = await world.up("nacos", {**POSTGRES, "certification": {"enabled": True}})
        address = nacos.status.servers[0].instance or ""

        async def opens(password: str) -> bool:
            return await world.asked.login(address, port=PORT, username="nacos", password=password, timeout=5.0)

        await world.advance(20.0)
        assert await opens("first")
        await world.replace_secret("admin", username="nacos", password="second")
        await world.advance(3.0)
        assert not await opens("second")
        await world.advance(16.0)  # servers reread their users every 15 s
        assert await opens("second")
        assert not await opens("first")


@pytest.mark.spec("N-14")
async def test_a_cluster_that_has_failed_finds_its_way_back() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)
        patch = MergePatch({"metadata": {"annotations": {"note": "untouched"}}})
        await world.client.patch("statefulsets", "nacos", patch, SPACE)
        for name in ("nacos-0", "nacos-1"):
            simulated.spoil(name, Fault.GARBAGE)
        await world.until("nacos", "Failed", limit=400.0)
        simulated.mend()
        await world.until_ready()


@pytest.mark.spec("N-14", "N-15")
async def test_another_identity_reaches_servers_that_do_not_know_it_yet() -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await world.up("nacos", {**EMBEDDED, "image": "nacos/nacos-server:v3.0.3"})
        await world.secret("identity", identity_key="who", identity_value="me")
        await world.change("nacos", identitySecretRef={"name": "identity"})
        assert await world.until_ready() >= 2
        assert not await world.events("Failed")
