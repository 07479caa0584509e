"""Who may connect to the servers: a NetworkPolicy that is made, restored, taken back, and never another's."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import NotFound
from konverge.objects import LabelSelector, ObjectMeta, to_dict
from konverge.objects.kinds.networking_v1 import NetworkPolicy, NetworkPolicySpec
from tests.operators.nacos.world import CLUSTER, SPACE, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180), pytest.mark.spec("N-42")]
SERVERS = {"podSelector": {"matchLabels": {"app": "nacos", "component": "nacos", "middleware": "nacos"}}}
SHOP = {"namespaceSelector": {"matchLabels": {"team": "shop"}}}


def rules(policy: NetworkPolicy) -> list[tuple[Any, list[int]]]:
    """Who, and which ports."""
    listed = to_dict(policy)["spec"]["ingress"]
    return [(rule.get("from", []), sorted(port["port"] for port in rule["ports"])) for rule in listed]


async def test_only_servers_reach_the_ports_between_servers() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**CLUSTER, "networkPolicy": {"enabled": True}})
        policy = await world.client.get(NetworkPolicy, "nacos", SPACE)
        assert policy.spec.policy_types == ["Ingress"]
        assert rules(policy) == [([SERVERS], [7848, 8080, 8848, 9848, 9849]), ([], [8080, 8848, 9848])]
        uids = await world.uids()
        await world.update("nacos", networkPolicy={"enabled": True, "clients": [SHOP]})
        _, clients, operator = rules(await world.client.get(NetworkPolicy, "nacos", SPACE))
        assert clients == ([SHOP], [8080, 8848, 9848])
        labels = {"app.kubernetes.io/part-of": "konverge"}
        assert operator == ([{"namespaceSelector": {}, "podSelector": {"matchLabels": labels}}], [8848])
        assert await world.uids() == uids


async def test_it_is_restored_and_removed_when_it_is_taken_back() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**CLUSTER, "networkPolicy": {"enabled": True}})
        await world.client.delete(NetworkPolicy, "nacos", SPACE)
        await world.advance(10.0)
        await world.client.get(NetworkPolicy, "nacos", SPACE)
        await world.change("nacos", networkPolicy=None)
        await world.advance(10.0)
        with pytest.raises(NotFound):
            await world.client.get(NetworkPolicy, "nacos", SPACE)


async def test_the_policy_of_others_is_left_alone() -> None:
    async with a_world() as world, world.operating():
        spec = NetworkPolicySpec(pod_selector=LabelSelector(), policy_types=["Ingress"])
        other = await world.client.create(NetworkPolicy(metadata=ObjectMeta(name="nacos", namespace=SPACE), spec=spec))
        nacos = await world.up("nacos", CLUSTER)
        assert condition(nacos, "Ready")[0] == "True"
        await world.change("nacos", networkPolicy={"enabled": True})
        await world.advance(30.0)
        assert condition(await world.nacos("nacos"), "Ready") == ("False", "NotOwned")
        await world.update("nacos", networkPolicy=None)
        assert await world.client.get(NetworkPolicy, "nacos", SPACE) == other
