"""The Deployment controller: rolls from one template to the next, within surge and availability, and back again.

The steps are the lines of `reconcile`: claim the replica sets; find the new and the old ones; scale, roll or recreate
by strategy; write the status. Sizes are decided by pure functions (`rolling`), sets are found and created in
`replicasets`, the status is computed in `status`.

Upstream: pkg/controller/deployment (deployment_controller.go, sync.go, rolling.go, recreate.go, progress.go).
"""

from __future__ import annotations

import contextlib
from typing import Any

from konverge.cache import by_owner
from konverge.client import Forbidden, MergePatch, NotFound
from konverge.kube import pods as podlib
from konverge.kube.adoption import ORPHANS, adoptable, adopters, claim, orphans
from konverge.kube.deployment import replicasets as sets
from konverge.kube.deployment import rolling, status
from konverge.kube.listers import declared
from konverge.kube.pods import replicas_of
from konverge.objects import labels
from konverge.objects.kinds.apps_v1 import Deployment, ReplicaSet
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watches, controller_of, find_condition
from konverge.runtime.context import Caches
from konverge.runtime.predicates import deleted

Sets = tuple[ReplicaSet | None, list[ReplicaSet]]
"""The new replica set and the old ones."""


class DeploymentReconciler(Reconciler[Deployment]):
    # upstream: syncDeployment
    async def reconcile(self, ctx: Context[Deployment]) -> Result | None:
        deployment = ctx.obj
        replicasets = await claim(ctx, ReplicaSet, labels.from_selector(deployment.spec.selector))
        new, old = sets.split(deployment, replicasets)
        if deployment.metadata.deletion_timestamp is None:
            _note_pause(deployment)
            if deployment.spec.paused or rolling.was_scaled(deployment, replicasets):
                new, old = await _resize(ctx, new, old, rolling.rescale(deployment, new, old))
            elif sets.is_rolling(deployment):
                new, old = await _roll(ctx, new, old)
            else:
                new, old = await _recreate(ctx, new, old)
        return await _finish(ctx, new, old)


# upstream: rolloutRolling
async def _roll(ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet]) -> Sets:
    new = await _ensure_new(ctx, new, old, rolling.first_size(ctx.obj, old))
    return await _resize(ctx, new, old, rolling.scale_up(ctx.obj, new, old) or rolling.scale_down(ctx.obj, new, old))


# upstream: rolloutRecreate
async def _recreate(ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet]) -> Sets:
    """All old pods are gone before the first new one is created."""
    down = {rs.metadata.name: 0 for rs in old if replicas_of(rs)}
    if down:
        return await _resize(ctx, new, old, down)
    if await _old_pods_run(ctx, old):
        return new, old
    wanted = replicas_of(ctx.obj)
    new = await _ensure_new(ctx, new, old, wanted)
    return await _resize(ctx, new, old, {new.metadata.name: wanted})


# upstream: oldPodsRunning
async def _old_pods_run(ctx: Context[Deployment], old: list[ReplicaSet]) -> bool:
    uids = [rs.metadata.uid for rs in old]
    owned = [pod for uid in uids for pod in ctx.indexed(Pod, "owner", uid)]
    return any(not podlib.is_terminated(pod) for pod in owned)


async def _ensure_new(ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet], size: int) -> ReplicaSet:
    existed = new is not None
    try:
        replicaset = await sets.ensure_new(ctx, new, old, size)
    except sets.CreationFailed as failure:
        await _report_failure(ctx, failure)
        raise failure.error from None
    _note_new(ctx.obj, replicaset, existed)
    revision = replicaset.metadata.annotations[sets.REVISION]
    if ctx.obj.metadata.annotations.get(sets.REVISION) != revision:
        ctx.obj.metadata.annotations[sets.REVISION] = revision
        # Through the status subresource: a changed annotation on the Deployment itself would raise its generation.
        patch = MergePatch({"metadata": {"annotations": {sets.REVISION: revision}}})
        await ctx.client.patch(Deployment, ctx.request.name, patch, ctx.request.namespace, subresource="status")
    return replicaset


async def _report_failure(ctx: Context[Deployment], failure: sets.CreationFailed) -> None:
    """Nothing else happens to a Deployment whose new set is refused: its condition and an event say why."""
    if isinstance(failure.error, Forbidden) and failure.error.namespace_terminating:
        return
    ctx.warning(status.CREATE_FAILED, str(failure))
    if status.has_deadline(ctx.obj):
        condition = ("False", status.CREATE_FAILED, str(failure))
        ctx.obj.status.conditions = status.put(ctx.obj.status.conditions, "Progressing", *condition)
        await ctx.save_status()


