"""Snapshots and restores: what is kept, what comes back, and what must not be disturbed meanwhile."""

from __future__ import annotations

import pytest

from konverge.client import Invalid
from konverge.client.definitions import until_served
from konverge.explain import Gatherer
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.resource import Resource
from konverge.sim.kubevirt.faults import ANNOTATION
from tests.sim.kubevirt.conftest import (
    DV,
    SPACE,
    VM,
    VMI,
    VOLUME_SNAPSHOTS,
    Obj,
    Play,
    claim,
    condition,
    data_volume,
    kinds_of_volume_snapshots,
    machine,
    playing,
)

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]
GROUP = "snapshot.kubevirt.io"
SNAPSHOT = Resource(GROUP, "v1beta1", "VirtualMachineSnapshot", "virtualmachinesnapshots")
CONTENT = Resource(GROUP, "v1beta1", "VirtualMachineSnapshotContent", "virtualmachinesnapshotcontents")
RESTORE = Resource(GROUP, "v1beta1", "VirtualMachineRestore", "virtualmachinerestores")
TARGET = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"}
HALTED = {"spec": {"runStrategy": "Halted"}}


def snapshot(name: str = "snap", fault: str = "", **spec: object) -> Obj:
    meta = {"name": name, "namespace": SPACE, "annotations": {ANNOTATION: fault}}
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": SNAPSHOT.kind,
        "metadata": meta,
        "spec": {"source": TARGET, **spec},
    }


def restore(name: str = "back", fault: str = "", **spec: object) -> Obj:
    meta = {"name": name, "namespace": SPACE, "annotations": {ANNOTATION: fault}}
    desired = {"target": TARGET, "virtualMachineSnapshotName": "snap", **spec}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": RESTORE.kind, "metadata": meta, "spec": desired}


async def running(play: Play) -> None:
    await play.client.create(data_volume("root"))
    await play.client.create(machine("web-vm", "root"))
    await play.until(VMI, "web-vm", "Running")


async def complete(play: Play, name: str = "back") -> bool:
    return bool((await play.status(RESTORE, name)).get("complete"))


async def uid_of(play: Play, name: str) -> str:
    return str((await play.get(PersistentVolumeClaim.resource, name))["metadata"]["uid"])


async def test_a_snapshot_keeps_the_machine_and_its_volumes() -> None:
    async with playing(parts=["cdi", "kubevirt", "snapshot"]) as play:
        await running(play)
        await play.after(31)
        await play.client.create(snapshot())
        await play.after(1)
        assert (await play.status(VM))["snapshotInProgress"] == "snap"
        with pytest.raises(Invalid, match="until snapshot"):
            await play.patch(VM, "web-vm", HALTED)
        await play.until(SNAPSHOT, "snap", "Succeeded")
        await play.after(1)
        result = await play.status(SNAPSHOT, "snap")
        assert (result["readyToUse"], result["indications"]) == (True, ["Online", "GuestAgent"])
        assert result["snapshotVolumes"] == {"includedVolumes": ["root"], "excludedVolumes": []}
        kept = await play.get(CONTENT, result["virtualMachineSnapshotContentName"])
        assert kept["spec"]["source"]["virtualMachine"]["spec"]["runStrategy"] == "Always"
        assert kept["status"]["readyToUse"] is True
        await play.after(120)
        assert await Gatherer(play.client).sick() == []
        assert "snapshotInProgress" not in await play.status(VM)
        await play.client.delete(SNAPSHOT, "snap", SPACE)
        await play.after(5)
        assert await play.find(CONTENT, result["virtualMachineSnapshotContentName"]) is None


