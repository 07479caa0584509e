"""The StatefulSet controller: pods with names, an order and claims of their own.

A round: the set's revisions; its pods; what to do next (`plan`, pure); do it; say so in the status; forget old
revisions. An ordinal never has two pods: its name is the lock, and the server keeps it.
"""

from __future__ import annotations

import contextlib
from typing import Any

from konverge.client import AlreadyExists, ClientError, MergePatch, NotFound
from konverge.kube import revisions
from konverge.kube.adoption import ORPHANS, adoptable, adopters, claim, orphans
from konverge.kube.pod_control import slow_start
from konverge.kube.statefulset import claims, identity, status
from konverge.kube.statefulset.plan import Plan, look_at, plan, uses_current_revision
from konverge.objects import labels
from konverge.objects.codec import to_dict
from konverge.objects.kinds.apps_v1 import ControllerRevision, StatefulSet
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watch
from konverge.runtime.predicates import deleted
from konverge.runtime.result import ReconcileError

HASH = "controller.kubernetes.io/hash"


class StatefulSetReconciler(Reconciler[StatefulSet]):
    async def reconcile(self, ctx: Context[StatefulSet]) -> Result | None:
        statefulset = ctx.obj
        selector = labels.from_selector(statefulset.spec.selector)
        history = await revisions.history(ctx, selector)
        pods = await claim(ctx, Pod, selector, member=lambda pod: identity.is_member(statefulset, pod))
        current, update = await _revisions(ctx, history)
        round_ = Round(ctx, pods, current, update)
        failure = None
        if statefulset.metadata.deletion_timestamp is None:
            failure = await round_.take(plan(look_at(statefulset, pods), update.metadata.name))
        waits = await round_.write_status()
        live = {statefulset.status.current_revision or "", update.metadata.name}
        live |= {pod.metadata.labels.get(revisions.POD_LABEL, "") for pod in round_.pods}
        idle = [revision for revision in history if revision.metadata.name not in live]
        await revisions.forget(ctx, idle, statefulset.spec.revision_history_limit)
        if failure is not None:
            raise failure
        return Result(requeue_after=waits) if waits else None


async def _revisions(
    ctx: Context[StatefulSet], history: list[ControllerRevision]
) -> tuple[ControllerRevision, ControllerRevision]:
    """(the one that is being replaced, the one of the present template)"""
    status_ = ctx.obj.status
    update, status_.collision_count = await revisions.current(
        ctx, ctx.obj.spec.template, history, HASH, status_.collision_count or 0
    )
    named = (revision for revision in history if revision.metadata.name == status_.current_revision)
    return next(named, update), update