async def _resize(
    ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet], sizes: rolling.Sizes
) -> Sets:
    if new is not None and new.metadata.name in sizes:
        new = await sets.scale_to(ctx, new, sizes[new.metadata.name])
    resized = [await sets.scale_to(ctx, rs, sizes[rs.metadata.name]) if rs.metadata.name in sizes else rs for rs in old]
    return new, resized


# ------------------------------------------------------------------ conditions


def _note_new(deployment: Deployment, new: ReplicaSet, existed: bool) -> None:
    if not status.has_deadline(deployment):
        return
    current = find_condition(deployment.status.conditions, "Progressing")
    name = new.metadata.name
    if not existed:
        condition = ("True", status.CREATED, f'Created new replica set "{name}"')
    elif current is None:
        condition = ("True", status.FOUND, f'Found new replica set "{name}"')
    else:
        return
    deployment.status.conditions = status.put(deployment.status.conditions, "Progressing", *condition)


# upstream: checkPausedConditions
def _note_pause(deployment: Deployment) -> None:
    """A paused rollout makes no progress, and its deadline does not run."""
    if not status.has_deadline(deployment):
        return
    current = find_condition(deployment.status.conditions, "Progressing")
    if current is not None and current.reason == status.TIMED_OUT:
        return
    paused = current is not None and current.reason == status.PAUSED
    condition: tuple[str, str, str] | None = None
    if deployment.spec.paused and not paused:
        condition = ("Unknown", status.PAUSED, "Deployment is paused")
    elif not deployment.spec.paused and paused:
        condition = ("Unknown", status.RESUMED, "Deployment is resumed")
    if condition is not None:
        deployment.status.conditions = status.put(deployment.status.conditions, "Progressing", *condition)


# ------------------------------------------------------------------ status and history


# upstream: syncRolloutStatus, syncDeploymentStatus, requeueStuckDeployment
async def _finish(ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet]) -> Result | None:
    deployment = ctx.obj
    replicasets = [*old, *([new] if new else [])]
    new_status = status.counts(deployment, new, replicasets)
    rolls = not deployment.spec.paused and not rolling.was_scaled(deployment, replicasets)
    if rolls:
        status.progress(deployment, new_status, new, replicasets)
    complete = status.is_complete(deployment, new_status)
    deployment.status = new_status
    await ctx.save_status()
    if rolls and complete:
        await _clean_up_history(ctx, old)
    seconds = None if complete else status.left(deployment, find_condition(new_status.conditions, "Progressing"))
    return Result(requeue_after=max(1.0, seconds + 1)) if seconds is not None else None


# upstream: cleanupDeployment
async def _clean_up_history(ctx: Context[Deployment], old: list[ReplicaSet]) -> None:
    limit = ctx.obj.spec.revision_history_limit
    if limit is None:
        return
    idle = [
        rs for rs in old
        if not replicas_of(rs) and not rs.status.replicas and rs.metadata.deletion_timestamp is None
        and (rs.status.observed_generation or 0) >= rs.metadata.generation
    ]  # fmt: skip
    for rs in sorted(idle, key=sets.revision_of)[: max(0, len(old) - limit)]:
        with contextlib.suppress(NotFound):
            await ctx.client.delete(
                ReplicaSet, rs.metadata.name, rs.metadata.namespace, uid=rs.metadata.uid, propagation="Background"
            )


# ------------------------------------------------------------------ declaration


def _of_pod(pod: Pod, caches: Caches) -> list[Request]:
    """A Recreate may wait for the pod that was deleted. Upstream: deletePod."""
    owner = controller_of(pod)
    replicaset = declared(caches, ReplicaSet).get(owner.name, pod.metadata.namespace) if owner else None
    parent = controller_of(replicaset) if replicaset else None
    return [Request(pod.metadata.namespace, parent.name)] if parent and parent.kind == "Deployment" else []


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            Deployment,
            DeploymentReconciler(),
            component="deployment-controller",
            owns=[ReplicaSet],
            watches=[
                Watches(ReplicaSet, lookup=adopters(Deployment), when=adoptable),
                Watches(Pod, lookup=_of_pod, when=deleted),
            ],
            indexes={ReplicaSet: {ORPHANS: orphans}, Pod: {"owner": by_owner}},
        )
    ]
