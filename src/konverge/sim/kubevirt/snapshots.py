"""Snapshots of machines: the spec and the volumes, kept in a VirtualMachineSnapshotContent.

While one is taken, the machine says so and its disks cannot be changed. A source that is not there is waited for until
the snapshot's own deadline.
"""

from __future__ import annotations

from math import inf
from typing import Any

from konverge.client import AlreadyExists
from konverge.objects import times
from konverge.objects.codec import to_dict
from konverge.objects.durations import duration_seconds
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.runtime import Context, Controller, Result
from konverge.sim.kubevirt import faults, launcher, locks
from konverge.sim.kubevirt.kinds import (
    Instance,
    Obj,
    Snapshot,
    SnapshotContent,
    VirtualMachine,
    is_true,
    kept,
    reference,
    save,
    set_condition,
    with_finalizers,
    without_finalizer,
)
from konverge.sim.kubevirt.timings import Pace, Timings

FINALIZER = "snapshot.kubevirt.io/vmsnapshot-protection"
_DEADLINE = "5m"
_OVER = ("Succeeded", "Failed")


class Snapshots:
    """The controller of VirtualMachineSnapshots."""

    def __init__(self, pace: Pace, timings: Timings) -> None:
        self._pace = pace
        self._timings = timings

    def controllers(self) -> list[Controller[Any]]:
        return [
            Controller(
                Snapshot,
                self.reconcile,
                name="virt-controller-snapshots",
                component="snapshot-controller",
                watches=[faults.switches(Snapshot)],
                reads=[Instance, PersistentVolumeClaim],
                makes=[SnapshotContent],
            )
        ]

    async def reconcile(self, ctx: Context[Snapshot]) -> Result | None:
        snapshot = ctx.obj
        if ctx.deleting:
            await self._unlock(ctx)
            await without_finalizer(ctx.client, snapshot, FINALIZER)
            return None
        if snapshot.status.get("phase") in _OVER:
            await self._unlock(ctx)
            return None
        before = kept(snapshot)
        await with_finalizers(ctx.client, snapshot, [FINALIZER])
        left = await self._advance(ctx, await faults.of(ctx, "vmsnapshot"))
        await save(ctx.client, snapshot, before)
        if snapshot.status.get("phase") in _OVER:
            await self._unlock(ctx)
        return Result(requeue_after=left) if left < inf else None

    async def _advance(self, ctx: Context[Snapshot], wrong: faults.Faults) -> float:
        snapshot, status = ctx.obj, ctx.obj.status
        status.setdefault("phase", "InProgress")
        status.setdefault("readyToUse", False)
        if self._too_late(snapshot):
            return self._fail(ctx, "snapshot deadline exceeded")
        machine = await locks.live(ctx, snapshot.spec["source"]["name"])
        if machine is None:
            set_condition(status, "Progressing", False, "SourceDoesNotExist", "Source does not exist")
            return self._timings.retry[0]
        if not await self._lock(ctx, machine):
            set_condition(status, "Progressing", False, "SourceLocked", "Source not locked")
            return self._timings.retry[0]
        set_condition(status, "Progressing", True, "InProgress", "Source locked and operation in progress")
        set_condition(status, "Ready", False, "NotReady", "Not ready")
        if "stuck" in wrong:
            return self._timings.retry[0]
        left = self._pace.left(snapshot.metadata, "snapshot", self._timings.snapshot)
        if left:
            return left
        if "fails" in wrong:
            return self._fail(ctx, "VolumeSnapshot failed: the storage refuses")
        await self._keep(ctx, machine)
        return inf

    def _too_late(self, snapshot: Snapshot) -> bool:
        limit = float(duration_seconds(str(snapshot.spec.get("failureDeadline", _DEADLINE))))
        return limit > 0 and self._pace.left(snapshot.metadata, "deadline", (limit, limit)) == 0

    def _fail(self, ctx: Context[Snapshot], why: str) -> float:
        status = ctx.obj.status
        status |= {"phase": "Failed", "readyToUse": False, "error": {"time": times.now(), "message": why}}
        set_condition(status, "Progressing", False, "Failed", "Operation failed")
        set_condition(status, "Failure", True, "Failed", why)
        ctx.warning("VirtualMachineSnapshotError", why)
        return inf

    # -------------------------------------------------------------- the machine

    async def _lock(self, ctx: Context[Snapshot], machine: VirtualMachine) -> bool:
        if machine.status.get("restoreInProgress"):
            return False
        return await locks.put(ctx, machine, locks.SNAPSHOT)

    async def _unlock(self, ctx: Context[Snapshot]) -> None:
        await locks.take_off(ctx, ctx.obj.spec["source"]["name"], locks.SNAPSHOT)

    # -------------------------------------------------------------- what is kept

    async def _keep(self, ctx: Context[Snapshot], machine: VirtualMachine) -> None:
        snapshot, status = ctx.obj, ctx.obj.status
        template = machine.spec["template"]["spec"]
        backups = []
        for volume, name in launcher.claims_of(template).items():
            claim = await ctx.get(PersistentVolumeClaim, name)
            if claim is not None:
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
        set_condition(status, "Progressing", False, "Completed", "Operation complete")
        set_condition(status, "Ready", True, "Ready", "Ready")

    async def _indications(self, ctx: Context[Snapshot], machine: VirtualMachine) -> list[str]:
        instance = await ctx.get(Instance, machine.metadata.name)
        if instance is None or instance.status.get("phase") != "Running":
            return []
        return ["Online", "GuestAgent" if is_true(instance.status, "AgentConnected") else "NoGuestAgent"]


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