async def test_a_disk_of_a_class_that_takes_no_snapshots_is_left_out() -> None:
    async with playing(parts=["kubevirt", "snapshot"]) as play:
        for definition in kinds_of_volume_snapshots():
            await play.client.create(definition)
        await until_served(play.client, f"volumesnapshotclasses.{VOLUME_SNAPSHOTS}")
        other = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "other"}}
        await play.client.create({**other, "provisioner": "csi.example.com"})
        kind = {"apiVersion": f"{VOLUME_SNAPSHOTS}/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "any"}}
        await play.client.create({**kind, "driver": "csi.example.com", "deletionPolicy": "Delete"})
        await play.client.create(claim("good", kind="other"))
        await play.client.create(claim("loose"))
        await play.client.create(machine("web-vm", "good", "loose", runStrategy="Halted"))
        await play.client.create(snapshot())
        await play.until(SNAPSHOT, "snap", "Succeeded")
        result = await play.status(SNAPSHOT, "snap")
        assert result["snapshotVolumes"] == {"includedVolumes": ["good"], "excludedVolumes": ["loose"]}


async def test_snapshots_fail_by_the_storage_and_by_their_deadline() -> None:
    async with playing(parts=["kubevirt", "snapshot"]) as play:
        await play.client.create(machine("web-vm", runStrategy="Halted"))
        await play.client.create(snapshot("refused", "fails"))
        await play.client.create(snapshot("slow", "stuck", failureDeadline="30s"))
        nobody = {**TARGET, "name": "nobody"}
        await play.client.create(snapshot("lonely", source=nobody))
        await play.after(120)
        refused = await play.status(SNAPSHOT, "refused")
        assert (refused["phase"], condition(refused, "Progressing")) == ("InProgress", ("False", "In error state"))
        assert condition(await play.status(SNAPSHOT, "lonely"), "Progressing") == ("False", "Source does not exist")
        await play.after(200)
        for name in ("refused", "slow"):
            result = await play.status(SNAPSHOT, name)
            assert (result["phase"], result["readyToUse"]) == ("Failed", False)
            assert condition(result, "Failure") == ("True", "snapshot deadline exceeded")
        assert "refuses" in (await play.status(SNAPSHOT, "refused"))["error"]["message"]
        assert "snapshotInProgress" not in await play.status(VM)


async def test_a_restore_in_place_brings_back_spec_and_claims() -> None:
    async with playing(parts=["cdi", "kubevirt", "snapshot"]) as play:
        await running(play)
        await play.client.create(snapshot())
        await play.until(SNAPSHOT, "snap", "Succeeded")
        await play.patch(VM, "web-vm", {"spec": {"template": {"spec": {"domain": {"cpu": {"sockets": 8}}}}}})
        first = await uid_of(play, "root")
        await play.client.create(restore(volumeRestorePolicy="InPlace"))
        await play.after(10)
        status = await play.status(RESTORE, "back")
        assert status["complete"] is False
        assert "Waiting for target VM to be powered off" in condition(status, "Ready")[1]
        await play.patch(VM, "web-vm", HALTED)
        await play.after(14)
        assert (await play.status(VM))["restoreInProgress"] == "back"
        with pytest.raises(Invalid, match="Cannot start VM until restore"):
            await play.patch(VM, "web-vm", {"spec": {"runStrategy": "Always"}})
        await play.after(30)
        assert await complete(play)
        assert await uid_of(play, "root") != first
        status, claim = await play.status(RESTORE, "back"), await play.get(PersistentVolumeClaim.resource, "root")
        assert (status["deletedDataVolumes"], status["restores"][0]["persistentVolumeClaim"]) == ([], "root")
        owner, volume = claim["metadata"]["ownerReferences"][0], await play.get(DV, "root")
        assert owner["uid"] == volume["metadata"]["uid"], "the DataVolume stays, and takes over the new claim"
        assert (volume["status"]["phase"], status["restores"][0]["dataVolumeName"]) == ("Succeeded", "root")
        spec = (await play.get(VM))["spec"]
        assert (spec["runStrategy"], spec["template"]["spec"]["domain"]["cpu"]["sockets"]) == ("Halted", 2)
        assert "restoreInProgress" not in await play.status(VM)
        await play.patch(VM, "web-vm", {"spec": {"runStrategy": "Always"}})
        await play.until(VMI, "web-vm", "Running")


async def test_a_restore_with_new_names_points_the_machine_to_them() -> None:
    async with playing(parts=["cdi", "kubevirt", "snapshot"]) as play:
        await running(play)
        await play.client.create(snapshot())
        await play.until(SNAPSHOT, "snap", "Succeeded")
        first = await uid_of(play, "root")
        await play.client.create(restore(targetReadinessPolicy="StopTarget", volumeOwnershipPolicy="None"))
        await play.after(60)
        assert await complete(play)
        name = (await play.status(RESTORE, "back"))["restores"][0]["persistentVolumeClaim"]
        volume = (await play.get(VM))["spec"]["template"]["spec"]["volumes"][0]
        assert volume["persistentVolumeClaim"]["claimName"] == name != "root"
        assert await uid_of(play, "root") == first
        assert "ownerReferences" not in (await play.get(PersistentVolumeClaim.resource, name))["metadata"]


async def test_a_restore_of_a_running_machine_fails_or_waits_as_its_policy_says() -> None:
    async with playing(parts=["cdi", "kubevirt", "snapshot"]) as play:
        await running(play)
        await play.client.create(snapshot())
        await play.until(SNAPSHOT, "snap", "Succeeded")
        await play.client.create(restore(targetReadinessPolicy="FailImmediate"))
        await play.after(2)
        assert condition(await play.status(RESTORE, "back"), "Failure")[0] == "True"
        await play.client.delete(RESTORE, "back", SPACE)
        await play.client.create(restore("later"))
        await play.after(280)
        assert condition(await play.status(RESTORE, "later"), "Failure")[0] == ""
        await play.after(60)
        assert condition(await play.status(RESTORE, "later"), "Failure")[0] == "True"
        assert await play.shown() == "Running"


async def test_a_restore_that_the_storage_refuses_is_tried_again() -> None:
    """Only a machine that is on makes a restore fail for good."""
    async with playing(parts=["cdi", "kubevirt", "snapshot"]) as play:
        await running(play)
        await play.client.create(snapshot())
        await play.until(SNAPSHOT, "snap", "Succeeded")
        await play.client.create(restore("back", "fails", targetReadinessPolicy="StopTarget"))
        await play.after(60)
        status = await play.status(RESTORE, "back")
        assert condition(status, "Progressing") == ("False", "the storage refuses")
        assert condition(status, "Failure")[0] == ""
        assert (await play.status(VM))["restoreInProgress"] == "back"
        with pytest.raises(Invalid, match="does not exist"):
            await play.client.create(restore("other", virtualMachineSnapshotName="never"))
        await play.client.delete(RESTORE, "back", SPACE)
        await play.after(5)
        assert "restoreInProgress" not in await play.status(VM)


async def test_a_restore_makes_a_machine_that_is_not_there_and_takes_no_other() -> None:
    async with playing(parts=["cdi", "kubevirt", "snapshot"]) as play:
        await running(play)
        await play.client.create(snapshot())
        await play.until(SNAPSHOT, "snap", "Succeeded")
        made = restore("twin")
        made["spec"]["target"] = {**made["spec"]["target"], "name": "second"}
        await play.client.create(made)
        await play.after(60)
        assert await complete(play, "twin")
        spec = (await play.get(VM, "second"))["spec"]
        assert spec["runStrategy"] == "Halted"
        claimed = spec["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
        assert claimed == (await play.status(RESTORE, "twin"))["restores"][0]["persistentVolumeClaim"] != "root"
        again = restore("again")
        again["spec"]["target"] = {**again["spec"]["target"], "name": "second"}
        await play.client.create(again)
        await play.after(60)
        told = condition(await play.status(RESTORE, "again"), "Progressing")
        assert told == ("False", "restore source and restore target are different but restore target already exists")
