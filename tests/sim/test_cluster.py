"""The cluster as a whole: it is ready at once, comes to rest, lives on virtual time, and has one history per seed."""

from __future__ import annotations

import asyncio

import pytest

from konverge.apiserver.storage import Store
from konverge.cache.reflector import Restart
from konverge.client import Client, NotFound, Static
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import Event, Node, Pod
from konverge.sim import run
from konverge.sim.cluster import Cluster, Unsettled
from konverge.sim.loop import RealTime
from tests.sim.conftest import SPACE, condition, pod, shown


@pytest.mark.virtual
@pytest.mark.spec("S-16")
async def test_pods_are_placed_started_and_ready_at_once(cluster: Cluster) -> None:
    await cluster.client.create(pod("web"))
    await cluster.settle()
    web = await cluster.client.get(Pod, "web", SPACE)
    assert web.spec.node_name == "node-1"
    assert web.status.phase == "Running"
    assert web.status.pod_ip == "127.1.0.1"
    assert web.status.host_ip == "127.0.1.1"
    names = [item.type for item in web.status.conditions]
    assert sorted(names) == ["ContainersReady", "Initialized", "PodReadyToStartContainers", "PodScheduled", "Ready"]
    assert {item.status for item in web.status.conditions} == {"True"}
    events = await cluster.client.list(Event, SPACE, field_selector="involvedObject.name=web")
    assert {event.reason for event in events} == {"Scheduled", "Pulled", "Created", "Started"}


@pytest.mark.virtual
@pytest.mark.spec("S-19")
async def test_no_time_passes_while_a_cluster_settles_unless_something_is_due_soon(cluster: Cluster) -> None:
    await cluster.settle()
    before = cluster.clock.now()
    await cluster.client.create(pod("web"))
    await cluster.settle()
    assert cluster.clock.now() == before
    await cluster.client.create(pod("slow", "slow-start 20s"))
    await cluster.settle()
    assert cluster.clock.now() - before < 2
    assert await shown(cluster.client, "slow") == "Pending False 0 ContainerCreating"
    await cluster.clock.advance(20)
    assert await shown(cluster.client, "slow") == "Running True 0"


@pytest.mark.virtual
async def test_a_cluster_that_never_rests_is_reported(cluster: Cluster) -> None:
    async def restless() -> None:
        number = 0
        while True:
            number += 1
            await cluster.client.create(pod(f"p{number}"))
            await asyncio.sleep(0.5)

    task = asyncio.create_task(restless())
    with pytest.raises(Unsettled):
        await cluster.settle(limit=10)
    task.cancel()


@pytest.mark.virtual
async def test_deleted_pods_go_within_their_grace_period(cluster: Cluster) -> None:
    for name, script in (("quick", ""), ("slow", "stop 5s"), ("deaf", "ignore-term")):
        await cluster.client.create(pod(name, script))
    await cluster.settle()
    for name in ("quick", "slow", "deaf"):
        await cluster.client.delete(Pod, name, SPACE)
    await cluster.settle()
    assert sorted(item.metadata.name for item in await cluster.client.list(Pod)) == ["deaf", "slow"]
    await cluster.clock.advance(5)
    assert [item.metadata.name for item in await cluster.client.list(Pod)] == ["deaf"]
    await cluster.clock.advance(25)
    with pytest.raises(NotFound):
        await cluster.client.get(Pod, "deaf", SPACE)


@pytest.mark.virtual
@pytest.mark.spec("R-40")
async def test_nodes_are_registered_and_renew_their_leases(cluster: Cluster) -> None:
    nodes = await cluster.client.list(Node)
    assert [node.metadata.name for node in nodes] == ["node-1", "node-2", "node-3"]
    assert not any(node.spec.taints for node in nodes)
    assert nodes.items[0].status.allocatable["cpu"].milli == 32_000
    cluster.lose_node("node-2")
    await cluster.clock.advance(60)
    ages = {}
    for node in nodes:
        lease = await cluster.client.get(Lease, node.metadata.name, "kube-node-lease")
        ages[node.metadata.name] = lease.spec.renew_time
    assert ages["node-1"] == ages["node-3"] != ages["node-2"]


