"""Aggregated ClusterRoles follow the roles that they select."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client
from konverge.kube import clusterroleaggregation
from konverge.objects.kinds.rbac_v1 import ClusterRole, PolicyRule
from tests.kube.conftest import Run

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
