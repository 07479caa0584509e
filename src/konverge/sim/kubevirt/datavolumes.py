"""CDI: a DataVolume becomes a claim with something in it.

Two ways, as clusters have them. With populators the claim stays Pending until it is filled, and is bound then; a class
that waits for a pod shows as PendingPopulation. In the older way the claim is bound first and filled afterwards, and a
class that waits shows as WaitForFirstConsumer. A failing importer is restarted for ever: only a wrong checksum or a
lost claim is the end. Upstream: pkg/controller/datavolume of CDI.

Under `storage` the importer needs room for the file system beside the image, so the claim is larger than what was asked
for; under `pvc` it is exactly what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from math import ceil, inf
from typing import Any

from konverge.client import AlreadyExists
from konverge.objects.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.meta import ObjectMeta
from konverge.objects.quantity import Quantity
from konverge.runtime import Context, Controller, Request, Use, Watches, controller_of
from konverge.sim.kubevirt import faults
from konverge.sim.kubevirt.controller import Pace, PhaseController, Span, Timings, seconds
from konverge.sim.kubevirt.kinds import DataSource, DataVolume, Obj, live, patch, reference, set_condition
from konverge.sim.volumes import BY_HAND, SELECTED_NODE, volume_for

OVERHEAD = 0.06
LEGACY = "cdi.kubevirt.io/storage.usePopulator"
BIND_NOW = "cdi.kubevirt.io/storage.bind.immediate.requested"
ADOPTION = "cdi.kubevirt.io/allowClaimAdoption"
DEFAULT_VIRT = "storageclass.kubevirt.io/is-default-virt-class"
_MIB = 1 << 20
_SOURCES = {"pvc": "VolumeCloneSource", "snapshot": "VolumeCloneSource", "upload": "VolumeUploadSource"}
UPLOADED = "sim.konverge.dev/uploaded"
"""The annotation of a DataVolume that says that data has been uploaded into it."""
_CLONES = ("pvc", "snapshot")
_LOOKS = 4
"""How often progress is reported."""
_MESSAGES = {
    "Pending": "",
    "Succeeded": "Successfully imported into PVC {name}",
    "Failed": "Import into {name} failed",
    "PendingPopulation": "PVC {name} Pending Population",
    "WaitForFirstConsumer": "PVC {name} waiting for first consumer",
}


def uses_populator(volume: DataVolume, default: bool) -> bool:
    """The cluster's way, unless the DataVolume says otherwise."""
    word = volume.metadata.annotations.get(LEGACY)
    return default if word is None else word == "true"


def waits(volume: DataVolume, kind: StorageClass | None) -> bool:
    """Whether its class waits for a pod, and it does so too."""
    later = kind is not None and kind.volume_binding_mode == "WaitForFirstConsumer"
    return later and BIND_NOW not in volume.metadata.annotations


def claim_for(volume: DataVolume, source: str, size: str, classes: Iterable[StorageClass], *, populator: bool) -> Obj:
    """`source` is the word for what fills it, `size` what a clone takes when none is asked for."""
    requested = _asked_for(volume)
    mode = requested.get("volumeMode", "Filesystem")
    spec: Obj = {
        "accessModes": requested.get("accessModes") or ["ReadWriteOnce"],
        "volumeMode": mode,
        "resources": {"requests": {"storage": _requested(volume, mode, size)}},
    }
    name = requested.get("storageClassName") or (_virt_default(classes) if "storage" in volume.spec else "")
    if name:
        spec["storageClassName"] = name
    if populator:
        kind = _SOURCES.get(source, "VolumeImportSource")
        named = f"{_dashed(kind)}-{volume.metadata.uid}"
        spec["dataSourceRef"] = {"apiGroup": "cdi.kubevirt.io", "kind": kind, "name": named}
    meta = volume.metadata
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": {**meta.labels, "app": "containerized-data-importer"},
        "annotations": {"cdi.kubevirt.io/storage.contentType": volume.spec.get("contentType", "kubevirt")},
        "ownerReferences": [reference(volume)],
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _asked_for(volume: DataVolume) -> Obj:
    requested: Obj = volume.spec.get("storage") or volume.spec.get("pvc") or {}
    return requested


def _requested(volume: DataVolume, mode: str, size: str) -> str:
    requested = _asked_for(volume)
    asked = str(((requested.get("resources") or {}).get("requests") or {}).get("storage") or size)
    if "storage" not in volume.spec or mode == "Block":
        return asked
    return f"{ceil(float(Quantity(asked)) / (1 - OVERHEAD) / _MIB)}Mi"


def _virt_default(classes: Iterable[StorageClass]) -> str:
    marked = (cls_.metadata.name for cls_ in classes if cls_.metadata.annotations.get(DEFAULT_VIRT) == "true")
    return min(marked, default="")


