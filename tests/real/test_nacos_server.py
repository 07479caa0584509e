"""The operator's client and judgement against real Nacos servers (2.1.1, from Maven Central)."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.operators.nacos.backup import transfer
from konverge.operators.nacos.backup.runs import read_result
from konverge.operators.nacos.content.api import PUBLIC, ConfigKey, ContentApi, Namespace, Tokens
from konverge.operators.nacos.server import LEADING_GROUP
from tests.operators.nacos.content.contract import ODD, check_configs
from tests.real.clients import programs
from tests.real.nacos import RealCluster, real_cluster

pytestmark = pytest.mark.spec("N-19", "N-10")


@pytest.fixture(scope="session")
def nacos() -> Path:
    return programs.nacos_home()


@pytest.mark.spec("N-31")
async def test_a_standalone_server_is_healthy_and_holds_content(nacos: Path, tmp_path: Path) -> None:
    with real_cluster(nacos, tmp_path, 1) as cluster:
        verdict = await cluster.until(lambda verdict: verdict.healthy)
        assert verdict.version == "2.1.1"
        assert [(member.pod, member.role) for member in verdict.members] == [("nacos-0", "standalone")]
        api = ContentApi(
            servers=cluster.servers,
            uid="",
            addresses=tuple(cluster.addresses.values()),
            third=False,
            tokens=Tokens(),
            timeout=30.0,
        )
        await check_configs(api)  # the jars on Maven Central lack the console, which has namespaces and users


class WithoutConsole(ContentApi):
    """The jars on Maven Central lack what lists namespaces."""

    async def namespaces(self) -> dict[str, Namespace]:
        return {PUBLIC: Namespace()}


@pytest.mark.spec("N-62")
async def test_configurations_are_stored_and_restored(nacos: Path, tmp_path: Path) -> None:
    with real_cluster(nacos, tmp_path / "servers", 1) as cluster:
        await cluster.until(lambda verdict: verdict.healthy)
        addresses = tuple(cluster.addresses.values())
        api = WithoutConsole(
            servers=cluster.servers, uid="", addresses=addresses, third=False, tokens=Tokens(), timeout=30.0
        )
        keys = [ConfigKey(PUBLIC, group, f"app-{number}") for group in ("a", "b") for number in range(60)]
        for key in keys:
            await api.publish(key, f"{key}: {ODD}", "yaml", "")
        file = tmp_path / "a-1.jsonl.gz"
        stored = read_result(await transfer.back_up(api, file, [str(file)], "{}"))
        assert stored is not None
        for key in keys:
            await api.delete_config(key)
        assert await transfer.keys_in(api, PUBLIC) == []
        await transfer.restore(api, file, stored.sha256, overwrite=False)
        assert set(await transfer.keys_in(api, PUBLIC)) == set(keys)
        for key in (keys[0], keys[-1]):
            config = await api.config(key)
            assert config is not None
            assert (config.content, config.type) == (f"{key}: {ODD}", "yaml")
        with pytest.raises(transfer.TransferError, match="overwrite: true"):
            await transfer.restore(api, file, stored.sha256, overwrite=False)


async def test_three_servers_lose_and_find_each_other(nacos: Path, tmp_path: Path) -> None:
    with real_cluster(nacos, tmp_path, 3) as cluster:
        whole = await cluster.until(lambda verdict: verdict.healthy)
        assert whole.verified == 3
        assert "nacos_config" in whole.leaders
        follower = next(member.pod for member in whole.members if member.role == "follower")

        cluster.kill(follower)
        less = await cluster.until(lambda verdict: verdict.quorum and not verdict.healthy and verdict.leader != "")
        assert less.leader != follower  # servers may elect another leader whenever they are slow
        assert any(problem.startswith(f"{follower}: Unreachable") for problem in less.problems)

        cluster.start(follower)
        healed = await cluster.until(lambda verdict: verdict.healthy)

        cluster.kill(healed.leader)
        orphaned = await cluster.verdict()
        assert orphaned.leader != healed.leader
        led = await cluster.until(lambda verdict: verdict.quorum and verdict.leader not in ("", healed.leader))
        assert led.leaders[LEADING_GROUP].term > healed.leaders[LEADING_GROUP].term

        survivor = next(pod for pod in cluster.addresses if pod not in (healed.leader, led.leader))
        cluster.kill(led.leader)
        lost = await cluster.until(lambda verdict: not verdict.quorum and verdict.verified == 1)
        assert lost.leader == ""
        standing = lost.of_pod(survivor)
        assert standing is not None
        assert standing.verified, "a survivor goes on calling itself UP"
        assert lost.leaders[LEADING_GROUP] == led.leaders[LEADING_GROUP], "its metadata is never cleared"

        cluster.start(healed.leader, led.leader)
        again = await cluster.until(lambda verdict: verdict.healthy)
        assert again.leaders[LEADING_GROUP].term >= led.leaders[LEADING_GROUP].term

        last = next(member.pod for member in again.members if member.role == "follower")
        gone = f"{cluster.addresses[last]}:7848"
        cluster.kill(last)
        await cluster.until(
            lambda verdict: verdict.quorum and all(leader.address != gone for leader in verdict.leaders.values())
        )
        await cluster.servers.remove_peer(cluster.addresses[again.leader], peer=gone, timeout=60)
        await cluster.until_peers(again.leader, 2)

        cluster.start(last)  # a server asks for its place when it starts
        back = await cluster.until(lambda verdict: verdict.healthy)
        await cluster.until_peers(back.leader, 3)
        await _take_out_while_it_runs(cluster, back.leader)


async def _take_out_while_it_runs(cluster: RealCluster, leader: str) -> None:
    """The hardest case: the leader itself. `peers.py` and the simulation rely on what was first seen here."""
    peer = f"{cluster.addresses[leader]}:7848"
    asked = next(pod for pod in cluster.addresses if pod != leader)
    await cluster.servers.remove_peer(cluster.addresses[asked], peer=peer, timeout=60)
    without = await cluster.until(lambda verdict: verdict.leader not in ("", leader) and bool(verdict.outside))
    assert without.quorum
    assert (without.outside, without.surplus) == ((leader,), ())
    assert not without.healthy
    standing = without.of_pod(leader)
    assert standing is not None
    assert standing.verified, "it goes on calling itself UP"
    await cluster.servers.remove_peer(cluster.addresses[asked], peer=peer, timeout=60)  # again: no harm in asking


@pytest.mark.spec("N-47")
async def test_running_servers_follow_another_list_of_members(nacos: Path, tmp_path: Path) -> None:
    """Scaling without restarts and the simulation rely on it. New servers join their raft groups, those that left are
    removed by the others."""
    three, four = ("nacos-0", "nacos-1", "nacos-2"), ("nacos-0", "nacos-1", "nacos-2", "nacos-3")
    with real_cluster(nacos, tmp_path, 3) as cluster:
        await cluster.until(lambda verdict: verdict.healthy)
        running = cluster.processes()
        cluster.join("nacos-3")
        cluster.list_members(three, *four)
        grown = await cluster.until(lambda verdict: verdict.healthy and verdict.verified == 4)
        await cluster.until_peers(grown.leader, 4)
        assert {pod: cluster.processes()[pod] for pod in three} == running

        cluster.list_members(three, *three)
        for pod in three:
            await cluster.until_listed(pod, 3)
        led = await cluster.until(lambda verdict: verdict.leader in three)
        await cluster.until_peers(led.leader, 3)
        assert {pod: cluster.processes()[pod] for pod in three} == running
