"""CDI: a DataVolume becomes a claim with something in it.

Two ways, as clusters have them. With populators the claim stays Pending until it is filled, and is bound then; a class
that waits for a pod shows as PendingPopulation. In the older way the claim is bound first and filled afterwards, and a
class that waits shows as WaitForFirstConsumer. A failing importer is restarted for ever: only a wrong checksum or a
lost claim is the end. Nothing is made for a copy of a claim that is not there. Upstream: pkg/controller/datavolume of
CDI.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Any

from konverge.client import AlreadyExists
from konverge.objects.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Request, Use, Watches, controller_of
from konverge.sim.kubevirt import faults
from konverge.sim.kubevirt.claims import USES_POPULATOR, claim_for, image_in, uses_populator, waits
from konverge.sim.kubevirt.controller import Pace, PhaseController, Span, Timings, seconds
from konverge.sim.kubevirt.kinds import DataSource, DataVolume, Obj, condition, live, patch, reference, set_condition
from konverge.sim.kubevirt.volume_rules import ADOPTION
from konverge.sim.volumes import BY_HAND, SELECTED_NODE, volume_for

UPLOADED = "sim.konverge.dev/uploaded"
"""The annotation of a DataVolume that says that data has been uploaded into it."""
CLONE_TYPE = "cdi.kubevirt.io/cloneType"
ORIGIN_NAMESPACE = "cdi.kubevirt.io/dataSourceNamespace"
"""The annotation of a claim that is a copy: where the original is, if that is not here."""
PREPOPULATED = "cdi.kubevirt.io/storage.prePopulated"
"""The annotation of a DataVolume whose claim is created by another controller."""
POPULATED_FOR = "cdi.kubevirt.io/storage.populatedFor"
"""The annotation of such a claim: the DataVolume that takes it over."""
_CLONES = ("pvc", "snapshot")
_VERBS = {"pvc": "Clone", "snapshot": "Clone", "upload": "Upload"}
_LOOKS = 4
"""How often progress is reported."""
_EVENTS = {
    "ImportScheduled": ("ImportScheduled", "Import into {name} scheduled"),
    "ImportInProgress": ("ImportInProgress", "Import into {name} in progress"),
    "UploadScheduled": ("UploadScheduled", "Upload into {name} scheduled"),
    "UploadReady": ("UploadReady", "Upload into {name} ready"),
    "CloneScheduled": ("CloneScheduled", "Cloning from {origin} into {space}/{name} scheduled"),
    "CloneInProgress": ("CloneInProgress", "Cloning from {origin} into {space}/{name} in progress"),
    "Import Succeeded": ("ImportSucceeded", "Successfully imported into PVC {name}"),
    "Upload Succeeded": ("UploadSucceeded", "Successfully uploaded into {name}"),
    "Clone Succeeded": ("CloneSucceeded", "Successfully cloned from {origin} into {space}/{name}"),
    "Failed": ("ImportFailed", "Failed to import into PVC {name}"),
    "Lost": ("ErrClaimLost", "PVC {name} lost"),
}
"""What is reported with a new phase, and how."""


def verb_of(source: str) -> str:
    return _VERBS.get(source, "Import")


def phase(ctx: Context[DataVolume], word: str, event: str = "", **names: str) -> None:
    """Write it into the status, and emit one Event: that of the phase, or the one that is named."""
    status, meta = ctx.obj.status, ctx.obj.metadata
    if status.get("phase") == word:
        return
    status["phase"] = word
    if word != "Succeeded":
        set_condition(status, "Ready", False)
    reason, text = _EVENTS.get(event or word, ("", ""))
    if text:
        said = text.format(name=meta.name, space=meta.namespace, **{"origin": "", **names})
        ctx.event(reason, said, type="Warning" if word == "Failed" else "Normal")


def _binding(claim: PersistentVolumeClaim, status: dict[str, Any]) -> str:
    """A claim that a populator fills waits for another one, of which CDI tells what its last Event told."""
    name, uid = claim.metadata.name, claim.metadata.uid
    if claim.status.phase == "Bound":
        return f"PVC {name} Bound"
    if claim.spec.data_source_ref is None or not str(status.get("phase", "")).endswith(
        ("Scheduled", "Progress", "Ready")
    ):
        return f"PVC {name} Pending"
    return f"target PVC {name} Pending and [prime-{uid}] : Successfully provisioned volume pvc-{uid}"


def _says_modes(volume: DataVolume) -> bool:
    """Whether it says how its claim is to be used: else CDI looks into the profile of the class."""
    return "pvc" in volume.spec or bool((volume.spec.get("storage") or {}).get("accessModes"))


def in_transfer(status: dict[str, Any]) -> None:
    """A pod is at work."""
    set_condition(status, "Running", True, "Pod is running")
    set_condition(status, "Ready", False, "TransferRunning")


class Transfers:
    """Where a transfer is, and when it goes on. Steps belong to the claim: another claim starts from the beginning."""

    def __init__(self, pace: Pace, timings: Timings) -> None:
        self._pace = pace
        self._timings = timings

    def advance(
        self, ctx: Context[DataVolume], claim: ObjectMeta, source: str, wrong: faults.Faults, **names: str
    ) -> float:
        """0: it is done; infinity: nothing will happen by itself."""
        verb = verb_of(source)
        left = self._pace.left(claim, "scheduled", self._timings.importer)
        if left:
            phase(ctx, f"{verb}Scheduled", **names)
            return left
        if verb == "Upload":
            return self._upload(ctx)
        phase(ctx, f"{verb}InProgress", **names)
        if source == "blank":
            return self._progress(ctx, claim, self._timings.begin)
        if "import-fatal" in wrong:
            return self._fail(ctx, "Unable to process data: checksum mismatch")
        if "import-404" in wrong:
            return self._restart(ctx, claim)
        return self._progress(ctx, claim, self._timings.transfer if verb == "Import" else self._timings.clone)

    def _upload(self, ctx: Context[DataVolume]) -> float:
        if UPLOADED in ctx.obj.metadata.annotations:
            return 0.0
        phase(ctx, "UploadReady")
        in_transfer(ctx.obj.status)
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
        in_transfer(status)
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
            return await self._make_claim(ctx, wrong)
        if claim.metadata.deletion_timestamp is not None or not await self._is_ours(ctx, claim):
            return inf
        status["claimName"] = claim.metadata.name
        if claim.status.phase == "Lost":
            phase(ctx, "Failed", "Lost")
            set_condition(status, "Bound", False, "ClaimLost", "Claim Lost")
            return inf
        bound = claim.status.phase == "Bound"
        word = "Bound" if bound else "Pending"
        set_condition(status, "Bound", bound, word, _binding(claim, status))
        if status.get("phase") == "Succeeded" and bound:
            return await self._collect(ctx, claim, wrong)
        if "stuck" in wrong:
            return inf
        kind = await ctx.get(StorageClass, claim.spec.storage_class_name) if claim.spec.storage_class_name else None
        if uses_populator(volume, self._populator):
            return await self._populate(ctx, claim, kind, wrong)
        return await self._fill(ctx, claim, kind, wrong)

    # -------------------------------------------------------------- the claim

    async def _make_claim(self, ctx: Context[DataVolume], wrong: faults.Faults) -> float:
        volume, status = ctx.obj, ctx.obj.status
        if PREPOPULATED in volume.metadata.annotations:
            return self._timings.retry[0]  # another controller creates it
        source, origin, named = await self._source(ctx)
        if "no-profile" in wrong and not _says_modes(volume):
            name = volume.spec["storage"].get("storageClassName") or "default"
            return self._refuse(ctx, "ErrClaimNotValid", f"no accessMode specified in StorageProfile {name}")
        populator = uses_populator(volume, self._populator)
        await self._annotate(ctx, {USES_POPULATOR: str(populator).lower()})
        if source == "pvc" and origin is None:
            message = f"The source pvc {named.partition('/')[2]} doesn't exist"
            return self._refuse(ctx, "CloneWithoutSource", message)
        if source in _CLONES:
            await self._annotate(ctx, {CLONE_TYPE: "copy"})
        classes = await ctx.list(StorageClass, "")
        made = claim_for(volume, source, image_in(origin), list(classes), populator=populator)
        if origin is not None and origin.metadata.namespace != volume.metadata.namespace:
            made["metadata"]["annotations"][ORIGIN_NAMESPACE] = origin.metadata.namespace
        phase(ctx, "Pending")
        status["progress"] = "N/A"
        set_condition(status, "Bound", False, "NotFound", "No PVC found")
        set_condition(status, "Running", False)
        with suppress(AlreadyExists):
            await ctx.client.create(made, resource=PersistentVolumeClaim.resource)
        return self._timings.begin[0]

    async def _annotate(self, ctx: Context[DataVolume], notes: dict[str, str]) -> None:
        """What CDI writes beside what others have written."""
        meta = ctx.obj.metadata
        missing = {key: notes[key] for key in notes if key not in meta.annotations}
        if missing:
            await patch(ctx.client, ctx.obj, {"metadata": {"annotations": missing}})
            meta.annotations |= missing

    def _refuse(self, ctx: Context[DataVolume], reason: str, message: str) -> float:
        """No claim is made for now. What stands in the way is in the conditions; the phase stays as it is."""
        status = ctx.obj.status
        new = condition(status, "Bound").get("reason") != reason
        for name in ("Bound", "Ready"):
            set_condition(status, name, False, reason, message)
        set_condition(status, "Running", False)
        if new:
            ctx.warning(reason, message)
        return self._timings.retry[0]

    async def _source(self, ctx: Context[DataVolume]) -> tuple[str, PersistentVolumeClaim | None, str]:
        """The word for what fills it, the claim that it is cloned from, if it is there, and the name of that."""
        source: Obj = ctx.obj.spec.get("source") or {}
        place = ctx.obj.metadata.namespace
        named: Obj = ctx.obj.spec.get("sourceRef") or {}
        if named:
            place = named.get("namespace") or place
            data_source = await ctx.get(DataSource, named["name"], place)
            source = data_source.spec.get("source", {}) if data_source is not None else {"pvc": {"name": ""}}
        word = next(iter(source), "blank")
        if word != "pvc" or not source["pvc"].get("name"):
            return word, None, ""
        name, place = source["pvc"]["name"], source["pvc"].get("namespace") or place
        return word, await live(ctx.client, PersistentVolumeClaim, name, place), f"{place}/{name}"

    async def _is_ours(self, ctx: Context[DataVolume], claim: PersistentVolumeClaim) -> bool:
        """A claim that was there before is taken over only where the DataVolume says so, or the claim."""
        owner = controller_of(claim)
        if owner is not None:
            return owner.uid == ctx.obj.metadata.uid
        meta = ctx.obj.metadata
        meant = claim.metadata.annotations.get(POPULATED_FOR) == meta.name
        if not meant and meta.annotations.get(ADOPTION) != "true":
            ctx.warning(
                "ErrResourceExists", f'Resource "{claim.metadata.name}" already exists and is not managed by DataVolume'
            )
            return False
        owners = [*claim.metadata.owner_references, reference(ctx.obj)]
        await patch(ctx.client, claim, {"metadata": {"ownerReferences": owners}})
        self._succeed(ctx, "", "")
        return False

    # -------------------------------------------------------------- the two ways

    async def _populate(
        self, ctx: Context[DataVolume], claim: PersistentVolumeClaim, kind: StorageClass | None, wrong: faults.Faults
    ) -> float:
        if claim.status.phase == "Bound":
            source, _, named = await self._source(ctx)
            self._succeed(ctx, verb_of(source), named)
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
            source, _, named = await self._source(ctx)
            self._succeed(ctx, verb_of(source), named)
            return await self._collect(ctx, claim, wrong)
        return left

    async def _transfer(self, ctx: Context[DataVolume], claim: PersistentVolumeClaim, wrong: faults.Faults) -> float:
        source, origin, named = await self._source(ctx)
        if source == "pvc" and origin is None:
            return self._timings.retry[0]  # it went after the copy had begun: that waits for it
        return self._transfers.advance(ctx, claim.metadata, source, wrong, origin=named)

    # -------------------------------------------------------------- the end

    def _succeed(self, ctx: Context[DataVolume], verb: str, origin: str) -> None:
        """`verb` is what has been done; a claim that was taken over has everything already."""
        status, name = ctx.obj.status, ctx.obj.metadata.name
        phase(ctx, "Succeeded", f"{verb} Succeeded", origin=origin)
        status["progress"] = "100.0%"
        set_condition(status, "Bound", True, "Bound", f"PVC {name} Bound")
        done = ("Completed", f"{verb} Complete") if verb else ()
        set_condition(status, "Running", False, *done)
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
