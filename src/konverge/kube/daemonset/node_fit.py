"""Which nodes a DaemonSet's pods belong on: node selector, required node affinity, taints and tolerations.

Upstream: pkg/controller/daemon/util/daemonset_util.go, and NodeShouldRunDaemonPod in daemon_controller.go.
"""

from __future__ import annotations

from konverge.kube.placement import NAME, node_matches, required_nodes, tolerates
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.apps_v1 import DaemonSet
from konverge.objects.kinds.core_v1 import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)

# A daemon stays on a node with problems: it may be what solves them.
_STAYS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NO_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


# upstream: AddOrUpdateDaemonPodTolerations
def tolerations(spec: PodSpec) -> list[Toleration]:
    """The template's tolerations and those of every daemon, which replace the template's for the same taint."""
    result = list(spec.tolerations)
    for key, effect in (*_STAYS, *([_NO_NETWORK] if spec.host_network else [])):
        wanted = Toleration(key=key, operator="Exists", effect=effect)
        same = [number for number, has in enumerate(result) if _same(has, wanted)]
        for number in same:
            result[number] = wanted
        if not same:
            result.append(wanted)
    return result


def _same(left: Toleration, right: Toleration) -> bool:
    fields = ("key", "effect", "operator", "value")
    return all((getattr(left, name) or "") == (getattr(right, name) or "") for name in fields)


def should_run(daemonset: DaemonSet, node: Node) -> tuple[bool, bool]:
    """(a pod belongs there, a pod that is there may stay). Upstream: NodeShouldRunDaemonPod."""
    spec = daemonset.spec.template.spec
    if (spec.node_name and spec.node_name != node.metadata.name) or not node_matches(spec, node):
        return False, False
    tolerated = tolerations(spec)
    refused = {
        taint.effect for taint in node.spec.taints if not any(tolerates(toleration, taint) for toleration in tolerated)
    }
    return not refused & {"NoSchedule", "NoExecute"}, "NoExecute" not in refused


# upstream: ReplaceDaemonSetPodNodeNameNodeAffinity
def bound_to(affinity: Affinity | None, node: str) -> Affinity:
    """An affinity that lets the scheduler choose this node only; preferences and pod affinities are kept."""
    result = from_dict(Affinity, to_dict(affinity)) if affinity is not None else Affinity()
    rule = NodeSelectorRequirement(key=NAME, operator="In", values=[node])
    if result.node_affinity is None:
        result.node_affinity = NodeAffinity()
    result.node_affinity.required_during_scheduling_ignored_during_execution = NodeSelector(
        node_selector_terms=[NodeSelectorTerm(match_fields=[rule])]
    )
    return result


def target_of(pod: Pod) -> str | None:
    """The node of a daemon pod: where it runs, or the node that its affinity names. Upstream: GetTargetNodeName."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = required_nodes(pod.spec.affinity)
    for term in required.node_selector_terms if required is not None else []:
        for rule in term.match_fields:
            if rule.key == NAME and rule.operator == "In":
                return rule.values[0] if len(rule.values) == 1 else None
    return None
