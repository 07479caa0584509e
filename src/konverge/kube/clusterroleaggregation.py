"""Aggregated ClusterRoles: the rules of such a role are those of all roles that its selectors choose.

Upstream: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go.
"""

from __future__ import annotations

from typing import Any

from konverge.cache import Change
from konverge.client import MergePatch
from konverge.kube.listers import declared
from konverge.objects import labels
from konverge.objects.codec import to_dict
from konverge.objects.kinds.rbac_v1 import ClusterRole, PolicyRule
from konverge.runtime import Context, Controller, Reconciler, Request, Watches
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate


class AggregationReconciler(Reconciler[ClusterRole]):
    # upstream: syncClusterRole
    async def reconcile(self, ctx: Context[ClusterRole]) -> None:
        role = ctx.obj
        if role.aggregation_rule is None or ctx.deleting:
            return
        rules = aggregated(role, await ctx.list(ClusterRole))
        if rules != role.rules:
            patch = MergePatch({"rules": [to_dict(rule) for rule in rules]})
            await ctx.client.patch(ClusterRole, role.metadata.name, patch)


def aggregated(role: ClusterRole, roles: Any) -> list[PolicyRule]:
    """The rules of the chosen roles, selector by selector, by name, each once."""
    rules: list[PolicyRule] = []
    others = (other for other in roles if other.metadata.name != role.metadata.name)
    by_name = sorted(others, key=lambda other: other.metadata.name)
    for selector in role.aggregation_rule.cluster_role_selectors if role.aggregation_rule else ():
        matches = labels.from_selector(selector).matches
        for other in by_name:
            if matches(other.metadata.labels):
                rules += [rule for rule in other.rules if rule not in rules]
    return rules


def _of_role(changed: ClusterRole, caches: Caches) -> list[Request]:
    """The aggregated roles that a changed role may be a part of."""
    return [
        Request("", role.metadata.name)
        for role in declared(caches, ClusterRole).list()
        if role.aggregation_rule is not None
        and any(
            labels.from_selector(selector).matches(changed.metadata.labels)
            for selector in role.aggregation_rule.cluster_role_selectors
        )
    ]


@ChangePredicate
def _is_aggregated(change: Change) -> bool:
    return change.new is not None and b'"aggregationRule"' in change.new.raw


@ChangePredicate
def _changed_later(change: Change) -> bool:
    """Not at the start: every aggregated role is reconciled then in any case."""
    return not change.initial


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            ClusterRole,
            AggregationReconciler(),
            name="clusterrole-aggregation",
            when=_is_aggregated,
            watches=[Watches(ClusterRole, lookup=_of_role, when=_changed_later)],
        )
    ]
