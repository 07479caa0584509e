"""Aggregated ClusterRoles follow the roles that they select."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client
from konverge.kube import clusterroleaggregation
from konverge.objects.codec import from_dict
from konverge.objects.kinds.rbac_v1 import ClusterRole, PolicyRule
from tests.kube.conftest import Run, running
from tests.kube.interposed import Interposed
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-43")]


def part(name: str, resource: str) -> ClusterRole:
    rule = PolicyRule(api_groups=[""], resources=[resource], verbs=["get"])
    return ClusterRole(metadata=ObjectMeta(name=name, labels={"to": "all"}), rules=[rule])


async def test_aggregated_rules_follow_the_selected_roles(client: Client, run: Run) -> None:
    whole: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "whole"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}, "rules": [],
    }  # fmt: skip

    async def resources() -> list[str]:
        await asyncio.sleep(1)
        return [rule.resources[0] for rule in (await client.get(ClusterRole, "whole")).rules]

    async with run(clusterroleaggregation):
        await client.create(part("b", "pods"))
        await client.create(whole)
        assert await resources() == ["pods"]
        await client.create(part("a", "nodes"))
        await client.create(part("c", "pods"))
        assert await resources() == ["nodes", "pods"]
        await client.delete(ClusterRole, "b")
        await client.delete(ClusterRole, "c")
        assert await resources() == ["nodes"]
        await client.delete(ClusterRole, "a")
        assert await resources() == []


def selecting(name: str, *selectors: dict[str, str]) -> ClusterRole:
    rule = {"clusterRoleSelectors": [{"matchLabels": labels} for labels in selectors]}
    return from_dict(ClusterRole, {"metadata": {"name": name}, "aggregationRule": rule, "rules": []})


def labelled(name: str, *resources: str, **labels: str) -> ClusterRole:
    rules = [PolicyRule(api_groups=[""], resources=[resource], verbs=["get"]) for resource in resources]
    return ClusterRole(metadata=ObjectMeta(name=name, labels=labels), rules=rules)


async def test_the_rules_come_selector_by_selector_each_once(client: Client) -> None:
    """A role is no part of itself, and one of no selector is left alone."""
    whole = selecting("whole", {"to": "b"}, {"to": "a"})
    whole.metadata.labels = {"to": "a"}
    whole.rules = labelled("x", "leftover").rules
    for role in (
        labelled("z", "pods", to="a"), labelled("y", "nodes", "pods", to="a"), labelled("x", "secrets", to="b"),
        labelled("w", "events", to="c"), whole,
    ):  # fmt: skip
        await client.create(role)
    interposed = Interposed(client)
    async with running(interposed, clusterroleaggregation):
        await asyncio.sleep(1)
        live = await client.get(ClusterRole, "whole")
        assert [rule.resources for rule in live.rules] == [["secrets"], ["nodes"], ["pods"]]
    assert [write for write in interposed.writes() if write[1]] == [("patch", "whole")]


async def test_an_aggregated_role_that_is_being_deleted_is_left_alone(client: Client, run: Run) -> None:
    role = selecting("whole", {"to": "all"})
    role.metadata.finalizers = ["tests.konverge.dev/kept"]
    await client.create(role)
    await client.delete(ClusterRole, "whole")
    await client.create(part("a", "pods"))
    async with run(clusterroleaggregation):
        await asyncio.sleep(1)
        assert (await client.get(ClusterRole, "whole")).rules == []


def test_a_role_leads_to_the_roles_that_aggregate_it() -> None:
    trigger = Triggers(*clusterroleaggregation.controllers())
    name = "clusterrole-aggregation"
    cached = [selecting("both", {"to": "a"}, {"to": "b"}), selecting("b", {"to": "b"}), labelled("plain", "pods")]
    role, other = labelled("r", "pods", to="a"), labelled("r", "nodes", to="b")
    assert trigger.of(None, role, cached=cached) == {f"{name} both"}
    assert trigger.of(role, other, cached=cached) == {f"{name} both", f"{name} b"}
    assert trigger.of(other, None, cached=cached) == {f"{name} both", f"{name} b"}
    assert trigger.of(None, role, cached=cached, initial=True) == set()  # all are looked at then
    assert trigger.of(None, labelled("r", "pods"), cached=cached) == set()
    assert trigger.of(None, labelled("r", "pods"), cached=[selecting("every", {})]) == {f"{name} every"}
    assert trigger.of(None, selecting("new", {"to": "c"}), cached=cached) == {f"{name} new"}
    assert trigger.of(None, selecting("new", {"to": "c"}), cached=cached, initial=True) == {f"{name} new"}
    assert trigger.of(selecting("new", {"to": "c"}), None, cached=cached) == set()
