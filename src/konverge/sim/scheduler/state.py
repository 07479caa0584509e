"""What the scheduler knows: nodes, what they offer, and the pods that have a claim on it.

Kept current by the changes of two caches, so that placing a pod costs a look at each node and not at each pod.
Amounts are whole numbers in thousandths, because sums of Quantities would be the most expensive part.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from konverge.objects.kinds.core_v1 import Container, Node, Pod, PodAffinityTerm
from konverge.objects.meta import ObjectMeta
from konverge.sim.volume_matching import claim_names

Amounts = dict[str, int]
TERMINAL = ("Succeeded", "Failed")


class PodInfo(msgspec.Struct):
    """The part of a pod that matters to the place of others."""

    meta: ObjectMeta
    node: str
    requests: Amounts
    ports: frozenset[tuple[str, str, int]]
    priority: int
    repels: list[PodAffinityTerm]
    """Its own required anti-affinity: whom it does not want near it."""
    claims: list[str]
    """The names of the claims that it uses."""

    @property
    def key(self) -> tuple[str, str]:
        return self.meta.namespace, self.meta.name


class NodeInfo(msgspec.Struct):
    node: Node
    offers: Amounts
    used: Counter[str] = msgspec.field(default_factory=Counter)
    pods: dict[tuple[str, str], PodInfo] = msgspec.field(default_factory=dict)
    promised: dict[tuple[str, str], PodInfo] = msgspec.field(default_factory=dict)
    """Pods for which others had to go: they come as soon as those are gone."""

    @property
    def name(self) -> str:
        return self.node.metadata.name

    def add(self, pod: PodInfo) -> None:
        self.pods[pod.key] = pod
        self.used.update(pod.requests)

    def remove(self, key: tuple[str, str]) -> None:
        pod = self.pods.pop(key, None)
        if pod is not None:
            self.used.subtract(pod.requests)

    def promised_before(self, pod: PodInfo) -> Amounts:
        """What is kept for others that are at least as important. Upstream: addGENominatedPods."""
        kept: Counter[str] = Counter()
        for other in self.promised.values():
            if other.priority >= pod.priority and other.key != pod.key:
                kept.update(other.requests)
        return kept


class ClusterState:
    """All nodes and the pods on them."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        """The labels of each, for terms that select namespaces."""
        self._where: dict[tuple[str, str], PodInfo] = {}
        self._promises: dict[tuple[str, str], str] = {}
        self.repelling = 0
        """How many placed pods have anti-affinity of their own; most clusters have none, and need not look."""

    def node_changed(self, name: str, node: Node | None) -> None:
        if node is None:
            self.nodes.pop(name, None)
            return
        offers = {key: amount.milli for key, amount in node.status.allocatable.items()}
        known = self.nodes.get(name)
        if known is None:
            known = self.nodes[name] = NodeInfo(node, offers)
            for pod in self._where.values():
                if pod.node == name:
                    known.add(pod)
        known.node, known.offers = node, offers

    def namespace_changed(self, name: str, labels: dict[str, str] | None) -> bool:
        """None: it is gone. True when it has other labels now."""
        before = self.namespaces.pop(name, None)
        if labels is not None:
            self.namespaces[name] = labels
        return before != labels

    def find(self, key: tuple[str, str]) -> PodInfo | None:
        """A pod that has a place."""
        return self._where.get(key)

    def place(self, pod: Pod, node: str) -> PodInfo:
        """A pod is on a node, or will be in a moment."""
        self.drop((pod.metadata.namespace, pod.metadata.name))
        info = describe(pod, node)
        self._where[info.key] = info
        self.repelling += bool(info.repels)
        if node in self.nodes:
            self.nodes[node].add(info)
        return info

    def promise(self, pod: PodInfo, node: str) -> None:
        """Others have to go from a node, for this pod."""
        self._withdraw(pod.key)
        if node in self.nodes:
            self._promises[pod.key] = node
            self.nodes[node].promised[pod.key] = pod

    def _withdraw(self, key: tuple[str, str]) -> bool:
        node = self.nodes.get(self._promises.pop(key, ""))
        return node is not None and node.promised.pop(key, None) is not None

    def drop(self, key: tuple[str, str]) -> bool:
        """A pod is gone or has ended. True when it had a place, or was promised one."""
        promised = self._withdraw(key)
        info = self._where.pop(key, None)
        if info is None:
            return promised
        self.repelling -= bool(info.repels)
        if info.node in self.nodes:
            self.nodes[info.node].remove(key)
        return True

    def users(self, pod: PodInfo, claims: set[str]) -> list[PodInfo]:
        """Others with one of these claims of a pod: those that have a place, or are as important and promised one."""
        promised = (other for node in self.nodes.values() for other in node.promised.values())
        others = [*self._where.values(), *(other for other in promised if other.priority >= pod.priority)]
        near = (other for other in others if other.meta.namespace == pod.meta.namespace and other.key != pod.key)
        return [other for other in near if claims.intersection(other.claims)]


def describe(pod: Pod, node: str = "") -> PodInfo:
    affinity = pod.spec.affinity
    anti = affinity.pod_anti_affinity if affinity else None
    return PodInfo(
        meta=pod.metadata,
        node=node,
        requests=requests(pod),
        ports=host_ports(pod),
        priority=pod.spec.priority or 0,
        repels=list(anti.required_during_scheduling_ignored_during_execution) if anti else [],
        claims=claim_names(pod),
    )


def requests(pod: Pod) -> Amounts:
    """What a pod takes of a node: the sum of its containers, or the greatest of its init containers if that is more.

    Sidecars run beside everything that comes after them, so they count on both sides.
    """
    total: Counter[str] = Counter()
    for container in pod.spec.containers:
        total.update(_requests(container))
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod.spec.init_containers:
        own = Counter(_requests(container))
        if container.restart_policy == "Always":
            sidecars.update(own)
        else:
            peak |= own + sidecars
    total.update(sidecars)
    total |= peak
    if pod.spec.resources is not None and pod.spec.resources.requests:
        total.update({key: amount.milli - total[key] for key, amount in pod.spec.resources.requests.items()})
    total.update({key: amount.milli for key, amount in pod.spec.overhead.items()})
    total["pods"] = 1000
    return dict(total)


def _requests(container: Container) -> Amounts:
    if container.resources is None:
        return {}
    return {key: amount.milli for key, amount in container.resources.requests.items()}


def host_ports(pod: Pod) -> frozenset[tuple[str, str, int]]:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return frozenset(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104 - the API's word for "any"
        for container in containers
        for port in container.ports
        if port.host_port
    )
