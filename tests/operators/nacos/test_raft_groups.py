"""`status.raftGroups`: who leads each raft group, whether the servers agree, and no write without a cause."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects import Conversions, crd, from_dict, to_dict
from konverge.operators.nacos.operator import OPERATOR
from konverge.operators.nacos.resource import Nacos, NacosStatus, RaftGroupStatus
from konverge.operators.nacos.server import Leader
from konverge.operators.nacos.v1beta1 import VERSIONS
from konverge.sim.cluster import Cluster
from tests.operators.nacos.versions_contract import ALPHA, BETA
from tests.operators.nacos.world import EMBEDDED, GROUP, SPACE, STANDALONE, World, a_simulated_world, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-63")]
IN_AGREEMENT = RaftGroupStatus(name=GROUP, leader="nacos-0", term=3, peers=3, agreed=True)


def raft(pod: str) -> str:
    return f"{pod}.nacos-headless.{SPACE}.svc.cluster.local:7848"


async def groups(world: World) -> list[RaftGroupStatus]:
    return (await world.nacos("nacos")).status.raft_groups


async def version(world: World) -> str:
    return (await world.nacos("nacos")).metadata.resource_version


async def test_the_groups_of_a_cluster_are_in_the_status_and_written_once() -> None:
    async with a_world() as world, world.operating():
        nacos = await world.up("nacos", EMBEDDED)
        assert nacos.status.raft_groups == [IN_AGREEMENT]
        before = await version(world)
        await world.advance(600.0)
        assert await version(world) == before, "a write without a cause"


async def test_real_groups_have_leaders_of_their_own() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)
        shown = await groups(world)
        assert [group.name for group in shown] == [
            "nacos_config",
            "naming_instance_metadata",
            "naming_persistent_service",
            "naming_persistent_service_v2",
            "naming_service_metadata",
        ]
        assert {(group.peers, group.agreed, group.message) for group in shown} == {(3, True, "")}
        assert all(group.leader in ("nacos-0", "nacos-1", "nacos-2") and group.term > 0 for group in shown)
        assert shown[3].leader == simulated.leader()


async def test_two_servers_that_disagree_are_named_and_then_not_any_more() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        world.servers.claims["nacos-2"] = Leader(raft("nacos-1"), 2)
        await world.advance(60.0)
        (group,) = await groups(world)
        assert (group.leader, group.term, group.peers, group.agreed) == ("nacos-0", 3, 3, False)
        assert group.message == (
            f"members disagree on the leader of {GROUP}: nacos-0 (term 3), but nacos-2 names nacos-1 (term 2)"
        )
        world.servers.claims.clear()
        await world.advance(60.0)
        assert await groups(world) == [IN_AGREEMENT]


async def test_a_group_without_a_leader() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        world.servers.claims = {f"nacos-{number}": Leader("", 4) for number in range(3)}
        await world.advance(60.0)
        (group,) = await groups(world)
        assert to_dict(group) == {"name": GROUP, "term": 4, "peers": 3, "message": f"{GROUP} has no leader (term 4)"}


async def test_without_a_majority_no_group_has_a_leader() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        world.servers.fail("nacos-1", "Timeout")
        world.servers.fail("nacos-2", "Timeout")
        await world.advance(60.0)
        (group,) = await groups(world)
        assert (group.leader, group.term, group.agreed) == ("", 3, False)
        assert group.message == "no majority of 2 verified members: raft writes fail"
        world.servers.fail("nacos-0", "Timeout")
        await world.advance(60.0)
        assert await groups(world) == [], "no server says anything"


async def test_one_that_hibernates_has_none_until_it_wakes() -> None:
    volume = {"enabled": True, "requests": {"storage": "1Gi"}}
    async with a_world() as world, world.operating():
        await world.up("nacos", {**EMBEDDED, "volume": volume})
        await world.change("nacos", hibernate=True)
        nacos = await world.until("nacos", "Hibernated")
        assert nacos.status.raft_groups == []
        await world.update("nacos", hibernate=False)
        assert await groups(world) == [IN_AGREEMENT]


async def test_a_standalone_has_those_that_its_server_names() -> None:
    async with a_world() as world, world.operating():
        nacos = await world.up("nacos", STANDALONE)
        assert nacos.status.raft_groups == [RaftGroupStatus(name=GROUP, leader="nacos-0", term=3, peers=1, agreed=True)]


async def test_groups_of_servers_that_left_count_until_they_are_removed() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        world.servers.departed.add("stranger:7848")
        await world.advance(60.0)
        assert [group.peers for group in await groups(world)] == [4]


# ------------------------------------------------------------------ other definitions, other versions


def without_the_field() -> dict[str, Any]:
    """The definition as it was before there were raft groups in the status."""
    definition = to_dict(crd(Nacos))
    (served,) = definition["spec"]["versions"]
    del served["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["raftGroups"]
    return definition


async def test_with_a_definition_without_the_field_nothing_is_written_twice() -> None:
    async with Cluster() as cluster:
        for definition in OPERATOR.definitions():
            is_nacos = definition["metadata"]["name"] == Nacos.resource.group_resource
            await cluster.client.create(without_the_field() if is_nacos else definition)
        await cluster.settle()
        world = World(cluster)
        async with world.operating():
            await world.up("nacos", EMBEDDED)
            await world.advance(60.0)
            before = await version(world)
            sent = len(world.recording.calls)
            await world.advance(600.0)
            assert await version(world) == before
            patches = [call for call in world.recording.calls[sent:] if call.verb == "patch"]
            assert patches == [], "what the server does not keep is sent once an hour"
        assert await groups(world) == []


async def test_a_status_of_before_gets_them_with_one_write() -> None:
    async with a_world() as world:
        async with world.operating():
            await world.up("nacos", EMBEDDED)
        body = MergePatch({"status": {"raftGroups": None}})
        await world.client.patch(Nacos, "nacos", body, SPACE, subresource="status")
        assert await groups(world) == []
        async with world.operating():
            await world.advance(60.0)
            assert await groups(world) == [IN_AGREEMENT]
            patches = [call for call in world.recording.calls if call.verb == "patch"]
            assert [call.resource for call in patches].count(Nacos.resource) == 1


def test_both_versions_have_them_under_one_name() -> None:
    conversions = Conversions(*VERSIONS)
    hostile = RaftGroupStatus(name="<script>alert(1)</script>", leader="‮evil", term=2**63 - 1, message="a\nb")
    status = to_dict(NacosStatus(raft_groups=[IN_AGREEMENT, hostile]))
    stored = {"apiVersion": ALPHA.api_version, "kind": "Nacos", "metadata": {"name": "n"}, "status": status}
    shown = conversions.convert(stored, BETA.api_version)
    back = conversions.convert(shown, ALPHA.api_version)
    for version in (shown, back):
        groups = [from_dict(RaftGroupStatus, group) for group in version["status"]["raftGroups"]]
        assert groups == [IN_AGREEMENT, hostile]
    assert "annotations" not in back["metadata"], "both versions can say it"
