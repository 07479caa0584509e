"""Pods that no kubelet will ever end: on a node that is gone or given up, or never placed; and too many that are over.

Each goes for good: it is marked Failed, so that whoever counts failures sees one, and deleted without grace.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from konverge import clock
from konverge.cache.record import Meta, Record
from konverge.client import NotFound, StrategicPatch
from konverge.kube import pods as podlib
from konverge.kube.pod_predicates import by_node, placed
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.objects.times import now
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watch
from konverge.runtime.context import Caches
from konverge.runtime.predicates import deleted

QUARANTINE = 40.0
"""Seconds that a node may be missing before its pods are: it may be about to register."""
THRESHOLD = 12500
"""Pods that are over and stay for whoever wants to look at them."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
ON_NODE = "podgc/node"
OVER = "podgc/over"
_MOST_NAMES = 10_000


class PodCollector(Reconciler[Pod]):
    def __init__(self, *, quarantine: float = QUARANTINE, threshold: int = THRESHOLD) -> None:
        self._quarantine = quarantine
        self._threshold = threshold
        self._missing: dict[str, float] = {}
        """Since when (loop time) a node that pods name has not been there."""

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
            if ctx.deleting and _is_given_up(node):
                await _collect(ctx, pod)
        if podlib.is_terminated(pod):
            await self._thin_out(ctx)
        return None

    async def _orphaned(self, ctx: Context[Pod], node: str) -> Result | None:
        if len(self._missing) >= _MOST_NAMES:
            self._missing.clear()
        waited = clock.monotonic() - self._missing.setdefault(node, clock.monotonic())
        if waited < self._quarantine:
            return Result(requeue_after=self._quarantine - waited)
        try:
            await ctx.client.get(Node, node)  # the cache may be behind, and this cannot be undone
        except NotFound:
            await _collect(ctx, ctx.obj, "PodGC: node no longer exists")
            return None
        return Result(requeue_after=self._quarantine)

    async def _thin_out(self, ctx: Context[Pod]) -> None:
        """The oldest of too many pods that are over, those that were evicted first."""
        if self._threshold <= 0:
            return
        over = [pod for pod in ctx.indexed(Pod, OVER, "yes") if pod.metadata.deletion_timestamp is None]
        surplus = len(over) - self._threshold
        if surplus > 0:
            victims = sorted(over, key=_age)[:surplus]
            await asyncio.gather(*(_collect(ctx, pod) for pod in victims))


def _age(pod: Pod) -> tuple[bool, str, str]:
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


def _is_given_up(node: Node) -> bool:
    """Not ready, and somebody has said that it will not come back as it was."""
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
    return not ready and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


async def _collect(ctx: Context[Pod], pod: Pod, message: str = "") -> None:
    meta = pod.metadata
    with contextlib.suppress(NotFound):
        if not podlib.is_terminated(pod):
            status: dict[str, Any] = {"phase": "Failed", "observedGeneration": meta.generation}
            if message:
                status["conditions"] = [disruption_target("DeletionByPodGC", message, meta.generation)]
            patch = StrategicPatch({"metadata": {"uid": meta.uid}, "status": status})
            await ctx.client.patch(Pod, meta.name, patch, meta.namespace, subresource="status")
        await ctx.client.delete(Pod, meta.name, meta.namespace, uid=meta.uid, grace_period=0)


def disruption_target(reason: str, message: str, generation: int) -> dict[str, Any]:
    """The condition that says why a pod is about to be ended from outside."""
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
    return ("yes",) if b'"phase":"Succeeded"' in record.raw or b'"phase":"Failed"' in record.raw else ()


def _on_node(node: Node, caches: Caches) -> list[Request]:
    lister = caches.lister(Pod)
    return lister.informer.keys_by_index(ON_NODE, node.metadata.name) if lister else []


def _gone_or_tainted(change: Any) -> bool:
    return deleted(change) or OUT_OF_SERVICE.encode() in change.latest.raw


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            Pod,
            PodCollector(),
            name="pod-garbage-collector",
            predicate=placed,
            watches=[Watch(kind=Node, lookup=_on_node, predicate=_gone_or_tainted)],
            indexes={Pod: {ON_NODE: by_node, OVER: by_end}},
        )
    ]
