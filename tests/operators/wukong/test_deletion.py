"""Deletion in order, with everything that may come in its way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Secret
from konverge.objects.meta import ObjectMeta
from konverge.operators.wukong.kinds import (
    DataVolume,
    NetworkAttachmentDefinition,
    VirtualMachine,
    VirtualMachineInstance,
)
from konverge.operators.wukong.resource import Wukong
from konverge.sim.kubevirt import QUICK
from konverge.sim.kubevirt.faults import CONFIG_MAP
from tests.operators.wukong.world import MODES, MODES_IN_TURN, NAME, SPACE, SPEC, World, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-10", "W-14")]

LAN = [{"name": "default"}, {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}]
DATA: dict[str, Any] = {"name": "data", "size": "1Gi", "storageClassName": "fast"}
BOTH = [SPEC["disks"][0], DATA]
STAGES = (
    (VirtualMachine, "web-vm"),
    (VirtualMachineInstance, "web-vm"),
    (DataVolume, "web-system"),
    (PersistentVolumeClaim, "web-system"),
    (PersistentVolumeClaim, "web-data"),
    (NetworkAttachmentDefinition, "web-lan-nad"),
)


async def there(w: World) -> list[bool]:
    """Which of the children are still there, and not yet on their way out."""
    result = [await w.find(kind, name) for kind, name in STAGES]
    return [item is not None and not item.metadata.deletion_timestamp for item in result]


@pytest.mark.parametrize("mode", MODES)
async def test_the_machine_goes_before_its_disks_and_they_before_its_networks(mode: str) -> None:
    async with world(cdi=mode) as w:
        await w.running(disks=BOTH, networks=LAN)
        await w.delete()
        reasons: list[str] = []
        while await w.find(Wukong, NAME) is not None:
            _, _, *disks, attachment = await there(w)
            present = [await w.find(kind, name) for kind, name in STAGES]
            if present[0] is not None or present[1] is not None:
                assert all(disks), "a disk is taken from a machine that is still there"
            if any(present[2:5]):
                assert attachment, "a network goes before the disks"
            if await w.find(Wukong, NAME) is not None:
                reasons.append((await w.condition("Deleting"))[1])
            assert len(reasons) < 300
            await asyncio.sleep(0.5)
        assert next(filter(None, reasons)) == "DeletingMachine"
        await asyncio.sleep(10)
        assert [await w.find(kind, name) for kind, name in STAGES] == [None] * 6
        assert await w.find(Secret, "web-cloudinit") is None


async def test_disks_that_are_kept_stay_and_are_found_again() -> None:
    async with world(timings=QUICK) as w:
        disks = [SPEC["disks"][0] | {"deletePolicy": "Retain"}, DATA]
        await w.running(disks=disks)
        kept = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        await w.delete()
        await w.gone(Wukong, NAME)
        await asyncio.sleep(120)
        left = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        assert left.metadata.uid == kept.metadata.uid
        volume = await w.client.get(DataVolume, "web-system", SPACE)
        assert volume.metadata.owner_references == []
        assert await w.find(PersistentVolumeClaim, "web-data") is None
        await w.running(disks=disks)
        again = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        assert again.metadata.uid == kept.metadata.uid, "a Wukong of the same name finds its disks again"


async def test_a_policy_that_changes_late_counts_all_the_same() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=BOTH)
        await w.change(deletePolicy="Retain")
        await asyncio.sleep(5)
        for kind, name in ((DataVolume, "web-system"), (PersistentVolumeClaim, "web-data")):
            assert (await w.client.get(kind, name, SPACE)).metadata.owner_references == []
        await w.delete()
        await w.gone(Wukong, NAME)
        await asyncio.sleep(60)
        assert await w.find(PersistentVolumeClaim, "web-system") is not None
        assert await w.find(PersistentVolumeClaim, "web-data") is not None


async def test_existing_claims_are_never_deleted_and_those_of_others_not_touched() -> None:
    async with world(timings=QUICK) as w:
        for name in ("theirs", "alien-data"):
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                     "metadata": {"name": name, "namespace": SPACE},
                     "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                              "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
            await w.client.create(claim)
        await w.create("user", disks=[{"name": "disk", "existingClaim": "theirs"}])
        await w.create("alien", disks=[DATA])
        await w.phase("Running", "user")
        await w.until_condition("VolumesBound", "False", "ClaimNotOurs", "alien")
        for name in ("user", "alien"):
            await w.delete(name)
            await w.gone(Wukong, name)
        await asyncio.sleep(30)
        for name in ("theirs", "alien-data"):
            assert (await w.client.get(PersistentVolumeClaim, name, SPACE)).metadata.labels == {}


async def test_protection_holds_a_deletion_until_it_is_taken_away() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[DATA], deletionProtection=True)
        machine = await w.vm()
        assert machine is not None
        assert machine.metadata.labels["kubevirt.io/vm-delete-protection"] == "True"
        await w.delete()
        await w.until_condition("Deleting", "True", "DeletionProtected")
        await asyncio.sleep(60)
        assert await w.vmi() is not None
        assert await w.condition("Ready") == ("True", "VMRunning")
        await w.change(deletionProtection=False)
        await w.gone(Wukong, NAME)
        assert await w.vm() is None


async def test_a_foreign_finalizer_is_named_and_waited_for() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[DATA], networks=LAN)
        hold = MergePatch({"metadata": {"finalizers": ["example.com/backup"]}})
        await w.client.patch(VirtualMachine, "web-vm", hold, SPACE)
        await w.delete()
        await asyncio.sleep(120)
        assert "web-vm waits for its finalizers example.com/backup" in await w.message("Deleting")
        assert (await there(w))[4:] == [True, True], "nothing of a later stage has begun"
        await w.client.patch(VirtualMachine, "web-vm", MergePatch({"metadata": {"finalizers": None}}), SPACE)
        await w.gone(Wukong, NAME)


@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_a_machine_that_is_deleted_while_it_is_being_made(mode: str) -> None:
    async with world(cdi=mode) as w:
        stuck = ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, namespace=SPACE), data={"dv.stuck-system": "stuck"})
        await w.client.create(stuck)
        await w.create("stuck")
        await w.create("early")
        await w.create("invalid", networks=[{"name": "lan", "nadName": "missing"}])
        await asyncio.sleep(8)
        for name in ("stuck", "early", "invalid"):
            await w.delete(name)
        for name in ("stuck", "early", "invalid"):
            await w.gone(Wukong, name)
        await asyncio.sleep(30)
        assert (await w.client.list(PersistentVolumeClaim, SPACE)).items == []
        assert (await w.client.list(DataVolume, SPACE)).items == []


async def test_a_machine_that_is_deleted_while_it_moves() -> None:
    async with world(timings=QUICK) as w:
        shared = DATA | {"accessModes": ["ReadWriteMany"]}
        await w.running(disks=[shared])
        assert await w.condition("Migratable") == ("True", "Migratable")
        moving = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                  "metadata": {"name": "move", "namespace": SPACE}, "spec": {"vmiName": "web-vm"}}  # fmt: skip
        await w.client.create(moving)
        await asyncio.sleep(2)
        machine = await w.vm()
        assert machine is not None
        assert machine.status.printable_status == "Migrating"
        await w.delete()
        await w.gone(Wukong, NAME)
        assert await w.vm() is None
        assert await w.find(PersistentVolumeClaim, "web-data") is None


async def test_a_protection_that_somebody_else_gave_the_machine_holds() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[DATA])
        label = "kubevirt.io/vm-delete-protection"
        await w.client.patch(VirtualMachine, "web-vm", MergePatch({"metadata": {"labels": {label: "True"}}}), SPACE)
        await w.delete()
        await w.until_condition("Deleting", "True", "Refused")
        assert label in await w.message("Deleting")
        assert await w.vmi() is not None
        await w.client.patch(VirtualMachine, "web-vm", MergePatch({"metadata": {"labels": {label: None}}}), SPACE)
        await w.gone(Wukong, NAME)
