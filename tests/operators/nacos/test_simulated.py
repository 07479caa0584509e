"""The operator with simulated servers, which behave as real ones were recorded to: elections, restarts, splits."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.server import PORT
from konverge.operators.nacos.steps.pods import is_ready as pod_is_ready
from konverge.sim.nacos import Fault
from tests.operators.nacos.test_faults import POSTGRES, replace_secret, with_postgres
from tests.operators.nacos.world import CLUSTER, SPACE, STANDALONE, World, a_simulated_world, condition

pytestmark = [pytest.mark.long, pytest.mark.virtual, pytest.mark.spec("N-18"), pytest.mark.limit(180)]

EMBEDDED: dict[str, Any] = {**CLUSTER, "image": "nacos/nacos-server:v2.4.3"}


async def ready_pods(world: World) -> int:
    return sum(pod_is_ready(pod) for pod in await world.client.list(Pod, SPACE, label_selector="app=nacos"))


async def watch_until(world: World, *, limit: float = 1800.0) -> int:
    """Until all is as wished; the lowest number of ready pods on the way."""
    lowest, waited = 99, 0.0
    await world.advance(2.0)
    while True:
        lowest = min(lowest, await ready_pods(world))
        found = await world.nacos("nacos")
        if found.status.phase == "Running" and condition(found, "Ready")[0] == "True":
            return lowest
        assert waited < limit, found.status
        await world.advance(5.0)
        waited += 5.0


@pytest.mark.spec("N-07", "N-10")
@pytest.mark.parametrize("tag", ["v2.0.4", "v2.4.3", "v3.0.3"])
@pytest.mark.parametrize("base", [STANDALONE, CLUSTER], ids=["standalone", "cluster"])
async def test_every_line_comes_up(tag: str, base: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.create("nacos", {**base, "image": f"nacos/nacos-server:{tag}", "certification": {"enabled": True}})
        found = await world.until("nacos")
        assert found.status.version == tag[1:]
        assert found.status.leader == (simulated.leader() or "nacos-0")
        assert {node.status for node in found.status.conditions} == {"true"}


@pytest.mark.spec("N-15")
async def test_scaling_with_real_manners() -> None:
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        await world.create("nacos", EMBEDDED)
        await world.until("nacos")
        await world.change("nacos", replicas=5)
        assert await watch_until(world) >= 3
        await world.change("nacos", replicas=3)
        assert await watch_until(world) >= 3
        found = await world.nacos("nacos")
        assert len(found.status.conditions) == 3
        sizes = {len(one.peers) for one in simulated.ensemble.members.values()}
        assert sizes == {3}, "the raft groups have forgotten who left"
        assert found.status.leader == simulated.leader()


@pytest.mark.spec("N-15")
async def test_shrinking_while_the_set_is_made_anew_keeps_the_quorum() -> None:
    async with a_simulated_world(nodes=5) as (world, simulated), world.operating():
        volume = {"enabled": True, "requests": {"storage": "1Gi"}}
        await world.create("nacos", {**EMBEDDED, "replicas": 5, "volume": volume})
        await world.until("nacos")
        await world.change("nacos", replicas=3, volume={"requests": {"storage": "2Gi"}})
        assert await watch_until(world) >= 3
        assert {len(one.peers) for one in simulated.ensemble.members.values()} == {3}
        assert any("made anew" in text for text in await world.events("Recreating"))


@pytest.mark.spec("N-15")
async def test_down_to_one_and_back() -> None:
    async with a_simulated_world(nodes=3) as (world, simulated), world.operating():
        await world.create("nacos", {**EMBEDDED, "allowSmallClusters": True})
        await world.until("nacos")
        for replicas in (1, 3):
            await world.change("nacos", replicas=replicas)
            await watch_until(world)
            found = await world.nacos("nacos")
            assert len(found.status.conditions) == replicas
            assert found.status.leader == simulated.leader()
            assert {len(one.peers) for one in simulated.ensemble.members.values()} == {replicas}


@pytest.mark.spec("N-15")
async def test_an_upgrade_leaves_the_leader_for_last() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.create("nacos", EMBEDDED)
        await world.until("nacos")
        leader = simulated.leader()
        await world.change("nacos", image="nacos/nacos-server:v3.0.3")
        assert await watch_until(world) >= 2
        order = [text.partition(" ")[0] for text in await world.events("RollingUpdate")]
        assert sorted(order) == ["nacos-0", "nacos-1", "nacos-2"]
        by_time = {text.partition(" ")[0]: text for text in await world.events("RollingUpdate")}
        assert by_time[leader].endswith("0 to go")
        assert (await world.nacos("nacos")).status.version == "3.0.3"


@pytest.mark.spec("N-14")
async def test_a_lost_leader_is_noticed_and_another_one_shown() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.create("nacos", EMBEDDED)
        await world.until("nacos")
        leader = simulated.leader()
        simulated.kill(leader)
        await world.advance(20.0)
        found = await world.nacos("nacos")
        assert condition(found, "Ready")[0] == "False"
        await watch_until(world)
        found = await world.nacos("nacos")
        assert found.status.leader == simulated.leader()


@pytest.mark.spec("N-14")
async def test_a_frozen_server_is_restarted_when_nothing_else_helps() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.create("nacos", EMBEDDED)
        await world.until("nacos")
        await world.advance(400.0)
        simulated.freeze("nacos-1")
        await world.advance(60.0)
        assert condition(await world.nacos("nacos"), "Ready")[0] == "False"
        await watch_until(world)  # the kubelet's liveness probe, or the operator


@pytest.mark.spec("N-14")
async def test_a_split_is_noticed_and_passes() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.create("nacos", EMBEDDED)
        await world.until("nacos")
        leader = simulated.leader()
        others = [name for name in ("nacos-0", "nacos-1", "nacos-2") if name != leader]
        simulated.split([leader], others)
        await world.advance(60.0)
        found = await world.nacos("nacos")
        assert condition(found, "Ready")[0] == "False"
        assert found.status.event[-1].code in (401, -1)
        simulated.heal()
        await watch_until(world)


@pytest.mark.spec("N-10", "N-20")
@pytest.mark.parametrize("fault", list(Fault))
async def test_bad_answers_of_every_sort(fault: Fault) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.create("nacos", EMBEDDED)
        await world.until("nacos")
        simulated.spoil("nacos-2", fault)
        await world.advance(90.0)
        found = await world.nacos("nacos")
        assert condition(found, "Ready")[0] == "False"
        assert "nacos-2" in found.status.event[-1].message
        simulated.mend()
        await watch_until(world)


@pytest.mark.spec("N-06", "N-10")
async def test_the_rotated_password_opens_the_servers() -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await with_postgres(world)
        await world.create("nacos", {**POSTGRES, "certification": {"enabled": True}})
        found = await world.until("nacos")
        address = found.status.conditions[0].instance

        async def opens(password: str) -> bool:
            return await world.asked.login(address, port=PORT, username="nacos", password=password, timeout=5.0)

        await world.advance(20.0)
        assert await opens("first")
        await replace_secret(world, "admin", username="nacos", password="second")
        await world.advance(3.0)
        assert not await opens("second")
        await world.advance(16.0)  # servers reread their users every 15 s
        assert await opens("second")
        assert not await opens("first")


@pytest.mark.spec("N-14")
async def test_a_cluster_that_has_failed_finds_its_way_back() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.create("nacos", EMBEDDED)
        await world.until("nacos")
        patch = MergePatch({"metadata": {"annotations": {"note": "untouched"}}})
        await world.client.patch("statefulsets", "nacos", patch, SPACE)
        for name in ("nacos-0", "nacos-1"):
            simulated.spoil(name, Fault.GARBAGE)
        await world.until("nacos", "Failed", limit=400.0)
        simulated.mend()
        await watch_until(world)


@pytest.mark.spec("N-14", "N-15")
async def test_another_identity_reaches_servers_that_do_not_know_it_yet() -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await world.create("nacos", {**EMBEDDED, "image": "nacos/nacos-server:v3.0.3"})
        await world.until("nacos")
        await world.secret("identity", identity_key="who", identity_value="me")
        await world.change("nacos", identitySecretRef={"name": "identity"})
        assert await watch_until(world) >= 2
        assert not await world.events("Failed")
