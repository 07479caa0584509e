"""Snapshots of machines: the spec and the volumes, kept in a VirtualMachineSnapshotContent.

While one is taken, the machine says so and its disks cannot be changed. A source that is not there is waited for until
the snapshot's own deadline. Upstream: pkg/storage/snapshot of KubeVirt.
"""

from __future__ import annotations

from math import inf
from typing import Any

from konverge.client import AlreadyExists, Client, MergePatch, NotFound
from konverge.objects import times
from konverge.objects.codec import to_dict
from konverge.objects.durations import duration_seconds
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.resource import Resource
from konverge.runtime import Context, Controller, Use
from konverge.sim.kubevirt import faults, launcher
from konverge.sim.kubevirt.controller import PhaseController
from konverge.sim.kubevirt.kinds import (
    OVER,
    Instance,
    Obj,
    Snapshot,
    SnapshotContent,
    VirtualMachine,
    is_true,
    live,
    patch,
    reference,
    set_condition,
)

SNAPSHOT = "snapshotInProgress"
RESTORE = "restoreInProgress"
"""The fields of a machine's status that say what is being done to it: one snapshot or one restore at a time.

They are read from the server itself, and written only on what was read: two that begin at once must not both have it.
"""
_DEADLINE = "5m"
SNAPSHOT_CLASSES = Resource("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass", "volumesnapshotclasses", False)


# ------------------------------------------------------------------ locks


async def lock(ctx: Context[Any], machine: VirtualMachine, which: str) -> bool:
    """Take the lock; False where another one has it. Raises Conflict when the machine has changed meanwhile."""
    holder = machine.status.get(which)
    if holder is None:
        await _write(ctx, machine, which, ctx.obj.metadata.name)
        return True
    return bool(holder == ctx.obj.metadata.name)


async def unlock(ctx: Context[Any], name: str, which: str) -> None:
    """Give the lock back, if it is ours."""
    machine = await live(ctx.client, VirtualMachine, name, ctx.request.namespace)
    if machine is not None and machine.status.get(which) == ctx.obj.metadata.name:
        await _write(ctx, machine, which, None)


async def _write(ctx: Context[Any], machine: VirtualMachine, which: str, value: str | None) -> None:
    guard = {"resourceVersion": machine.metadata.resource_version}
    await patch(ctx.client, machine, {"metadata": guard, "status": {which: value}}, subresource="status")


# ------------------------------------------------------------------ the controller


