"""The PodDisruptionBudget: drained nodes take one server at a time, and never the quorum."""

from __future__ import annotations

from konverge.objects import LabelSelector
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from konverge.operators.nacos import names
from konverge.operators.nacos.children.metadata import metadata
from konverge.operators.nacos.wish import Wish


def wants_budget(wish: Wish) -> bool:
    """A single server gets none: its budget would only block the drain for ever."""
    return wish.cluster and wish.replicas >= 3 and wish.spec.pod_disruption_budget.enabled


def disruption_budget(wish: Wish) -> PodDisruptionBudget:
    most = min(wish.spec.pod_disruption_budget.max_unavailable, wish.replicas - wish.quorum)
    return PodDisruptionBudget(
        metadata=metadata(wish, wish.name),
        spec=PodDisruptionBudgetSpec(
            max_unavailable=max(1, most), selector=LabelSelector(match_labels=names.selector(wish.name))
        ),
    )
