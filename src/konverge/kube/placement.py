"""Where a pod may run: how node selectors, affinity terms, taints and tolerations match. Pure.

Used by the DaemonSet controller, the eviction by taints and the simulated scheduler.

Upstream: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, Toleration.ToleratesTaint (k8s.io/api/core/v1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from konverge.objects.kinds.core_v1 import (
    Affinity,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    Taint,
    Toleration,
)

NAME = "metadata.name"
"""The only field of a node that a term can name."""
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that `spec.unschedulable` of a node stands for."""
_INT64 = range(-(2**63), 2**63)


def node_matches(spec: PodSpec, node: Node) -> bool:
    """Node selector and required node affinity, regardless of taints."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    required = required_nodes(spec.affinity)
    return required is None or selector_matches(required, node)


def required_nodes(affinity: Affinity | None) -> NodeSelector | None:
    node = affinity.node_affinity if affinity is not None else None
    return node.required_during_scheduling_ignored_during_execution if node is not None else None


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    return any(term_matches(term, node) for term in selector.node_selector_terms)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """All expressions of a term; a term without any matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {NAME: node.metadata.name}
    return all(_satisfied(requirement, node.metadata.labels) for requirement in term.match_expressions) and all(
        _satisfied(requirement, fields) for requirement in term.match_fields
    )


def _satisfied(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    bound = requirement.values[0] if requirement.values else None
    return _compares(requirement.operator, value, bound)


def _compares(operator: str, value: str | None, bound: str | None) -> bool:
    """Gt and Lt compare whole numbers, and are false for anything else."""
    given, limit = _whole_number(value), _whole_number(bound)
    if given is None or limit is None:
        return False
    return given > limit if operator == "Gt" else operator == "Lt" and given < limit


def _whole_number(text: str | None) -> int | None:
    """Upstream: strconv.ParseInt, of 64 bits."""
    if text is None or not text.removeprefix("-").isdecimal():
        return None
    number = int(text)
    return number if number in _INT64 else None


# ------------------------------------------------------------------ taints


def untolerated(spec: PodSpec, taints: Iterable[Taint], effects: tuple[str, ...]) -> Taint | None:
    """The first taint with such an effect that the pod does not tolerate."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(toleration, taint) for toleration in spec.tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """
    >>> tolerates(Toleration(operator="Exists"), Taint(key="a", effect="NoExecute"))
    True
    >>> tolerates(Toleration(key="a", operator="Gt", value="3"), Taint(key="a", value="5", effect="NoExecute"))
    True
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(toleration.key) and (toleration.value or "") == (taint.value or "")
        case operator:
            return _compares(operator, taint.value, toleration.value)
