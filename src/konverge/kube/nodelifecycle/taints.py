"""The taints that follow from a node's conditions, and when pods may be evicted by them. Pure functions.

Upstream: nodeConditionToTaintKeyStatusMap, ComputeZoneState
(pkg/controller/nodelifecycle/node_lifecycle_controller.go).
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.objects.kinds.core_v1 import Node, Taint

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


def readiness(node: Node) -> str:
    """The status of the condition Ready; empty where there is none yet."""
    return next((condition.status for condition in node.status.conditions if condition.type == "Ready"), "")


def wanted(node: Node, *, evict: bool, now: str) -> list[Taint]:
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
