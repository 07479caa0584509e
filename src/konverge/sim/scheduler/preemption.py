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
        priorities = [one.priority for one in self.victims]
        return max(priorities), sum(priorities), len(priorities), self.node


def sacrifice(pod: Pod, info: PodInfo, state: ClusterState, neighbours: Neighbours) -> Sacrifice | None:
    """The cheapest way to make room, if there is one."""
    if pod.spec.preemption_policy == "Never":
        return None
    found = [one for node in state.nodes.values() if (one := _on(pod, info, node, neighbours)) is not None]
    return min(found, key=lambda one: one.cost, default=None)


def _on(pod: Pod, info: PodInfo, node: NodeInfo, neighbours: Neighbours) -> Sacrifice | None:
    lesser = sorted((one for one in node.pods.values() if one.priority < info.priority), key=lambda one: -one.priority)
    reasons = problems(pod, info, node, neighbours)
    if not lesser or not reasons or HOPELESS & set(reasons) or lacking(info, node, lesser):
        return None
    if neighbours.problems(node) or not lacking(info, node):
        return None  # it is not resources that are in the way
    victims = list(lesser)
    for one in lesser:  # the most important are spared first
        rest = [other for other in victims if other is not one]
        if not lacking(info, node, rest):
            victims = rest
    return Sacrifice(node.name, victims)


def making_room(pod: Pod, info: PodInfo, state: ClusterState) -> bool:
    """Pods that were told to go for this one's sake are still on their way."""
    node = state.nodes.get(pod.status.nominated_node_name or "")
    if node is None:
        return False
    return any(one.meta.deletion_timestamp and one.priority < info.priority for one in node.pods.values())
