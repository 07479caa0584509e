"""Warnings about labels of nodes that have moved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.objects.names import label_value_errors

_DEPRECATED = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": ("deprecated since v1.22; use Taints and Tolerations instead"),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def deprecated_label(key: str) -> str:
    """What to use instead, or "" for a label that is fine."""
    return _DEPRECATED.get(key, "")


def term_warnings(term: dict[str, Any], path: str, *, check_values: bool) -> Iterable[str]:
    """About one NodeSelectorTerm; values are only warned about where they are not refused."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key") or ""
        if deprecated_label(key):
            yield f"{path}.matchExpressions[{index}].key: {key} is {deprecated_label(key)}"
        for at, value in enumerate(expression.get("values") or () if check_values else ()):
            for detail in label_value_errors(value):
                yield f"{path}.matchExpressions[{index}].values[{at}]: {value} is invalid, {detail}"
