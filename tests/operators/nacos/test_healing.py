"""What the operator repairs by itself, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, Service
from konverge.operators.nacos.server import Leader, NacosError
from konverge.runtime import find_condition
from tests.operators.nacos.world import CLUSTER, SPACE, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180)]


@pytest.mark.spec("N-14")
@pytest.mark.parametrize("kind", [StatefulSet, Service, ConfigMap])
async def test_a_missing_child_comes_back(kind: Any) -> None:
    name = "nacos-client" if kind is Service else "nacos"
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        await world.client.delete(kind, name, SPACE, propagation="Orphan")
        await world.advance(20.0)
        assert await world.client.get(kind, name, SPACE)
        await world.until("nacos")
        assert any(name in text for text in await world.events("Restored"))


@pytest.mark.spec("N-14")
async def test_a_budget_that_is_created_later_is_not_reported_as_restored() -> None:
    """A budget is made when the cluster is up: nothing is restored by that."""
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        await world.advance(60.0)
        assert await world.events("Restored") == []
        assert await world.events("Protected") == ["PodDisruptionBudget nacos was created"]
        nacos = find_condition((await world.nacos("nacos")).status.kube_conditions, "PodsReady")
        assert nacos is not None
        assert nacos.message == "3 of 3 pods are ready"


@pytest.mark.spec("N-14")
async def test_a_changed_child_is_restored() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        await world.client.patch(StatefulSet, "nacos", MergePatch({"spec": {"replicas": 1}}), SPACE)
        patch = MergePatch({"spec": {"ports": [{"name": "client", "port": 1, "targetPort": 1}]}})
        await world.client.patch(Service, "nacos-client", patch, SPACE)
        await world.advance(20.0)
        await world.until("nacos")
        service = await world.client.get(Service, "nacos-client", SPACE)
        assert [port.port for port in service.spec.ports if port.name == "client"] == [8848]
        assert (await world.client.get(StatefulSet, "nacos", SPACE)).spec.replicas == 3


@pytest.mark.spec("N-14")
async def test_a_useless_server_is_restarted_and_its_quorum_is_not() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        uids = await world.uids()
        world.servers.fail("nacos-1", "Timeout")
        await world.until("nacos", "Failed", limit=400.0)
        await world.advance(400.0)
        assert await world.restarted(uids) == ["nacos-1"]
        assert await world.events("Healing")
        world.servers.faults.clear()
        await world.until("nacos")


@pytest.mark.spec("N-14")
async def test_an_operator_without_any_answer_restarts_no_pod() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        uids = await world.uids()
        for number in range(3):
            world.servers.fail(f"nacos-{number}", "Unreachable")
        await world.until("nacos", "Failed", limit=400.0)
        await world.advance(1800.0)
        assert await world.uids() == uids
        world.servers.faults.clear()
        await world.until("nacos")


@pytest.mark.spec("N-14", "N-15")
async def test_a_server_that_left_is_removed_before_anything_else_goes() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        gone = "nacos-3.nacos-headless.default.svc.cluster.local:7848"
        world.servers.departed = {gone}
        world.servers.unremovable = NacosError("ServerError", "no leader to ask")
        await world.change("nacos", config="a=1\n")
        nacos = await world.until("nacos", "Failed", limit=400.0)
        assert nacos.status.event[-1].message == "nacos-3 left and still counts for the majority: no leader to ask"
        assert condition(nacos, "Ready") == ("False", "PeersLeft")
        assert not await world.events("RollingUpdate"), "of four that count, one is missing already"
        world.servers.unremovable = None
        await world.until("nacos")
        assert not world.servers.departed
        assert await world.events("PeerRemoved") == ["nacos-3 left and was removed from the raft groups"]
        assert len(await world.events("RollingUpdate")) == 3


@pytest.mark.spec("N-14")
async def test_a_peer_that_may_come_back_is_never_removed() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        strangers = {"other-7.nacos-headless.default.svc.cluster.local:7848", "10.0.0.9:7848"}
        world.servers.departed = set(strangers)
        await world.advance(120.0)
        assert world.servers.departed == strangers
        assert not await world.events("PeerRemoved")


@pytest.mark.spec("N-14")
async def test_of_two_leaders_the_one_with_the_older_term_is_restarted() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**CLUSTER, "replicas": 3})
        uids = await world.uids()
        itself = "nacos-2.nacos-headless.default.svc.cluster.local:7848"
        world.servers.claims["nacos-2"] = Leader(itself, 2)
        nacos = await world.until("nacos", "Failed", limit=400.0)
        assert condition(nacos, "MembersVerified") == ("False", "LeaderSplit")
        await world.advance(330.0)
        assert await world.restarted(uids) == ["nacos-2"]
        world.servers.claims.clear()
        await world.until("nacos")