def _dashed(kind: str) -> str:
    """VolumeImportSource → volume-import-source."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind).lstrip("-")


def asked_size(claim: PersistentVolumeClaim | None) -> str:
    """What a claim asks for, as a clone of it does."""
    requests: dict[str, Any] = claim.spec.resources.requests if claim is not None and claim.spec.resources else {}
    return str(requests.get("storage", "1Gi"))


def phase(ctx: Context[DataVolume], word: str) -> None:
    """Write it into the status, and emit one Event."""
    status, name = ctx.obj.status, ctx.obj.metadata.name
    if status.get("phase") == word:
        return
    status["phase"] = word
    text = _MESSAGES.get(word, "{name} is {word}").format(name=name, word=word)
    if word != "Succeeded":
        set_condition(status, "Ready", False, "TransferRunning" if "Progress" in word else word)
    if text:
        reason = {"Succeeded": "ImportSucceeded", "Failed": "ImportFailed"}.get(word, word)
        ctx.event(reason, text, type="Warning" if word == "Failed" else "Normal")


class Transfers:
    """Where a transfer is, and when it goes on. Steps belong to the claim: another claim starts from the beginning."""

    def __init__(self, pace: Pace, timings: Timings) -> None:
        self._pace = pace
        self._timings = timings

    def advance(self, ctx: Context[DataVolume], claim: ObjectMeta, source: str, wrong: faults.Faults) -> float:
        """0: it is done; infinity: nothing will happen by itself."""
        if source == "blank":
            return 0.0
        verb = "Clone" if source in _CLONES else "Upload" if source == "upload" else "Import"
        left = self._pace.left(claim, "scheduled", self._timings.importer)
        if left:
            phase(ctx, f"{verb}Scheduled")
            return left
        if verb == "Upload":
            return self._upload(ctx)
        phase(ctx, f"{verb}InProgress")
        if "import-fatal" in wrong:
            return self._fail(ctx, "Unable to process data: checksum mismatch")
        if "import-404" in wrong:
            return self._restart(ctx, claim)
        return self._progress(ctx, claim, self._timings.transfer if verb == "Import" else self._timings.clone)

    def _upload(self, ctx: Context[DataVolume]) -> float:
        if UPLOADED in ctx.obj.metadata.annotations:
            return 0.0
        phase(ctx, "UploadReady")
        set_condition(ctx.obj.status, "Running", True, "Pod is running")
        return inf

    def _fail(self, ctx: Context[DataVolume], why: str) -> float:
        phase(ctx, "Failed")
        set_condition(ctx.obj.status, "Running", False, "Error", why)
        return inf

    def _restart(self, ctx: Context[DataVolume], claim: ObjectMeta) -> float:
        """The phase stays, the count grows, and only the Running condition says why."""
        status: dict[str, Any] = ctx.obj.status
        count = int(status.get("restartCount", 0))
        left = self._pace.left(claim, f"restart {count}", self._timings.restart)
        if left == 0:
            count = status["restartCount"] = count + 1
            left = self._pace.left(claim, f"restart {count}", self._timings.restart)
        why = "Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found"
        set_condition(status, "Running", False, "Error", why)
        status["progress"] = "N/A"
        return left

    def _progress(self, ctx: Context[DataVolume], claim: ObjectMeta, span: Span) -> float:
        status: dict[str, Any] = ctx.obj.status
        step = f"transfer {status.get('restartCount', 0)}"
        left, whole = self._pace.left(claim, step, span), self._pace.draw(claim, step, span)
        set_condition(status, "Running", True, "Pod is running")
        if left == 0:
            return 0.0
        status["progress"] = f"{100 * min(1 - left / whole, 0.9999):.2f}%"
        return min(left, whole / _LOOKS)


class DataVolumes(PhaseController[DataVolume]):
    """The controller of DataVolumes."""

    kind, short = DataVolume, "dv"
    name = component = "datavolume-controller"

    def __init__(self, pace: Pace, timings: Timings, *, populator: bool) -> None:
        super().__init__(pace, timings)
        self._populator = populator
        self._transfers = Transfers(pace, timings)
        self._pending: set[Request] = set()

    def controllers(self) -> list[Controller[Any]]:
        pending = Watches(StorageClass, requests=lambda _: sorted(self._pending))
        return [
            self._declared(
                pending,
                owns=[PersistentVolumeClaim],
                uses=[Use(DataSource, cached=True), Use(PersistentVolume, "apply", "delete")],
            ),
        ]

    async def _release(self, ctx: Context[DataVolume]) -> None:
        self._pending.discard(ctx.request)

    async def _advance(self, ctx: Context[DataVolume], wrong: faults.Faults) -> float:
        self._pending.discard(ctx.request)
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
        populator = uses_populator(volume, self._populator)
        made = claim_for(volume, source, asked_size(origin), await ctx.list(StorageClass, ""), populator=populator)
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
        name, place = source["pvc"]["name"], source["pvc"].get("namespace") or place
        return word, await live(ctx.client, PersistentVolumeClaim, name, place)

    async def _is_ours(self, ctx: Context[DataVolume], claim: PersistentVolumeClaim) -> bool:
        """A claim that was there before is taken over only where the DataVolume says so."""
        owner = controller_of(claim)
        if owner is not None:
            return owner.uid == ctx.obj.metadata.uid
        if ctx.obj.metadata.annotations.get(ADOPTION) != "true":
            ctx.warning("ErrClaimNotValid", f"The PVC {claim.metadata.name} exists and is not owned by a DataVolume")
            return False
        owners = [*claim.metadata.owner_references, reference(ctx.obj)]
        await patch(ctx.client, claim, {"metadata": {"ownerReferences": owners}})
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
            owners = list(ctx.obj.metadata.owner_references)
            await patch(ctx.client, claim, {"metadata": {"ownerReferences": owners}})
            await ctx.delete(DataVolume, ctx.obj.metadata.name)
            return inf
        return left