@pytest.mark.virtual
async def test_pods_of_a_lost_node_stand_still_until_it_is_back(cluster: Cluster) -> None:
    await cluster.client.create(pod("web", "exit 3 after 30s", restartPolicy="Never", nodeName="node-2"))
    await cluster.settle()
    cluster.lose_node("node-2")
    await cluster.clock.advance(60)
    assert await shown(cluster.client, "web") == "Running True 0"
    await cluster.recover_node("node-2")
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Failed False 0 Error 3"


@pytest.mark.virtual
async def test_a_node_that_somebody_makes_is_taken_as_live(cluster: Cluster) -> None:
    await cluster.client.create(pod("early", nodeName="late"))
    await cluster.settle()
    assert (await cluster.client.get(Pod, "early", SPACE)).status.phase == "Pending"
    await cluster.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}})
    await cluster.settle()
    assert condition(await cluster.client.get(Pod, "early", SPACE), "Ready") == ("True", "")
    late = await cluster.client.get(Node, "late")
    assert {item.type: item.status for item in late.status.conditions}["Ready"] == "True"


@pytest.mark.virtual
@pytest.mark.spec("S-21")
async def test_all_clients_see_one_store(cluster: Cluster) -> None:
    other = Client(cluster.server.transport, credentials=Static.bearer(cluster.server.token))
    await cluster.client.create(pod("web"))
    assert (await other.get(Pod, "web", SPACE)).metadata.uid == (
        await cluster.client.get(Pod, "web", SPACE)
    ).metadata.uid
    await other.delete(Pod, "web", SPACE)
    with pytest.raises(NotFound):
        await cluster.client.get(Pod, "web", SPACE)


@pytest.mark.virtual
async def test_watches_of_an_idle_hour_end_by_their_own_limit_alone(cluster: Cluster) -> None:
    await cluster.clock.advance(3600)
    for informer in cluster.manager.caches.informers.values():
        for reflector in informer.reflectors:
            assert reflector.health.restarts[Restart.ERROR] == 0
            assert reflector.health.lists == 1


async def test_time_cannot_be_moved_on_a_real_loop() -> None:
    async with Cluster(controllers=False, nodes=1) as cluster:
        await cluster.client.create(pod("web"))
        await cluster.settle(quiet=0.05)
        assert await shown(cluster.client, "web") == "Running True 0"
        with pytest.raises(RealTime, match=r"konverge\.sim\.run"):
            await cluster.clock.advance(1)


def history(seed: int) -> list[tuple[str, int, str, bytes]]:
    """Everything that was ever stored in a small story."""
    seen: list[tuple[str, int, str, bytes]] = []
    commit = Store._commit

    def noted(store: Store, table: object, event: object) -> None:
        record = event.record  # type: ignore[attr-defined]
        seen.append((table.name, event.revision, event.key, record.data if record else b""))  # type: ignore[attr-defined]
        commit(store, table, event)  # type: ignore[arg-type]

    async def story() -> None:
        async with Cluster() as cluster:
            for number in range(4):
                script = ("", "crash-loop after 5s", "slow-start 7s", "exit 0 after 90s")[number]
                await cluster.client.create(pod(f"p{number}", script, restartPolicy="OnFailure"))
            await cluster.clock.advance(600)
            await cluster.client.delete(Pod, "p1", SPACE)
            await cluster.settle()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Store, "_commit", noted)
        run(story(), seed=seed)
    return seen


@pytest.mark.spec("S-19")
def test_one_seed_has_one_history_bit_for_bit() -> None:
    first = history(7)
    assert len(first) > 100
    assert history(7) == first
    assert history(8) != first


@pytest.mark.virtual
async def test_a_simulated_container_has_a_log(cluster: Cluster) -> None:
    await cluster.client.create(pod("web", "exit 3 after 30s", restartPolicy="Never"))
    await cluster.clock.advance(60)
    log = await cluster.client.log("web", SPACE)
    assert [line.split(" ", 1)[1] for line in log.splitlines()] == [
        "main: simulated run 1 began",
        "main: exit 3 (Error)",
    ]
