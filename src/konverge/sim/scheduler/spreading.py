"""What depends on where other pods are: affinity, anti-affinity and topology spread.

A term names a topology key: nodes with the same value of that label are one domain. All of it is counted afresh for
each pod that asks for it; a pod that asks for nothing pays for nothing, unless a placed pod repels others.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity and podtopologyspread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property

from konverge.kube.placement import UNSCHEDULABLE, node_matches, untolerated
from konverge.objects.kinds.core_v1 import Node, Pod, PodAffinityTerm, TopologySpreadConstraint
from konverge.objects.labels import Labels, from_selector
from konverge.objects.meta import ObjectMeta
from konverge.sim.scheduler.state import ClusterState, NodeInfo

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"
NO_LABEL = SPREAD + " (missing required label)"

Domain = tuple[str, str]


def those_concerned(
    term: PodAffinityTerm, owner: ObjectMeta, namespaces: Mapping[str, Labels]
) -> Callable[[ObjectMeta], bool]:
    """Which pods a term of one pod speaks of, by the labels of `namespaces`: in those that it names or selects, or else
    in its own. Made once for a term: it is asked about every pod there is.

    Upstream: AffinityTerm.Matches, getNamespacesFromPodAffinityTerm (pkg/scheduler/framework/types.go).
    """
    if term.label_selector is None:
        return lambda other: False
    matches = from_selector(term.label_selector).matches
    if term.namespace_selector is None:
        spaces = term.namespaces or [owner.namespace]
        return lambda other: other.namespace in spaces and matches(other.labels)
    named, selects = term.namespaces, from_selector(term.namespace_selector).matches
    return lambda other: (
        (other.namespace in named or selects(namespaces.get(other.namespace, {}))) and matches(other.labels)
    )


class Neighbours:
    """For one pod that looks for a place: which domains its own and others' terms leave open."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        affinity = pod.spec.affinity
        near = affinity.pod_affinity if affinity else None
        far = affinity.pod_anti_affinity if affinity else None
        self._pod = pod
        self._state = state
        self._near = near.required_during_scheduling_ignored_during_execution if near else []
        self._far = far.required_during_scheduling_ignored_during_execution if far else []
        self._near_domains = [self._domains(term) for term in self._near]
        self._far_domains = [self._domains(term) for term in self._far]
        self._repelled = self._repelled_domains() if state.repelling else set()
        spreads = [_Spread(constraint, pod, state) for constraint in pod.spec.topology_spread_constraints]
        self._hard = [spread for spread in spreads if spread.hard]
        self.soft = [spread for spread in spreads if not spread.hard]

    def problems(self, node: NodeInfo) -> list[str]:
        labels = node.node.metadata.labels
        for term, domains in zip(self._near, self._near_domains, strict=True):
            if labels.get(term.topology_key) not in domains and not self._first_of_its_kind(term, domains, labels):
                return [AFFINITY]
        for term, domains in zip(self._far, self._far_domains, strict=True):
            if labels.get(term.topology_key) in domains:
                return [ANTI_AFFINITY]
        if any(labels.get(key) == value for key, value in self._repelled):
            return [EXISTING]
        return next((reasons for spread in self._hard if (reasons := spread.problems(node.node))), [])

    def _first_of_its_kind(self, term: PodAffinityTerm, domains: Counter[str], labels: dict[str, str]) -> bool:
        """Pods that want to be near their like may begin anywhere: one pod must be the first."""
        meta = self._pod.metadata
        return not domains and term.topology_key in labels and self._concerned(term, meta)(meta)

    def _concerned(self, term: PodAffinityTerm, owner: ObjectMeta) -> Callable[[ObjectMeta], bool]:
        return those_concerned(term, owner, self._state.namespaces)

    def _domains(self, term: PodAffinityTerm) -> Counter[str]:
        """The domains with pods that the term speaks of, and how many."""
        counter: Counter[str] = Counter()
        concerned = self._concerned(term, self._pod.metadata)
        for node in self._state.nodes.values():
            value = node.node.metadata.labels.get(term.topology_key)
            if value is not None:
                count = sum(concerned(pod.meta) for pod in node.pods.values())
                if count:
                    counter[value] += count
        return counter

    def _repelled_domains(self) -> set[Domain]:
        domains: set[Domain] = set()
        for node in self._state.nodes.values():
            labels = node.node.metadata.labels
            for other in node.pods.values():
                for term in other.repels:
                    value = labels.get(term.topology_key)
                    if value is not None and self._concerned(term, other.meta)(self._pod.metadata):
                        domains.add((term.topology_key, value))
        return domains

    def preference(self, node: NodeInfo) -> int:
        """Preferred terms, summed: for and against this node."""
        labels = node.node.metadata.labels
        return sum(weight * domains[labels.get(key, "")] for weight, key, domains in self._preferred)

    @cached_property
    def _preferred(self) -> list[tuple[int, str, Counter[str]]]:
        """The weight of each preferred term (negative where it repels), its topology key, and its domains."""
        affinity = self._pod.spec.affinity
        if affinity is None:
            return []
        near, far = affinity.pod_affinity, affinity.pod_anti_affinity
        wanted = near.preferred_during_scheduling_ignored_during_execution if near else []
        unwanted = far.preferred_during_scheduling_ignored_during_execution if far else []
        return [
            (sign * term.weight, term.pod_affinity_term.topology_key, self._domains(term.pod_affinity_term))
            for sign, terms in ((1, wanted), (-1, unwanted))
            for term in terms
        ]


class _Spread:
    """One topology spread constraint, counted."""

    def __init__(self, constraint: TopologySpreadConstraint, pod: Pod, state: ClusterState) -> None:
        self._constraint = constraint
        self.hard = constraint.when_unsatisfiable == "DoNotSchedule"
        self.counts: Counter[str] = Counter()
        selector = from_selector(constraint.label_selector)
        keys = {key: pod.metadata.labels[key] for key in constraint.match_label_keys if key in pod.metadata.labels}
        self._self = int(selector.matches(pod.metadata.labels))
        for node in state.nodes.values():
            value = node.node.metadata.labels.get(constraint.topology_key)
            if value is None or not self._counts(pod, node.node):
                continue
            self.counts[value] += sum(
                neighbour.meta.namespace == pod.metadata.namespace
                and neighbour.meta.deletion_timestamp is None
                and selector.matches(neighbour.meta.labels)
                and all(neighbour.meta.labels.get(key) == wanted for key, wanted in keys.items())
                for neighbour in node.pods.values()
            )

    def _counts(self, pod: Pod, node: Node) -> bool:
        """Whether a node is among those that are spread over."""
        if (self._constraint.node_affinity_policy or "Honor") == "Honor" and not node_matches(pod.spec, node):
            return False
        if (self._constraint.node_taints_policy or "Ignore") == "Ignore":
            return True
        taints = [*node.spec.taints, *([UNSCHEDULABLE] if node.spec.unschedulable else [])]
        return untolerated(pod.spec, taints, ("NoSchedule", "NoExecute")) is None

    def problems(self, node: Node) -> list[str]:
        value = node.metadata.labels.get(self._constraint.topology_key)
        if value is None:
            return [NO_LABEL]
        least = min(self.counts.values(), default=0)
        if self._constraint.min_domains and len(self.counts) < self._constraint.min_domains:
            least = 0
        skew = self.counts[value] + self._self - least
        return [SPREAD] if skew > self._constraint.max_skew else []

    def crowding(self, node: NodeInfo) -> int:
        """How many of its like are in the node's domain already."""
        return self.counts[node.node.metadata.labels.get(self._constraint.topology_key, "")]
