"""Restoring a machine from a snapshot: its spec and its volumes become what they were.

The machine must be off; what happens until it is, is the restore's own policy. In place, claims are deleted and made
again under their names, and a DataVolume keeps its claim; otherwise there are new ones, and the machine's volumes point
to them. A target that is not there is made. What goes wrong with the storage is said, and tried again: meanwhile, and
until the restore is deleted, the machine is not let go.

Upstream: pkg/storage/snapshot/restore.go of KubeVirt.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from math import inf
from typing import Any

from konverge.client import AlreadyExists, MergePatch
from konverge.client.patches import difference
from konverge.objects import times
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.runtime import Context, Controller, Request, Use, Watches, controller_of
from konverge.runtime.context import Caches
from konverge.sim.kubevirt import faults
from konverge.sim.kubevirt.controller import PhaseController
from konverge.sim.kubevirt.datavolumes import POPULATED_FOR, PREPOPULATED
from konverge.sim.kubevirt.kinds import (
    DataVolume,
    Instance,
    Obj,
    Restore,
    Snapshot,
    SnapshotContent,
    VirtualMachine,
    condition,
    is_true,
    kept,
    live,
    patch,
    reference,
    save,
    set_condition,
)
from konverge.sim.kubevirt.snapshots import RESTORE, lock, unlock

NAME = "restore.kubevirt.io/name"
LAST = "restore.kubevirt.io/lastRestoreUID"
_GRACE = 300.0
_WAITS = "Waiting for target VM to be powered off. Please stop the restore target to proceed with restore"
_OR_ELSE = "or the operation will fail after 5m0s"
_STOPS = "Automatically stopping restore target for restore operation"
_TOO_LATE = "Restore target failed to be ready within 5m0s. Please power off the target VM before attempting restore"
_IS_ON = "Restore target VMI must be powered off before restore operation"
_ANOTHER = "restore source and restore target are different but restore target already exists"
_DROPPED = ("pv.kubernetes.io", "volume.beta.kubernetes.io", "cdi.kubevirt.io", "volume.kubernetes.io")
_CONTENT_TYPE = "cdi.kubevirt.io/storage.contentType"


class Restores(PhaseController[Restore]):
    """The controller of VirtualMachineRestores."""

    kind, short = Restore, "vmrestore"
    name, component = "virt-controller-restores", "restore-controller"
    finalizer = "snapshot.kubevirt.io/vmrestore-protection"

    def controllers(self) -> list[Controller[Any]]:
        instances = Watches(Instance, lookup=_restores_of)
        snapshots = [Use(Snapshot, cached=True), Use(SnapshotContent, cached=True)]
        volumes = [
            Use(PersistentVolumeClaim, "delete", cached=True),
            Use(DataVolume, "delete", cached=True, optional=True),
            Use(StorageClass, cached=True),
        ]
        return [self._declared(instances, uses=[*snapshots, *volumes])]

    def _is_over(self, obj: Restore) -> bool:
        return bool(obj.status.get("complete")) or is_true(obj.status, "Failure")

    async def _release(self, ctx: Context[Restore]) -> None:
        await unlock(ctx, ctx.obj.spec["target"]["name"], RESTORE)
        if ctx.deleting and self.finalizer in ctx.obj.metadata.finalizers:
            before = kept(ctx.obj)
            _say(ctx.obj, False, "VM restore is deleting")
            await save(ctx.client, ctx.obj, before)

    async def _advance(self, ctx: Context[Restore], wrong: faults.Faults) -> float:
        """Infinity: it is over, one way or the other."""
        restore, status = ctx.obj, ctx.obj.status
        machine = await live(ctx.client, VirtualMachine, restore.spec["target"]["name"], ctx.request.namespace)
        if "complete" not in status:
            status["complete"] = False
            _say(restore, True, "Initializing VirtualMachineRestore")
        if machine is not None and not restore.metadata.owner_references:
            await patch(ctx.client, restore, {"metadata": {"ownerReferences": [reference(machine)]}})
        left = await self._stopped(ctx, machine) if machine is not None else 0.0
        if left:
            return left
        content, obstacle = await self._content(ctx, machine)
        if content is None or obstacle:
            return self._trouble(ctx, obstacle)
        restored = _is_restored(machine, restore)
        if machine is not None and not restored and not await lock(ctx, machine, RESTORE):
            return self._timings.retry[0]
        if "fails" in wrong:
            return self._trouble(ctx, "the storage refuses")
        _say(restore, True, "Creating new PVCs", "Waiting for new PVCs")
        if "stuck" in wrong:
            return self._timings.retry[0]
        left = self._pace.left(restore.metadata, "restore", self._timings.restore)
        if not await self._volumes(ctx, machine, content) or left:
            return left or self._timings.begin[1]
        if not restored:
            await self._rewrite(ctx, machine, content)
        if machine is None:
            return self._timings.begin[1]
        await unlock(ctx, machine.metadata.name, RESTORE)
        return self._complete(ctx)

    def _complete(self, ctx: Context[Restore]) -> float:
        status = ctx.obj.status
        status |= {"complete": True, "restoreTime": times.now()}
        set_condition(status, "Progressing", False, "Operation complete")
        set_condition(status, "Ready", True, "Operation complete")
        message = f"Successfully completed VirtualMachineRestore {ctx.obj.metadata.name}"
        ctx.event("VirtualMachineRestoreComplete", message)
        return inf

    async def _content(
        self, ctx: Context[Restore], machine: VirtualMachine | None
    ) -> tuple[SnapshotContent | None, str]:
        """What is restored; or what is in the way of that."""
        name = ctx.obj.spec["virtualMachineSnapshotName"]
        snapshot, place = await ctx.get(Snapshot, name), f"VMSnapshot {ctx.request.namespace}/{name}"
        if snapshot is None:
            return None, f"{place} does not exist"
        if is_true(snapshot.status, "Failure"):
            return None, f"{place} failed and is invalid to use"
        if not snapshot.status.get("readyToUse"):
            return None, f"{place} not ready"
        name = snapshot.status["virtualMachineSnapshotContentName"]
        content = await ctx.get(SnapshotContent, name)
        if content is None:
            return None, f"VMSnapshotContent {ctx.request.namespace}/{name} does not exist"
        another = machine is not None and snapshot.status.get("sourceUID") not in (None, machine.metadata.uid)
        return content, _ANOTHER if another and not _is_restored(machine, ctx.obj) else ""

    async def _stopped(self, ctx: Context[Restore], machine: VirtualMachine) -> float:
        """0: the target is off. Otherwise when to look again, or infinity when it has taken too long."""
        if await ctx.get(Instance, machine.metadata.name) is None:
            return 0.0
        policy = ctx.obj.spec.get("targetReadinessPolicy", "WaitGracePeriod")
        left = self._pace.left(ctx.obj.metadata, "grace", (_GRACE, _GRACE))
        if policy == "FailImmediate":
            return self._fail(ctx, _IS_ON)
        if policy == "WaitGracePeriod" and left == 0:
            return self._fail(ctx, _TOO_LATE)
        if policy == "StopTarget":
            _say(ctx.obj, False, _STOPS)
            await self._patch(ctx, machine, _halted(machine.spec))
        else:
            _say(ctx.obj, False, _WAITS if policy == "WaitEventually" else f"{_WAITS}, {_OR_ELSE}")
        return left or _GRACE

    def _trouble(self, ctx: Context[Restore], why: str) -> float:
        """It is tried again."""
        if condition(ctx.obj.status, "Progressing").get("reason") != why:
            ctx.warning("VirtualMachineRestoreError", f"VirtualMachineRestore encountered error {why}")
        _say(ctx.obj, False, why)
        return self._timings.retry[0]

    def _fail(self, ctx: Context[Restore], why: str) -> float:
        """For good: KubeVirt does so only with a target that is not off."""
        _say(ctx.obj, False, why)
        set_condition(ctx.obj.status, "Failure", True, why)
        ctx.warning("Operation failed", f"VirtualMachineRestore failed {why}")
        return inf

    # -------------------------------------------------------------- volumes

    async def _volumes(self, ctx: Context[Restore], machine: VirtualMachine | None, content: SnapshotContent) -> bool:
        """Whether the claims of all volumes are there again."""
        backups = content.spec["volumeBackups"]
        entries = ctx.obj.status.setdefault("restores", [self._entry(ctx.obj, backup) for backup in backups])
        source = content.spec["source"]["virtualMachine"]
        templates = _templates(source["spec"])
        done = []
        for backup, entry in zip(backups, entries, strict=True):
            if backup["volumeName"] in templates:
                entry["dataVolumeName"] = entry["persistentVolumeClaim"]
            done.append(await self._restored(ctx, machine, source["metadata"], backup, entry))
        return all(done)

    async def _restored(
        self, ctx: Context[Restore], machine: VirtualMachine | None, source: Obj, backup: Obj, entry: Obj
    ) -> bool:
        claim = await ctx.get(PersistentVolumeClaim, entry["persistentVolumeClaim"])
        if claim is None:
            made = _claim(ctx.obj, machine, source, backup, entry)
            with suppress(AlreadyExists):
                await ctx.client.create(made, resource=PersistentVolumeClaim.resource)
            return False
        if _in_place(ctx.obj) and claim.metadata.annotations.get(LAST) != _mark(ctx.obj):
            await self._clear(ctx, claim, entry)
            return False
        return claim.status.phase == "Bound" or await _is_used_first(ctx, claim)

    def _entry(self, restore: Restore, backup: Obj) -> Obj:
        entry = {key: backup[key] for key in ("volumeName", "volumeSnapshotName")}
        return {**entry, "persistentVolumeClaim": self._name(restore, backup)}

    def _name(self, restore: Restore, backup: Obj) -> str:
        match restore.spec.get("volumeRestorePolicy", "RandomizeNames"):
            case "InPlace":
                return str(backup["persistentVolumeClaim"]["metadata"]["name"])
            case "PrefixTargetName":
                return f"{restore.spec['target']['name']}-{backup['volumeName']}"
        return f"restore-{restore.metadata.uid}-{backup['volumeName']}"

    async def _clear(self, ctx: Context[Restore], claim: PersistentVolumeClaim, entry: Obj) -> None:
        """In place: what is there goes. Before that, its DataVolume hears that it is not to make another one."""
        owner = controller_of(claim)
        if owner is not None and owner.kind == "DataVolume" and ctx.serves(DataVolume):
            entry["dataVolumeName"] = owner.name
            volume = await ctx.get(DataVolume, owner.name)
            if volume is not None and PREPOPULATED not in volume.metadata.annotations:
                notes = {NAME: ctx.obj.metadata.name, PREPOPULATED: owner.name}
                await patch(ctx.client, volume, {"metadata": {"annotations": notes}})
                return
        if claim.metadata.deletion_timestamp is None:
            await ctx.delete(PersistentVolumeClaim, claim.metadata.name)

    # -------------------------------------------------------------- the machine

    async def _rewrite(self, ctx: Context[Restore], machine: VirtualMachine | None, content: SnapshotContent) -> None:
        spec, restore = _spec_of(content, ctx.obj.status["restores"]), ctx.obj
        if machine is None:
            await ctx.client.create(_machine(restore, content, spec), resource=VirtualMachine.resource)
            return
        for key in ("running", "runStrategy"):  # it stays as it was found
            spec.pop(key, None)
        spec |= {"running": False} if "running" in machine.spec else {"runStrategy": machine.spec["runStrategy"]}
        left = {template["metadata"]["name"] for template in spec.get("dataVolumeTemplates", [])}
        before = (template["metadata"]["name"] for template in machine.spec.get("dataVolumeTemplates", []))
        restore.status["deletedDataVolumes"] = [name for name in before if name not in left]
        body = {"metadata": {"annotations": {LAST: _mark(restore)}}, "spec": difference(machine.spec, spec)}
        await patch(ctx.client, machine, body)
        for name in restore.status["deletedDataVolumes"]:
            await ctx.delete(DataVolume, name)

    async def _patch(self, ctx: Context[Restore], machine: VirtualMachine, spec: Obj) -> None:
        changed = difference(machine.spec, spec)
        if changed:
            meta = machine.metadata
            await ctx.client.patch(VirtualMachine, meta.name, MergePatch({"spec": changed}), meta.namespace)


def _say(restore: Restore, progressing: bool, why: str, waits: str = "") -> None:
    set_condition(restore.status, "Progressing", progressing, why)
    set_condition(restore.status, "Ready", False, waits or why)


def _mark(restore: Restore) -> str:
    """In what was restored: by which restore."""
    return f"{restore.metadata.name}-{restore.metadata.uid}"


def _is_restored(machine: VirtualMachine | None, restore: Restore) -> bool:
    return machine is not None and machine.metadata.annotations.get(LAST) == _mark(restore)


def _in_place(restore: Restore) -> bool:
    return restore.spec.get("volumeRestorePolicy") == "InPlace"


async def _is_used_first(ctx: Context[Restore], claim: PersistentVolumeClaim) -> bool:
    """Whether its class waits for a pod: then the restore does not wait for the claim."""
    kind = await ctx.get(StorageClass, claim.spec.storage_class_name) if claim.spec.storage_class_name else None
    return kind is not None and kind.volume_binding_mode == "WaitForFirstConsumer"


def _restores_of(instance: Instance, caches: Caches) -> Iterable[Request]:
    """Those that may wait for an instance to stop."""
    lister, meta = caches.lister(Restore), instance.metadata
    restores = lister.list(meta.namespace) if lister is not None else []
    waiting = [restore for restore in restores if restore.spec["target"]["name"] == meta.name]
    return [Request(meta.namespace, restore.metadata.name) for restore in waiting]


# ------------------------------------------------------------------ what is made


def _halted(spec: Obj) -> Obj:
    made = {key: value for key, value in spec.items() if key != "running"}
    return {**made, "runStrategy": "Halted"}


def _templates(spec: Obj) -> dict[str, Obj]:
    """By the name of a volume: the template of its DataVolume, if the machine has that."""
    made = {template["metadata"]["name"]: template for template in spec.get("dataVolumeTemplates", [])}
    volumes = spec["template"]["spec"].get("volumes", [])
    named = {volume["name"]: (volume.get("dataVolume") or {}).get("name") for volume in volumes}
    return {volume: made[name] for volume, name in named.items() if name in made}


def _spec_of(content: SnapshotContent, entries: Iterable[Obj]) -> Obj:
    """What the machine was, with the volumes that were restored."""
    spec: Obj = deepcopy(content.spec["source"]["virtualMachine"]["spec"])
    templates, restored = _templates(spec), {entry["volumeName"]: entry for entry in entries}
    for volume in spec["template"]["spec"].get("volumes", []):
        entry = restored.get(volume["name"])
        if entry is None:
            continue
        name = entry["persistentVolumeClaim"]
        if volume["name"] in templates:
            templates[volume["name"]]["metadata"]["name"] = volume["dataVolume"]["name"] = name
        else:
            volume.pop("dataVolume", None)
            volume.setdefault("persistentVolumeClaim", {})["claimName"] = name
    return spec


def _machine(restore: Restore, content: SnapshotContent, spec: Obj) -> Obj:
    """A target that was not there."""
    source = content.spec["source"]["virtualMachine"]["metadata"]
    meta = {
        "name": restore.spec["target"]["name"],
        "namespace": restore.metadata.namespace,
        "labels": source.get("labels") or {},
        "annotations": {**(source.get("annotations") or {}), LAST: _mark(restore)},
    }
    resource = VirtualMachine.resource
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": _halted(spec)}


def _claim(restore: Restore, machine: VirtualMachine | None, source: Obj, backup: Obj, entry: Obj) -> Obj:
    saved = backup["persistentVolumeClaim"]
    notes = {
        key: value
        for key, value in (saved["metadata"].get("annotations") or {}).items()
        if key == _CONTENT_TYPE or not key.startswith(_DROPPED)
    }
    labels = {
        **(saved["metadata"].get("labels") or {}),
        "restore.kubevirt.io/source-vm-name": source["name"],
        "restore.kubevirt.io/source-vm-namespace": source["namespace"],
    }
    metadata: Obj = {
        "name": entry["persistentVolumeClaim"],
        "namespace": restore.metadata.namespace,
        "labels": labels,
        "annotations": {**notes, NAME: restore.metadata.name, LAST: _mark(restore)},
    }
    if entry.get("dataVolumeName"):
        metadata["annotations"][POPULATED_FOR] = entry["dataVolumeName"]
    elif machine is not None and restore.spec.get("volumeOwnershipPolicy", "Vm") == "Vm":
        metadata["ownerReferences"] = [reference(machine)]
    snapshot = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": backup["volumeSnapshotName"]}
    spec = {**saved["spec"], "dataSource": snapshot, "dataSourceRef": snapshot}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
