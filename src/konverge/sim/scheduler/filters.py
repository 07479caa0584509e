"""Which nodes will do for a pod, why the others will not, and which is best. Pure.

The messages are kube-scheduler's: they end up in the pod's PodScheduled condition and in its FailedScheduling event.

Preemption: which pods of lower priority would have to go so that another finds a place. Volumes: claims that must be
bound first, that wait to hear of a node, or that one pod alone may use.

Upstream: pkg/scheduler/framework/plugins (noderesources, nodeaffinity, tainttoleration, nodeports, volumebinding,
volumerestrictions, defaultpreemption).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from konverge.cache import Lister
from konverge.kube.placement import UNSCHEDULABLE, node_matches, selector_matches, term_matches, untolerated
from konverge.objects.kinds.core_v1 import NodeSelector, PersistentVolume, PersistentVolumeClaim, Pod
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.sim.scheduler.spreading import Neighbours
from konverge.sim.scheduler.state import ClusterState, NodeInfo, PodInfo
from konverge.sim.volume_matching import is_populated, on_node
from konverge.sim.volumes import BY_HAND, SELECTED_NODE


class Sacrifice(msgspec.Struct):
    """A node, and who has to go there."""

    node: str
    victims: list[PodInfo]

    @property
    def cost(self) -> tuple[int, int, int, str]:
        """The least important victims first, then the fewest."""
        priorities = [victim.priority for victim in self.victims]
        return max(priorities), sum(priorities), len(priorities), self.node


def sacrifice(
    pod: Pod, info: PodInfo, state: ClusterState, neighbours: Neighbours, volumes: Volumes
) -> Sacrifice | None:
    """The cheapest way to make room, if there is one."""
    if pod.spec.preemption_policy == "Never":
        return None
    candidates = filter(None, (_on(pod, info, node, neighbours, volumes) for node in state.nodes.values()))
    return min(candidates, key=lambda candidate: candidate.cost, default=None)


def _on(pod: Pod, info: PodInfo, node: NodeInfo, neighbours: Neighbours, volumes: Volumes) -> Sacrifice | None:
    lesser = [other for other in node.pods.values() if other.priority < info.priority]
    lesser.sort(key=lambda other: -other.priority)
    if not lesser or HOPELESS & set(problems(pod, info, node, neighbours)) or lacking(info, node, lesser):
        return None
    if neighbours.problems(node) or volumes.problems(node) or not (volumes.users or lacking(info, node)):
        return None  # it is not resources and claims alone that are in the way
    using = {user.key for user in volumes.users}
    if not using <= {other.key for other in lesser}:
        return None
    victims = list(lesser)
    for spared in lesser:  # the most important are spared first
        rest = [other for other in victims if other is not spared]
        if spared.key not in using and not lacking(info, node, rest):
            victims = rest
    return Sacrifice(node.name, victims)


def making_room(pod: Pod, info: PodInfo, state: ClusterState) -> bool:
    """Pods that were preempted for this one are still terminating."""
    node = state.nodes.get(pod.status.nominated_node_name or "")
    if node is None:
        return False
    return any(pod.meta.deletion_timestamp and pod.priority < info.priority for pod in node.pods.values())


_UNUSABLE = "node(s) were unschedulable"
_TAINTED = "node(s) had untolerated taint(s)"
_SELECTED = "node(s) didn't match Pod's node affinity/selector"
_PORTS = "node(s) didn't have free ports for the requested pod ports"

HOPELESS = frozenset((_UNUSABLE, _TAINTED, _SELECTED))
"""No pod that goes away would change these."""


def problems(pod: Pod, info: PodInfo, node: NodeInfo, neighbours: Neighbours) -> list[str]:
    """Why a node will not do, in the order in which kube-scheduler asks; nothing: it will."""
    spec = node.node.spec
    if spec.unschedulable and untolerated(pod.spec, [UNSCHEDULABLE], ("NoSchedule",)) is not None:
        return [_UNUSABLE]
    if untolerated(pod.spec, spec.taints, ("NoSchedule", "NoExecute")) is not None:
        return [_TAINTED]
    if not node_matches(pod.spec, node.node):
        return [_SELECTED]
    if info.ports and ports_taken(info, node):
        return [_PORTS]
    return lacking(info, node) or neighbours.problems(node)


def lacking(info: PodInfo, node: NodeInfo, without: Iterable[PodInfo] = ()) -> list[str]:
    """The resources of which there is not enough, even if some pods were not there."""
    freed: Counter[str] = Counter()
    for victim in without:
        freed.update(victim.requests)
    kept = node.promised_before(info)
    reasons = []
    for key, amount in info.requests.items():
        if amount and node.used[key] + kept.get(key, 0) - freed[key] + amount > node.offers.get(key, 0):
            reasons.append("Too many pods" if key == "pods" else f"Insufficient {key}")
    return sorted(reasons)


def ports_taken(info: PodInfo, node: NodeInfo) -> bool:
    return any(_collide(mine, theirs) for other in node.pods.values() for theirs in other.ports for mine in info.ports)


def _collide(port: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    anywhere = "0.0.0.0"  # noqa: S104 - the API's word for "any"
    return port[1:] == other[1:] and (port[0] == other[0] or anywhere in (port[0], other[0]))


def best(pod: Pod, info: PodInfo, nodes: list[NodeInfo], neighbours: Neighbours) -> NodeInfo:
    """The node that the pod likes best; among equals the emptiest, then the first by name."""
    return min(nodes, key=lambda node: (-_score(pod, node, neighbours), _load(info, node), len(node.pods), node.name))


def _score(pod: Pod, node: NodeInfo, neighbours: Neighbours) -> float:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity else []
    score = sum(term.weight for term in preferred if term_matches(term.preference, node.node))
    score += neighbours.preference(node) - sum(term.crowding(node) for term in neighbours.soft)
    if untolerated(pod.spec, node.node.spec.taints, ("PreferNoSchedule",)) is not None:
        score -= 1000
    return score


def _load(info: PodInfo, node: NodeInfo) -> float:
    """How full its fullest resource would be, in steps of a percent: small differences should not beat the count."""
    shares = [
        (node.used[key] + info.requests.get(key, 0)) / node.offers[key]
        for key in ("cpu", "memory")
        if node.offers.get(key)
    ]
    return round(max(shares, default=0.0), 2)


def refusal(state: ClusterState, reasons: Counter[str], preemption: str) -> str:
    """`0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: …`"""
    if not state.nodes:
        return "no nodes available to schedule pods"
    total = f"0/{len(state.nodes)} nodes are available"
    counted = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"{total}: {counted}. preemption: {total}: {preemption}."


def preemption_message(state: ClusterState, hopeless: int) -> str:
    """Why no pod was preempted."""
    parts = []
    if len(state.nodes) - hopeless:
        parts.append(f"{len(state.nodes) - hopeless} No preemption victims found for incoming pod")
    if hopeless:
        parts.append(f"{hopeless} Preemption is not helpful for scheduling")
    return ", ".join(sorted(parts))


CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
_NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
_IN_USE = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


class Volumes(msgspec.Struct):
    """What was found out about the claims of one pod."""

    problem: str = ""
    """Why it cannot be placed at all."""
    waiting: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    """Claims that are bound when they hear of a node."""
    places: list[NodeSelector] = msgspec.field(default_factory=list)
    pinned: str = ""
    """The node that a claim is annotated with already."""
    searching: dict[str, PersistentVolumeClaim] = msgspec.field(default_factory=dict)
    """Those of the waiting that take a volume made by hand where one will do."""
    by_hand: set[str] = msgspec.field(default_factory=set)
    """Those of them that are provisioned nowhere."""
    known: Sequence[PersistentVolume] = ()
    """All volumes, if any claim searches."""
    users: list[PodInfo] = msgspec.field(default_factory=list)
    """Who has a claim that one pod alone may use."""

    @property
    def in_use(self) -> list[str]:
        """What is wrong with every node, until those pods are gone."""
        return [_IN_USE] if self.users else []

    def problems(self, node: NodeInfo) -> list[str]:
        if self.pinned and node.name != self.pinned:
            return [CONFLICT]
        reasons = [] if all(selector_matches(place, node.node) for place in self.places) else [CONFLICT]
        return reasons if self.by_hand <= self.taken(node).keys() else [*reasons, _NONE_TO_BIND]

    def taken(self, node: NodeInfo) -> dict[str, PersistentVolume]:
        """The volumes that are to be reserved if the pod goes to a node, by their claims. Upstream: FindPodVolumes."""
        return on_node(self.searching.values(), self.known, node.node)


class Claims(msgspec.Struct):
    """The caches that are asked."""

    claims: Lister[PersistentVolumeClaim]
    volumes: Lister[PersistentVolume]
    classes: Lister[StorageClass]
    assumed: dict[str, tuple[str, PersistentVolume]] = msgspec.field(default_factory=dict)
    """Volumes that were just reserved, by name, each with the version that it had before."""

    def of(self, pod: PodInfo, state: ClusterState) -> Volumes:
        volumes = Volumes()
        exclusive: set[str] = set()
        for name in pod.claims:
            claim = self.claims.get(name, pod.meta.namespace)
            volumes.problem = self._judge(name, claim, volumes)
            if volumes.problem:
                break
            if claim is not None and "ReadWriteOncePod" in claim.spec.access_modes:
                exclusive.add(name)
        if volumes.searching:
            volumes.known = [self._current(volume) for volume in self.volumes.list()]
        if exclusive:
            volumes.users = state.users(pod, exclusive)
        return volumes

    def assume(self, before: PersistentVolume, reserved: PersistentVolume) -> None:
        """The cache will hear of it. Upstream: assume_cache.go (pkg/scheduler/util/assumecache)."""
        self.assumed[before.metadata.name] = (before.metadata.resource_version, reserved)

    def _current(self, volume: PersistentVolume) -> PersistentVolume:
        version, reserved = self.assumed.get(volume.metadata.name, ("", volume))
        if volume.metadata.resource_version == version:
            return reserved
        self.assumed.pop(volume.metadata.name, None)
        return volume

    def _judge(self, name: str, claim: PersistentVolumeClaim | None, volumes: Volumes) -> str:
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if claim.spec.volume_name and claim.status.phase == "Bound":
            volume = self.volumes.get(claim.spec.volume_name)
            affinity = volume.spec.node_affinity if volume is not None else None
            if affinity is not None and affinity.required is not None:
                volumes.places.append(affinity.required)
            return ""
        if not self._waits(claim):
            return _UNBOUND
        volumes.waiting.append(claim)
        volumes.pinned = claim.metadata.annotations.get(SELECTED_NODE, volumes.pinned)
        self._search(claim, volumes)
        return ""

    def _search(self, claim: PersistentVolumeClaim, volumes: Volumes) -> None:
        if claim.spec.volume_name or is_populated(claim):
            return
        kind = self._class(claim)
        if kind is not None and kind.provisioner == BY_HAND:
            volumes.by_hand.add(claim.metadata.name)
        elif SELECTED_NODE in claim.metadata.annotations:
            return  # it is being provisioned
        volumes.searching[claim.metadata.name] = claim

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        kind = self._class(claim)
        return kind is not None and kind.volume_binding_mode == "WaitForFirstConsumer"

    def _class(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        return self.classes.get(claim.spec.storage_class_name) if claim.spec.storage_class_name else None
