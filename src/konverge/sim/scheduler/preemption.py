"""Making room: which pods of lower priority would have to go so that another finds a place. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.scheduler.filters import HOPELESS, lacking, problems
from konverge.sim.scheduler.spreading import Neighbours
from konverge.sim.scheduler.state import ClusterState, NodeInfo, PodInfo


@dataclass(slots=True)
class Sacrifice:
    """A node, and who has to go there."""

    node: str
    victims: list[PodInfo]

    @property
    def cost(self) -> tuple[int, int, int, str]:
        """The least important victims first, then the fewest."""
        priorities = [victim.priority for victim in self.victims]
        return max(priorities), sum(priorities), len(priorities), self.node


def sacrifice(pod: Pod, info: PodInfo, state: ClusterState, neighbours: Neighbours) -> Sacrifice | None:
    """The cheapest way to make room, if there is one."""
    if pod.spec.preemption_policy == "Never":
        return None
    candidates = [
        candidate for node in state.nodes.values() if (candidate := _on(pod, info, node, neighbours)) is not None
    ]
    return min(candidates, key=lambda candidate: candidate.cost, default=None)


def _on(pod: Pod, info: PodInfo, node: NodeInfo, neighbours: Neighbours) -> Sacrifice | None:
    lesser = sorted(
        (pod for pod in node.pods.values() if pod.priority < info.priority), key=lambda spared: -spared.priority
    )
    reasons = problems(pod, info, node, neighbours)
    if not lesser or not reasons or HOPELESS & set(reasons) or lacking(info, node, lesser):
        return None
    if neighbours.problems(node) or not lacking(info, node):
        return None  # it is not resources that are in the way
    victims = list(lesser)
    for spared in lesser:  # the most important are spared first
        rest = [other for other in victims if other is not spared]
        if not lacking(info, node, rest):
            victims = rest
    return Sacrifice(node.name, victims)


def making_room(pod: Pod, info: PodInfo, state: ClusterState) -> bool:
    """Pods that were preempted for this one are still terminating."""
    node = state.nodes.get(pod.status.nominated_node_name or "")
    if node is None:
        return False
    return any(pod.meta.deletion_timestamp and pod.priority < info.priority for pod in node.pods.values())
