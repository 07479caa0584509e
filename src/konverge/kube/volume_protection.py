"""Storage in use is not deleted: finalizers hold a claim while a pod uses it, and a volume while it is bound.

A claim is in use when a pod that is bound to a node names it: a pod without a node would not be started any more.
Before the finalizer is removed the server is asked again, because the cache may not have the newest pod yet. Bound
claims also get the condition Unused, which says since when no pod names them.

A class of volume attributes is held while a claim or a volume names it.

Upstream: pkg/controller/volume/pvcprotection, pvprotection, vacprotection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache.record import Meta, Record
from konverge.kube import pods as podlib
from konverge.objects.kinds.core_v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimCondition,
    Pod,
    Volume,
)
from konverge.objects.kinds.storage_v1 import VolumeAttributesClass
from konverge.objects.times import now
from konverge.runtime import Context, Controller, Reconciler, Request, Use, Watches, find_condition
from konverge.runtime.context import Caches
from konverge.runtime.finalizers import add_finalizer, remove_finalizer
from konverge.runtime.predicates import ChangePredicate

CLAIM = "kubernetes.io/pvc-protection"
VOLUME = "kubernetes.io/pv-protection"
CLASS = "kubernetes.io/vac-protection"
UNUSED = "Unused"
BY_CLAIM = "protection/claim"


class ClaimReconciler(Reconciler[PersistentVolumeClaim]):
    # upstream: processPVC
    async def reconcile(self, ctx: Context[PersistentVolumeClaim]) -> None:
        claim = ctx.obj
        if not ctx.deleting:
            await add_finalizer(ctx, CLAIM)
            if claim.status.phase == "Bound":
                await _report_unused(ctx, any(_names(pod, claim) for pod in _users(ctx)))
        elif CLAIM in claim.metadata.finalizers and not any(_holds(pod, claim) for pod in _users(ctx)):
            live = await ctx.client.list(Pod, claim.metadata.namespace)
            if not any(_holds(pod, claim) for pod in live):
                await remove_finalizer(ctx, CLAIM)


class VolumeReconciler(Reconciler[PersistentVolume]):
    # upstream: processPV
    async def reconcile(self, ctx: Context[PersistentVolume]) -> None:
        if not ctx.deleting:
            await add_finalizer(ctx, VOLUME)
        elif ctx.obj.status.phase != "Bound":
            await remove_finalizer(ctx, VOLUME)


class ClassReconciler(Reconciler[VolumeAttributesClass]):
    # upstream: processClass (vacprotection)
    async def reconcile(self, ctx: Context[VolumeAttributesClass]) -> None:
        if not ctx.deleting:
            await add_finalizer(ctx, CLASS)
        elif CLASS in ctx.obj.metadata.finalizers and not await self._is_named(ctx):
            await remove_finalizer(ctx, CLASS)

    async def _is_named(self, ctx: Context[VolumeAttributesClass]) -> bool:
        """The server is asked: the cache may not have the newest claim yet."""
        name = ctx.request.name
        claims = await ctx.client.list(PersistentVolumeClaim)
        return any(name in _classes_of_claim(claim) for claim in claims) or any(
            volume.spec.volume_attributes_class_name == name for volume in await ctx.client.list(PersistentVolume)
        )


def _classes_of_claim(claim: PersistentVolumeClaim) -> set[str | None]:
    """Upstream: getPVCReferencedVACNames."""
    changing = claim.status.modify_volume_status
    return {
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        changing.target_volume_attributes_class_name if changing is not None else None,
    }


def _users(ctx: Context[PersistentVolumeClaim]) -> Iterable[Pod]:
    return ctx.indexed(Pod, BY_CLAIM, str(ctx.request))


def _holds(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim must stay while the pod exists. Upstream: podUsesPVCForDeletion."""
    ended = podlib.is_terminated(pod)
    return bool(pod.spec.node_name) and any(
        _is_claim(volume, claim) or (not ended and _is_own(pod, volume, claim)) for volume in pod.spec.volumes
    )


