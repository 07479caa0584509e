"""Moves that fail or are cancelled, and restores: by KubeVirt's own controllers, and by the simulated ones."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, MergePatch
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.resource import Resource
from konverge.sim.kubevirt.faults import ANNOTATION
from tests.real.kubevirt import FATE, Obj, until
from tests.real.kubevirt_sides import real_side, simulated_side, snapshot_of
from tests.real.loopback import PATIENCE
from tests.real.sides import differences
from tests.real.test_kubevirt_side_by_side import shows
from tests.real.test_kubevirt_together import is_in, moved, moving
from tests.sim.kubevirt.conftest import DV, SPACE, VM, VMI, VMIM, claim, data_volume, machine
from tests.sim.kubevirt.test_snapshots import RESTORE, SNAPSHOT

CLAIM = PersistentVolumeClaim.resource


async def ended(client: Client, kind: Resource, name: str) -> Obj:
    """Delete it; what it was when it went."""
    named = f"metadata.name={name}"
    version = (await client.list(kind, SPACE, field_selector=named)).metadata.resource_version
    await client.delete(kind, name, SPACE)
    async with asyncio.timeout(PATIENCE):
        async for event in client.watch(kind, SPACE, field_selector=named, resource_version=version):
            if event.type == "DELETED":
                return event.object
    raise AssertionError("the watch has ended")


# ------------------------------------------------------------------ migrations


async def guest(client: Client, name: str, *, fate: str = "", **template: Any) -> None:
    """A machine that runs. What becomes of its move is told to those who stand in for virt-handler."""
    made = machine(name, template=template)
    made["spec"]["template"]["metadata"] = {"annotations": {FATE: fate}}
    await client.create(made)
    await until(client, VM, name, SPACE, shows("Running", ready=True))


def doomed(name: str, of: str, fault: str) -> Obj:
    """For the simulated KubeVirt: the other hears of it by the annotation of the instance."""
    made = moving(name, of)
    made["metadata"]["annotations"] = {ANNOTATION: fault}
    return made


def stayed(migration: Obj, instance: Obj) -> Obj:
    """What an operator reads of a move that was none, and of the guest."""
    state, found = instance["status"].get("migrationState") or {}, moved(migration, instance)
    # Nobody need have seen it run before it fails.
    found["phases"] = [phase for phase in found["phases"] if phase != "Running"]
    told = ("completed", "failed", "failureReason", "abortRequested", "abortStatus")
    return {
        **found,
        "state": {key: state.get(key) or None for key in told},
        "guest": (instance["status"]["phase"], instance["status"]["nodeName"] != state.get("targetNode")),
    }


async def failed_on_the_way(client: Client) -> list[Obj]:
    await guest(client, "unlucky", fate="fails")
    await client.create(doomed("no-luck", "unlucky", "fails"))
    over = await until(client, VMIM, "no-luck", SPACE, lambda obj: is_in("Failed")(obj) and _settled(obj))
    told = stayed(over, await client.get(VMI, "unlucky", SPACE))
    await client.delete(VM, "unlucky", SPACE)
    await until(client, VMIM, "no-luck", SPACE, lambda obj: not obj)  # it goes with its guest
    return [told]


def _settled(obj: Obj) -> bool:
    return not obj["metadata"].get("finalizers")


async def cancelled_before_it_moved(client: Client) -> list[Obj]:
    """There is no second node for it."""
    await guest(client, "pinned", nodeSelector={"kubernetes.io/hostname": "node-1"})
    await client.create(moving("nowhere", "pinned"))
    await until(client, VMIM, "nowhere", SPACE, is_in("Scheduling"))
    gone = await ended(client, VMIM, "nowhere")
    return [stayed(gone, await client.get(VMI, "pinned", SPACE))]


async def cancelled_on_the_way(client: Client) -> list[Obj]:
    await guest(client, "slow", fate="holds")
    await client.create(doomed("slowly", "slow", "stuck"))
    await until(client, VMIM, "slowly", SPACE, is_in("Running"))
    gone = await ended(client, VMIM, "slowly")
    return [stayed(gone, await client.get(VMI, "slow", SPACE))]


# ------------------------------------------------------------------ restores


def restore_of(name: str, snapshot: str, target: str, **spec: Any) -> Obj:
    aim = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": target}
    return {
        "apiVersion": f"{RESTORE.group}/v1beta1",
        "kind": RESTORE.kind,
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"target": aim, "virtualMachineSnapshotName": snapshot, **spec},
    }


async def kept(client: Client, name: str, volume: Obj, **more: Any) -> str:
    """A machine that is off, and a snapshot of it; then the machine is another one."""
    made = machine(name, volume["metadata"]["name"], runStrategy="Halted", **more)
    await client.create(volume)
    await until(client, CLAIM, volume["metadata"]["name"], SPACE, is_in("Bound"))
    if volume["kind"] == DV.kind:
        await until(client, DV, volume["metadata"]["name"], SPACE, is_in("Succeeded"))
    await client.create(made)
    snapshot = f"of-{name}"
    await client.create(snapshot_of(snapshot, name), resource=SNAPSHOT)
    await until(client, SNAPSHOT, snapshot, SPACE, lambda obj: (obj.get("status") or {}).get("readyToUse"))
    await until(client, VM, name, SPACE, lambda vm: not vm["status"].get("snapshotInProgress"))
    larger = {"spec": {"template": {"spec": {"domain": {"cpu": {"sockets": 4}}}}}}
    await client.patch(VM, name, MergePatch(larger), SPACE)
    return snapshot


def said(restore: Obj) -> Obj:
    """What an operator reads of a restore."""
    status, meta = restore["status"], restore["metadata"]
    names = ("volumeName", "persistentVolumeClaim", "dataVolumeName")
    restores = [{key: entry.get(key) for key in names} for entry in status.get("restores") or []]
    conditions = {entry["type"]: (entry["status"], entry.get("reason")) for entry in status["conditions"]}
    return {
        "complete": status.get("complete"),
        "conditions": conditions,
        "restores": _named(restores, meta["uid"]),
        "deleted": status.get("deletedDataVolumes") or [],
        "finalizers": meta.get("finalizers") or [],
        "owners": [(owner["kind"], owner["name"]) for owner in meta.get("ownerReferences", [])],
    }


def _named(value: Any, uid: str) -> Any:
    if isinstance(value, dict):
        return {key: _named(value[key], uid) for key in value}
    if isinstance(value, list):
        return [_named(entry, uid) for entry in value]
    return value.replace(uid, "UID") if isinstance(value, str) else value


async def brought_back(client: Client, restore: Obj, name: str, *others: tuple[Resource, str]) -> list[Obj]:
    """What became of the machine, and of its claims."""
    vm = await client.get(VM, name, SPACE)
    spec, uid = vm["spec"], restore["metadata"]["uid"]
    notes = {key: value for key, value in vm["metadata"].get("annotations", {}).items() if "restore" in key}
    found: list[Obj] = [
        {
            "strategy": spec.get("runStrategy"),
            "sockets": spec["template"]["spec"]["domain"]["cpu"]["sockets"],
            "volumes": _named(spec["template"]["spec"]["volumes"], uid),
            "busy": (vm.get("status") or {}).get("restoreInProgress"),
            "notes": _named(notes, uid),
        }
    ]
    for entry in restore["status"].get("restores") or []:
        found.append(claimed(await client.get(CLAIM, entry["persistentVolumeClaim"], SPACE), uid))
    for kind, other in others:
        meta = (await client.get(kind, other, SPACE))["metadata"]
        found.append({"notes": sorted(meta.get("annotations", {})), "name": other})
    return found


def claimed(obj: Obj, uid: str) -> Obj:
    meta, spec = obj["metadata"], obj["spec"]
    owners = meta.get("ownerReferences", [])
    kept_notes = {
        key: value
        for key, value in meta.get("annotations", {}).items()
        if "kubernetes.io/" not in key and "storage.condition" not in key
    }
    return {
        "labels": meta.get("labels"),
        "notes": _named(kept_notes, uid),
        "owners": [(owner["kind"], owner["name"], owner.get("controller")) for owner in owners],
        "asks": (spec["accessModes"], spec.get("storageClassName"), spec["resources"]),
        "source": (spec.get("dataSource") or {}).get("kind"),
        "ref": (spec.get("dataSourceRef") or {}).get("kind"),
    }


def complete(obj: Obj) -> bool:
    return bool((obj.get("status") or {}).get("complete"))


async def restored_in_place(client: Client) -> list[Any]:
    """The disk is one of CDI's, as those of Wukong: its DataVolume stays."""
    snapshot = await kept(client, "back", data_volume("disk", kind="fast"))
    await client.create(restore_of("inplace", snapshot, "back", volumeRestorePolicy="InPlace"), resource=RESTORE)
    done = await until(client, RESTORE, "inplace", SPACE, complete)
    await until(
        client, CLAIM, "disk", SPACE, lambda obj: is_in("Bound")(obj) and obj["metadata"].get("ownerReferences")
    )
    return [said(done), *await brought_back(client, done, "back", (DV, "disk"))]


