"""What goes wrong on purpose, by annotation and by ConfigMap, and that everything goes on when it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.sim.kubevirt.faults import ANNOTATION, KNOWN, read
from tests.sim.kubevirt.conftest import (
    DV,
    NAD,
    SPACE,
    VM,
    VMI,
    Play,
    claim,
    condition,
    data_volume,
    machine,
    nad,
    playing,
)

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]
WAYS = pytest.mark.parametrize("way", ["populator", "legacy"])


def faulty(phrases: str) -> dict[str, dict[str, str]]:
    return {"annotations": {ANNOTATION: phrases}}


async def text_of(play: Play, name: str, kind: str) -> str:
    status = await play.status(DV, name)
    return str(next(item.get("message", "") for item in status["conditions"] if item["type"] == kind))


# ------------------------------------------------------------------ volumes


@WAYS
async def test_an_image_that_is_not_there_is_tried_for_ever_and_found_at_last(way: str) -> None:
    async with playing(cdi=way, parts=["cdi"]) as play:
        await play.faults(**{"dv.root": "import-404"})
        await play.client.create(data_volume("root"))
        await play.after(120)
        result = await play.status(DV, "root")
        assert (result["phase"], result["restartCount"] >= 5) == ("ImportInProgress", True)
        assert condition(result, "Running") == ("False", "Error")
        assert "404" in await text_of(play, "root", "Running")
        await play.faults()
        await play.until(DV, "root", "Succeeded")
        assert (await play.status(DV, "root"))["progress"] == "100.0%"


@WAYS
async def test_a_class_that_cdi_does_not_know_gets_no_claim(way: str) -> None:
    """Its modes are not given, and there is no profile to take them from."""
    async with playing(cdi=way, parts=["cdi"]) as play:
        volume = data_volume("root", metadata=faulty("no-profile"))
        volume["spec"]["storage"] = volume["spec"].pop("pvc")
        del volume["spec"]["storage"]["accessModes"]
        await play.client.create(volume)
        await play.after(30)
        result = await play.status(DV, "root")
        assert (result.get("phase"), condition(result, "Bound")) == (None, ("False", "ErrClaimNotValid"))
        assert "no accessMode specified in StorageProfile standard" in await text_of(play, "root", "Bound")
        assert await play.find(PersistentVolumeClaim.resource, "root") is None
        await play.patch(DV, "root", {"metadata": {"annotations": {ANNOTATION: None}}})
        await play.until(DV, "root", "Succeeded")


@WAYS
async def test_a_copy_of_nothing_waits_for_it_without_a_claim(way: str) -> None:
    async with playing(cdi=way, parts=["cdi"]) as play:
        await play.client.create(data_volume("copy", source={"pvc": {"namespace": SPACE, "name": "origin"}}))
        await play.after(30)
        result = await play.status(DV, "copy")
        assert (result.get("phase"), condition(result, "Bound")) == (None, ("False", "CloneWithoutSource"))
        assert await text_of(play, "copy", "Ready") == "The source pvc origin doesn't exist"
        assert await play.find(PersistentVolumeClaim.resource, "copy") is None
        await play.client.create(claim("origin"))
        await play.until(DV, "copy", "Succeeded")
        assert await play.events("CloneSucceeded") == ["Successfully cloned from default/origin into default/copy"]


@WAYS
async def test_a_wrong_checksum_is_the_end(way: str) -> None:
    async with playing(cdi=way) as play:
        await play.client.create(data_volume("root", metadata=faulty("import-fatal")))
        await play.until(DV, "root", "Failed")
        assert condition(await play.status(DV, "root"), "Running") == ("False", "Error")
        made = machine("web-vm", "root")
        made["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "dataVolume": {"name": "root"}}]
        await play.client.create(made)
        await play.after(5)
        assert await play.shown() == "DataVolumeError"


@WAYS
async def test_a_class_that_nobody_serves_leaves_the_claim_pending(way: str) -> None:
    async with playing(cdi=way, parts=["cdi"]) as play:
        hand = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "hand"}}
        await play.client.create({**hand, "provisioner": "kubernetes.io/no-provisioner"})
        await play.client.create(data_volume("root", kind="hand"))
        await play.client.create(data_volume("other", kind="nowhere"))
        await play.after(60)
        for name in ("root", "other"):
            assert (await play.phase(DV, name), await play.bound(name)) == ("Pending", "Pending")


@WAYS
async def test_a_claim_that_loses_its_volume_is_lost(way: str) -> None:
    async with playing(cdi=way) as play:
        await play.client.create(data_volume("root"))
        await play.client.create(claim("data"))
        await play.until(DV, "root", "Succeeded")
        await play.faults(pvc="lost")
        await play.after(5)
        assert (await play.bound("root"), await play.bound("data")) == ("Lost", "Lost")
        assert await play.phase(DV, "root") == "Failed"
        assert condition(await play.status(DV, "root"), "Bound") == ("False", "ClaimLost")


@WAYS
async def test_a_collected_data_volume_leaves_its_claim(way: str) -> None:
    async with playing(cdi=way, parts=["cdi"]) as play:
        await play.client.create(data_volume("root", metadata=faulty("collected seconds=5")))
        await play.until(DV, "root", "Succeeded")
        await play.after(10)
        assert (await play.find(DV, "root"), await play.bound("root")) == (None, "Bound")


@WAYS
async def test_a_deleted_data_volume_takes_its_claim_along(way: str) -> None:
    async with playing(cdi=way, parts=["cdi"]) as play:
        await play.client.create(data_volume("root"))
        await play.after(8)
        await play.client.delete(DV, "root", SPACE)
        await play.after(5)
        assert await play.find(PersistentVolumeClaim.resource, "root") is None


@WAYS
async def test_a_claim_deleted_by_hand_is_made_and_filled_again(way: str) -> None:
    async with playing(cdi=way, parts=["cdi"]) as play:
        await play.client.create(data_volume("root"))
        await play.until(DV, "root", "Succeeded")
        await play.client.delete(PersistentVolumeClaim, "root", SPACE)
        seen = await play.until(DV, "root", "ImportInProgress")
        assert "Succeeded" in seen
        await play.until(DV, "root", "Succeeded")


# ------------------------------------------------------------------ machines


async def test_no_node_for_a_while() -> None:
    async with playing() as play:
        await play.client.create(machine("web-vm", metadata=faulty("unschedulable seconds=20")))
        await play.after(10)
        assert (await play.shown(), await play.phase(VMI)) == ("ErrorUnschedulable", "Scheduling")
        assert condition(await play.status(VMI), "PodScheduled") == ("False", "Unschedulable")
        await play.until(VMI, "web-vm", "Running")


async def test_no_node_because_none_is_large_enough() -> None:
    """The scheduler's own message, without any fault."""
    async with playing() as play:
        made = machine("web-vm")
        made["spec"]["template"]["spec"]["domain"]["memory"]["guest"] = "1Ti"
        await play.client.create(made)
        await play.after(10)
        status = await play.status(VMI)
        text = next(item["message"] for item in status["conditions"] if item["type"] == "PodScheduled")
        assert (await play.shown(), "3 Insufficient memory" in text) == ("ErrorUnschedulable", True)


