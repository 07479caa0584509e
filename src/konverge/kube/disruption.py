"""The disruption controller: how many pods of a budget may be evicted now. Evictions that never happened are forgotten.

Evictions count the budget down in the API server at the same time, so the status is written with the version that was
read. Whatever goes wrong, the safe answer is that no pod may be disrupted.

Upstream: pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from konverge import clock
from konverge.cache import Change
from konverge.client import ClientError, Conflict, MergePatch, NotFound, merge_between
from konverge.kube import pods as podlib
from konverge.kube.listers import declared
from konverge.kube.pod_predicates import moved
from konverge.objects import labels
from konverge.objects.int_or_string import PercentageError, scale
from konverge.objects.kinds.apps_v1 import Deployment, ReplicaSet, StatefulSet
from konverge.objects.kinds.core_v1 import Pod, ReplicationController
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from konverge.objects.meta import OwnerReference
from konverge.objects.times import now, parse_time
from konverge.runtime import (
    Context,
    Controller,
    Reconciler,
    Request,
    Result,
    Use,
    Watches,
    controller_of,
    set_condition,
)
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate

TIMEOUT = timedelta(minutes=2)
"""After which an eviction that did not become a deletion no longer counts. Upstream: DeletionTimeout,
stalePodDisruptionTimeout."""
TARGET = "DisruptionTarget"
RETRY = 5.0
"""Seconds until pods that could not be counted are counted again: their controller may just not be cached yet."""


class Uncountable(Exception):
    """The expected number of pods is unknown; the message says why."""


class DisruptionReconciler(Reconciler[PodDisruptionBudget]):
    # upstream: trySync
    async def reconcile(self, ctx: Context[PodDisruptionBudget]) -> Result | None:
        budget = ctx.obj
        if ctx.deleting:
            return None
        pods = await ctx.list(Pod, selector=labels.from_selector(budget.spec.selector))
        if not pods:
            ctx.event("NoPods", "No matching pods found")
        disrupted = still_disrupted(budget, pods)
        try:
            expected, desired = await _goal(ctx, pods)
        except (Uncountable, PercentageError) as error:
            ctx.warning("CalculateExpectedPodCountFailed", f"Failed to calculate the number of expected pods: {error}")
            await _write(ctx, _failed(budget, str(error)))
            return Result(requeue_after=RETRY)
        await _write(ctx, _status(budget, pods, expected, desired, disrupted))
        waits = [parse_time(since) + TIMEOUT - clock.utc_now() for since in disrupted.values()]
        return Result(requeue_after=max(1.0, min(waits).total_seconds())) if waits else None


def still_disrupted(budget: PodDisruptionBudget, pods: Sequence[Pod]) -> dict[str, str]:
    """The evictions in progress: allowed, not yet a deletion, and recent. Upstream: buildDisruptedPodMap."""
    known, deadline = budget.status.disrupted_pods, clock.utc_now() - TIMEOUT
    return {
        pod.metadata.name: since
        for pod in pods
        if pod.metadata.deletion_timestamp is None
        and (since := known.get(pod.metadata.name))
        and parse_time(since) >= deadline
    }


# upstream: updatePdbStatus
def _status(
    budget: PodDisruptionBudget, pods: Sequence[Pod], expected: int, desired: int, disrupted: dict[str, str]
) -> PodDisruptionBudgetStatus:
    healthy = sum(
        pod.metadata.deletion_timestamp is None and pod.metadata.name not in disrupted and podlib.is_ready(pod)
        for pod in pods
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status = PodDisruptionBudgetStatus(
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        disruptions_allowed=allowed,
        disrupted_pods=dict(disrupted),
        observed_generation=budget.metadata.generation,
        conditions=budget.status.conditions,
    )
    reason = "SufficientPods" if allowed else "InsufficientPods"
    set_condition(
        status.conditions, "DisruptionAllowed", bool(allowed), reason, observed_generation=budget.metadata.generation
    )
    return status


# upstream: failSafe
def _failed(budget: PodDisruptionBudget, message: str) -> PodDisruptionBudgetStatus:
    status = budget.status
    status.disruptions_allowed = 0
    set_condition(
        status.conditions,
        "DisruptionAllowed",
        False,
        "SyncFailed",
        message,
        observed_generation=status.observed_generation,
    )
    return status


async def _write(ctx: Context[PodDisruptionBudget], status: PodDisruptionBudgetStatus) -> None:
    before = await ctx.get(PodDisruptionBudget, ctx.request.name)
    if before is None or before.status == status:
        return
    patch = merge_between({"status": before.status}, {"status": status})
    guarded = MergePatch({**patch.body, "metadata": {"resourceVersion": ctx.obj.metadata.resource_version}})
    await ctx.client.patch(PodDisruptionBudget, ctx.request.name, guarded, ctx.request.namespace, subresource="status")


# ------------------------------------------------------------------ expected pods


async def _goal(ctx: Context[PodDisruptionBudget], pods: Sequence[Pod]) -> tuple[int, int]:
    """The expected number of pods, and how many of them must be healthy. Upstream: getExpectedPodCount."""
    spec = ctx.obj.spec
    if spec.max_unavailable is not None:
        expected = await _expected(ctx, pods)
        return expected, max(0, expected - scale(spec.max_unavailable, expected, round_up=True))
    if isinstance(spec.min_available, str):
        expected = await _expected(ctx, pods)
        return expected, scale(spec.min_available, expected, round_up=True)
    return (0, 0) if spec.min_available is None else (len(pods), spec.min_available)


async def _expected(ctx: Context[PodDisruptionBudget], pods: Sequence[Pod]) -> int:
    """The sum of the replicas of the pods' controllers; pods without one do not count. Upstream: getExpectedScale."""
    owners = {owner.uid: owner for pod in pods if (owner := controller_of(pod)) is not None}
    if any(controller_of(pod) is None for pod in pods):
        ctx.warning(
            "UnmanagedPods",
            "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB "
            "cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
            'set ".spec.minAvailable" field of the PDB to an integer value.',
        )
    scales: dict[str, int] = {}
    for owner in owners.values():
        uid, replicas = await _scale_of(ctx, owner)
        scales[uid] = replicas
    return sum(scales.values())


