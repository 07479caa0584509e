"""CDI: a DataVolume becomes a claim with something in it.

Two ways, as clusters have them. With populators the claim stays Pending until it is filled, and is bound then; a class
that waits for a pod shows as PendingPopulation. In the older way the claim is bound first and filled afterwards, and a
class that waits shows as WaitForFirstConsumer. A failing importer is restarted for ever: only a wrong checksum or a
lost claim is the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from math import inf
from typing import Any

from konverge.client import AlreadyExists, MergePatch, NotFound
from konverge.objects.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.runtime import Context, Controller, Request, Result, Watch, controller_of
from konverge.sim.kubevirt import faults
from konverge.sim.kubevirt.claims import ADOPTION, asked_size, claim_for, uses_populator, waits
from konverge.sim.kubevirt.kinds import DataSource, DataVolume, Obj, kept, reference, save, set_condition
from konverge.sim.kubevirt.timings import Pace, Timings, seconds
from konverge.sim.kubevirt.transfers import Transfers, phase
from konverge.sim.volumes import BY_HAND, SELECTED_NODE, volume_for


class DataVolumes:
    """The controller of DataVolumes."""

    def __init__(self, pace: Pace, timings: Timings, *, populator: bool) -> None:
        self._pace = pace
        self._timings = timings
        self._populator = populator
        self._transfers = Transfers(pace, timings)
        self._pending: set[Request] = set()

    def controllers(self) -> list[Controller[Any]]:
        return [
            Controller(
                DataVolume,
                self.reconcile,
                name="datavolume-controller",
                component="datavolume-controller",
                owns=[PersistentVolumeClaim],
                watches=[
                    faults.switches(DataVolume),
                    Watch(kind=StorageClass, requests=lambda _: sorted(self._pending)),
                ],
                reads=[DataSource],
                makes=[PersistentVolume],
            )
        ]

    async def reconcile(self, ctx: Context[DataVolume]) -> Result | None:
        self._pending.discard(ctx.request)
        if ctx.deleting:
            return None
        before = kept(ctx.obj)
        wrong = await faults.of(ctx, "dv")
        left = await self._advance(ctx, wrong)
        await save(ctx.client, ctx.obj, before)
        return Result(requeue_after=left) if left < inf else None

    async def _advance(self, ctx: Context[DataVolume], wrong: faults.Faults) -> float:
        """As far as it goes; the answer is when to look again."""
        volume, status = ctx.obj, ctx.obj.status
        claim = await ctx.get(PersistentVolumeClaim, volume.metadata.name)
        if claim is None:
            await self._make_claim(ctx)
            return self._timings.begin[0]
        if claim.metadata.deletion_timestamp is not None or not await self._is_ours(ctx, claim):
            return inf
        status["claimName"] = claim.metadata.name
        if claim.status.phase == "Lost":
            phase(ctx, "Failed")
            set_condition(status, "Bound", False, "ClaimLost", "Claim Lost")
            return inf
        bound = claim.status.phase == "Bound"
        word = "Bound" if bound else "Pending"
        set_condition(status, "Bound", bound, word, f"PVC {claim.metadata.name} {word}")
        if status.get("phase") == "Succeeded" and bound:
            return await self._collect(ctx, claim, wrong)
        if "stuck" in wrong:
            return inf
        kind = await ctx.get(StorageClass, claim.spec.storage_class_name) if claim.spec.storage_class_name else None
        if uses_populator(volume, self._populator):
            return await self._populate(ctx, claim, kind, wrong)
        return await self._fill(ctx, claim, kind, wrong)

    # -------------------------------------------------------------- the claim

    async def _make_claim(self, ctx: Context[DataVolume]) -> None:
        volume = ctx.obj
        source, origin = await self._source(ctx)
        size = asked_size(origin)
        classes = await ctx.list(StorageClass, "")
        populator = uses_populator(volume, self._populator)
        made = claim_for(volume, source, size, classes, populator=populator)
        phase(ctx, "Pending")
        ctx.obj.status["progress"] = "N/A"
        set_condition(volume.status, "Bound", False, "NotFound", "No PVC found")
        set_condition(volume.status, "Ready", False, "NotFound", "No PVC found")
        with suppress(AlreadyExists):
            await ctx.client.create(made, resource=PersistentVolumeClaim.resource)

    async def _source(self, ctx: Context[DataVolume]) -> tuple[str, PersistentVolumeClaim | None]:
        """The word for what fills it, and the claim that it is cloned from, if it is there."""
        source: Obj = ctx.obj.spec.get("source") or {}
        place = ctx.obj.metadata.namespace
        named: Obj = ctx.obj.spec.get("sourceRef") or {}
        if named:
            place = named.get("namespace") or place
            data_source = await ctx.get(DataSource, named["name"], place)
            source = data_source.spec.get("source", {}) if data_source is not None else {"pvc": {"name": ""}}
        word = next(iter(source), "blank")
        if word != "pvc" or not source["pvc"].get("name"):
            return word, None
        origin = source["pvc"]
        try:
            return word, await ctx.client.get(PersistentVolumeClaim, origin["name"], origin.get("namespace") or place)
        except NotFound:
            return word, None

    async def _is_ours(self, ctx: Context[DataVolume], claim: PersistentVolumeClaim) -> bool:
        """A claim that was there before is taken over only where the DataVolume says so."""
        owner = controller_of(claim)
        if owner is not None:
            return owner.uid == ctx.obj.metadata.uid
        if ctx.obj.metadata.annotations.get(ADOPTION) != "true":
            ctx.warning("ErrClaimNotValid", f"The PVC {claim.metadata.name} exists and is not owned by a DataVolume")
            return False
        meta = claim.metadata
        owners = [*meta.owner_references, reference(ctx.obj)]
        patch = MergePatch({"metadata": {"uid": meta.uid, "ownerReferences": owners}})
        await ctx.client.patch(PersistentVolumeClaim, meta.name, patch, meta.namespace)
        self._succeed(ctx)
        return False

    # -------------------------------------------------------------- the two ways

    async def _populate(
        self, ctx: Context[DataVolume], claim: PersistentVolumeClaim, kind: StorageClass | None, wrong: faults.Faults
    ) -> float:
        if claim.status.phase == "Bound":
            self._succeed(ctx)
            return await self._collect(ctx, claim, wrong)
        if waits(ctx.obj, kind) and SELECTED_NODE not in claim.metadata.annotations:
            phase(ctx, "PendingPopulation")
            return inf
        if kind is None or kind.provisioner == BY_HAND:
            self._pending.add(ctx.request)
            phase(ctx, "Pending")
            return inf
        left = await self._transfer(ctx, claim, wrong)
        if left == 0:
            with suppress(AlreadyExists):
                await ctx.client.create(volume_for(claim, kind), resource=PersistentVolume.resource)
            return inf
        return left

    async def _fill(
        self, ctx: Context[DataVolume], claim: PersistentVolumeClaim, kind: StorageClass | None, wrong: faults.Faults
    ) -> float:
        if claim.status.phase != "Bound":
            waiting = waits(ctx.obj, kind) and SELECTED_NODE not in claim.metadata.annotations
            phase(ctx, "WaitForFirstConsumer" if waiting else "Pending")
            return inf
        left = self._pace.left(claim.metadata, "bound", self._timings.begin)
        if left:
            phase(ctx, "PVCBound")
            return left
        left = await self._transfer(ctx, claim, wrong)
        if left == 0:
            self._succeed(ctx)
            return await self._collect(ctx, claim, wrong)
        return left

    async def _transfer(self, ctx: Context[DataVolume], claim: PersistentVolumeClaim, wrong: faults.Faults) -> float:
        source, origin = await self._source(ctx)
        if source == "pvc" and origin is None:
            set_condition(ctx.obj.status, "Running", False, "SourceNotFound", "the claim to clone does not exist")
            return self._timings.retry[0]
        return self._transfers.advance(ctx, claim.metadata, source, wrong)

    # -------------------------------------------------------------- the end

    def _succeed(self, ctx: Context[DataVolume]) -> None:
        status = ctx.obj.status
        phase(ctx, "Succeeded")
        status["progress"] = "100.0%"
        name = ctx.obj.metadata.name
        set_condition(status, "Bound", True, "Bound", f"PVC {name} Bound")
        set_condition(status, "Running", False, "Completed", "Import Complete")
        set_condition(status, "Ready", True)

    async def _collect(self, ctx: Context[DataVolume], claim: PersistentVolumeClaim, wrong: faults.Faults) -> float:
        """Some releases delete what has succeeded; the claim goes over to the owner of the DataVolume."""
        if "collected" not in wrong:
            return inf
        after = seconds(wrong["collected"], "seconds", 10.0)
        left = self._pace.left(ctx.obj.metadata, "collected", (after, after))
        if left == 0:
            meta = claim.metadata
            patch = {"metadata": {"uid": meta.uid, "ownerReferences": _owners(ctx.obj)}}
            await ctx.client.patch(PersistentVolumeClaim, meta.name, MergePatch(patch), meta.namespace)
            await ctx.delete(DataVolume, ctx.obj.metadata.name)
            return inf
        return left


def _owners(volume: DataVolume) -> Iterable[Any]:
    return list(volume.metadata.owner_references)
