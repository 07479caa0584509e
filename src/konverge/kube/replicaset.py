"""The ReplicaSet controller: so many pods of one template. Also the reference of how to write a controller here.

Seven steps, each a line of `keep`: the set; its pods; without those that go; the difference; create what is missing;
delete what is too much; say so in the status. Two things that other implementations need machinery for are the
runtime's: it never shows a cache older than our own creates and deletes (so a slow cache makes no surplus pod), and it
wakes nobody for them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from konverge.client import ClientError, Forbidden, NotFound
from konverge.kube import pods as podlib
from konverge.kube.adoption import ORPHANS, adoptable, claim, orphans
from konverge.objects import labels
from konverge.objects.kinds.apps_v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from konverge.objects.kinds.core_v1 import Pod, PodSpec, PodTemplateSpec
from konverge.objects.labels import Selector
from konverge.objects.times import now
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watch
from konverge.runtime.context import Caches

BURST = 500
"""Pods created or deleted in one go."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the status of a kind looks; that of the older ReplicationController is another class and says less."""

    status: type[Any]
    condition: type[Any]
    terminating: bool = True


class ReplicaSetReconciler(Reconciler[ReplicaSet]):
    async def reconcile(self, ctx: Context[ReplicaSet]) -> Result | None:
        return await keep(ctx, labels.from_selector(ctx.obj.spec.selector), Form(ReplicaSetStatus, ReplicaSetCondition))


async def keep(ctx: Context[Any], selector: Selector, form: Form) -> Result | None:
    """One round for anything that wants so many pods of one template."""
    replicaset = ctx.obj
    claimed = await claim(ctx, Pod, selector)
    active = [pod for pod in claimed if podlib.is_active(pod)]
    missing = (1 if replicaset.spec.replicas is None else replicaset.spec.replicas) - len(active)
    failure: ClientError | None = None
    if replicaset.metadata.deletion_timestamp is None:
        if missing > 0:
            active, failure = await _create(ctx, active, min(missing, BURST))
        elif missing < 0:
            active, failure = await _delete(ctx, active, min(-missing, BURST))
    waits = await _write_status(ctx, form, claimed, active, _failure(form, replicaset, failure, missing))
    if failure is not None:
        raise failure
    return Result(requeue_after=waits) if waits else None


async def _create(ctx: Context[Any], active: list[Pod], count: int) -> tuple[list[Pod], ClientError | None]:
    """In batches of 1, 2, 4, …: when the first is refused (a quota, a bad template), hundreds need not be tried."""
    made, template = list(active), ctx.obj.spec.template or PodTemplateSpec(spec=PodSpec(containers=[]))
    size = 1
    while count > 0:
        batch = min(size, count)
        wishes = [podlib.from_template(ctx.obj, template) for _ in range(batch)]
        results = await asyncio.gather(*(ctx.client.create(pod) for pod in wishes), return_exceptions=True)
        for result in results:
            if isinstance(result, Pod):
                made.append(result)
                ctx.event("SuccessfulCreate", f"Created pod: {result.metadata.name}")
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            return made, _refusal(ctx, "FailedCreate", "Error creating: ", failures[0])
        count -= batch
        size *= 2
    return made, None


async def _delete(ctx: Context[Any], active: list[Pod], count: int) -> tuple[list[Pod], ClientError | None]:
    victims = podlib.deletion_order(active, active)[:count]
    gone: set[str] = set()

    async def remove(pod: Pod) -> None:
        with contextlib.suppress(NotFound):
            await ctx.client.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
        gone.add(pod.metadata.uid)
        ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    results = await asyncio.gather(*(remove(pod) for pod in victims), return_exceptions=True)
    left = [pod for pod in active if pod.metadata.uid not in gone]
    failures = [result for result in results if isinstance(result, BaseException)]
    return left, _refusal(ctx, "FailedDelete", "Error deleting: ", failures[0]) if failures else None


def _refusal(ctx: Context[Any], reason: str, text: str, error: BaseException) -> ClientError:
    if not isinstance(error, ClientError):
        raise error
    if not (isinstance(error, Forbidden) and "being terminated" in str(error)):
        ctx.warning(reason, f"{text}{error}")
    return error


# ------------------------------------------------------------------ status


async def _write_status(
    ctx: Context[Any], form: Form, claimed: list[Pod], active: list[Pod], conditions: list[Any]
) -> float:
    """Write the counts; the seconds until another pod becomes available by age alone."""
    replicaset = ctx.obj
    wanted = replicaset.spec.template.metadata.labels if replicaset.spec.template else {}
    minimum = replicaset.spec.min_ready_seconds or 0
    ages = [age for pod in active if (age := podlib.available_in(pod, minimum)) is not None]
    replicaset.status = form.status(
        replicas=len(active),
        fully_labeled_replicas=_none_if_zero(sum(_has(pod, wanted) for pod in active)),
        ready_replicas=_none_if_zero(len(ages)),
        available_replicas=_none_if_zero(sum(age == 0 for age in ages)),
        observed_generation=replicaset.metadata.generation,
        conditions=conditions,
    )
    if form.terminating:
        replicaset.status.terminating_replicas = sum(
            pod.metadata.deletion_timestamp is not None and not podlib.is_terminated(pod) for pod in claimed
        )
    await ctx.save_status()
    return min((age for age in ages if age > 0), default=0.0)


def _failure(form: Form, replicaset: Any, failure: ClientError | None, missing: int) -> list[Any]:
    """The conditions: with ReplicaFailure if there was one, without it otherwise."""
    present = replicaset.status.conditions
    others = [condition for condition in present if condition.type != "ReplicaFailure"]
    if failure is None:
        return others
    known = next((condition for condition in present if condition.type == "ReplicaFailure"), None)
    made = form.condition(
        type="ReplicaFailure",
        status="True",
        reason="FailedCreate" if missing > 0 else "FailedDelete",
        message=str(failure),
        last_transition_time=known.last_transition_time if known else now(),
    )
    return [*others, made]


def _has(pod: Pod, wanted: dict[str, str]) -> bool:
    return all(pod.metadata.labels.get(name) == value for name, value in wanted.items())


def _none_if_zero(count: int) -> int | None:
    return count or None


# ------------------------------------------------------------------ declaration


def _of_orphan(pod: Pod, caches: Caches) -> Iterable[Request]:
    """The sets that might adopt a pod without a controller."""
    lister = caches.lister(ReplicaSet)
    if lister is None or any(owner.controller for owner in pod.metadata.owner_references) or not pod.metadata.labels:
        return []
    return [
        Request(found.metadata.namespace, found.metadata.name)
        for found in lister.list(pod.metadata.namespace)
        if labels.from_selector(found.spec.selector).matches(pod.metadata.labels)
    ]


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            ReplicaSet,
            ReplicaSetReconciler(),
            component="replicaset-controller",
            owns=[Pod],
            watches=[Watch(kind=Pod, lookup=_of_orphan, predicate=adoptable)],
            indexes={Pod: {ORPHANS: orphans}},
        )
    ]