async def test_a_machine_that_crashes_twice_and_then_runs() -> None:
    async with playing() as play:
        await play.client.create(machine("web-vm", metadata=faulty("crash times=2")))
        await play.after(11)
        assert await play.shown() == "CrashLoopBackOff"
        assert (await play.status(VM))["startFailure"]["consecutiveFailCount"] == 1
        await play.after(90)
        assert (await play.shown(), await play.phase(VMI)) == ("Running", "Running")
        assert "startFailure" not in await play.status(VM)


async def test_a_machine_that_crashes_for_ever_waits_longer_each_time() -> None:
    async with playing() as play:
        await play.client.create(machine("web-vm", metadata=faulty("crash")))
        counts = []
        for _ in range(4):
            await play.after(150)
            counts.append((await play.status(VM)).get("startFailure", {}).get("consecutiveFailCount", 0))
        assert counts[0] >= 2
        assert counts[-1] - counts[-2] <= 1
        assert await play.shown() in ("CrashLoopBackOff", "Starting")


@pytest.mark.parametrize(("strategy", "comes_back"), [("Always", True), ("RerunOnFailure", False), ("Once", False)])
async def test_a_guest_that_switches_itself_off(strategy: str, comes_back: bool) -> None:
    async with playing() as play:
        made = machine("web-vm", metadata=faulty("shutdown after=10"), runStrategy=strategy)
        await play.client.create(made)
        await play.until(VMI, "web-vm", "Running")
        first = (await play.get(VMI))["metadata"]["uid"]
        await play.after(15)
        await play.patch(VM, "web-vm", {"metadata": {"annotations": {ANNOTATION: None}}})
        await play.after(60)
        vmi = await play.find(VMI)
        assert (vmi is None) == (strategy == "RerunOnFailure")
        assert (vmi is not None and vmi["metadata"]["uid"] != first) == comes_back
        assert await play.shown() == ("Running" if comes_back else "Stopped")


async def test_a_running_guest_that_crashes_is_started_again_at_once() -> None:
    async with playing() as play:
        await play.client.create(
            machine("web-vm", metadata=faulty("crash after=10 times=1"), runStrategy="RerunOnFailure")
        )
        await play.until(VMI, "web-vm", "Running")
        first = (await play.get(VMI))["metadata"]["uid"]
        await play.after(60)
        vmi = await play.get(VMI)
        assert (vmi["metadata"]["uid"] != first, vmi["status"]["phase"]) == (True, "Running")


async def test_an_image_that_cannot_be_pulled() -> None:
    async with playing() as play:
        await play.client.create(machine("web-vm", metadata=faulty("image-pull")))
        await play.after(30)
        assert await play.shown() in ("ErrImagePull", "ImagePullBackOff")
        await play.patch(VM, "web-vm", {"metadata": {"annotations": {ANNOTATION: None}}})
        await play.until(VMI, "web-vm", "Running")
        assert condition(await play.status(VMI), "Synchronized") == ("", "")


