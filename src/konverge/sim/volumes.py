"""Simulated storage: claims find their volumes, by hand-made ones or by a StorageClass; grow; and are reclaimed.

Every StorageClass is served, whatever its provisioner, except `kubernetes.io/no-provisioner`. A claim of a class that
waits for its first consumer is bound to the volume that the scheduler has reserved for it, or is provisioned when the
scheduler has annotated it with a node. A claim that another program fills (its dataSourceRef is of a kind that
provisioners do not know) waits for the volume that is made for it.

Upstream: pkg/controller/volume/persistentvolume, and the provisioners and resizers of CSI.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from konverge import clock
from konverge.client import AlreadyExists, Client, MergePatch, NotFound, StrategicPatch
from konverge.client.patches import Patch
from konverge.objects import times
from konverge.objects.durations import duration_seconds
from konverge.objects.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.meta import ObjectMeta
from konverge.objects.quantity import Quantity
from konverge.objects.times import parse_time
from konverge.runtime import Context, Controller, Request, Result, Watches
from konverge.sim.volume_matching import claim_names, is_populated, own_volume, requested, smallest

SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER = "sim.konverge.dev/volumes"
BY_HAND = "kubernetes.io/no-provisioner"
BINDER = "persistentvolume-controller"
RESIZE = "sim.konverge.dev/resize"
"""A parameter of a StorageClass: how long its volumes take to grow, such as `30s`."""
DEFAULT = "storageclass.kubernetes.io/is-default-class"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def classes() -> list[StorageClass]:
    """What a new cluster has: one class that binds at once, which is the default, and one that waits for a pod."""
    return [
        StorageClass(
            metadata=ObjectMeta(name=name, annotations=notes),
            provisioner=PROVISIONER,
            volume_binding_mode=mode,
            reclaim_policy="Delete",
            allow_volume_expansion=True,
        )
        for name, mode, notes in (
            ("standard", "Immediate", {DEFAULT: "true"}),
            ("standard-wait", "WaitForFirstConsumer", {}),
        )
    ]


async def create_classes(client: Client) -> None:
    for cls_ in classes():
        with suppress(AlreadyExists):
            await client.create(cls_)


class Volumes:
    """Two controllers: one for claims, one for volumes."""

    def __init__(self) -> None:
        self._pending: set[Request] = set()

    def controllers(self) -> list[Controller[Any]]:
        waiting: list[Watches[Any]] = [
            Watches(PersistentVolume, requests=self._claims_of),
            Watches(StorageClass, requests=lambda _: sorted(self._pending)),
            Watches(Pod, requests=self._claims_of_refused),
        ]
        volume_of = Watches(PersistentVolumeClaim, requests=_volume_of)
        return [
            Controller(PersistentVolumeClaim, self.claim, name="volume-binder", watches=waiting, component=BINDER),
            Controller(PersistentVolume, self.volume, name="volume-reclaimer", watches=[volume_of]),
        ]

    def _claims_of(self, volume: PersistentVolume) -> Iterable[Request]:
        owner = volume.spec.claim_ref
        mine = [Request(owner.namespace or "", owner.name or "")] if owner is not None else []
        return [*mine, *sorted(self._pending)]

    def _claims_of_refused(self, pod: Pod) -> list[Request]:
        """The claims that wait for a pod without a place: to say so. Upstream they are looked at by the clock."""
        if not _is_refused(pod):
            return []
        named = (Request(pod.metadata.namespace, name) for name in claim_names(pod))
        return [claim for claim in named if claim in self._pending]

    # -------------------------------------------------------------- claims

    async def claim(self, ctx: Context[PersistentVolumeClaim]) -> Result | None:
        claim = ctx.obj
        if ctx.deleting:
            self._pending.discard(ctx.request)
            return None
        if claim.status.phase == "Bound":
            self._pending.discard(ctx.request)
            await self._check(ctx)
            left = await self._expand(ctx)
            return Result(requeue_after=left) if left else None
        if claim.status.phase == "Lost":
            return None
        if is_populated(claim):
            volume = await self._find(ctx, own=True)
            if volume is not None:
                await self._bind(ctx, volume)
            return None
        self._pending.add(ctx.request)
        kind = await ctx.get(StorageClass, claim.spec.storage_class_name) if claim.spec.storage_class_name else None
        waits = kind is not None and kind.volume_binding_mode == "WaitForFirstConsumer"
        volume = await self._find(ctx, own=waits)
        if volume is None and waits and SELECTED_NODE not in claim.metadata.annotations and not claim.spec.volume_name:
            await self._wait(ctx)
            return None
        volume = volume or await self._provision(ctx, kind)
        if volume is not None:
            await self._bind(ctx, volume)
        return None

    async def _check(self, ctx: Context[PersistentVolumeClaim]) -> None:
        """A claim whose volume has gone is lost, with what was in it."""
        name = ctx.obj.spec.volume_name
        if name and await ctx.get(PersistentVolume, name) is None:
            await _patch_status(ctx, MergePatch({"status": {"phase": "Lost"}}))
            ctx.warning("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")

    async def _find(self, ctx: Context[PersistentVolumeClaim], *, own: bool = False) -> PersistentVolume | None:
        """The volume that is the claim's already, or (unless it must be its `own`) the smallest that will do."""
        volumes = await ctx.list(PersistentVolume, "")
        mine = own_volume(ctx.obj, volumes)
        return mine if mine is not None or own else smallest(ctx.obj, volumes)

    async def _wait(self, ctx: Context[PersistentVolumeClaim]) -> None:
        """Say what a claim waits for. Upstream: emitEventForUnboundDelayBindingClaim."""
        claim = ctx.obj.metadata
        pods = await ctx.list(Pod, claim.namespace)
        users = [pod.metadata.name for pod in pods if _is_refused(pod) and claim.name in claim_names(pod)]
        if users:
            who = f"pods {','.join(users)}" if len(users) > 1 else f"pod {users[0]}"
            ctx.event("WaitForPodScheduled", f"waiting for {who} to be scheduled")
        else:
            ctx.event("WaitForFirstConsumer", "waiting for first consumer to be created before binding")

    async def _provision(
        self, ctx: Context[PersistentVolumeClaim], kind: StorageClass | None
    ) -> PersistentVolume | None:
        claim = ctx.obj
        name = claim.spec.storage_class_name
        if claim.spec.volume_name:
            return None
        if kind is None:
            if name:
                ctx.warning("ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
            else:
                ctx.event("FailedBinding", "no persistent volumes available for this claim and no storage class is set")
            return None
        if kind.provisioner == BY_HAND:
            return None
        with suppress(AlreadyExists):
            await ctx.client.create(volume_for(claim, kind), resource=PersistentVolume.resource)
        volume = f"pvc-{claim.metadata.uid}"
        ctx.event("ProvisioningSucceeded", f"Successfully provisioned volume {volume}")
        return await ctx.client.get(PersistentVolume, volume)

    async def _bind(self, ctx: Context[PersistentVolumeClaim], volume: PersistentVolume) -> None:
        claim, name = ctx.obj, volume.metadata.name
        patch = {"metadata": {"resourceVersion": volume.metadata.resource_version}, "spec": {"claimRef": _ref(claim)}}
        await ctx.client.patch(PersistentVolume, name, MergePatch(patch))
        bound = MergePatch({"status": {"phase": "Bound"}})
        await ctx.client.patch(PersistentVolume, name, bound, subresource="status")
        meta = claim.metadata
        notes: dict[str, Any] = {"annotations": _BOUND, "resourceVersion": meta.resource_version}
        mine = MergePatch({"metadata": notes, "spec": {"volumeName": name}})
        await ctx.client.patch(PersistentVolumeClaim, meta.name, mine, meta.namespace)
        capacity = {key: str(amount) for key, amount in volume.spec.capacity.items()}
        status = {"phase": "Bound", "accessModes": volume.spec.access_modes, "capacity": capacity}
        await _patch_status(ctx, MergePatch({"status": status}))

    async def _expand(self, ctx: Context[PersistentVolumeClaim]) -> float:
        """Grow to what is asked for; the answer is how long that will still take."""
        claim = ctx.obj
        wanted, present = requested(claim), claim.status.capacity.get("storage")
        if wanted is None or present is None or wanted <= present or not claim.spec.volume_name:
            return 0.0
        left = await self._resizing(ctx)
        if left:
            return left
        amount = {"storage": str(wanted)}
        await ctx.client.patch(PersistentVolume, claim.spec.volume_name, MergePatch({"spec": {"capacity": amount}}))
        over = [{"$patch": "delete", "type": condition} for condition in ("Resizing", "FileSystemResizePending")]
        status = {"capacity": amount, "allocatedResources": None, "conditions": over}
        await _patch_status(ctx, StrategicPatch({"status": status}))
        ctx.event("FileSystemResizeSuccessful", "Require file system resize of volume on node")
        return 0.0

    async def _resizing(self, ctx: Context[PersistentVolumeClaim]) -> float:
        """A class may say that it takes its time; until then the claim says what is going on."""
        claim = ctx.obj
        kind = await ctx.get(StorageClass, claim.spec.storage_class_name) if claim.spec.storage_class_name else None
        takes = float(duration_seconds(kind.parameters[RESIZE])) if kind and RESIZE in kind.parameters else 0.0
        resizing = [condition for condition in claim.status.conditions if condition.type == "Resizing"]
        began = resizing[0].last_transition_time if resizing else None
        if began:
            return max((parse_time(began) - clock.utc_now()).total_seconds() + takes, 0.0)
        if takes:
            going = {"type": "Resizing", "status": "True", "lastTransitionTime": times.now()}
            await _patch_status(ctx, StrategicPatch({"status": {"conditions": [going]}}))
            ctx.event("Resizing", f"External resizer is resizing volume {claim.spec.volume_name}")
        return takes

    # -------------------------------------------------------------- volumes

    async def volume(self, ctx: Context[PersistentVolume]) -> Result | None:
        """A volume without a claim is available; one whose claim is gone is reclaimed as its policy says.

        One that is reserved for the name of a claim has none yet. Upstream: syncVolume.
        """
        volume = ctx.obj
        if ctx.deleting:
            return None
        owner = volume.spec.claim_ref
        if owner is None or not owner.uid:
            await self._phase(ctx, "Available")
            return None
        claim = await ctx.get(PersistentVolumeClaim, owner.name or "", owner.namespace)
        if (claim is None or claim.metadata.uid != owner.uid) and volume.status.phase != "Pending":
            await self._phase(ctx, "Released")
            if volume.spec.persistent_volume_reclaim_policy == "Delete":
                with suppress(NotFound):
                    await ctx.client.delete(PersistentVolume, volume.metadata.name, uid=volume.metadata.uid)
        return None

    async def _phase(self, ctx: Context[PersistentVolume], phase: str) -> None:
        if ctx.obj.status.phase != phase:
            ctx.obj.status.phase = phase
            await ctx.save_status()


async def _patch_status(ctx: Context[PersistentVolumeClaim], patch: Patch) -> None:
    meta = ctx.obj.metadata
    await ctx.client.patch(PersistentVolumeClaim, meta.name, patch, meta.namespace, subresource="status")


def _is_refused(pod: Pod) -> bool:
    """The scheduler has found no place for it."""
    return any((condition.type, condition.status) == ("PodScheduled", "False") for condition in pod.status.conditions)


def _volume_of(claim: PersistentVolumeClaim) -> list[Request]:
    return [Request("", claim.spec.volume_name)] if claim.spec.volume_name else []


def _ref(claim: PersistentVolumeClaim) -> dict[str, str]:
    meta = claim.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }


def volume_for(claim: PersistentVolumeClaim, kind: StorageClass) -> dict[str, Any]:
    """The volume that a provisioner makes for a claim; its name follows from the claim, so it is made once."""
    name = f"pvc-{claim.metadata.uid}"
    spec = {
        "capacity": {"storage": str(requested(claim) or Quantity(0))},
        "accessModes": claim.spec.access_modes,
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "persistentVolumeReclaimPolicy": kind.reclaim_policy or "Delete",
        "storageClassName": kind.metadata.name,
        "mountOptions": kind.mount_options,
        "claimRef": _ref(claim),
        "csi": {"driver": kind.provisioner.replace("/", "."), "volumeHandle": name},
    }
    notes = {"pv.kubernetes.io/provisioned-by": kind.provisioner}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": notes},
        "spec": spec,
    }
