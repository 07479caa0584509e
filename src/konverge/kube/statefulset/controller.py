"""The StatefulSet controller: pods with names, an order and claims of their own.

A reconcile: the set's revisions; its pods; what to do next (`plan`, pure); do it; write the status; delete old
revisions. An ordinal never has two pods: the pod's name is the lock, and the server enforces it.

Upstream: pkg/controller/statefulset (stateful_set.go, stateful_set_control.go).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from konverge.client import AlreadyExists, ClientError, MergePatch, NotFound
from konverge.kube import pods as podlib
from konverge.kube import revisions
from konverge.kube.adoption import ORPHANS, adoptable, adopters, claim, orphans
from konverge.kube.messages import message_of
from konverge.kube.pod_control import slow_start
from konverge.kube.statefulset import claims, identity
from konverge.kube.statefulset.plan import Plan, is_running_and_ready, look_at, plan, uses_current_revision
from konverge.objects import labels
from konverge.objects.codec import to_dict
from konverge.objects.kinds.apps_v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watches
from konverge.runtime.predicates import deleted
from konverge.runtime.result import ReconcileError

HASH = "controller.kubernetes.io/hash"


class StatefulSetReconciler(Reconciler[StatefulSet]):
    # upstream: UpdateStatefulSet
    async def reconcile(self, ctx: Context[StatefulSet]) -> Result | None:
        statefulset = ctx.obj
        selector = labels.from_selector(statefulset.spec.selector)
        history = await revisions.history(ctx, selector)
        pods = await claim(ctx, Pod, selector, member=lambda pod: identity.is_member(statefulset, pod))
        current, update = await _revisions(ctx, history)
        execution = Execution(ctx, pods, current, update)
        failure = None
        if statefulset.metadata.deletion_timestamp is None:
            failure = await execution.run(plan(look_at(statefulset, pods), update.metadata.name))
        delay = await execution.write_status()
        live = {statefulset.status.current_revision or "", update.metadata.name}
        live |= {pod.metadata.labels.get(revisions.POD_LABEL, "") for pod in execution.pods}
        idle = [revision for revision in history if revision.metadata.name not in live]
        await revisions.forget(ctx, idle, statefulset.spec.revision_history_limit)
        if failure is not None:
            raise failure
        return Result(requeue_after=delay) if delay else None


async def _revisions(
    ctx: Context[StatefulSet], history: list[ControllerRevision]
) -> tuple[ControllerRevision, ControllerRevision]:
    """(the revision being replaced, the revision of the present template). Upstream: getStatefulSetRevisions."""
    status_ = ctx.obj.status
    update, status_.collision_count = await revisions.current(
        ctx, ctx.obj.spec.template, history, HASH, status_.collision_count or 0
    )
    named = (revision for revision in history if revision.metadata.name == status_.current_revision)
    return next(named, update), update


class Execution:
    """Carries out the plan of one reconcile, and keeps track of the pods that it creates and deletes."""

    def __init__(
        self, ctx: Context[StatefulSet], pods: list[Pod], current: ControllerRevision, update: ControllerRevision
    ) -> None:
        self._ctx = ctx
        self._current = current
        self._update = update
        self._deleted: set[str] = set()
        self.pods = list(pods)

    async def run(self, steps: Plan) -> ClientError | ReconcileError | None:
        """All steps, until one fails; the failure is returned, so that the status is written in any case."""
        try:
            for pod in steps.keep:
                await self._correct(pod)
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
        created, refusal = await slow_start([lambda ordinal=ordinal: self._make(ordinal) for ordinal in fresh])  # type: ignore[misc]
        self.pods += created
        return refusal

    async def _make(self, ordinal: int) -> Pod:
        statefulset = self._ctx.obj
        revision = self._current if uses_current_revision(statefulset, ordinal) else self._update
        desired = identity.pod_for(statefulset, revisions.template_of(revision), revision.metadata.name, ordinal)
        with self._recorded("Create", desired):
            return await self._ctx.client.create(desired)

    # upstream: UpdateStatefulPod
    async def _correct(self, pod: Pod) -> None:
        if pod.status.phase == "Pending" and pod.metadata.deletion_timestamp is None:
            await claims.ensure(self._ctx, identity.ordinal_of(pod))
        await claims.set_owners(self._ctx, pod)
        patch: dict[str, Any] = {}
        if pod.metadata.labels.get(identity.POD_NAME) != pod.metadata.name:
            patch["metadata"] = {"labels": identity.identity_labels(pod)}
        if not identity.storage_matches(self._ctx.obj, pod):
            # The server refuses this for a running pod; the event then says what is wrong with an adopted pod.
            patch["spec"] = {"volumes": [to_dict(volume) for volume in identity.volumes_for(self._ctx.obj, pod)]}
        if patch:
            with self._recorded("Update", pod):
                await self._ctx.client.patch(Pod, pod.metadata.name, MergePatch(patch), pod.metadata.namespace)

    async def _delete(self, pods: list[Pod]) -> None:
        for pod in pods:
            with self._recorded("Delete", pod), contextlib.suppress(NotFound):
                await self._ctx.client.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
            self._deleted.add(pod.metadata.uid)

    # upstream: recordPodEvent
    @contextlib.contextmanager
    def _recorded(self, verb: str, pod: Pod) -> Iterator[None]:
        """An event says that what is done to the pod was successful, or that it failed."""
        what = f"{verb} Pod {pod.metadata.name} in StatefulSet {self._ctx.request.name}"
        try:
            yield
        except AlreadyExists:
            raise  # its predecessor still exists, or the cache is behind: no event is needed
        except ClientError as error:
            self._ctx.warning(f"Failed{verb}", f"{what} failed error: {message_of(error)}")
            raise
        self._ctx.event(f"Successful{verb}", f"{what} successful")

    async def write_status(self) -> float:
        """Write the status; returns the seconds until a pod becomes available by age alone."""
        statefulset = self._ctx.obj
        names = self._current.metadata.name, self._update.metadata.name
        collisions = statefulset.status.collision_count
        statefulset.status = status_of(statefulset, self.pods, self._deleted, *names, collisions)
        await self._ctx.save_status()
        return available_after(statefulset, self.pods)


# ------------------------------------------------------------------ status


def status_of(
    statefulset: StatefulSet, pods: list[Pod], deleted: set[str], current: str, update: str, collisions: int | None
) -> StatefulSetStatus:
    """The counts; `deleted` has the uids of pods deleted in this reconcile. Upstream: computeReplicaStatus."""
    staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None and pod.metadata.uid not in deleted]
    ready = [pod for pod in pods if is_running_and_ready(pod)]
    minimum = statefulset.spec.min_ready_seconds
    status = StatefulSetStatus(
        observed_generation=statefulset.metadata.generation,
        replicas=len(pods),
        ready_replicas=len(ready) or None,
        available_replicas=sum(podlib.available_in(pod, minimum) == 0 for pod in ready),
        current_replicas=_of(staying, current),
        updated_replicas=_of(staying, update),
        current_revision=current,
        update_revision=update,
        collision_count=collisions or 0,
        conditions=statefulset.status.conditions,
    )
    if _is_complete(statefulset, status):
        status.current_revision, status.current_replicas = update, status.updated_replicas
    return status


def _of(pods: list[Pod], revision: str) -> int | None:
    return sum(pod.metadata.labels.get(revisions.POD_LABEL) == revision for pod in pods) or None


def _is_complete(statefulset: StatefulSet, status: StatefulSetStatus) -> bool:
    """Every desired pod exists, is ready, and is of the newest template. Upstream: completeUpdate."""
    wanted = podlib.replicas_of(statefulset)
    return (status.updated_replicas or 0) == (status.ready_replicas or 0) == status.replicas == wanted


def available_after(statefulset: StatefulSet, pods: list[Pod]) -> float:
    """Seconds until another pod becomes available by age alone; 0 when none will."""
    minimum = statefulset.spec.min_ready_seconds
    delays = [delay for pod in pods if (delay := podlib.available_in(pod, minimum))]
    return min(delays, default=0.0)


# ------------------------------------------------------------------ declaration


def _waiting_for(claim_: PersistentVolumeClaim) -> list[Request]:
    """The next pod of that name may wait for a claim that is deleted with its pod."""
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
                Watches(Pod, lookup=adopters(StatefulSet), when=adoptable),
                Watches(PersistentVolumeClaim, requests=_waiting_for, when=deleted),
            ],
            indexes={Pod: {ORPHANS: orphans}, ControllerRevision: {ORPHANS: orphans}},
        )
    ]
