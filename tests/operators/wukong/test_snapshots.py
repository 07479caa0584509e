"""Snapshots of machines, and the way back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects import to_dict
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim
from konverge.objects.meta import ObjectMeta
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineRestore, VirtualMachineSnapshot
from konverge.operators.wukong.resource import SnapshotSpec, Wukong, WukongSnapshot
from konverge.sim.kubevirt import QUICK
from konverge.sim.kubevirt.faults import CONFIG_MAP
from tests.operators.wukong.world import NAME, SPACE, SPEC, World, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-13")]

DISKS = [{"name": "system", "size": "10Gi", "storageClassName": "fast"}]


async def take(w: World, name: str, wukong: str = NAME) -> None:
    made = WukongSnapshot(metadata=ObjectMeta(name=name, namespace=SPACE), spec=SnapshotSpec(wukong_name=wukong))
    await w.client.create(made)


async def until_phase(w: World, name: str, phase: str) -> WukongSnapshot:
    async def reached() -> bool:
        return (await w.client.get(WukongSnapshot, name, SPACE)).status.phase == phase

    await w.until(reached, f"snapshot {name} {phase}")
    return await w.client.get(WukongSnapshot, name, SPACE)


async def test_a_snapshot_is_taken_once_and_goes_with_its_object() -> None:
    async with world(timings=QUICK) as w:
        faults = ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, namespace=SPACE), data={"vmsnapshot.bad": "fails"})
        await w.client.create(faults)
        await take(w, "of-nothing", "nobody")
        await take(w, "early")
        result = await until_phase(w, "of-nothing", "Failed")
        assert result.status.error == "there is no Wukong nobody"
        await w.running(disks=DISKS)
        result = await until_phase(w, "early", "Succeeded")
        assert (result.status.snapshot_name, result.status.error) == ("early", "")
        assert result.status.creation_time
        assert len((await w.client.list(VirtualMachineSnapshot, SPACE)).items) == 1
        await take(w, "bad")
        assert (await until_phase(w, "bad", "Failed")).status.error
        await asyncio.sleep(30)
        w.writes()
        await asyncio.sleep(300)
        assert [call for call in w.writes() if call.resource == WukongSnapshot.resource] == []
        await w.client.delete(WukongSnapshot, "early", SPACE)
        await w.gone(VirtualMachineSnapshot, "early")


@pytest.mark.spec("W-14")
@pytest.mark.parametrize("power", [{"powerState": "Running"}, {}], ids=["declared", "left to others"])
async def test_a_machine_is_put_back_once_and_is_on_again_afterwards(power: dict[str, str]) -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[*DISKS, SPEC["disks"][0] | {"name": "image"}], **power)
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        old = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        await w.change(restoreFromSnapshot="before")
        await w.until_condition("RestoreInProgress", "True", "RestoreRunning")

        async def restored() -> bool:
            return (await w.wukong()).status.last_restore == "before"

        await w.until(restored, "the restore")
        result = await w.phase("Running")
        assert result.status.power_state == "Running"
        assert "PowerReverted" not in await w.events()
        new = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        assert new.metadata.uid != old.metadata.uid, "its claims were put back under their names"
        assert await w.condition("RestoreInProgress") == ("", "")
        await asyncio.sleep(60)
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []
        await w.change(restoreFromSnapshot=None)
        await asyncio.sleep(5)
        assert (await w.client.list(VirtualMachineRestore, SPACE)).items == []
        assert (await w.wukong()).status.last_restore == ""
        assert (await w.wukong()).status.phase == "Running"


@pytest.mark.spec("W-44")
async def test_a_restore_that_is_asked_for_again_is_made_again() -> None:
    """Also while the first one is still on its way out: it was complete, and that was another one."""
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")

        async def restored() -> bool:
            return (await w.wukong()).status.last_restore == "before"

        await w.change(restoreFromSnapshot="before")
        await w.until(restored, "the restore")
        await w.phase("Running")
        first = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        name = (await w.client.list(VirtualMachineRestore, SPACE)).items[0].metadata.name
        held = {"finalizers": ["test/held"]}
        await w.client.patch(VirtualMachineRestore, name, MergePatch({"metadata": held}), SPACE)
        await w.change(restoreFromSnapshot=None)
        await asyncio.sleep(5)
        await w.change(restoreFromSnapshot="before")
        await asyncio.sleep(60)
        assert not await restored()
        assert (await w.wukong()).status.phase == "Running", "it is not stopped before it can be put back"
        await w.client.patch(VirtualMachineRestore, name, MergePatch({"metadata": {"finalizers": None}}), SPACE)
        await w.until(restored, "the second restore")
        await w.phase("Running")
        second = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        assert second.metadata.uid != first.metadata.uid


async def test_a_restore_that_does_not_go_on_says_why_until_it_does() -> None:
    """KubeVirt tries again, and says what is wrong in a reason."""
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        faults = ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, namespace=SPACE), data={"vmrestore": "fails"})
        await w.client.create(faults)
        await w.change(restoreFromSnapshot="before")
        await w.until_condition("RestoreInProgress", "True", "RestoreFailing")
        assert await w.message("RestoreInProgress") == "the storage refuses"
        await w.client.delete(ConfigMap, CONFIG_MAP, SPACE)
        await w.phase("Running")
        assert (await w.wukong()).status.last_restore == "before"
        assert await w.condition("RestoreInProgress") == ("", "")


async def test_a_snapshot_of_a_machine_that_was_made_again_is_not_begun_with() -> None:
    """KubeVirt would try for ever, with the machine off."""
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        first = await w.vm()
        await w.client.delete(VirtualMachine, "web-vm", SPACE)

        async def again() -> bool:
            machine = await w.vm()
            return machine is not None and first is not None and machine.metadata.uid != first.metadata.uid

        await w.until(again, "another machine")
        await w.phase("Running")
        await w.change(restoreFromSnapshot="before")
        await w.until_condition("RestoreInProgress", "False", "SnapshotOfAnother")
        assert await w.condition("Ready") == ("True", "VMRunning")


async def test_what_cannot_be_restored_leaves_the_machine_running() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await w.running("other", disks=DISKS)
        await take(w, "of-other", "other")
        await until_phase(w, "of-other", "Succeeded")
        for name, reason in (("missing", "SnapshotNotFound"), ("of-other", "SnapshotOfAnother")):
            await w.change(restoreFromSnapshot=name)
            await w.until_condition("RestoreInProgress", "False", reason)
            assert await w.condition("Ready") == ("True", "VMRunning")


@pytest.mark.spec("W-10", "W-14")
async def test_a_machine_that_is_deleted_while_it_is_put_back() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        await w.change(restoreFromSnapshot="before")

        async def begun() -> bool:
            machine = await w.vm()
            return machine is not None and bool(machine.status.restore_in_progress)

        await w.until(begun, "the beginning of a restore")
        await w.delete()
        await w.gone(Wukong, NAME)
        await asyncio.sleep(30)
        assert await w.vm() is None
        assert await w.find(PersistentVolumeClaim, "web-system") is None


async def orphan(w: World, name: str) -> list[dict[str, Any]]:
    """Take the owners from a VirtualMachineSnapshot; what they were."""
    taken = await w.client.get(VirtualMachineSnapshot, name, SPACE)
    await give(w, name, None)
    owners: list[dict[str, Any]] = to_dict(taken)["metadata"]["ownerReferences"]
    return owners


async def give(w: World, name: str, owners: list[dict[str, Any]] | None) -> None:
    await w.client.patch(VirtualMachineSnapshot, name, MergePatch({"metadata": {"ownerReferences": owners}}), SPACE)


@pytest.mark.spec("W-41")
async def test_a_snapshot_whose_owner_is_put_back_is_whole_and_can_be_gone_back_to() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "before")
        first = await until_phase(w, "before", "Succeeded")
        owners = await orphan(w, "before")
        lost = await until_phase(w, "before", "Failed")
        assert (lost.status.snapshot_uid, lost.status.volumes) == (first.status.snapshot_uid, ["system"])
        await asyncio.sleep(60)
        w.writes()
        await asyncio.sleep(600)
        assert w.writes() == []
        await w.change(restoreFromSnapshot="before")
        await w.until_condition("RestoreInProgress", "False", "SnapshotLost")
        await give(w, "before", owners)
        back = await until_phase(w, "before", "Succeeded")
        assert back.status.creation_time == first.status.creation_time

        async def restored() -> bool:
            return (await w.wukong()).status.last_restore == "before"

        await w.until(restored, "the restore")


@pytest.mark.spec("W-41")
async def test_a_snapshot_that_others_made_again_is_of_another_moment() -> None:
    """Even with the owner that the first one had; and nothing is written to it."""
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        taken = await w.client.get(VirtualMachineSnapshot, "before", SPACE)
        await w.client.delete(VirtualMachineSnapshot, "before", SPACE)
        await until_phase(w, "before", "Failed")
        again = VirtualMachineSnapshot(metadata=ObjectMeta(name="before", namespace=SPACE), spec=taken.spec)
        again.metadata.owner_references = taken.metadata.owner_references
        w.writes()
        await w.client.create(again)

        async def ready() -> bool:
            return (await w.client.get(VirtualMachineSnapshot, "before", SPACE)).status.ready_to_use

        await w.until(ready, "the other one")
        await asyncio.sleep(600)
        assert {call.resource for call in w.writes()} == {Wukong.resource}, "a machine says that one is being taken"
        await until_phase(w, "before", "Failed")
