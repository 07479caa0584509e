"""The ReplicaSet controller: so many pods of one template. Also the reference of how to write a controller here.

The steps are the lines of `reconcile_replicas`: claim the pods; leave out those that ended or are being deleted; create
what is missing or delete the surplus; write the status. Two things that other implementations need machinery for are
the runtime's: a reconcile never sees a cache older than its own creates and deletes (so a slow cache makes no surplus
pod), and the events of its own writes start no further reconcile.

Upstream: pkg/controller/replicaset/replica_set.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from konverge.cache.record import Meta, Record
from konverge.client import ClientError
from konverge.kube import deletion_order
from konverge.kube import pods as podlib
from konverge.kube.adoption import ORPHANS, adoptable, adopters, claim, orphans
from konverge.kube.messages import message_of
from konverge.kube.pod_control import BURST, create_pods, delete_pods
from konverge.objects import labels
from konverge.objects.kinds.apps_v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from konverge.objects.kinds.core_v1 import (
    Pod,
    PodSpec,
    PodTemplateSpec,
    ReplicationController,
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from konverge.objects.labels import Selector
from konverge.objects.times import now
from konverge.runtime import Context, Controller, Reconciler, Result, Watches, find_condition
from konverge.runtime.owners import controller_of


class Form(msgspec.Struct, frozen=True):
    """What differs between the kinds: the older ReplicationController has a plain map for its selector, and a status
    with fewer fields."""

    selector: Callable[[Any], Selector]
    status: type[Any]
    condition: type[Any]
    terminating: bool = True
    """Whether the status has `terminatingReplicas`."""


SET_FORM = Form(labels.from_selector, ReplicaSetStatus, ReplicaSetCondition)
CONTROLLER_FORM = Form(
    labels.from_labels, ReplicationControllerStatus, ReplicationControllerCondition, terminating=False
)
SIBLINGS = "siblings"
"""The index of the sets by their controller, which is a Deployment."""


class ReplicaSetReconciler(Reconciler[ReplicaSet]):
    async def reconcile(self, ctx: Context[ReplicaSet]) -> Result | None:
        return await reconcile_replicas(ctx, SET_FORM)


# upstream: pkg/controller/replication, which adapts the ReplicaSet controller as well
class ReplicationControllerReconciler(Reconciler[ReplicationController]):
    """The predecessor of the ReplicaSet. It works the same way."""

    async def reconcile(self, ctx: Context[ReplicationController]) -> Result | None:
        return await reconcile_replicas(ctx, CONTROLLER_FORM)


async def reconcile_replicas(ctx: Context[Any], form: Form) -> Result | None:
    """One reconcile of anything that wants so many pods of one template. Upstream: syncReplicaSet."""
    replicaset = ctx.obj
    claimed = await claim(ctx, Pod, form.selector(replicaset.spec.selector))
    active = [pod for pod in claimed if podlib.is_active(pod)]
    missing = podlib.replicas_of(replicaset) - len(active)
    failure: ClientError | None = None
    if replicaset.metadata.deletion_timestamp is None:
        active, failure = await _manage_replicas(ctx, form, active, missing)
    conditions = _conditions(form, replicaset, failure, missing)
    delay = await _write_status(ctx, form, claimed, active, conditions)
    if failure is not None:
        raise failure
    return Result(requeue_after=delay) if delay else None


# upstream: manageReplicas
async def _manage_replicas(
    ctx: Context[Any], form: Form, active: list[Pod], missing: int
) -> tuple[list[Pod], ClientError | None]:
    """Create what is missing, or delete the surplus; returns the pods that are active now, and the refusal if any."""
    if missing == 0:
        return active, None
    if missing > 0:
        template = ctx.obj.spec.template or PodTemplateSpec(spec=PodSpec(containers=[]))
        desired = [podlib.from_template(ctx.obj, template) for _ in range(min(missing, BURST))]
        created, failure = await create_pods(ctx, desired)
        return [*active, *created], failure
    related = await _related_pods(ctx, form)
    surplus = deletion_order.scale_down_order(active, related)[: min(-missing, BURST)]
    deleted, failure = await delete_pods(ctx, surplus)
    uids = {pod.metadata.uid for pod in deleted}
    return [pod for pod in active if pod.metadata.uid not in uids], failure


# upstream: getIndirectlyRelatedPods, getReplicaSetsWithSameController
async def _related_pods(ctx: Context[Any], form: Form) -> list[Pod]:
    """The pods of all sets of the same Deployment: nodes that have many of them lose some first. A set without a
    controller has no related pods, not even its own."""
    controller = controller_of(ctx.obj)
    siblings = [] if controller is None else ctx.indexed(type(ctx.obj), SIBLINGS, controller.uid)
    selectors = [form.selector(sibling.spec.selector) for sibling in siblings]
    if not selectors:
        return []
    return [pod for pod in await ctx.list(Pod) if any(selector.matches(pod.metadata.labels) for selector in selectors)]


def _controller_uid(record: Record, meta: Meta) -> Iterable[str]:
    return [owner.uid for owner in meta.owner_references if owner.controller]


# ------------------------------------------------------------------ status


# upstream: calculateStatus, updateReplicaSetStatus (replica_set_utils.go)
async def _write_status(
    ctx: Context[Any], form: Form, claimed: list[Pod], active: list[Pod], conditions: list[Any]
) -> float:
    """Write the counts; returns the seconds until another pod becomes available by age alone."""
    replicaset = ctx.obj
    template_labels = replicaset.spec.template.metadata.labels if replicaset.spec.template else {}
    minimum = replicaset.spec.min_ready_seconds
    delays = [delay for pod in active if (delay := podlib.available_in(pod, minimum)) is not None]
    replicaset.status = form.status(
        replicas=len(active),
        fully_labeled_replicas=sum(template_labels.items() <= pod.metadata.labels.items() for pod in active) or None,
        ready_replicas=len(delays) or None,
        available_replicas=sum(delay == 0 for delay in delays) or None,
        observed_generation=replicaset.metadata.generation,
        conditions=conditions,
    )
    if form.terminating:
        replicaset.status.terminating_replicas = sum(
            pod.metadata.deletion_timestamp is not None and not podlib.is_terminated(pod) for pod in claimed
        )
    await ctx.save_status()
    return min((delay for delay in delays if delay > 0), default=0.0)


def _conditions(form: Form, replicaset: Any, failure: ClientError | None, missing: int) -> list[Any]:
    """The conditions: with ReplicaFailure if creating or deleting failed, without it otherwise."""
    present = replicaset.status.conditions
    others = [condition for condition in present if condition.type != "ReplicaFailure"]
    if failure is None:
        return others
    known = find_condition(present, "ReplicaFailure")
    condition = form.condition(
        type="ReplicaFailure",
        status="True",
        reason="FailedCreate" if missing > 0 else "FailedDelete",
        message=message_of(failure) if missing > 0 else f"unable to delete pods: {message_of(failure)}",
        last_transition_time=known.last_transition_time if known else now(),
    )
    return [*others, condition]


# ------------------------------------------------------------------ declaration


def controllers() -> list[Controller[Any]]:
    return [
        _controller(ReplicaSet, ReplicaSetReconciler(), "replicaset-controller", SET_FORM),
        _controller(
            ReplicationController, ReplicationControllerReconciler(), "replication-controller", CONTROLLER_FORM
        ),
    ]


def _controller(kind: type[Any], reconciler: Reconciler[Any], component: str, form: Form) -> Controller[Any]:
    return Controller(
        kind,
        reconciler,
        component=component,
        owns=[Pod],
        watches=[Watches(Pod, lookup=adopters(kind, form.selector), when=adoptable)],
        indexes={Pod: {ORPHANS: orphans}, kind: {SIBLINGS: _controller_uid}},
    )
