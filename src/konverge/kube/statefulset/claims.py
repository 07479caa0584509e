"""The claims of a set's pods: created before the pod, and owned as the retention policy says.

The garbage collector acts on the owner: a claim owned by the set is deleted with the set (whenDeleted), one owned by a
pod outside of the desired ordinals is deleted with that pod (whenScaled).

Upstream: pkg/controller/statefulset (stateful_pod_control.go, stateful_set_utils.go).
"""

from __future__ import annotations

from konverge.client import AlreadyExists, ClientError, MergePatch
from konverge.kube.messages import message_of
from konverge.kube.statefulset.identity import claim_name, claims_for, ordinal_of, ordinals_of
from konverge.objects.codec import to_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.objects.meta import Object, OwnerReference
from konverge.runtime import Context, TransientError
from konverge.runtime.owners import controller_reference


# upstream: createPersistentVolumeClaims
async def ensure(ctx: Context[StatefulSet], ordinal: int) -> None:
    """Create the missing claims of an ordinal. Raises while one of them is being deleted."""
    pod = f"{ctx.request.name}-{ordinal}"
    for desired in claims_for(ctx.obj, ordinal):
        live = await ctx.get(PersistentVolumeClaim, desired.metadata.name)
        if live is None:
            desired.metadata.owner_references = _wanted(ctx.obj, None)
            await _create(ctx, desired, pod)
        elif live.metadata.deletion_timestamp is not None:
            raise TransientError(f"pvc {desired.metadata.name} is being deleted")


async def _create(ctx: Context[StatefulSet], desired: PersistentVolumeClaim, pod: str) -> None:
    where = f"Pod {pod} in StatefulSet {ctx.request.name}"
    try:
        await ctx.client.create(desired)
    except AlreadyExists:
        return
    except ClientError as error:
        claim, why = desired.metadata.name, message_of(error)
        ctx.warning("FailedCreate", f"Create Claim {claim} for {where} failed error: {why}")
        ctx.warning("FailedCreate", f"Create {where} failed error: failed to create PVC {claim}: {why}")
        raise
    ctx.event("SuccessfulCreate", f"Create Claim {desired.metadata.name} {where} success")


# upstream: PodClaimIsStale
async def is_stale(ctx: Context[StatefulSet], ordinal: int) -> bool:
    """Whether a claim still belongs to a deleted pod of this name: it will be deleted too, and must not be reused."""
    if _policy(ctx.obj)[1] != "Delete":
        return False
    pod = f"{ctx.request.name}-{ordinal}"
    for template in ctx.obj.spec.volume_claim_templates:
        live = await ctx.get(PersistentVolumeClaim, claim_name(template, ctx.obj, ordinal))
        owners = live.metadata.owner_references if live is not None else []
        if any(owner.kind == "Pod" and owner.name == pod for owner in owners):
            return True
    return False


async def set_owners(ctx: Context[StatefulSet], pod: Pod) -> None:
    """Set the owners of a pod's claims by the retention policy. Upstream: UpdatePodClaimForRetentionPolicy."""
    for template in ctx.obj.spec.volume_claim_templates:
        name = claim_name(template, ctx.obj, ordinal_of(pod))
        claim = await ctx.get(PersistentVolumeClaim, name)
        wanted = None if claim is None else owners_for(claim, ctx.obj, pod)
        if claim is None or wanted is None:
            continue
        references = [to_dict(reference) for reference in wanted] or None
        guard = {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}
        patch = MergePatch({"metadata": {"ownerReferences": references, **guard}})
        await ctx.client.patch(PersistentVolumeClaim, name, patch, ctx.request.namespace)


# upstream: isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod
def owners_for(claim: PersistentVolumeClaim, statefulset: StatefulSet, pod: Pod) -> list[OwnerReference] | None:
    """The owners that a claim should have; None when it has them, or must not be changed."""
    present = claim.metadata.owner_references
    ours = [ref for ref in present if _names(ref, statefulset) or _names(ref, pod)]
    if any(ref.uid not in (statefulset.metadata.uid, pod.metadata.uid) for ref in ours):
        return None  # it belongs to a deleted set or pod of the same name: the garbage collector deletes it
    others = [ref for ref in present if ref not in ours]
    foreign = any(ref.controller for ref in others)
    wanted = others if foreign else [*others, *_wanted(statefulset, pod)]
    return None if _roles(wanted) == _roles(present) else wanted


def _wanted(statefulset: StatefulSet, pod: Pod | None) -> list[OwnerReference]:
    """The set while the ordinal is desired, the pod once it is not."""
    when_deleted, when_scaled = _policy(statefulset)
    if pod is not None and when_scaled == "Delete" and ordinal_of(pod) not in ordinals_of(statefulset):
        return [controller_reference(pod)]
    return [controller_reference(statefulset)] if when_deleted == "Delete" else []


def _policy(statefulset: StatefulSet) -> tuple[str, str]:
    """(whenDeleted, whenScaled)"""
    policy = statefulset.spec.persistent_volume_claim_retention_policy
    if policy is None:
        return "Retain", "Retain"
    return policy.when_deleted or "Retain", policy.when_scaled or "Retain"


def _names(reference: OwnerReference, obj: Object) -> bool:
    wanted = (obj.api_version, obj.kind, obj.metadata.name)
    return (reference.api_version, reference.kind, reference.name) == wanted


def _roles(references: list[OwnerReference]) -> set[tuple[str, bool]]:
    return {(reference.uid, bool(reference.controller)) for reference in references}
