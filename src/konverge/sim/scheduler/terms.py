"""How selectors, terms and tolerations match. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from konverge.objects.kinds.core_v1 import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    Taint,
    Toleration,
)

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def node_matches(pod: Pod, node: Node) -> bool:
    """nodeSelector and required node affinity."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or selector_matches(required, node)


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    return any(term_matches(term, node) for term in selector.node_selector_terms)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """All expressions of a term; a term without any matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_satisfied(one, node.metadata.labels) for one in term.match_expressions) and all(
        _satisfied(one, fields) for one in term.match_fields
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
    bound = _number(requirement.values[0]) if requirement.values else None
    given = _number(value)
    if bound is None or given is None:
        return False
    return given > bound if requirement.operator == "Gt" else given < bound


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def untolerated(pod: Pod, taints: Iterable[Taint], effects: tuple[str, ...]) -> Taint | None:
    """The first taint with such an effect that the pod does not tolerate."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(one, taint) for one in pod.spec.tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if (toleration.operator or "Equal") == "Exists":
        return True
    return toleration.key is not None and (toleration.value or "") == (taint.value or "")
