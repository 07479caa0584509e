"""Definitions of older versions of KubeVirt and CDI: what they lack is said before anything is touched."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Event
from konverge.operators.wukong.definitions import ANYTHING, absent_fields, read_schema
from konverge.operators.wukong.kinds import DataVolume, VirtualMachine, VirtualMachineInstance, VirtualMachineRestore
from konverge.operators.wukong.names import restore as restore_name
from konverge.operators.wukong.steps.power import HALTED_FROM
from konverge.sim.kubevirt import QUICK
from konverge.sim.kubevirt.crds import definitions
from tests.operators.wukong.test_snapshots import take, until_phase
from tests.operators.wukong.world import SPACE, World, world

pytestmark = pytest.mark.spec("W-17")

PLAIN: dict[str, Any] = {"name": "system", "size": "1Gi", "storageClassName": "fast"}
HTTP = {"type": "object", "properties": {name: {"type": "string"} for name in ("url", "secretRef", "certConfigMap")}}
OLD_SOURCE = {"type": "object", "properties": {"http": HTTP, "blank": {"type": "object"}}}


def definition(part: str, kind: str) -> dict[str, Any]:
    """A copy of its own, also of what its versions share."""
    item = next(item for item in definitions(part) if item["spec"]["names"]["kind"] == kind)
    copied: dict[str, Any] = json.loads(json.dumps(item))
    return copied


async def install(w: World, changed: dict[str, Any]) -> None:
    await w.client.apply(changed, field_manager="simulated-kubevirt", force=True)
    await w.cluster.settle()


def spec_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry["schema"]["openAPIV3Schema"]["properties"]["spec"] for entry in item["spec"]["versions"]]


def old_restore(*, strict: bool) -> dict[str, Any]:
    """As KubeVirt 1.5 has it; strict, the API server removes what is not named."""
    item = definition("snapshot", "VirtualMachineRestore")
    for spec in spec_of(item):
        del spec["properties"]["volumeRestorePolicy"]
        if strict:
            del spec["x-kubernetes-preserve-unknown-fields"]
    return item


def old_volume() -> dict[str, Any]:
    item = definition("cdi", "DataVolume")
    for spec in spec_of(item):
        spec["properties"]["source"] = OLD_SOURCE
    return item


async def said(w: World, reason: str) -> int:
    return sum(event.count or 1 for event in await w.client.list(Event, SPACE, field_selector=f"reason={reason}"))


@pytest.mark.virtual
@pytest.mark.parametrize("strict", [True, False], ids=["removed", "kept and not looked at"])
async def test_a_restore_that_kubevirt_cannot_do_stops_no_machine(strict: bool) -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN])
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        await install(w, old_restore(strict=strict))
        first = await w.vmi()
        w.writes()
        await w.change(restoreFromSnapshot="before")
        await w.until_condition("RestoreInProgress", "False", "RestoreUnavailable")
        assert "spec.volumeRestorePolicy (KubeVirt 1.6 has it)" in await w.message("RestoreInProgress")
        await asyncio.sleep(120)
        now = await w.vmi()
        assert first is not None
        assert now is not None
        assert now.metadata.uid == first.metadata.uid
        kinds = {call.resource.kind for call in w.writes() if call.resource is not None}
        assert kinds == {"Wukong"}, "nothing but its status was written"
        assert await said(w, "RestoreUnavailable") == 1
        assert await w.condition("Ready") == ("True", "VMRunning")
        await install(w, definition("snapshot", "VirtualMachineRestore"))

        async def restored() -> bool:
            return (await w.wukong()).status.last_restore == "before"

        await w.until(restored, "the restore, after an upgrade of KubeVirt")
        await w.phase("Running")


@pytest.mark.virtual
async def test_a_machine_that_was_stopped_for_a_restore_that_cannot_be_is_on_again() -> None:
    """An operator that did not look first has left it so."""
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN], startStrategy={"runStrategy": "Always"})
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        await install(w, old_restore(strict=True))
        w.cluster.hold("wukong", manager=w.manager)
        halted = {"metadata": {"annotations": {HALTED_FROM: "Always"}}, "spec": {"runStrategy": "Halted"}}
        await w.client.patch(
            VirtualMachine, "web-vm", MergePatch(halted), SPACE, field_manager=w.manager.name, force=False
        )
        await w.gone(VirtualMachineInstance, "web-vm")
        await w.change(restoreFromSnapshot="before")
        w.cluster.release("wukong", manager=w.manager)
        await w.until_condition("RestoreInProgress", "False", "RestoreUnavailable")
        await w.phase("Running")
        machine = await w.vm()
        assert machine is not None
        assert machine.spec.run_strategy == "Always"


@pytest.mark.virtual
async def test_a_restore_into_other_claims_is_not_taken_for_ours() -> None:
    async with world(timings=QUICK) as w:
        wukong = await w.running(disks=[PLAIN])
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        w.cluster.hold("wukong", manager=w.manager)
        await w.change(restoreFromSnapshot="before")
        owner = {"apiVersion": wukong.api_version, "kind": "Wukong", "name": "web", "uid": wukong.metadata.uid,
                 "controller": True}  # fmt: skip
        target = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"}
        made = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore",
                "metadata": {"name": restore_name("web", "before"), "namespace": SPACE, "ownerReferences": [owner]},
                "spec": {"target": target, "virtualMachineSnapshotName": "before"}}  # fmt: skip
        await w.client.create(made)
        w.cluster.release("wukong", manager=w.manager)
        await w.until_condition("RestoreInProgress", "False", "RestoreUnavailable")
        assert (await w.wukong()).status.last_restore == ""


@pytest.mark.virtual
async def test_a_restore_that_kubevirt_gave_to_the_machine_is_still_ours() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[PLAIN])
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        await w.change(restoreFromSnapshot="before")
        name = restore_name("web", "before")

        async def made() -> bool:
            return await w.find(VirtualMachineRestore, name) is not None

        await w.until(made, "the restore")
        machine = await w.vm()
        assert machine is not None
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web-vm",
                 "uid": machine.metadata.uid, "controller": True, "blockOwnerDeletion": True}  # fmt: skip
        patch = MergePatch({"metadata": {"ownerReferences": [owner]}})
        await w.client.patch(VirtualMachineRestore, name, patch, SPACE)

        async def restored() -> bool:
            return (await w.wukong()).status.last_restore == "before"

        await w.until(restored, "the restore")
        await w.change(restoreFromSnapshot=None)
        await w.gone(VirtualMachineRestore, name)


@pytest.mark.virtual
async def test_a_checksum_that_cdi_would_not_look_at_is_said_and_nothing_is_imported() -> None:
    image = {"image": "https://example.com/a.img", "checksum": f"sha256:{'a' * 64}"}
    async with world(timings=QUICK) as w:
        await install(w, old_volume())
        await w.create(disks=[PLAIN | image])
        await w.create("plain", disks=[PLAIN | {"image": image["image"]}])
        await w.until_condition("VolumesBound", "False", "CDITooOld")
        assert "spec.source.http.checksum (CDI 1.65 has it)" in await w.message("VolumesBound")
        assert (await w.wukong()).status.phase == "Error"
        await w.phase("Running", "plain")
        await asyncio.sleep(60)
        assert await w.find(DataVolume, "web-system") is None
        assert await said(w, "CDITooOld") == 1
        await install(w, definition("cdi", "DataVolume"))
        await w.until(lambda: w.find(DataVolume, "web-system"), "an import, after an upgrade of CDI")


@pytest.mark.virtual
async def test_a_machine_with_a_field_that_kubevirt_lacks_is_not_made() -> None:
    item = definition("kubevirt", "VirtualMachine")
    for spec in spec_of(item):
        domain = spec["properties"]["template"]["properties"]["spec"]["properties"]["domain"]
        devices = domain["properties"]["devices"]
        del devices["x-kubernetes-preserve-unknown-fields"]
        devices["properties"]["autoattachPodInterface"] = {"type": "boolean"}
    async with world(timings=QUICK) as w:
        await install(w, item)
        await w.create(disks=[PLAIN], tpm=True)
        await w.create("plain", disks=[PLAIN])
        await w.until_condition("VirtualMachineReady", "False", "KubeVirtTooOld")
        assert "spec.template.spec.domain.devices.tpm" in await w.message("Ready")
        assert await w.vm() is None
        await w.phase("Running", "plain")
        await w.change(tpm=False)
        await w.phase("Running")


@pytest.mark.virtual
async def test_definitions_are_read_once_for_many_machines() -> None:
    async with world(timings=QUICK) as w:
        for number in range(8):
            await w.create(f"web{number}", disks=[PLAIN])
        for number in range(8):
            await w.phase("Running", f"web{number}")
        await asyncio.sleep(60)
        reads = [call.name for call in w.recording.calls if call.verb == "get" and call.resource is not None
                 and call.resource.plural == "customresourcedefinitions"]  # fmt: skip
        assert reads == ["virtualmachines.kubevirt.io"]


OBJECT: dict[str, Any] = {"type": "object"}
FREE: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("schema", "value", "absent"),
    [
        (OBJECT, {}, []),
        (OBJECT, {"a": 1}, ["a"]),
        (FREE, {"a": {"b": 1}}, []),
        (FREE, {"new": 1}, []),
        ({**FREE, "properties": {"a": OBJECT}}, {"new": 1, "other": 1}, ["new"]),
        ({**FREE, "properties": {"a": OBJECT}}, {"a": {"b": 1}}, ["a.b"]),
        ({**OBJECT, "properties": {"a": {"type": "string"}}}, {"a": "x", "b": "y"}, ["b"]),
        ({**OBJECT, "additionalProperties": {"type": "string"}}, {"a": "x"}, []),
        ({**OBJECT, "additionalProperties": {**OBJECT, "properties": {"x": OBJECT}}}, {"a": {"y": 1}}, ["a.y"]),
        ({**OBJECT, "additionalProperties": True}, {"a": {"y": 1}}, []),
        (
            {**OBJECT, "properties": {"l": {"type": "array", "items": {**OBJECT, "properties": {"x": OBJECT}}}}},
            {"l": [{"x": {}}, {"y": 1}]},
            ["l[].y"],
        ),
        ({**OBJECT, "properties": {"p": {"type": "string", "enum": ["A", "B"]}}}, {"p": "A"}, []),
        ({**OBJECT, "properties": {"p": {"type": "string", "enum": ["A", "B"]}}}, {"p": "InPlace"}, ["p: InPlace"]),
    ],
)
def test_fields_that_the_server_would_remove(schema: dict[str, Any], value: Any, absent: list[str]) -> None:
    assert list(absent_fields(read_schema(schema), value, {"new": "1.0"})) == absent


def test_a_definition_that_cannot_be_read_refuses_nothing() -> None:
    assert list(absent_fields(ANYTHING, {"spec": {"a": [1, {"b": 2}]}}, {"spec.a": "1"})) == []