class Round:
    """One round of one set: takes the steps of a plan and remembers what they changed."""

    def __init__(
        self, ctx: Context[StatefulSet], pods: list[Pod], current: ControllerRevision, update: ControllerRevision
    ) -> None:
        self._ctx = ctx
        self._current = current
        self._update = update
        self._going: set[str] = set()
        self.pods = list(pods)

    async def take(self, steps: Plan) -> ClientError | ReconcileError | None:
        """All steps; the first failure ends them, but not the round: the status is told all the same."""
        try:
            for pod in steps.keep:
                await self._put_right(pod)
            await self._delete(steps.discard)
            failure = await self._create(steps.create)
            if failure is not None:
                return failure
            for pod in steps.remove:
                await claims.set_owners(self._ctx, pod)
            await self._delete([*steps.remove, *steps.replace])
        except (ClientError, ReconcileError) as error:
            return error
        return None

    async def _create(self, ordinals: list[int]) -> ClientError | None:
        fresh = [ordinal for ordinal in ordinals if not await claims.is_stale(self._ctx, ordinal)]
        for ordinal in fresh:
            await claims.ensure(self._ctx, ordinal)
        made, refusal = await slow_start([lambda ordinal=ordinal: self._make(ordinal) for ordinal in fresh])  # type: ignore[misc]
        self.pods += made
        return refusal

    async def _make(self, ordinal: int) -> Pod:
        statefulset = self._ctx.obj
        revision = self._current if uses_current_revision(statefulset, ordinal) else self._update
        wish = identity.pod_for(statefulset, revisions.template_of(revision), revision.metadata.name, ordinal)
        try:
            made = await self._ctx.client.create(wish)
        except AlreadyExists:
            raise  # the one before has not gone yet, or the cache is behind: nobody needs to be told
        except ClientError as error:
            self._tell("Create", wish, error)
            raise
        self._tell("Create", made)
        return made

    async def _put_right(self, pod: Pod) -> None:
        if pod.status.phase == "Pending" and pod.metadata.deletion_timestamp is None:
            await claims.ensure(self._ctx, identity.ordinal_of(pod))
        await claims.set_owners(self._ctx, pod)
        patch: dict[str, Any] = {}
        if pod.metadata.labels.get(identity.POD_NAME) != pod.metadata.name:
            patch["metadata"] = {"labels": identity.identity_labels(pod)}
        if not identity.storage_matches(self._ctx.obj, pod):
            # The server refuses this for a pod that runs; the event then says what is wrong with an adopted pod.
            patch["spec"] = {"volumes": [to_dict(volume) for volume in identity.volumes_for(self._ctx.obj, pod)]}
        if patch:
            await self._update_pod(pod, patch)

    async def _update_pod(self, pod: Pod, patch: dict[str, Any]) -> None:
        try:
            await self._ctx.client.patch(Pod, pod.metadata.name, MergePatch(patch), pod.metadata.namespace)
        except ClientError as error:
            self._tell("Update", pod, error)
            raise
        self._tell("Update", pod)

    async def _delete(self, pods: list[Pod]) -> None:
        for pod in pods:
            try:
                with contextlib.suppress(NotFound):
                    name, where = pod.metadata.name, pod.metadata.namespace
                    await self._ctx.client.delete(Pod, name, where, uid=pod.metadata.uid)
            except ClientError as error:
                self._tell("Delete", pod, error)
                raise
            self._going.add(pod.metadata.uid)
            self._tell("Delete", pod)

    def _tell(self, verb: str, pod: Pod, error: ClientError | None = None) -> None:
        what = f"{verb} Pod {pod.metadata.name} in StatefulSet {self._ctx.request.name}"
        if error is None:
            self._ctx.event(f"Successful{verb}", f"{what} successful")
        else:
            self._ctx.warning(f"Failed{verb}", f"{what} failed error: {error}")

    async def write_status(self) -> float:
        """Write what is; the seconds until a pod becomes available by age alone."""
        statefulset = self._ctx.obj
        names = self._current.metadata.name, self._update.metadata.name
        collisions = statefulset.status.collision_count
        statefulset.status = status.status_of(statefulset, self.pods, self._going, *names, collisions)
        await self._ctx.save_status()
        return status.available_after(statefulset, self.pods)


# ------------------------------------------------------------------ declaration


def _waiting_for(claim_: PersistentVolumeClaim) -> list[Request]:
    """A claim that went with its pod may be what the next pod of that name waits for."""
    parents = [
        identity.parent_and_ordinal(owner.name)[0] for owner in claim_.metadata.owner_references if owner.kind == "Pod"
    ]
    return [Request(claim_.metadata.namespace, parent) for parent in parents if parent]


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            StatefulSet,
            StatefulSetReconciler(),
            component="statefulset-controller",
            owns=[Pod, ControllerRevision],
            watches=[
                Watch(kind=Pod, lookup=adopters(StatefulSet), predicate=adoptable),
                Watch(kind=PersistentVolumeClaim, requests=_waiting_for, predicate=deleted),
            ],
            indexes={Pod: {ORPHANS: orphans}, ControllerRevision: {ORPHANS: orphans}},
        )
    ]