class Snapshots(PhaseController[Snapshot]):
    """The controller of VirtualMachineSnapshots."""

    kind, short = Snapshot, "vmsnapshot"
    name, component = "virt-controller-snapshots", "snapshot-controller"
    finalizer = "snapshot.kubevirt.io/vmsnapshot-protection"

    def controllers(self) -> list[Controller[Any]]:
        return [
            self._declared(
                uses=[
                    Use(Instance, cached=True),
                    Use(PersistentVolumeClaim, cached=True),
                    Use(StorageClass, cached=True),
                    Use(SnapshotContent, "apply", "delete"),
                ]
            )
        ]

    def _is_over(self, obj: Snapshot) -> bool:
        return obj.status.get("phase") in OVER

    async def _release(self, ctx: Context[Snapshot]) -> None:
        await unlock(ctx, ctx.obj.spec["source"]["name"], SNAPSHOT)

    async def _advance(self, ctx: Context[Snapshot], wrong: faults.Faults) -> float:
        snapshot, status = ctx.obj, ctx.obj.status
        status.setdefault("phase", "InProgress")
        status.setdefault("readyToUse", False)
        set_condition(status, "Ready", False, "Not ready")
        if self._too_late(snapshot):
            return self._fail(ctx, "snapshot deadline exceeded")
        machine = await live(ctx.client, VirtualMachine, snapshot.spec["source"]["name"], ctx.request.namespace)
        if machine is None:
            set_condition(status, "Progressing", False, "Source does not exist")
            return self._timings.retry[0]
        if machine.status.get(RESTORE) or not await lock(ctx, machine, SNAPSHOT):
            set_condition(status, "Progressing", False, "Source not locked")
            return self._timings.retry[0]
        set_condition(status, "Progressing", True, "Source locked and operation in progress")
        if "stuck" in wrong:
            return self._timings.retry[0]
        left = self._pace.left(snapshot.metadata, "snapshot", self._timings.snapshot)
        if left:
            return left
        if "fails" in wrong:
            return self._refused(snapshot, "VolumeSnapshot failed: the storage refuses")
        await self._keep(ctx, machine)
        return inf

    def _too_late(self, snapshot: Snapshot) -> bool:
        return self._before_deadline(snapshot) == 0

    def _before_deadline(self, snapshot: Snapshot) -> float:
        limit = float(duration_seconds(str(snapshot.spec.get("failureDeadline", _DEADLINE))))
        return self._pace.left(snapshot.metadata, "deadline", (limit, limit)) if limit > 0 else inf

    def _refused(self, snapshot: Snapshot, why: str) -> float:
        """An error of the storage is reported and tried again: only the deadline ends a snapshot."""
        snapshot.status.setdefault("error", {"time": times.now(), "message": why})
        set_condition(snapshot.status, "Progressing", False, "In error state")
        return self._before_deadline(snapshot)

    def _fail(self, ctx: Context[Snapshot], why: str) -> float:
        status = ctx.obj.status
        status |= {"phase": "Failed", "readyToUse": False}
        set_condition(status, "Progressing", False, "Operation failed")
        set_condition(status, "Failure", True, why)
        ctx.warning("VirtualMachineSnapshotError", why)
        return inf

    # -------------------------------------------------------------- what is kept

    async def _keep(self, ctx: Context[Snapshot], machine: VirtualMachine) -> None:
        snapshot, status = ctx.obj, ctx.obj.status
        template = machine.spec["template"]["spec"]
        drivers = await _drivers(ctx.client)
        backups = []
        for volume, name in launcher.claims_of(template).items():
            claim = await ctx.get(PersistentVolumeClaim, name)
            if claim is not None and await _can_be_kept(ctx, claim, drivers):
                backups.append(_backup(volume, claim, snapshot.metadata.uid))
        content = f"vmsnapshot-content-{snapshot.metadata.uid}"
        made = SnapshotContent(
            spec={
                "source": {"virtualMachine": {"metadata": _bare(to_dict(machine)["metadata"]), "spec": machine.spec}},
                "virtualMachineSnapshotName": snapshot.metadata.name,
                "volumeBackups": backups,
            }
        )
        made.metadata.name, made.metadata.namespace = content, snapshot.metadata.namespace
        body = to_dict(made)
        if snapshot.spec.get("deletionPolicy", "Delete") == "Delete":
            body["metadata"]["ownerReferences"] = [reference(snapshot)]
        try:
            await ctx.client.create(body, resource=SnapshotContent.resource)
        except AlreadyExists:
            ctx.log.debug("%s is there already", content)
        ready = MergePatch({"status": {"readyToUse": True, "creationTime": times.now()}})
        await ctx.client.patch(SnapshotContent, content, ready, snapshot.metadata.namespace, subresource="status")
        names = [backup["volumeName"] for backup in backups]
        others = [volume["name"] for volume in template.get("volumes", []) if volume["name"] not in names]
        status |= {
            "phase": "Succeeded",
            "readyToUse": True,
            "creationTime": times.now(),
            "virtualMachineSnapshotContentName": content,
            "indications": await self._indications(ctx, machine),
            "snapshotVolumes": {"includedVolumes": names, "excludedVolumes": others},
            "sourceUID": machine.metadata.uid,
        }
        set_condition(status, "Progressing", False, "Operation complete")
        set_condition(status, "Ready", True, "Ready")

    async def _indications(self, ctx: Context[Snapshot], machine: VirtualMachine) -> list[str]:
        instance = await ctx.get(Instance, machine.metadata.name)
        if instance is None or instance.status.get("phase") != "Running":
            return []
        return ["Online", "GuestAgent" if is_true(instance.status, "AgentConnected") else "NoGuestAgent"]


async def _drivers(client: Client) -> set[str] | None:
    """The drivers that take snapshots; None where nothing says so: then all do."""
    try:
        classes = await client.list(SNAPSHOT_CLASSES)
    except NotFound:
        return None
    return {str(entry.get("driver")) for entry in classes}


async def _can_be_kept(ctx: Context[Snapshot], claim: PersistentVolumeClaim, drivers: set[str] | None) -> bool:
    """KubeVirt leaves out, without a word, what has no volume or is of a class without a VolumeSnapshotClass."""
    if claim.status.phase != "Bound" or not claim.spec.storage_class_name:
        return False
    kind = await ctx.get(StorageClass, claim.spec.storage_class_name)
    return drivers is None or (kind is not None and kind.provisioner in drivers)


def _backup(volume: str, claim: PersistentVolumeClaim, uid: str) -> Obj:
    body = to_dict(claim)
    spec = {
        key: value for key, value in body["spec"].items() if key not in ("volumeName", "dataSource", "dataSourceRef")
    }
    kept_claim = {"metadata": {**_bare(body["metadata"]), "name": claim.metadata.name}, "spec": spec}
    return {
        "volumeName": volume,
        "persistentVolumeClaim": kept_claim,
        "volumeSnapshotName": f"vmsnapshot-{uid}-volume-{volume}",
    }


def _bare(metadata: Obj) -> Obj:
    """Of the metadata, what belongs to the object rather than to its life."""
    return {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if key in metadata}
