"""The pod garbage collector: pods that no kubelet will ever end, and ended pods that are too many.

The former are on a node that is gone or out of service, or were never bound to one. Each is marked Failed, so that
controllers that count failures see one, and deleted without grace.

Upstream: pkg/controller/podgc/gc_controller.go.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from konverge import clock
from konverge.cache import Change
from konverge.cache.record import Meta, Record
from konverge.client import NotFound, StrategicPatch
from konverge.kube import pods as podlib
from konverge.kube.listers import declared
from konverge.kube.pod_predicates import by_node, has_ended, placed
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.objects.times import now
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watches
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate, deleted

QUARANTINE = 40.0
"""Seconds that a node may be missing before its pods are collected: it may be about to register. Upstream:
quarantineTime."""
THRESHOLD = 12500
"""Ended pods that are kept for inspection. Upstream: the default of TerminatedPodGCThreshold."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
ON_NODE = "podgc/node"
ENDED = "podgc/ended"
_MOST_NAMES = 10_000  # a bound on memory, far above the nodes of a cluster


class PodCollector(Reconciler[Pod]):
    def __init__(self, *, quarantine: float = QUARANTINE, threshold: int = THRESHOLD) -> None:
        self._quarantine = quarantine
        self._threshold = threshold
        self._missing: dict[str, float] = {}
        """Node that pods name -> since when (loop time) it has been missing."""

    async def reconcile(self, ctx: Context[Pod]) -> Result | None:
        pod = ctx.obj
        node = await ctx.get(Node, pod.spec.node_name) if pod.spec.node_name else None
        if not pod.spec.node_name:
            if ctx.deleting:
                await _collect(ctx, pod)
        elif node is None:
            return await self._orphaned(ctx, pod.spec.node_name)
        else:
            self._missing.pop(node.metadata.name, None)
            if ctx.deleting and _is_out_of_service(node):
                await _collect(ctx, pod)
        if podlib.is_terminated(pod):
            await self._delete_surplus(ctx)
        return None

    # upstream: gcOrphaned
    async def _orphaned(self, ctx: Context[Pod], node: str) -> Result | None:
        if len(self._missing) >= _MOST_NAMES:
            self._missing.clear()
        waited = clock.monotonic() - self._missing.setdefault(node, clock.monotonic())
        if waited < self._quarantine:
            return Result(requeue_after=self._quarantine - waited)
        try:
            await ctx.client.get(Node, node)  # the cache may be behind, and a deletion cannot be undone
        except NotFound:
            await _collect(ctx, ctx.obj, "PodGC: node no longer exists")
            return None
        return Result(requeue_after=self._quarantine)

    # upstream: gcTerminated
    async def _delete_surplus(self, ctx: Context[Pod]) -> None:
        """Delete ended pods beyond the threshold: evicted ones first, then the oldest."""
        if self._threshold <= 0:
            return
        ended = [pod for pod in ctx.indexed(Pod, ENDED, "yes") if pod.metadata.deletion_timestamp is None]
        surplus = len(ended) - self._threshold
        if surplus > 0:
            await asyncio.gather(*(_collect(ctx, pod) for pod in sorted(ended, key=_age)[:surplus]))


def _age(pod: Pod) -> tuple[bool, str, str]:
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


# upstream: gcTerminating
def _is_out_of_service(node: Node) -> bool:
    """Not ready, and the administrator has tainted it as out of service."""
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
    return not ready and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


# upstream: markFailedAndDeletePodWithCondition
async def _collect(ctx: Context[Pod], pod: Pod, message: str = "") -> None:
    meta = pod.metadata
    with contextlib.suppress(NotFound):
        if not podlib.is_terminated(pod):
            status: dict[str, Any] = {"phase": "Failed", "observedGeneration": meta.generation}
            if message:
                target = disruption_target("DeletionByPodGC", message, meta.generation)
                status |= podlib.condition_patch(pod, target)
            patch = StrategicPatch({"metadata": {"uid": meta.uid}, "status": status})
            await ctx.client.patch(Pod, meta.name, patch, meta.namespace, subresource="status")
        await ctx.client.delete(Pod, meta.name, meta.namespace, uid=meta.uid, grace_period=0)


def disruption_target(reason: str, message: str, generation: int) -> dict[str, Any]:
    """The condition that says why a controller is about to end a pod."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": now(),
    }


# ------------------------------------------------------------------ declaration


def by_end(record: Record, meta: Meta) -> Iterable[str]:
    return ("yes",) if has_ended(record.raw) else ()


def _on_node(node: Node, caches: Caches) -> list[Request]:
    return declared(caches, Pod).keys_by_index(ON_NODE, node.metadata.name)


@ChangePredicate
def _gone_or_tainted(change: Change) -> bool:
    return deleted(change) or OUT_OF_SERVICE.encode() in change.latest.raw


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            Pod,
            PodCollector(),
            name="pod-garbage-collector",
            when=placed,
            watches=[Watches(Node, lookup=_on_node, when=_gone_or_tainted)],
            indexes={Pod: {ON_NODE: by_node, ENDED: by_end}},
        )
    ]
