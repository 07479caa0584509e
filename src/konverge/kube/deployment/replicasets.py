"""A Deployment's replica sets: which one is new, which are old, how a new one is created, what their annotations say.

Upstream: pkg/controller/deployment/util/deployment_util.go, and getNewReplicaSet in sync.go.
"""

from __future__ import annotations

from typing import Any

from konverge.client import AlreadyExists, ClientError, MergePatch
from konverge.kube.hashing import hash_of
from konverge.kube.messages import message_of
from konverge.kube.pods import replicas_of
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.int_or_string import scale
from konverge.objects.kinds.apps_v1 import Deployment, ReplicaSet, ReplicaSetSpec
from konverge.objects.kinds.core_v1 import PodTemplateSpec
from konverge.objects.meta import LabelSelector, ObjectMeta
from konverge.runtime import Context, TransientError, set_controller_reference
from konverge.runtime.owners import is_controlled_by

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
_MOST_COLLISIONS = 50  # a bound on the loop; two collisions in a row are already unlikely
# Annotations of the Deployment that describe it and not its template. Upstream: annotationsToSkip.
_NOT_COPIED = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION, HISTORY, DESIRED, MAXIMUM,
    "deprecated.deployment.rollback.to",
}  # fmt: skip


class CreationFailed(Exception):
    """The server refused the new replica set."""

    def __init__(self, name: str, error: ClientError) -> None:
        super().__init__(f'Failed to create new replica set "{name}": {message_of(error)}')
        self.error = error


def is_rolling(deployment: Deployment) -> bool:
    strategy = deployment.spec.strategy
    return strategy is None or strategy.type != "Recreate"


# upstream: ResolveFenceposts
def bounds(deployment: Deployment) -> tuple[int, int]:
    """(surge, unavailable) as numbers. With both zero nothing could roll: then one pod may be unavailable."""
    rolling = deployment.spec.strategy.rolling_update if deployment.spec.strategy else None
    if not is_rolling(deployment) or rolling is None:
        return 0, 0
    total = replicas_of(deployment)
    surge = scale(0 if rolling.max_surge is None else rolling.max_surge, total, round_up=True)
    unavailable = scale(0 if rolling.max_unavailable is None else rolling.max_unavailable, total, round_up=False)
    return surge, unavailable if surge or unavailable else 1


def unavailable_allowed(deployment: Deployment) -> int:
    total = replicas_of(deployment)
    return min(bounds(deployment)[1], total) if is_rolling(deployment) and total else 0


def revision_of(replicaset: ReplicaSet) -> int:
    text = replicaset.metadata.annotations.get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _bare(template: PodTemplateSpec | None) -> dict[str, Any]:
    plain = to_dict(template) if template is not None else {}
    plain.get("metadata", {}).get("labels", {}).pop(HASH, None)
    return plain


# upstream: FindNewReplicaSet, FindOldReplicaSets
def split(deployment: Deployment, replicasets: list[ReplicaSet]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """(the set with the present template, all others); of two with this template the older one is the new set."""
    wanted = _bare(deployment.spec.template)
    ordered = sorted(replicasets, key=lambda rs: (rs.metadata.creation_timestamp or "", rs.metadata.name))
    new = next((rs for rs in ordered if _bare(rs.spec.template) == wanted), None)
    return new, [rs for rs in ordered if rs is not new]


async def ensure_new(
    ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet], replicas: int
) -> ReplicaSet:
    """The new replica set with its annotations up to date; created with so many replicas when there is none.

    Upstream: getNewReplicaSet.
    """
    revision = max((revision_of(rs) for rs in old), default=0) + 1
    if new is None:
        return await _create(ctx, replicas, revision)
    revision = max(revision, revision_of(new))
    return await annotate(ctx, new, _annotations(ctx.obj, new, revision))


