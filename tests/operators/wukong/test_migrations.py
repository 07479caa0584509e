"""Machines that move to another node: on request, with a drained node, and those that cannot."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client, RetryPolicy, Static, TooManyRequests
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Pod
from konverge.objects.meta import ObjectMeta
from konverge.operators.wukong import names
from konverge.operators.wukong.kinds import VirtualMachineInstanceMigration
from konverge.operators.wukong.kinds.migrations import MigrationSpec
from konverge.operators.wukong.operator import OPERATOR
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from konverge.sim.kubevirt.faults import CONFIG_MAP
from tests.operators.wukong.test_killed import by_mortals
from tests.operators.wukong.world import NAME, SPACE, World, make_classes, operating, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-21")]

SHARED = [{"name": "system", "size": "10Gi", "storageClassName": "fast", "accessModes": ["ReadWriteMany"]}]
ALONE = [{"name": "system", "size": "10Gi", "storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}]


async def moves(w: World) -> list[VirtualMachineInstanceMigration]:
    return list(await w.client.list(VirtualMachineInstanceMigration, SPACE))


async def node(w: World) -> str:
    vmi = await w.vmi()
    assert vmi is not None
    return vmi.status.node_name


async def acted_upon(w: World, token: str) -> None:
    async def done() -> bool:
        return (await w.wukong()).status.last_migration == token

    await w.until(done, f"the end of {token}")


async def under_way(w: World) -> str:
    await w.until_condition("Migrating", "True", "MigrationRunning")
    move = (await w.wukong()).status.migration
    assert move is not None
    return move.name


async def faults(w: World, **faults: str) -> None:
    await w.client.create(ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, namespace=SPACE), data=faults))


async def test_a_machine_moves_once_for_each_request() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=SHARED, migrateAt="from the start")
        assert (await w.wukong()).status.last_migration == "from the start"
        assert await moves(w) == [], "a machine that did not run yet has nothing to move"
        await asyncio.sleep(20)
        first = await node(w)
        await w.change(migrateAt="monday")
        name = await under_way(w)
        assert name == names.migration(NAME, "monday")
        await acted_upon(w, "monday")
        second = await node(w)
        status = (await w.wukong()).status
        assert status.migration is not None
        assert (status.migration.phase, status.migration.source_node) == ("Succeeded", first)
        assert status.migration.target_node == second == status.node_name != first
        assert await w.condition("Migrating") == ("", "")
        assert await w.condition("Ready") == ("True", "VMRunning")
        assert {"MigrationStarted", "Migrated"} <= set(await w.events())
        await asyncio.sleep(60)
        w.writes()
        await asyncio.sleep(600)
        assert (w.writes(), await node(w)) == ([], second)
        await w.change(migrateAt="tuesday")
        await acted_upon(w, "tuesday")
        await asyncio.sleep(5)
        assert await node(w) != second
        assert [move.metadata.name for move in await moves(w)] == [names.migration(NAME, "tuesday")]
        await w.change(migrateAt=None)
        await asyncio.sleep(5)
        assert (await moves(w), (await w.wukong()).status.last_migration) == ([], "")


async def test_a_machine_that_cannot_move_is_left_alone_and_says_why() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=ALONE)
        await asyncio.sleep(20)
        w.writes()
        await w.change(migrateAt="now")
        await w.until_condition("Migrating", "False", "NotMigratable")
        assert "web-system is not shared" in await w.message("Migrating")
        assert {call.subresource for call in w.writes()} == {"status"}, "nothing was touched"
        assert await w.condition("Ready") == ("True", "VMRunning")
        await asyncio.sleep(300)
        assert (await w.events()).count("NotMigratable") == 1
        assert await moves(w) == []
        await w.change(migrateAt=None)
        await asyncio.sleep(5)
        assert await w.condition("Migrating") == ("", "")


async def test_a_machine_that_is_off_has_nothing_to_move() -> None:
    async with world(timings=QUICK) as w:
        await w.create(disks=SHARED, powerState="Stopped")
        await w.phase("Stopped")
        await w.change(migrateAt="now")
        await acted_upon(w, "now")
        await w.change(powerState="Running")
        await w.phase("Running")
        await asyncio.sleep(30)
        assert (await moves(w), "MigrationSkipped" in await w.events()) == ([], True)


async def test_a_move_that_fails_is_not_tried_again_by_itself() -> None:
    async with world(timings=QUICK) as w:
        await faults(w, vmim="fails")
        await w.running(disks=SHARED)
        await asyncio.sleep(20)
        before = await node(w)
        await w.change(migrateAt="monday")
        await w.until_condition("Migrating", "False", "MigrationFailed")
        await asyncio.sleep(120)
        assert (await node(w), len(await moves(w))) == (before, 1)
        assert (await w.wukong()).status.last_migration == "monday"
        assert (await w.events()).count("MigrationFailed") == 1
        (told,) = await w.client.list(Event, SPACE, field_selector="reason=MigrationFailed")
        assert str(told.message).endswith(" failed: the target does not come up")
        await w.client.delete(ConfigMap, CONFIG_MAP, SPACE)
        await w.change(migrateAt="tuesday")
        await acted_upon(w, "tuesday")
        assert await w.condition("Migrating") == ("", "")


async def test_a_deleted_move_is_aborted_and_not_made_again() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=SHARED)
        await asyncio.sleep(20)
        before = await node(w)
        await w.change(migrateAt="now")
        name = await under_way(w)
        await w.client.delete(VirtualMachineInstanceMigration, name, SPACE)
        await w.until_condition("Migrating", "False", "MigrationAborted")
        await asyncio.sleep(120)
        assert (await moves(w), await node(w)) == ([], before)
        assert (await w.wukong()).status.last_migration == "now"
        events = await w.events()
        assert (events.count("MigrationAborted"), events.count("MigrationFailed")) == (1, 0)


async def test_a_request_that_is_withdrawn_is_cancelled() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=SHARED)
        await asyncio.sleep(20)
        before = await node(w)
        await w.change(migrateAt="now")
        await under_way(w)
        await w.change(migrateAt=None)
        await asyncio.sleep(120)
        assert (await moves(w), await node(w)) == ([], before)
        assert "MigrationCancelled" in await w.events()


async def test_never_two_at_once() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=SHARED)
        await asyncio.sleep(20)
        theirs = VirtualMachineInstanceMigration(
            metadata=ObjectMeta(name="by-virtctl", namespace=SPACE), spec=MigrationSpec(vmi_name="web-vm")
        )
        await w.client.create(theirs)
        await w.change(migrateAt="monday")
        assert await under_way(w) == "by-virtctl"
        await w.change(migrateAt="tuesday")

        most = 0

        async def done() -> bool:
            nonlocal most
            most = max(most, sum(move.status.phase not in ("Succeeded", "Failed") for move in await moves(w)))
            return (await w.wukong()).status.last_migration == "tuesday"

        await w.until(done, "the second move")
        assert most == 1
        assert {move.metadata.name for move in await moves(w)} == {"by-virtctl", names.migration(NAME, "tuesday")}
        assert (await w.events()).count("Migrated") >= 1
        await w.change(migrateAt=None)
        await asyncio.sleep(10)
        assert [move.metadata.name for move in await moves(w)] == ["by-virtctl"], "it is not ours to delete"


async def evict(w: World) -> None:
    server = w.cluster.server
    once = Client(server.transport, credentials=Static.bearer(server.token), retry=RetryPolicy(retries=0))
    for pod in await w.client.list(Pod, SPACE):
        meta = {"name": pod.metadata.name, "namespace": SPACE}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        await once.create_sub("pods", meta["name"], "eviction", body, SPACE)


@pytest.mark.spec("W-22")
async def test_a_drained_node_is_left_and_that_is_shown() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=SHARED, evictionStrategy="LiveMigrate")
        await asyncio.sleep(20)
        before, vmi = await node(w), await w.vmi()
        with pytest.raises(TooManyRequests):
            await evict(w)
        assert (await under_way(w)).startswith("kubevirt-evacuation-")

        async def elsewhere() -> bool:
            return (await w.wukong()).status.node_name not in ("", before)

        await w.until(elsewhere, "the move")
        await asyncio.sleep(20)
        after = await w.vmi()
        assert vmi is not None
        assert after is not None
        assert after.metadata.uid == vmi.metadata.uid, "the guest went on"
        assert {"MigrationStarted", "Migrated"} <= set(await w.events())
        assert await w.condition("Migrating") == ("", "")
        assert (await w.wukong()).status.last_migration == ""


@pytest.mark.spec("W-22")
async def test_a_machine_that_must_move_and_cannot_holds_the_drain() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=ALONE, evictionStrategy="LiveMigrate")
        await asyncio.sleep(20)
        with pytest.raises(TooManyRequests, match="not live-migratable"):
            await evict(w)
        await asyncio.sleep(60)
        assert await w.condition("Migratable") == ("False", "DisksNotLiveMigratable")
        assert await w.condition("Ready") == ("True", "VMRunning")
        assert await moves(w) == []


@pytest.mark.spec("W-14")
async def test_processes_that_die_after_each_write_move_a_machine_once() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        async with operating(cluster.client):
            await w.running(disks=SHARED)
            await asyncio.sleep(60)
        await w.change(migrateAt="now")

        async def moved() -> bool:
            status: Any = (await w.wukong()).status
            return status.last_migration == "now" and status.migration.phase == "Succeeded"

        writes = await by_mortals(w, moved)
        assert writes.count("patch virtualmachineinstancemigrations") == 1
        assert len(await moves(w)) == 1
