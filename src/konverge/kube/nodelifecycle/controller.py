"""The node lifecycle: a node that falls silent becomes Unknown, is tainted, and loses its pods in time.

A node is checked when it changes and when its silence would be too long, but not at every heartbeat: an idle cluster
has little else. Its conditions lead to taints, and those to the eviction of its pods (`eviction`).

Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from konverge import clock
from konverge.cache import Change
from konverge.client import MergePatch, NotFound, StrategicPatch
from konverge.kube import pods as podlib
from konverge.kube.listers import declared
from konverge.kube.nodelifecycle import eviction
from konverge.kube.pod_predicates import by_node, moved
from konverge.objects.codec import decoder, to_dict
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import Node, NodeCondition, Pod, Taint
from konverge.objects.times import now, parse_time
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Source, Watches, find_condition
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
EXCLUDED = "node.kubernetes.io/exclude-disruption"
UNHEALTHY_SHARE = 0.55
"""Share of nodes of a zone that are not ready, from which on the zone counts as disrupted. Upstream: the default of
--unhealthy-zone-threshold."""
LARGE_ZONE = 50
"""Nodes of a zone, above which evictions continue (upstream: more slowly) in a disrupted zone. Upstream: the default of
--large-cluster-size-threshold."""

_BY_CONDITION = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OURS = {*_BY_CONDITION.values(), UNSCHEDULABLE}
_REGIONS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
POLL = 5.0
"""Seconds between checks of a node whose clock is not trusted, and by how much a trusted clock may differ. Upstream:
the default of NodeMonitorPeriod."""
RENEWAL = 10.0
"""Seconds between renewals of a Lease (the kubelet's default). A node that was silent for that long before its grace
period ends is silent by our own clock too."""

_TICK = 0.001
"""Seconds that do not count: sums of times are not exact, and a check must always be later than the last one."""


GRACE = 50.0
"""Seconds of silence after which a node is Unknown. Upstream: the default of NodeMonitorGracePeriod, since 1.32."""
STARTUP_GRACE = 60.0
"""The same for a node that has not reported anything yet. Upstream: the default of NodeStartupGracePeriod."""
LEASES = "kube-node-lease"
ON_NODE = "nodelifecycle/node"
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_OLD_LABELS = {"kubernetes.io/os": "beta.kubernetes.io/os", "kubernetes.io/arch": "beta.kubernetes.io/arch"}
_MOST_NODES = 100_000  # a bound on memory, far above the nodes of a cluster

_node = decoder(Node).decode


class Announced(Protocol):
    """Nodes whose failure is announced, such as those whose kubelets are simulated in this process."""

    def __contains__(self, name: str) -> bool:
        """Whether a node counts as alive until `requests` yields it."""

    def requests(self) -> AsyncIterator[Request]:
        """Nodes that fall silent."""


class NodeReconciler(Reconciler[Node]):
    def __init__(
        self, announced: Announced | None = None, *, grace: float = GRACE, startup_grace: float = STARTUP_GRACE
    ) -> None:
        self._announced = announced
        self._grace = grace
        self._startup_grace = startup_grace
        self._known: dict[str, Health] = {}

    # upstream: monitorNodeHealth
    async def reconcile(self, ctx: Context[Node]) -> Result | None:
        if ctx.deleting:
            return None
        health = await self._observe(ctx)
        grace = self._grace if readiness(ctx.obj) else self._startup_grace
        if is_silent(health, grace):
            await _mark_unknown(ctx)
        await _taint(ctx)
        await _old_labels(ctx)
        if _is_unheard_of(ctx.obj):
            await _mark_pods_not_ready(ctx)
        if health.trusted and self._announced is not None and ctx.request.name in self._announced:
            return None
        return Result(requeue_after=next_check(health, grace))

    async def _observe(self, ctx: Context[Node]) -> Health:
        meta, name = ctx.obj.metadata, ctx.obj.metadata.name
        if name not in self._known:
            ctx.event("RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
        if len(self._known) >= _MOST_NODES:
            self._known.clear()
        # The Lease is read and not cached: the watch of a cache would deliver every heartbeat of every node.
        renewed = await _renew_time(ctx)
        ready = find_condition(ctx.obj.status.conditions, "Ready")
        mark = (renewed, (ready.last_heartbeat_time or "") if ready and ready.status != "Unknown" else "")
        moment = parse_time(renewed).timestamp() if renewed else None
        health = self._known[name] = observe(self._known.get(name), meta.uid, mark, moment, clock.now())
        return health


async def _renew_time(ctx: Context[Node]) -> str:
    try:
        return (await ctx.client.get(Lease, ctx.request.name, LEASES)).spec.renew_time or ""
    except NotFound:
        return ""


# ------------------------------------------------------------------ whether a node is alive

# By its Lease and its status. A node's clock is not trusted at first: what counts is that something changed since the
# last check, so checks are frequent. Once a Lease has a time between two checks in short succession, the node's clock
# agrees with ours, and its times are trusted: then it is enough to check when the next silence would be too long, and
# once shortly before. Upstream (which polls every node): tryUpdateNodeHealth.


@dataclass(slots=True)
class Health:
    """What is known of one node."""

    uid: str
    mark: tuple[str, str]
    """The renew time of the Lease and the heartbeat of the status, as they were last seen."""
    alive: float
    """When the node last reported."""
    checked: float
    trusted: bool = False
    """Whether `alive` is the time in the report, and not the time at which we saw it."""


def observe(known: Health | None, uid: str, mark: tuple[str, str], renewed: float | None, now: float) -> Health:
    """Take in what is observed now; `renewed` is the time in the Lease."""
    if known is None or known.uid != uid:
        return Health(uid, mark, now, now)
    if mark == known.mark:
        return Health(uid, mark, known.alive, now, known.trusted)
    agrees = renewed is not None and known.checked <= renewed <= now
    if renewed is not None and agrees and (known.trusted or now - known.checked <= POLL):
        return Health(uid, mark, renewed, now, trusted=True)
    return Health(uid, mark, now, now)


def is_silent(health: Health, grace: float) -> bool:
    return health.checked - health.alive >= grace - _TICK


def next_check(health: Health, grace: float) -> float:
    """Seconds until the next check can find something new."""
    if is_silent(health, grace):
        return grace  # its report when it is back is an event
    left = health.alive + grace - health.checked
    if health.trusted and left > RENEWAL + _TICK:
        return left - RENEWAL
    return left if health.trusted else min(POLL, left)


# ------------------------------------------------------------------ taints

# They follow from a node's conditions, and pods may be evicted by them. Upstream: nodeConditionToTaintKeyStatusMap,
# ComputeZoneState.


def readiness(node: Node) -> str:
    """The status of the condition Ready; empty where there is none yet."""
    return next((condition.status for condition in node.status.conditions if condition.type == "Ready"), "")


def wanted_taints(node: Node, *, evict: bool, now: str) -> list[Taint]:
    """The taints that the node should have, in their order: foreign taints stay, ours follow from its conditions."""
    keys = [key for c in node.status.conditions if (key := _BY_CONDITION.get((c.type, c.status)))]
    effects = {(key, "NoSchedule") for key in keys} | (
        {(UNSCHEDULABLE, "NoSchedule")} if node.spec.unschedulable else set()
    )
    if evict:
        effects |= {(key, "NoExecute") for key in keys if key in (NOT_READY, UNREACHABLE)}
    if not readiness(node):
        # A node that has not reported yet keeps the taints with which it registered.
        effects |= {(taint.key, taint.effect) for taint in node.spec.taints if taint.key in (NOT_READY, UNREACHABLE)}
    kept = [taint for taint in node.spec.taints if not _is_ours(taint) or (taint.key, taint.effect) in effects]
    present = {(taint.key, taint.effect) for taint in kept}
    return [*kept, *(Taint(key=key, effect=effect, time_added=now) for key, effect in sorted(effects - present))]


def _is_ours(taint: Taint) -> bool:
    if taint.effect == "NoExecute":
        return taint.key in (NOT_READY, UNREACHABLE)
    return taint.effect == "NoSchedule" and taint.key in _OURS


def zone_of(node: Node) -> str:
    return ":".join(node.metadata.labels.get(label, "") for label in _REGIONS)


def may_evict(node: Node, nodes: Iterable[Node]) -> bool:
    """Whether pods may be evicted from a node that is not ready.

    Not when no node at all is ready: then it is more likely that we are disconnected than that all nodes failed. And
    not from a small zone of which most nodes are not ready.

    Upstream: handleDisruption, ReducedQPSFunc.
    """
    counted = [other for other in nodes if EXCLUDED not in other.metadata.labels]
    if not any(readiness(other) == "True" for other in counted):
        return not counted
    zone = [other for other in counted if zone_of(other) == zone_of(node)]
    lost = sum(readiness(other) != "True" for other in zone)
    partial = lost > 2 and 0 < lost < len(zone) and lost / len(zone) >= UNHEALTHY_SHARE
    return not partial or len(zone) > LARGE_ZONE


# ------------------------------------------------------------------ conditions, taints, labels, pods


# upstream: tryUpdateNodeHealth
async def _mark_unknown(ctx: Context[Node]) -> None:
    node = ctx.obj
    was_ready = readiness(node) == "True"
    present = {condition.type: condition for condition in node.status.conditions}
    for type in _CONDITIONS:
        known = present.get(type)
        if known is None:
            node.status.conditions.append(
                NodeCondition(
                    type=type,
                    status="Unknown",
                    reason="NodeStatusNeverUpdated",
                    message="Kubelet never posted node status.",
                    last_heartbeat_time=node.metadata.creation_timestamp,
                    last_transition_time=now(),
                )
            )
        elif known.status != "Unknown":
            known.status, known.reason = "Unknown", "NodeStatusUnknown"
            known.message, known.last_transition_time = "Kubelet stopped posting node status.", now()
    if await ctx.save_status() and was_ready:
        ctx.event("NodeNotReady", f"Node {ctx.request.name} status is now: NodeNotReady")


# upstream: doNoScheduleTaintingPass, doNoExecuteTaintingPass
async def _taint(ctx: Context[Node]) -> None:
    node = ctx.obj
    evict = False
    if _is_lost(node):
        others = [node if other.metadata.name == node.metadata.name else other for other in await ctx.list(Node)]
        evict = may_evict(node, others)
    desired = wanted_taints(node, evict=evict, now=now())
    if desired != node.spec.taints:
        meta = {"resourceVersion": node.metadata.resource_version}
        body = {"metadata": meta, "spec": {"taints": [to_dict(taint) for taint in desired] or None}}
        written = await ctx.client.patch(Node, ctx.request.name, MergePatch(body))
        node.metadata.resource_version = written.metadata.resource_version


async def _old_labels(ctx: Context[Node]) -> None:
    """The names that these labels had before 1.14 get the same values. Upstream: reconcileNodeLabels."""
    labels = ctx.obj.metadata.labels
    desired = {old: labels[new] for new, old in _OLD_LABELS.items() if new in labels and labels.get(old) != labels[new]}
    if desired:
        await ctx.client.patch(Node, ctx.request.name, MergePatch({"metadata": {"labels": desired}}))


# upstream: MarkPodsNotReady (pkg/controller/util/node)
async def _mark_pods_not_ready(ctx: Context[Node]) -> None:
    for pod in ctx.indexed(Pod, ON_NODE, ctx.request.name):
        if not podlib.is_ready(pod):
            continue
        meta, condition = pod.metadata, {"type": "Ready", "status": "False", "lastTransitionTime": now()}
        patch = StrategicPatch({"metadata": {"uid": meta.uid}, "status": podlib.condition_patch(pod, condition)})
        try:
            await ctx.client.patch(Pod, meta.name, patch, meta.namespace, subresource="status")
        except NotFound:
            continue
        ctx.warning("NodeNotReady", "Node is not ready", about=pod)


# ------------------------------------------------------------------ declaration


def _of_pod(pod: Pod, caches: Caches) -> list[Request]:
    """The node of a pod that is said to be ready although its node is silent. Upstream: processPod."""
    name = pod.spec.node_name if podlib.is_ready(pod) else None
    node = declared(caches, Node).get(name) if name else None
    return [Request("", node.metadata.name)] if node is not None and _is_unheard_of(node) else []


def _all_lost(changed: Node, caches: Caches) -> list[Request]:
    """Whether pods may be evicted from a lost node depends on the others."""
    return [Request("", node.metadata.name) for node in declared(caches, Node).list() if _is_lost(node)]


def _is_lost(node: Node) -> bool:
    return readiness(node) in ("False", "Unknown")


def _is_unheard_of(node: Node) -> bool:
    """Its kubelet is silent. One that reports itself not ready still reports about its pods, and is believed."""
    return readiness(node) == "Unknown"


@ChangePredicate
def _became_ready_or_lost(change: Change) -> bool:
    before, after = (readiness(_node(record.raw)) if record else "" for record in (change.old, change.new))
    return before != after and not change.initial


def controllers(announced: Announced | None = None) -> list[Controller[Any]]:
    return [
        Controller(
            Node,
            NodeReconciler(announced),
            name="node-lifecycle",
            component="node-controller",
            watches=[
                Watches(Node, lookup=_all_lost, when=_became_ready_or_lost),
                Watches(Pod, lookup=_of_pod, when=moved),
            ],
            sources=[Source(name="silence", requests=announced.requests)] if announced is not None else [],
            indexes={Pod: {ON_NODE: by_node}},
        ),
        *eviction.controllers(),
    ]