async def test_no_agent_and_addresses_that_vanish_for_a_moment() -> None:
    async with playing() as play:
        await play.client.create(nad("lan"))
        await play.faults(**{"vm.mute": "no-agent", "vm.web-vm": "ip-vanishes after=40 seconds=3"})
        for name in ("web-vm", "mute"):
            await play.client.create(machine(name, networks={"lan": "lan"}))
        await play.until(VMI, "web-vm", "Running")
        await play.after(38)
        assert all("ipAddress" in interface for interface in (await play.status(VMI))["interfaces"])
        await play.after(3.5)
        status = await play.status(VMI)
        assert not any("ipAddress" in interface for interface in status["interfaces"])
        assert condition(status, "Ready")[0] == "True"
        await play.after(5)
        assert all("ipAddress" in interface for interface in (await play.status(VMI))["interfaces"])
        mute = await play.status(VMI, "mute")
        assert (condition(mute, "AgentConnected"), "guestOSInfo" in mute) == (("", ""), False)


async def test_a_network_that_is_missing_keeps_it_scheduling_with_an_event() -> None:
    async with playing(parts=["kubevirt", "cdi"]) as play:
        await play.client.create(machine("web-vm", networks={"lan": "lan"}))
        await play.after(20)
        assert await play.phase(VMI) == "Scheduling"
        assert "(lan) in namespace (default)" in (await play.events("FailedCreatePodSandBox"))[0]
        await play.kubevirt.install("multus")
        await play.after(20)
        assert await play.phase(VMI) == "Scheduling"
        wrong = nad("lan")
        wrong["spec"]["config"] = (
            '{"type": "bridge", "disableContainerInterface": true, "ipam": {"type": "host-local"}}'
        )
        await play.client.create(wrong)
        await play.after(20)
        assert "cannot use IPAM" in " ".join(await play.events("FailedCreatePodSandBox"))
        await play.patch(NAD, "lan", {"spec": nad("lan")["spec"]})
        await play.until(VMI, "web-vm", "Running")


async def test_a_secret_that_is_missing_keeps_it_scheduling() -> None:
    async with playing() as play:
        made = machine("web-vm")
        init = {"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "web-cloudinit"}}}
        made["spec"]["template"]["spec"]["volumes"] = [init]
        await play.client.create(made)
        await play.after(20)
        assert await play.phase(VMI) == "Scheduling"
        assert "web-cloudinit" in (await play.events("FailedMount"))[0]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-cloudinit", "namespace": SPACE}}
        await play.client.create(secret)
        await play.until(VMI, "web-vm", "Running")


async def test_a_claim_that_is_missing() -> None:
    async with playing() as play:
        await play.client.create(machine("web-vm", "data"))
        await play.after(5)
        assert await play.shown() == "ErrorPvcNotFound"
        await play.client.create(claim("data"))
        await play.until(VMI, "web-vm", "Running")


async def test_a_slow_deletion_and_a_foreign_finalizer() -> None:
    async with playing() as play:
        await play.client.create(machine("slow", metadata=faulty("slow-delete seconds=90")))
        await play.client.create(machine("held", metadata={"finalizers": ["example.com/held"]}))
        await play.after(30)
        for name in ("slow", "held"):
            await play.client.delete(VM, name, SPACE)
        await play.after(60)
        assert (await play.shown("slow"), await play.find(VMI, "slow")) == ("Terminating", None)
        assert (await play.get(VM, "held"))["metadata"]["finalizers"] == ["example.com/held"]
        await play.after(60)
        assert await play.find(VM, "slow") is None


async def test_a_lost_node_ends_in_another_instance_when_its_pod_has_gone() -> None:
    async with playing() as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        first = await play.get(VMI)
        pods = await play.client.list("pods", SPACE)
        await play.client.delete("pods", pods.items[0]["metadata"]["name"], SPACE, grace_period=0)
        await play.after(60)
        vmi = await play.get(VMI)
        assert (vmi["metadata"]["uid"] != first["metadata"]["uid"], vmi["status"]["phase"]) == (True, "Running")


# ------------------------------------------------------------------ phrases


async def test_words_that_are_no_fault_are_told() -> None:
    async with playing(parts=["kubevirt"]) as play:
        await play.client.create(machine("web-vm", runStrategy="Halted", metadata=faulty("explode")))
        await play.after(2)
        assert "there are: unschedulable, crash" in (await play.events("UnknownFault"))[0]


def test_the_documentation_has_every_fault() -> None:
    text = (Path(__file__).parents[3] / "docs" / "simulated-cluster.md").read_text(encoding="utf-8")
    assert [name for kinds in KNOWN.values() for name in kinds if f"`{name}" not in text] == []
    assert [kind for kind in KNOWN if f"`{kind}`" not in text] == []


def test_faults_are_a_few_words() -> None:
    assert read("crash times=2; no-agent ;; ") == {"crash": {"times": "2"}, "no-agent": {}}
    assert all(kind for kinds in KNOWN.values() for kind in kinds.values())
