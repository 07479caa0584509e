"""The Deployment controller: from one template to the next, within surge and availability, and back again.

The seven steps are the lines of `reconcile`: the Deployment; its replica sets; which is new and which are old; the
strategy; the new one up; the old ones down; the status. Sizes are decided by pure functions (`rolling`), sets are found
and made in `replicasets`, the status is worked out in `status`.
"""

from __future__ import annotations

import contextlib
from typing import Any

from konverge.cache import by_owner
from konverge.client import MergePatch, NotFound
from konverge.kube import pods as podlib
from konverge.kube.adoption import ORPHANS, adoptable, adopters, claim, orphans
from konverge.kube.deployment import replicasets as sets
from konverge.kube.deployment import rolling, status
from konverge.kube.deployment.replicasets import count
from konverge.objects import labels
from konverge.objects.kinds.apps_v1 import Deployment, ReplicaSet
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watch, controller_of
from konverge.runtime.context import Caches
from konverge.runtime.predicates import deleted


class DeploymentReconciler(Reconciler[Deployment]):
    async def reconcile(self, ctx: Context[Deployment]) -> Result | None:
        deployment = ctx.obj
        found = await claim(ctx, ReplicaSet, labels.from_selector(deployment.spec.selector))
        new, old = sets.split(deployment, found)
        if deployment.metadata.deletion_timestamp is None:
            _note_pause(deployment)
            if deployment.spec.paused or rolling.was_scaled(deployment, found):
                new, old = await _resize(ctx, new, old, rolling.rescale(deployment, new, old))
            elif sets.is_rolling(deployment):
                new, old = await _roll(ctx, new, old)
            else:
                new, old = await _recreate(ctx, new, old)
        return await _finish(ctx, new, old)


async def _roll(
    ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet]
) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    new = await _ensure_new(ctx, new, old, rolling.first_size(ctx.obj, old))
    if new is None:
        return None, old
    up = rolling.scale_up(ctx.obj, new, old)
    if up:
        return await _resize(ctx, new, old, up)
    return await _resize(ctx, new, old, rolling.scale_down(ctx.obj, new, old))


async def _recreate(
    ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet]
) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """All of the old go before any of the new comes."""
    down = {rs.metadata.name: 0 for rs in old if count(rs)}
    if down:
        return await _resize(ctx, new, old, down)
    if await _old_pods_run(ctx, old):
        return new, old
    wanted = sets.replicas_of(ctx.obj)
    new = await _ensure_new(ctx, new, old, wanted)
    return await _resize(ctx, new, old, {new.metadata.name: wanted}) if new else (None, old)


async def _old_pods_run(ctx: Context[Deployment], old: list[ReplicaSet]) -> bool:
    uids = [rs.metadata.uid for rs in old]
    owned = [pod for uid in uids for pod in ctx.indexed(Pod, "owner", uid)]
    return any(not podlib.is_terminated(pod) for pod in owned)


async def _ensure_new(
    ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet], size: int
) -> ReplicaSet | None:
    existed = new is not None
    made = await sets.ensure_new(ctx, new, old, size)
    if made is None:
        await ctx.save_status()  # the collision is counted, so that the next round tries another name
        return None
    _note_new(ctx.obj, made, existed)
    revision = made.metadata.annotations.get(sets.REVISION, "")
    if revision and ctx.obj.metadata.annotations.get(sets.REVISION) != revision:
        ctx.obj.metadata.annotations[sets.REVISION] = revision
        # By way of the status: on the Deployment itself, a changed annotation counts as a new wish (its generation).
        note = MergePatch({"metadata": {"annotations": {sets.REVISION: revision}}})
        await ctx.client.patch(Deployment, ctx.request.name, note, ctx.request.namespace, subresource="status")
    return made


async def _resize(
    ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet], sizes: rolling.Sizes
) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    if new is not None and new.metadata.name in sizes:
        new = await sets.scale_to(ctx, new, sizes[new.metadata.name])
    resized = [await sets.scale_to(ctx, rs, sizes.get(rs.metadata.name, count(rs))) if rs.metadata.name in sizes else rs
               for rs in old]  # fmt: skip
    return new, resized


# ------------------------------------------------------------------ conditions that mark an event


def _note_new(deployment: Deployment, new: ReplicaSet, existed: bool) -> None:
    if not status.has_deadline(deployment):
        return
    current = status.find(deployment.status.conditions, "Progressing")
    name = new.metadata.name
    if not existed:
        words = ("True", status.CREATED, f'Created new replica set "{name}"')
    elif current is None:
        words = ("True", status.FOUND, f'Found new replica set "{name}"')
    else:
        return
    deployment.status.conditions = status.put(deployment.status.conditions, "Progressing", *words)


def _note_pause(deployment: Deployment) -> None:
    """A paused rollout makes no progress and misses no deadline."""
    if not status.has_deadline(deployment):
        return
    current = status.find(deployment.status.conditions, "Progressing")
    if current is not None and current.reason == status.TIMED_OUT:
        return
    paused = current is not None and current.reason == status.PAUSED
    words: tuple[str, str, str] | None = None
    if deployment.spec.paused and not paused:
        words = ("Unknown", status.PAUSED, "Deployment is paused")
    elif not deployment.spec.paused and paused:
        words = ("Unknown", status.RESUMED, "Deployment is resumed")
    if words is not None:
        deployment.status.conditions = status.put(deployment.status.conditions, "Progressing", *words)


# ------------------------------------------------------------------ the end of a round


async def _finish(ctx: Context[Deployment], new: ReplicaSet | None, old: list[ReplicaSet]) -> Result | None:
    deployment = ctx.obj
    found = [*old, *([new] if new else [])]
    made = status.counts(deployment, new, found)
    rolls = not deployment.spec.paused and not rolling.was_scaled(deployment, found)
    if rolls:
        status.progress(deployment, made, new, found)
    complete = status.is_complete(deployment, made)
    deployment.status = made
    await ctx.save_status()
    if rolls and complete:
        await _forget_history(ctx, old)
    seconds = None if complete else status.left(deployment, status.find(made.conditions, "Progressing"))
    return Result(requeue_after=max(1.0, seconds + 1)) if seconds is not None else None


async def _forget_history(ctx: Context[Deployment], old: list[ReplicaSet]) -> None:
    limit = ctx.obj.spec.revision_history_limit
    if limit is None:
        return
    idle = [
        rs for rs in old
        if not count(rs) and not rs.status.replicas and rs.metadata.deletion_timestamp is None
        and (rs.status.observed_generation or 0) >= rs.metadata.generation
    ]  # fmt: skip
    for rs in sorted(idle, key=sets.revision_of)[: max(0, len(old) - limit)]:
        with contextlib.suppress(NotFound):
            await ctx.client.delete(ReplicaSet, rs.metadata.name, rs.metadata.namespace, propagation="Background")


# ------------------------------------------------------------------ declaration


def _of_pod(pod: Pod, caches: Caches) -> list[Request]:
    """A pod that went may be what a Recreate waits for."""
    lister, owner = caches.lister(ReplicaSet), controller_of(pod)
    replicaset = lister.get(owner.name, pod.metadata.namespace) if lister and owner else None
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
                Watch(kind=ReplicaSet, lookup=adopters(Deployment), predicate=adoptable),
                Watch(kind=Pod, lookup=_of_pod, predicate=deleted),
            ],
            indexes={ReplicaSet: {ORPHANS: orphans}, Pod: {"owner": by_owner}},
        )
    ]
