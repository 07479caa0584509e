"""Live migration: the guest is on another node afterwards, or stays where it was."""

from __future__ import annotations

import pytest

from konverge.client import Client, Invalid, RetryPolicy, Static, TooManyRequests
from konverge.sim.kubevirt.faults import ANNOTATION
from konverge.sim.kubevirt.migrations import INSTANCE
from tests.sim.kubevirt.conftest import SPACE, VM, VMI, VMIM, Obj, Play, claim, condition, machine, playing

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]


def migration(name: str = "move", **meta: object) -> Obj:
    metadata = {"name": name, "namespace": SPACE, **meta}
    return {"apiVersion": "kubevirt.io/v1", "kind": VMIM.kind, "metadata": metadata, "spec": {"vmiName": "web-vm"}}


async def test_a_guest_moves_to_another_node() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(claim("root", mode="ReadWriteMany"))
        await play.client.create(machine("web-vm", "root"))
        await play.until(VMI, "web-vm", "Running")
        before = await play.status(VMI)
        assert condition(before, "LiveMigratable") == ("True", "")
        await play.client.create(migration())
        with pytest.raises(Invalid, match="in-flight migration"):
            await play.client.create(migration("again"))
        await play.after(6)
        assert await play.shown() == "Migrating"
        seen = await play.until(VMIM, "move", "Succeeded")
        assert seen[-4:] == ["PreparingTarget", "TargetReady", "Running", "Succeeded"]
        await play.after(20)
        after = await play.status(VMI)
        assert after["nodeName"] != before["nodeName"]
        assert (after["migrationState"]["completed"], after["migrationState"]["failed"]) == (True, False)
        over = await play.get(VMIM, "move")
        assert (over["metadata"].get("finalizers"), over["metadata"]["labels"]) == (None, {INSTANCE: "web-vm"})
        assert over["status"]["migrationState"] == after["migrationState"]
        assert {"sourcePod", "targetPod"} <= after["migrationState"].keys()
        assert (await play.shown(), len(await play.client.list("pods", SPACE))) == ("Running", 1)
        assert await play.phase(VMI) == "Running"


async def test_a_target_that_does_not_come_up_leaves_the_guest_where_it_was() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        before = (await play.status(VMI))["nodeName"]
        await play.client.create(migration(annotations={ANNOTATION: "fails"}))
        await play.until(VMIM, "move", "Failed")
        await play.after(30)
        after = await play.status(VMI)
        assert (after["nodeName"], after["migrationState"]["failureReason"]) == (before, "the target does not come up")
        assert (await play.get(VMIM, "move"))["status"]["migrationState"] == after["migrationState"]
        assert (await play.shown(), len(await play.client.list("pods", SPACE))) == ("Running", 1)


async def test_a_migration_that_is_cancelled_on_the_way_is_called_off_on_the_node() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        before = (await play.status(VMI))["nodeName"]
        await play.client.create(migration(annotations={ANNOTATION: "stuck"}))
        await play.until(VMIM, "move", "Running")
        await play.after(600)
        assert await play.phase(VMIM, "move") == "Running"
        await play.client.delete(VMIM, "move", SPACE)
        await play.after(20)
        assert await play.find(VMIM, "move") is None
        after = await play.status(VMI)
        state = after["migrationState"]
        assert (state["abortRequested"], state["abortStatus"], state["failed"]) == (True, "Succeeded", True)
        assert (after["nodeName"], len(await play.client.list("pods", SPACE))) == (before, 1)
        await play.client.create(migration("again"))
        await play.until(VMIM, "again", "Succeeded")
        state = (await play.status(VMI))["migrationState"]
        assert (state["failed"], "abortStatus" in state, "failureReason" in state) == (False, False, False)


async def test_a_deleted_migration_is_cancelled() -> None:
    async with playing(parts=["kubevirt"], nodes=1) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        await play.client.create(migration())
        await play.after(60)
        assert await play.phase(VMIM, "move") == "Scheduling"
        await play.client.delete(VMIM, "move", SPACE)
        await play.after(20)
        assert (await play.find(VMIM, "move"), len(await play.client.list("pods", SPACE))) == (None, 1)
        assert await play.shown() == "Running"
        assert await play.events("FailedMigration") == ["Migration failed due to being canceled"]


async def evict(play: Play) -> None:
    """Once: a client that tries again, as the answer asks it to, may see the guest gone."""
    server = play.cluster.server
    once = Client(server.transport, credentials=Static.bearer(server.token), retry=RetryPolicy(retries=0))
    for pod in await play.client.list("pods", SPACE):
        meta = {"name": pod["metadata"]["name"], "namespace": SPACE}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        await once.create_sub("pods", meta["name"], "eviction", body, SPACE)


@pytest.mark.parametrize("strategy", ["LiveMigrate", "LiveMigrateIfPossible"])
async def test_a_drained_node_is_left_first(strategy: str) -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm", template={"evictionStrategy": strategy}))
        await play.until(VMI, "web-vm", "Running")
        before = await play.get(VMI)
        with pytest.raises(TooManyRequests, match="Eviction triggered evacuation"):
            await evict(play)
        await play.after(60)
        after = await play.get(VMI)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["nodeName"] != before["status"]["nodeName"]
        assert "evacuationNodeName" not in after["status"]
        assert len(await play.client.list("pods", SPACE)) == 1


@pytest.mark.parametrize(
    ("strategy", "stays"), [("LiveMigrate", True), ("LiveMigrateIfPossible", False), ("None", False)]
)
async def test_a_guest_that_cannot_move_holds_up_the_drain_only_if_it_must_move(strategy: str, stays: bool) -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.faults(vm="rwo")
        await play.client.create(claim("root"))
        await play.client.create(machine("web-vm", "root", template={"evictionStrategy": strategy}))
        await play.until(VMI, "web-vm", "Running")
        before = (await play.get(VMI))["metadata"]["uid"]
        if stays:
            with pytest.raises(TooManyRequests, match="not live-migratable"):
                await evict(play)
        else:
            await evict(play)
        await play.after(60)
        assert ((await play.get(VMI))["metadata"]["uid"] == before) is stays


async def test_a_machine_deleted_while_it_moves_goes_with_both_pods() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        await play.client.create(migration())
        await play.until(VMIM, "move", "PreparingTarget")
        await play.client.delete(VM, "web-vm", SPACE)
        await play.after(60)
        assert [await play.find(VM), len(await play.client.list("pods", SPACE))] == [None, 0]
        assert await play.find(VMIM, "move") is None, "as KubeVirt does it, it goes with its guest"