async def _create(ctx: Context[Deployment], replicas: int, revision: int) -> ReplicaSet:
    """Named by the hash of the template; if the name is taken, the collision is counted and the next name is tried.

    (Upstream returns and comes again. Here that would be never: a controller is not woken by what it writes itself.)
    """
    for _ in range(_MOST_COLLISIONS):
        desired = _new_replicaset(ctx.obj, replicas)
        desired.metadata.annotations = _annotations(ctx.obj, desired, revision)
        try:
            created = await ctx.client.create(desired)
        except AlreadyExists:
            live = await ctx.client.get(ReplicaSet, desired.metadata.name, ctx.request.namespace)
            if is_controlled_by(live, ctx.obj) and _bare(live.spec.template) == _bare(ctx.obj.spec.template):
                return live  # we created it before, and the cache had not shown it
            ctx.obj.status.collision_count = (ctx.obj.status.collision_count or 0) + 1
            continue
        except ClientError as error:
            raise CreationFailed(desired.metadata.name, error) from error
        if replicas:
            ctx.event("ScalingReplicaSet", f"Scaled up replica set {created.metadata.name} from 0 to {replicas}")
        return created
    raise TransientError(f"no free name for a set of {ctx.request} after {_MOST_COLLISIONS} collisions")


def _new_replicaset(deployment: Deployment, replicas: int) -> ReplicaSet:
    digest = hash_of(_bare(deployment.spec.template), deployment.status.collision_count)
    template = from_dict(PodTemplateSpec, _bare(deployment.spec.template))
    template.metadata.labels = {**template.metadata.labels, HASH: digest}
    selector = from_dict(LabelSelector, to_dict(deployment.spec.selector))
    selector.match_labels = {**selector.match_labels, HASH: digest}
    replicaset = ReplicaSet(
        metadata=ObjectMeta(
            name=_name(deployment.metadata.name, digest),
            namespace=deployment.metadata.namespace,
            labels=dict(template.metadata.labels),
        ),
        spec=ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=selector,
            template=template,
        ),
    )
    set_controller_reference(deployment, replicaset)
    return replicaset


# upstream: generateReplicaSetName
def _name(deployment: str, digest: str) -> str:
    """A name may have 253 characters; a longer one loses the end of the Deployment's name."""
    return f"{deployment[: 253 - len(digest) - 1]}-{digest}"


# upstream: SetNewReplicaSetAnnotations
def _annotations(deployment: Deployment, replicaset: ReplicaSet, revision: int) -> dict[str, str]:
    present = replicaset.metadata.annotations
    own = {name: value for name, value in deployment.metadata.annotations.items() if name not in _NOT_COPIED}
    wanted = {**present, **own, **scale_annotations(deployment), REVISION: str(revision)}
    before = present.get(REVISION, "")
    if before and before != str(revision):
        history = [item for item in present.get(HISTORY, "").split(",") if item]
        wanted[HISTORY] = ",".join([*history, before])
    return wanted


def scale_annotations(deployment: Deployment) -> dict[str, str]:
    total = replicas_of(deployment)
    return {DESIRED: str(total), MAXIMUM: str(total + bounds(deployment)[0])}


async def annotate(ctx: Context[Any], replicaset: ReplicaSet, wanted: dict[str, str]) -> ReplicaSet:
    """Write annotations (and minReadySeconds) that differ."""
    patch: dict[str, Any] = {}
    changed = {name: value for name, value in wanted.items() if replicaset.metadata.annotations.get(name) != value}
    if changed:
        patch["metadata"] = {"annotations": changed}
    minimum = ctx.obj.spec.min_ready_seconds
    if (replicaset.spec.min_ready_seconds or 0) != (minimum or 0):
        patch["spec"] = {"minReadySeconds": minimum or 0}
    if not patch:
        return replicaset
    return await ctx.client.patch(
        ReplicaSet, replicaset.metadata.name, MergePatch(patch), replicaset.metadata.namespace
    )


# upstream: scaleReplicaSet
async def scale_to(ctx: Context[Deployment], replicaset: ReplicaSet, replicas: int) -> ReplicaSet:
    """Set a replica set's size, with an event; its annotations say for which size of the Deployment."""
    before = replicas_of(replicaset)
    annotations = scale_annotations(ctx.obj)
    stale = any(replicaset.metadata.annotations.get(name) != value for name, value in annotations.items())
    if before == replicas and not stale:
        return replicaset
    patch: dict[str, Any] = {"metadata": {"annotations": annotations}}
    if before != replicas:
        patch["spec"] = {"replicas": replicas}
    written = await ctx.client.patch(
        ReplicaSet, replicaset.metadata.name, MergePatch(patch), replicaset.metadata.namespace
    )
    if before != replicas:
        direction = "up" if replicas > before else "down"
        name = replicaset.metadata.name
        ctx.event("ScalingReplicaSet", f"Scaled {direction} replica set {name} from {before} to {replicas}")
    return written