async def restored_beside(client: Client) -> list[Any]:
    """By default, there are new claims beside the old ones."""
    snapshot = await kept(client, "beside", claim("data", kind="fast"))
    await client.create(restore_of("fresh", snapshot, "beside"), resource=RESTORE)
    done = await until(client, RESTORE, "fresh", SPACE, complete)
    return [said(done), *await brought_back(client, done, "beside", (CLAIM, "data"))]


async def restored_as_another(client: Client) -> list[Any]:
    """There is no such machine yet."""
    snapshot = await kept(client, "first", claim("original", kind="fast"))
    await client.create(restore_of("twin", snapshot, "second"), resource=RESTORE)
    done = await until(client, RESTORE, "twin", SPACE, complete)
    return [said(done), *await brought_back(client, done, "second")]


async def restored_while_it_runs(client: Client) -> list[Any]:
    """It is refused, or it waits: as it was asked for. Deleted, it has let go of the machine."""
    snapshot = await kept(client, "busy", claim("used", kind="fast"))
    await client.patch(VM, "busy", MergePatch({"spec": {"runStrategy": "Always"}}), SPACE)
    await until(client, VM, "busy", SPACE, shows("Running", ready=True))
    told: list[Any] = []
    for policy in ("FailImmediate", "WaitEventually", "WaitGracePeriod"):
        name = policy.lower()
        await client.create(restore_of(name, snapshot, "busy", targetReadinessPolicy=policy), resource=RESTORE)
        told.append(said(await until(client, RESTORE, name, SPACE, _waits)))
        told.append(said(await ended(client, RESTORE, name)))
    vm = await client.get(VM, "busy", SPACE)
    return [*told, vm["status"].get("restoreInProgress"), vm["spec"]["runStrategy"]]


def _waits(obj: Obj) -> bool:
    """virt-controller has looked at the machine."""
    conditions = (obj.get("status") or {}).get("conditions", [])
    return any(entry["type"] == "Ready" and "Initializing" not in entry.get("reason", "") for entry in conditions)


STORIES: tuple[Any, ...] = (
    failed_on_the_way,
    cancelled_before_it_moved,
    cancelled_on_the_way,
    restored_in_place,
    restored_beside,
    restored_as_another,
    restored_while_it_runs,
)


async def tell(client: Client) -> dict[str, list[Any]]:
    """All at once: each has its own machine."""
    told = await asyncio.gather(*(story(client) for story in STORIES))
    return {story.__name__: part for story, part in zip(STORIES, told, strict=True)}


@pytest.mark.spec("W-39", "W-40", "S-22")
@pytest.mark.limit(600)
async def test_setbacks_and_restores_are_those_of_the_real_one(tmp_path: Path) -> None:
    async with real_side(tmp_path) as client:
        real = await tell(client)
    async with simulated_side(tmp_path) as client:
        simulated = await tell(client)
    assert "\n".join(differences(simulated, real)) == ""
