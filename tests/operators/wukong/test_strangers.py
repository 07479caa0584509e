"""Objects of other owners under the names of our own: never written, never deleted, and said once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects import Object
from konverge.objects.kinds.core_v1 import Event, PersistentVolumeClaim, Secret, Service
from konverge.operators.wukong.kinds import (
    DataVolume,
    NetworkAttachmentDefinition,
    NodeNetworkConfigurationPolicy,
    VirtualMachine,
    VirtualMachineRestore,
    VirtualMachineSnapshot,
)
from konverge.operators.wukong.names import restore as restore_name
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import Wukong
from konverge.runtime import controller_of
from konverge.runtime.owners import ADOPT_BY
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.test_snapshots import take, until_phase
from tests.operators.wukong.world import SPACE, SPEC, World, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-16")]

PLAIN: dict[str, Any] = {"name": "system", "size": "1Gi", "storageClassName": "fast"}
LAN = [{"name": "default"}, {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}]
EXPOSE = [{"name": "ssh", "port": 22}]
CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
BLANK = {
    "source": {"blank": {}},
    "storage": {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"},
}
MACHINE: dict[str, Any] = {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}}


def labelled(name: str) -> dict[str, str]:
    """As our children are: a label is no owner."""
    return {"vm.novasphere.dev/wukong": name, "app.kubernetes.io/managed-by": "wukong-operator"}


async def put(w: World, kind: type[Object], name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    resource = kind.resource
    place = {"name": name, **({"namespace": SPACE} if resource.namespaced else {}), **metadata}
    made: dict[str, Any] = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": place}
    return await w.client.create(made | spec)


def written(w: World, kind: type[Object], name: str) -> list[str]:
    """The writes of the operator to one object, refused ones included."""
    return [call.verb for call in w.recording.writes if call.resource == kind.resource and call.name == name]


async def times_said(w: World, name: str, reason: str) -> int:
    """How often events about a Wukong have a reason."""
    about = f"involvedObject.kind=Wukong,involvedObject.name={name},reason={reason}"
    return sum(event.count or 1 for event in await w.client.list(Event, SPACE, field_selector=about))


STRANGERS: list[tuple[str, type[Object], str, dict[str, Any], dict[str, Any], str]] = [
    ("machine", VirtualMachine, "-vm", {"spec": MACHINE}, {}, "NotOurs"),
    ("secret", Secret, "-cloudinit", {"stringData": {"a": "b"}}, {}, "NotOurs"),
    ("service", Service, "-ssh", {"spec": {"ports": [{"port": 1}]}}, {"expose": EXPOSE}, "NotOurs"),
    ("attached", NetworkAttachmentDefinition, "-lan-nad", {"spec": {"config": "{}"}}, {"networks": LAN}, "NotOurs"),
    ("claim", PersistentVolumeClaim, "-system", {"spec": CLAIM}, {}, "ClaimNotOurs"),
    ("kept", PersistentVolumeClaim, "-system", {"spec": CLAIM}, {"deletePolicy": "Retain"}, "ClaimNotOurs"),
    ("volume", DataVolume, "-system", {"spec": BLANK}, {"disks": SPEC["disks"]}, "ClaimNotOurs"),
    ("keptvolume", DataVolume, "-system", {"spec": BLANK}, {"disks": SPEC["disks"], "deletePolicy": "Retain"},
     "ClaimNotOurs"),
    ("unfilled", DataVolume, "-system", {"spec": BLANK}, {"deletePolicy": "Retain"}, "ClaimNotOurs"),
]  # fmt: skip
"""Name of the Wukong, what a stranger has under the name of a child, what the Wukong asks for, and what it says."""


async def test_whatever_a_stranger_has_is_left_as_it_is() -> None:
    async with world(timings=QUICK) as w:
        before = {}
        for name, kind, suffix, spec, _, _ in STRANGERS:
            made = await put(w, kind, f"{name}{suffix}", spec, labels=labelled(name))
            before[name] = made["metadata"]["uid"]
        await asyncio.sleep(30)
        for name, _, _, _, asked, _ in STRANGERS:
            await w.create(name, **{"disks": [PLAIN], **asked})
        for name, _, _, _, _, reason in STRANGERS:
            await w.phase("Error", name)
            assert await w.condition("Ready", name) == ("False", reason), name
        await asyncio.sleep(300)
        for name, _, _, _, _, reason in STRANGERS:
            assert await times_said(w, name, reason) == 1, name
            await w.change(name, memory="3Gi")
        await asyncio.sleep(60)
        for name, *_ in STRANGERS:
            await w.delete(name)
        for name, *_ in STRANGERS:
            await w.gone(Wukong, name)
        await asyncio.sleep(60)
        for name, kind, suffix, _, _, _ in STRANGERS:
            left = await w.client.get(kind, f"{name}{suffix}", SPACE)
            assert left.metadata.uid == before[name], name
            assert left.metadata.owner_references == []
            assert left.metadata.deletion_timestamp is None
            assert written(w, kind, f"{name}{suffix}") == [], name
        assert written(w, PersistentVolumeClaim, "volume-system") == [], "nor the claim that CDI made for a stranger"


async def test_what_asks_for_it_is_adopted_and_goes_with_its_new_owner() -> None:
    async with world(timings=QUICK) as w:
        asks = {ADOPT_BY: "Wukong/web"}
        await put(w, VirtualMachine, "web-vm", {"spec": MACHINE}, annotations=asks)
        await put(w, Service, "web-ssh", {"spec": {"ports": [{"name": "ssh", "port": 22}]}}, annotations=asks)
        claim = await put(w, PersistentVolumeClaim, "web-system", {"spec": CLAIM}, annotations=asks)
        other = await put(w, PersistentVolumeClaim, "web-kept", {"spec": CLAIM}, annotations=asks)
        kept = PLAIN | {"name": "kept", "deletePolicy": "Retain"}
        wukong = await w.running(disks=[PLAIN, kept], expose=EXPOSE, powerState="Running")
        for kind, name in ((VirtualMachine, "web-vm"), (Service, "web-ssh"), (PersistentVolumeClaim, "web-system")):
            owner = controller_of(await w.client.get(kind, name, SPACE))
            assert owner is not None, name
            assert owner.uid == wukong.metadata.uid
        claims = {item.metadata.name: item.metadata for item in await w.client.list(PersistentVolumeClaim, SPACE)}
        assert claims["web-system"].uid == claim["metadata"]["uid"]
        assert (claims["web-kept"].uid, claims["web-kept"].owner_references) == (other["metadata"]["uid"], [])
        assert "VirtualMachineCreated" not in await w.events()
        await w.delete()
        await w.gone(Wukong, "web")
        await asyncio.sleep(30)
        assert [item.metadata.name for item in await w.client.list(PersistentVolumeClaim, SPACE)] == ["web-kept"]
        assert (await w.client.list(Service, SPACE, field_selector="metadata.name=web-ssh")).items == []


@pytest.mark.spec("W-46")
async def test_what_a_user_lets_go_with_the_machine_is_no_part_of_it() -> None:
    """An owner reference without a controller: the garbage collector acts upon it, and nobody else."""
    async with world(timings=QUICK) as w:
        wukong = await w.running(disks=[PLAIN])
        owner = {"apiVersion": wukong.api_version, "kind": "Wukong", "name": "web", "uid": wukong.metadata.uid}
        parts: list[tuple[type[Object], str, dict[str, Any]]] = [
            (Secret, "login", {"stringData": {"a": "b"}}),
            (Service, "mine", {"spec": {"ports": [{"port": 1}]}}),
            (NetworkAttachmentDefinition, "lan", {"spec": {"config": "{}"}}),
        ]
        for kind, name, spec in parts:
            await put(w, kind, name, spec, ownerReferences=[owner])
        await w.change(memory="3Gi")
        await asyncio.sleep(60)
        for kind, name, _ in parts:
            assert await w.find(kind, name) is not None, name
            assert written(w, kind, name) == [], name
        await w.delete()
        await w.gone(Wukong, "web")
        await asyncio.sleep(60)
        for kind, name, _ in parts:
            assert await w.find(kind, name) is None, name
            assert written(w, kind, name) == [], name


async def test_a_machine_that_runs_is_not_ready_while_a_stranger_has_the_name_of_a_part() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN])
        await put(w, Service, "web-ssh", {"spec": {"ports": [{"port": 1}]}})
        await w.change(expose=EXPOSE)
        await w.until_condition("Ready", "False", "NotOurs")
        assert await w.vmi() is not None
        await w.client.delete(Service, "web-ssh", SPACE)
        await w.until_condition("Ready", "True", "VMRunning")


async def test_a_claim_that_a_stranger_made_in_place_of_ours_is_not_taken_for_it() -> None:
    """The status knows a disk of that name: it takes a mark of ours on the claim as well."""
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN, PLAIN | {"name": "data", "deletePolicy": "Retain"}])
        await w.change(powerState="Stopped")
        await w.phase("Stopped")
        for name in ("web-system", "web-data"):
            await w.client.delete(PersistentVolumeClaim, name, SPACE)
            await w.gone(PersistentVolumeClaim, name)
            await put(w, PersistentVolumeClaim, name, {"spec": CLAIM})
        w.writes()
        await w.until_condition("VolumesBound", "False", "ClaimNotOurs")
        await w.delete()
        await w.gone(Wukong, "web")
        await asyncio.sleep(60)
        for name in ("web-system", "web-data"):
            assert await w.find(PersistentVolumeClaim, name) is not None
            assert written(w, PersistentVolumeClaim, name) == []


async def test_a_disk_that_an_earlier_version_kept_is_known_by_status_and_label() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN | {"deletePolicy": "Retain"}])
        w.cluster.hold("wukong", manager=w.manager)
        plain = MergePatch({"metadata": {"annotations": {ADOPT_BY: None}}})
        await w.client.patch(PersistentVolumeClaim, "web-system", plain, SPACE)
        await w.cluster.settle()
        w.cluster.release("wukong", manager=w.manager)
        await asyncio.sleep(30)
        claim = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        assert claim.metadata.annotations.get(ADOPT_BY) == "Wukong/web"
        assert await w.condition("Ready") == ("True", "VMRunning")


SOURCE = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine"}


async def test_snapshots_and_restores_of_strangers_are_neither_taken_for_ours_nor_used() -> None:
    async with world(timings=QUICK) as w:
        await put(w, VirtualMachine, "theirs-vm", {"spec": MACHINE})
        await w.create("theirs", disks=[PLAIN])
        await w.running(disks=[PLAIN])
        theirs = {"spec": {"source": SOURCE | {"name": "theirs-vm"}}}
        await put(w, VirtualMachineSnapshot, "taken", theirs)
        await take(w, "taken")
        await take(w, "stranger", "theirs")
        assert "has no controller" in (await until_phase(w, "taken", "Failed")).status.error
        await until_phase(w, "stranger", "Pending")
        await take(w, "good")
        await until_phase(w, "good", "Succeeded")
        await asyncio.sleep(60)
        assert written(w, VirtualMachineSnapshot, "taken") == []
        assert await w.find(VirtualMachineSnapshot, "stranger") is None, "their machine is left alone"
        name = restore_name("web", "good")
        target = {"target": SOURCE | {"name": "theirs-vm"}, "virtualMachineSnapshotName": "taken"}
        await put(w, VirtualMachineRestore, name, {"spec": target})
        await w.change(restoreFromSnapshot="good")
        await w.until_condition("RestoreInProgress", "False", "NotOurs")
        await asyncio.sleep(60)
        assert written(w, VirtualMachineRestore, name) == []
        assert (await w.wukong()).status.last_restore == ""
        assert await w.condition("Ready") == ("True", "VMRunning"), "it was not stopped"
        assert await times_said(w, "web", "NotOurs") == 1


@pytest.mark.parametrize("left", ["nothing", "another"])
async def test_a_snapshot_whose_data_are_gone_stops_no_machine(left: str) -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN])
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        await w.client.delete(VirtualMachineSnapshot, "before", SPACE)
        await w.gone(VirtualMachineSnapshot, "before")
        if left == "another":
            await put(w, VirtualMachineSnapshot, "before", {"spec": {"source": SOURCE | {"name": "web-vm"}}})
        await asyncio.sleep(20)
        first = await w.vmi()
        await w.change(restoreFromSnapshot="before")
        await w.until_condition("RestoreInProgress", "False", "SnapshotLost")
        await asyncio.sleep(60)
        now = await w.vmi()
        assert first is not None
        assert now is not None
        assert now.metadata.uid == first.metadata.uid


async def test_a_policy_of_a_stranger_is_left_as_it_is() -> None:
    async with world(timings=QUICK, options=Options(node_interfaces=frozenset({"ens224"}))) as w:
        name = "wukong-br-br-lan"
        bridge = {"name": "br-lan", "type": "linux-bridge", "state": "up", "bridge": {"port": [{"name": "ens224"}]}}
        await put(w, NodeNetworkConfigurationPolicy, name, {"spec": {"desiredState": {"interfaces": [bridge]}}})
        await asyncio.sleep(10)
        await w.create(disks=[PLAIN], networks=[LAN[0], LAN[1] | {"physicalInterface": "ens224"}])
        await w.until_condition("NetworksConfigured", "False", "PolicyNotOurs")
        assert await w.condition("Ready") == ("False", "PolicyNotOurs")
        asks = MergePatch({"metadata": {"annotations": {ADOPT_BY: "Wukong/other"}}})
        await w.client.patch(NodeNetworkConfigurationPolicy, name, asks)
        await asyncio.sleep(60)
        assert written(w, NodeNetworkConfigurationPolicy, name) == []
        asks = MergePatch({"metadata": {"annotations": {ADOPT_BY: "Wukong/web"}}})
        await w.client.patch(NodeNetworkConfigurationPolicy, name, asks)
        await w.phase("Running")
        policy = await w.client.get(NodeNetworkConfigurationPolicy, name)
        assert policy.metadata.labels["app.kubernetes.io/managed-by"] == "wukong-operator"


@pytest.mark.parametrize("late", [False, True], ids=["operator first", "collector first"])
@pytest.mark.spec("W-10")
async def test_a_deletion_that_orphans_leaves_everything(late: bool) -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[*SPEC["disks"], PLAIN | {"name": "data"}], networks=LAN)
        first = await w.vmi()
        if late:
            w.cluster.hold("wukong", manager=w.manager)
        await w.client.delete(Wukong, "web", SPACE, propagation="Orphan")
        await w.cluster.settle()
        if late:
            assert len((await w.wukong()).metadata.finalizers) == 1
            w.cluster.release("wukong", manager=w.manager)
        await w.gone(Wukong, "web")
        await asyncio.sleep(120)
        now = await w.vmi()
        assert first is not None
        assert now is not None
        assert now.metadata.uid == first.metadata.uid
        for kind, name in ((DataVolume, "web-system"), (PersistentVolumeClaim, "web-data"),
                           (PersistentVolumeClaim, "web-system"), (NetworkAttachmentDefinition, "web-lan-nad"),
                           (Secret, "web-cloudinit")):  # fmt: skip
            left = await w.client.get(kind, name, SPACE)
            assert left.metadata.deletion_timestamp is None, name


@pytest.mark.spec("W-10")
async def test_claims_to_keep_are_taken_from_the_machine_before_it_goes() -> None:
    """A restore makes the machine their owner, and they would go with it."""
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN | {"deletePolicy": "Retain"}])
        machine = await w.vm()
        assert machine is not None
        w.cluster.hold("wukong", manager=w.manager)
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web-vm",
                 "uid": machine.metadata.uid, "controller": True}  # fmt: skip
        patch = MergePatch({"metadata": {"ownerReferences": [owner]}})
        await w.client.patch(PersistentVolumeClaim, "web-system", patch, SPACE)
        await w.delete()
        await w.cluster.settle()
        w.cluster.release("wukong", manager=w.manager)
        await w.gone(Wukong, "web")
        await asyncio.sleep(120)
        assert (await w.client.get(PersistentVolumeClaim, "web-system", SPACE)).metadata.owner_references == []


@pytest.mark.spec("W-10")
@pytest.mark.parametrize("policy", ["Delete", "Retain"])
async def test_a_filled_disk_that_a_restore_put_back_goes_or_stays_as_its_policy_says(policy: str) -> None:
    """No controller looks after its claim any more."""
    async with world(timings=QUICK) as w:
        await w.running(disks=[SPEC["disks"][0] | {"deletePolicy": policy}], startStrategy={"runStrategy": "Always"})
        machine = await w.vm()
        assert machine is not None
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web-vm",
                 "uid": machine.metadata.uid, "controller": True}  # fmt: skip
        patch = MergePatch({"metadata": {"ownerReferences": [owner]}})
        await w.client.patch(PersistentVolumeClaim, "web-system", patch, SPACE)

        async def reclaimed() -> bool:
            claim = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
            return [entry.kind for entry in claim.metadata.owner_references] == (
                [] if policy == "Retain" else ["Wukong"]
            )

        await w.until(reclaimed, "the claim without the machine as its owner")
        assert await w.condition("Ready") == ("True", "VMRunning")
        await w.delete()
        await w.gone(Wukong, "web")
        await asyncio.sleep(60)
        assert (await w.find(PersistentVolumeClaim, "web-system") is None) == (policy == "Delete")