def _names(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod that has not ended names the claim, with a node or without. Upstream: podUsesPVCForUnusedSince."""
    return not podlib.is_terminated(pod) and any(
        _is_claim(volume, claim) or _is_own(pod, volume, claim) for volume in pod.spec.volumes
    )


def _is_claim(volume: Volume, claim: PersistentVolumeClaim) -> bool:
    source = volume.persistent_volume_claim
    return source is not None and source.claim_name == claim.metadata.name


def _is_own(pod: Pod, volume: Volume, claim: PersistentVolumeClaim) -> bool:
    """An ephemeral volume: the claim was created for this pod."""
    if volume.ephemeral is None or claim.metadata.name != f"{pod.metadata.name}-{volume.name}":
        return False
    return any(owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


# upstream: updateUnusedCondition
async def _report_unused(ctx: Context[PersistentVolumeClaim], used: bool) -> None:
    conditions = ctx.obj.status.conditions
    known = find_condition(conditions, UNUSED)
    if known is not None and (known.status == "True") is not used:
        return
    if used:
        reason, message = "PodUsingPVC", "A pod is currently referencing this PVC"
    else:
        reason, message = "NoPodsUsingPVC", "No pods are currently referencing this PVC"
    condition_ = PersistentVolumeClaimCondition(
        type=UNUSED,
        status="False" if used else "True",
        reason=reason,
        message=message,
        last_transition_time=now(),
    )
    ctx.obj.status.conditions = [*(condition for condition in conditions if condition.type != UNUSED), condition_]
    await ctx.save_status()


# ------------------------------------------------------------------ declaration


class _Source(msgspec.Struct, gc=False, rename="camel"):
    claim_name: str = ""


class _Volume(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    persistent_volume_claim: _Source | None = None
    ephemeral: dict[str, Any] | None = None


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    volumes: list[_Volume] = []


class _View(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_view = msgspec.json.Decoder(_View).decode


def by_claim(record: Record, meta: Meta) -> Iterable[str]:
    """An index function: the claims of a pod. Most pods have none, which is seen without decoding them."""
    volumes = _view(record.raw).spec.volumes if _has_claims(record) else ()
    return [f"{meta.namespace}/{name}" for volume in volumes if (name := _claim(volume, meta.name))]


def _has_claims(record: Record) -> bool:
    return b'"persistentVolumeClaim"' in record.raw or b'"ephemeral"' in record.raw


def _claim(volume: _Volume | Volume, pod: str) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod}-{volume.name}" if volume.ephemeral is not None else ""


def _of_pod(pod: Pod) -> list[Request]:
    names = (_claim(volume, pod.metadata.name) for volume in pod.spec.volumes)
    return [Request(pod.metadata.namespace, name) for name in names if name]


def _all_classes(obj: PersistentVolumeClaim | PersistentVolume, caches: Caches) -> list[Request]:
    """There are few classes, and few claims name one."""
    lister = caches.lister(VolumeAttributesClass)
    return [Request("", item.metadata.name) for item in lister.list()] if lister is not None else []


_names_class = ChangePredicate(
    lambda change: any(b"olumeAttributesClassName" in record.raw for record in (change.old, change.new) if record)
)


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            PersistentVolumeClaim,
            ClaimReconciler(),
            name="pvc-protection",
            watches=[Watches(Pod, requests=_of_pod, when=ChangePredicate(lambda change: _has_claims(change.latest)))],
            uses=[Use(PersistentVolumeClaim, "patch")],
            indexes={Pod: {BY_CLAIM: by_claim}},
        ),
        Controller(PersistentVolume, VolumeReconciler(), name="pv-protection", uses=[Use(PersistentVolume, "patch")]),
        Controller(
            VolumeAttributesClass,
            ClassReconciler(),
            name="vac-protection",
            watches=[
                Watches(kind, lookup=_all_classes, when=_names_class)
                for kind in (PersistentVolumeClaim, PersistentVolume)
            ],
            uses=[Use(VolumeAttributesClass, "patch")],
        ),
    ]
