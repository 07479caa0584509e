"""Restoring a machine from a snapshot: its spec and its volumes become what they were, and it is stopped.

The machine must be stopped; what happens until it is, is the restore's own policy. In place, claims are deleted and
made again under their names; otherwise there are new ones, and the machine's volumes point to them.

Upstream: pkg/storage/snapshot/restore.go of KubeVirt.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from math import inf
from typing import Any

from konverge.client import AlreadyExists, MergePatch
from konverge.client.patches import difference
from konverge.objects import times
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.runtime import Context, Controller, Request, Use, Watches, controller_of
from konverge.runtime.context import Caches
from konverge.sim.kubevirt import faults
from konverge.sim.kubevirt.controller import PhaseController
from konverge.sim.kubevirt.kinds import (
    OVER,
    DataVolume,
    Instance,
    Obj,
    Restore,
    Snapshot,
    SnapshotContent,
    VirtualMachine,
    is_true,
    live,
    reference,
    set_condition,
)
from konverge.sim.kubevirt.snapshots import RESTORE, lock, unlock

NAME = "restore.kubevirt.io/name"
_GRACE = 300.0
_WAITS = "Waiting for target VM to be powered off. Please stop the restore target to proceed with restore"


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
        ]
        return [self._declared(instances, uses=[*snapshots, *volumes])]

    def _is_over(self, obj: Restore) -> bool:
        return bool(obj.status.get("complete")) or is_true(obj.status, "Failure")

    async def _release(self, ctx: Context[Restore]) -> None:
        await unlock(ctx, ctx.obj.spec["target"]["name"], RESTORE)

    async def _advance(self, ctx: Context[Restore], wrong: faults.Faults) -> float:
        """Infinity: it is over, one way or the other."""
        restore, status = ctx.obj, ctx.obj.status
        machine = await live(ctx.client, VirtualMachine, restore.spec["target"]["name"], ctx.request.namespace)
        status.setdefault("complete", False)
        content = await self._content(ctx)
        if machine is None or content is None:
            set_condition(status, "Progressing", False, "the snapshot is not ready or the target is missing")
            return self._timings.retry[0]
        left = await self._stopped(ctx, machine)
        if left:
            return left
        if not await lock(ctx, machine, RESTORE):
            return self._timings.retry[0]
        set_condition(status, "Progressing", True, "Creating new PVCs")
        set_condition(status, "Ready", False, "Waiting for new PVCs")
        if "stuck" in wrong:
            return self._timings.retry[0]
        if "fails" in wrong:
            return self._fail(ctx, "the storage refuses")
        left = self._pace.left(restore.metadata, "restore", self._timings.restore)
        for backup in content.spec["volumeBackups"]:
            if not await self._restored(ctx, machine, backup):
                return left or self._timings.begin[1]
        if left:
            return left
        await self._rewrite(ctx, machine, content)
        status |= {"complete": True, "restoreTime": times.now()}
        set_condition(status, "Progressing", False, "Operation complete")
        set_condition(status, "Ready", True, "Operation complete")
        message = f"Successfully completed VirtualMachineRestore {restore.metadata.name}"
        ctx.event("VirtualMachineRestoreComplete", message)
        return inf

    async def _content(self, ctx: Context[Restore]) -> SnapshotContent | None:
        snapshot = await ctx.get(Snapshot, ctx.obj.spec["virtualMachineSnapshotName"])
        if snapshot is None or not snapshot.status.get("readyToUse"):
            return None
        return await ctx.get(SnapshotContent, snapshot.status["virtualMachineSnapshotContentName"])

    async def _stopped(self, ctx: Context[Restore], machine: VirtualMachine) -> float:
        """0: the target is stopped. Otherwise when to look again, or infinity when it has taken too long."""
        instance = await ctx.get(Instance, machine.metadata.name)
        if instance is None or instance.status.get("phase") in OVER:
            return 0.0
        policy = ctx.obj.spec.get("targetReadinessPolicy", "WaitGracePeriod")
        for name in ("Progressing", "Ready"):
            set_condition(ctx.obj.status, name, False, _WAITS)
        left = self._pace.left(ctx.obj.metadata, "grace", (_GRACE, _GRACE))
        if policy == "FailImmediate" or (policy == "WaitGracePeriod" and left == 0):
            return self._fail(ctx, "Restore target VMI must be powered off before restore operation")
        if policy == "StopTarget":
            await self._patch(ctx, machine, _halted(machine.spec))
        return left or _GRACE

    def _fail(self, ctx: Context[Restore], why: str) -> float:
        set_condition(ctx.obj.status, "Progressing", False, why)
        set_condition(ctx.obj.status, "Ready", False, why)
        set_condition(ctx.obj.status, "Failure", True, why)
        ctx.warning("VirtualMachineRestoreError", f"VirtualMachineRestore encountered error {why}")
        return inf

    # -------------------------------------------------------------- volumes

    async def _restored(self, ctx: Context[Restore], machine: VirtualMachine, backup: Obj) -> bool:
        """Whether the claim of one volume is there again."""
        name = self._name(ctx.obj, backup)
        claim = await ctx.get(PersistentVolumeClaim, name)
        if claim is not None and claim.metadata.annotations.get(NAME) == ctx.obj.metadata.name:
            return claim.metadata.deletion_timestamp is None
        if claim is not None:
            await self._clear(ctx, claim)
            return False
        made = _claim(ctx.obj, machine, backup, name)
        try:
            await ctx.client.create(made, resource=PersistentVolumeClaim.resource)
        except AlreadyExists:
            return False
        entry = {key: backup[key] for key in ("volumeName", "volumeSnapshotName")}
        entry["persistentVolumeClaim"] = name
        ctx.obj.status["restores"] = [*ctx.obj.status.get("restores", []), entry]
        return False

    def _name(self, restore: Restore, backup: Obj) -> str:
        match restore.spec.get("volumeRestorePolicy", "RandomizeNames"):
            case "InPlace":
                return str(backup["persistentVolumeClaim"]["metadata"]["name"])
            case "PrefixTargetName":
                return f"{restore.spec['target']['name']}-{backup['volumeName']}"
        return f"restore-{restore.metadata.uid}-{backup['volumeName']}"

    async def _clear(self, ctx: Context[Restore], claim: PersistentVolumeClaim) -> None:
        """In place: what is there goes, and the DataVolume that would make it again goes first."""
        owner = controller_of(claim)
        filled = owner is not None and owner.kind == "DataVolume" and ctx.serves(DataVolume)
        if filled and owner is not None and await ctx.delete(DataVolume, owner.name):
            gone = ctx.obj.status.get("deletedDataVolumes", [])
            ctx.obj.status["deletedDataVolumes"] = sorted({*gone, owner.name})
        if claim.metadata.deletion_timestamp is None:
            await ctx.delete(PersistentVolumeClaim, claim.metadata.name)

    # -------------------------------------------------------------- the machine

    async def _rewrite(self, ctx: Context[Restore], machine: VirtualMachine, content: SnapshotContent) -> None:
        spec = deepcopy(content.spec["source"]["virtualMachine"]["spec"])
        names = {backup["volumeName"]: self._name(ctx.obj, backup) for backup in content.spec["volumeBackups"]}
        volumes = spec["template"]["spec"].get("volumes", [])
        for volume in volumes:
            if volume["name"] in names and ctx.obj.spec.get("volumeRestorePolicy") != "InPlace":
                volume.pop("dataVolume", None)
                volume["persistentVolumeClaim"] = {"claimName": names[volume["name"]]}
        gone = ctx.obj.status.get("deletedDataVolumes", [])
        if "dataVolumeTemplates" in spec:
            templates = spec["dataVolumeTemplates"]
            spec["dataVolumeTemplates"] = [dv for dv in templates if dv["metadata"]["name"] not in gone]
        await self._patch(ctx, machine, _halted(spec))

    async def _patch(self, ctx: Context[Restore], machine: VirtualMachine, spec: Obj) -> None:
        changed = difference(machine.spec, spec)
        if changed:
            meta = machine.metadata
            await ctx.client.patch(VirtualMachine, meta.name, MergePatch({"spec": changed}), meta.namespace)


def _restores_of(instance: Instance, caches: Caches) -> Iterable[Request]:
    """Those that may wait for an instance to stop."""
    lister, meta = caches.lister(Restore), instance.metadata
    restores = lister.list(meta.namespace) if lister is not None else []
    waiting = [restore for restore in restores if restore.spec["target"]["name"] == meta.name]
    return [Request(meta.namespace, restore.metadata.name) for restore in waiting]


def _halted(spec: Obj) -> Obj:
    made = {key: value for key, value in spec.items() if key != "running"}
    return {**made, "runStrategy": "Halted"}


def _claim(restore: Restore, machine: VirtualMachine, backup: Obj, name: str) -> Obj:
    saved = backup["persistentVolumeClaim"]
    notes = {
        key: value
        for key, value in (saved["metadata"].get("annotations") or {}).items()
        if "pv.kubernetes.io" not in key and "volume.kubernetes.io" not in key
    }
    metadata: Obj = {
        "name": name,
        "namespace": restore.metadata.namespace,
        "labels": saved["metadata"].get("labels") or {},
        "annotations": {**notes, NAME: restore.metadata.name},
    }
    if restore.spec.get("volumeOwnershipPolicy", "Vm") == "Vm":
        metadata["ownerReferences"] = [reference(machine)]
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": backup["volumeSnapshotName"]}
    spec = {**saved["spec"], "dataSource": source}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
