"""Eviction by taints: a pod that does not tolerate a NoExecute taint is deleted, at once or after its
tolerationSeconds.

The time begins when the taint was added, if the taint says so, else when it was first seen here.

Upstream: pkg/controller/tainteviction/taint_eviction.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from konverge import clock
from konverge.cache import Change
from konverge.client import NotFound, StrategicPatch
from konverge.kube.listers import declared
from konverge.kube.placement import tolerates
from konverge.kube.pod_predicates import by_node
from konverge.kube.podgc import disruption_target
from konverge.kube.pods import condition_patch
from konverge.objects.kinds.core_v1 import Node, Pod, Taint, Toleration
from konverge.objects.times import parse_time
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watches
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate

ON_NODE = "eviction/node"
_MOST_SEEN = 10_000  # a bound on memory

Seen = dict[tuple[str, str, str], float]


class EvictionReconciler(Reconciler[Pod]):
    def __init__(self) -> None:
        self._seen: Seen = {}
        """When taints without a time of their own were first seen: by node, key and value."""

    async def reconcile(self, ctx: Context[Pod]) -> Result | None:
        pod = ctx.obj
        if ctx.deleting or not pod.spec.node_name:
            return None
        node = await ctx.get(Node, pod.spec.node_name)
        taints = [taint for taint in node.spec.taints if taint.effect == "NoExecute"] if node else []
        if not taints:
            return None
        due = self._due(pod.spec.node_name, taints, pod.spec.tolerations)
        if due is None:
            return None
        if due > clock.now():
            return Result(requeue_after=due - clock.now())
        await _evict(ctx)
        return None

    def _due(self, node: str, taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> float | None:
        """When the pod must be evicted (wall time); None means never. Upstream: getMinTolerationTime."""
        times: list[float] = []
        for taint in taints:
            toleration = next((toleration_ for toleration_ in tolerations if tolerates(toleration_, taint)), None)
            if toleration is None:
                return 0.0
            if toleration.toleration_seconds is not None:
                times.append(self._since(node, taint) + max(0, toleration.toleration_seconds))
        return min(times, default=None)

    def _since(self, node: str, taint: Taint) -> float:
        if taint.time_added:
            return parse_time(taint.time_added).timestamp()
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        return self._seen.setdefault((node, taint.key, taint.value or ""), clock.now())

    def forget(self, node: Node) -> None:
        """Taints that a node no longer has count as new when they are added again."""
        present = {(node.metadata.name, taint.key, taint.value or "") for taint in node.spec.taints}
        for key in [key for key in self._seen if key[0] == node.metadata.name and key not in present]:
            del self._seen[key]

    def of_node(self, node: Node, caches: Caches) -> list[Request]:
        """The pods on a node whose taints changed."""
        live = declared(caches, Node).get(node.metadata.name)
        self.forget(live or Node(metadata=node.metadata))
        return declared(caches, Pod).keys_by_index(ON_NODE, node.metadata.name)


# upstream: addConditionAndDeletePod
async def _evict(ctx: Context[Pod]) -> None:
    meta = ctx.obj.metadata
    ctx.event("TaintManagerEviction", f"Marking for deletion Pod {ctx.request}")
    condition = disruption_target(
        "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", meta.generation
    )
    patch = StrategicPatch({"metadata": {"uid": meta.uid}, "status": condition_patch(ctx.obj, condition)})
    with contextlib.suppress(NotFound):
        await ctx.client.patch(Pod, meta.name, patch, meta.namespace, subresource="status")
        await ctx.client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)


# ------------------------------------------------------------------ declaration


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""
    tolerations: list[dict[str, Any]] = []
    taints: list[dict[str, Any]] = []


class _View(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_view = msgspec.json.Decoder(_View).decode


@ChangePredicate
def _bound_or_tolerations_changed(change: Change) -> bool:
    """A pod was bound to a node, or its tolerations changed."""
    if change.new is None:
        return False
    now = _view(change.new.raw).spec
    before = _view(change.old.raw).spec if change.old else None
    return bool(now.node_name) and now != before


@ChangePredicate
def _taints_changed(change: Change) -> bool:
    before, now = (
        [taint for taint in _view(record.raw).spec.taints if taint.get("effect") == "NoExecute"] if record else []
        for record in (change.old, change.new)
    )
    return before != now


def controllers() -> list[Controller[Any]]:
    reconciler = EvictionReconciler()
    return [
        Controller(
            Pod,
            reconciler,
            name="taint-eviction",
            component="taint-eviction-controller",
            when=_bound_or_tolerations_changed,
            watches=[Watches(Node, lookup=reconciler.of_node, when=_taints_changed)],
            indexes={Pod: {ON_NODE: by_node}},
        )
    ]