async def _scale_of(ctx: Context[PodDisruptionBudget], owner: OwnerReference) -> tuple[str, int]:
    """The controller that decides the number of replicas (for a replica set its Deployment), and that number."""
    if owner.kind == "ReplicaSet" and owner.api_version.startswith("apps/"):
        replicaset = await ctx.get(ReplicaSet, owner.name)
        above = controller_of(replicaset) if replicaset is not None and replicaset.metadata.uid == owner.uid else None
        if above is not None and above.kind == "Deployment":
            owner = above
    kind = _KNOWN.get((owner.api_version, owner.kind))
    if kind is None:
        return await _live_scale(ctx, owner)
    obj = await ctx.get(kind, owner.name)
    if obj is None or obj.metadata.uid != owner.uid:
        raise Uncountable(f'found no controllers for pods of {owner.kind} "{owner.name}"')
    return owner.uid, podlib.replicas_of(obj)


_KNOWN: dict[tuple[str, str], Any] = {
    ("apps/v1", "Deployment"): Deployment,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
    ("v1", "ReplicationController"): ReplicationController,
}


async def _live_scale(ctx: Context[PodDisruptionBudget], owner: OwnerReference) -> tuple[str, int]:
    """The scale subresource of any other kind. Upstream: getScaleController."""
    try:
        resource = await ctx.client.mapper.kind(owner.api_version, owner.kind)
        scale_ = await ctx.client.get_sub(resource, owner.name, "scale", ctx.request.namespace)
    except NotFound:
        raise Uncountable(f"{owner.kind} {owner.name} does not implement the scale subresource") from None
    except Conflict:
        raise
    except ClientError as error:
        raise Uncountable(str(error)) from error
    return owner.uid, scale_.get("spec", {}).get("replicas", 0)


# ------------------------------------------------------------------ evictions that never happened


# upstream: syncStalePodDisruption
class StaleReconciler(Reconciler[Pod]):
    """A pod that still runs two minutes after its disruption was announced is no longer a target."""

    async def reconcile(self, ctx: Context[Pod]) -> Result | None:
        pod = ctx.obj
        condition = next((c for c in pod.status.conditions if c.type == TARGET and c.status == "True"), None)
        if condition is None or ctx.deleting or podlib.is_terminated(pod):
            return None
        if condition.reason == "TerminationByKubelet":
            return None
        left = parse_time(condition.last_transition_time or now()) + TIMEOUT - clock.utc_now()
        if left > timedelta():
            return Result(requeue_after=left.total_seconds())
        condition.status, condition.last_transition_time = "False", now()
        condition.reason = condition.message = None
        await ctx.save_status()
        return None


@ChangePredicate
def _is_targeted(change: Change) -> bool:
    return change.new is not None and f'"{TARGET}"'.encode() in change.new.raw


# ------------------------------------------------------------------ declaration


def _of_pod(pod: Pod, caches: Caches) -> list[Request]:
    return [
        Request(budget.metadata.namespace, budget.metadata.name)
        for budget in declared(caches, PodDisruptionBudget).list(pod.metadata.namespace)
        if labels.from_selector(budget.spec.selector).matches(pod.metadata.labels)
    ]


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            PodDisruptionBudget,
            DisruptionReconciler(),
            name="disruption",
            component="controllermanager",
            watches=[Watches(Pod, lookup=_of_pod, when=moved)],
            uses=[Use(kind, cached=True) for kind in (Deployment, ReplicaSet, ReplicationController, StatefulSet)],
        ),
        Controller(Pod, StaleReconciler(), name="stale-disruption", when=_is_targeted),
    ]
