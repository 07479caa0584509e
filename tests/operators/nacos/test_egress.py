"""What servers may connect to: each other, DNS, their database, and what the spec allows besides."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects import to_dict
from konverge.objects.kinds.core_v1 import Service
from konverge.objects.kinds.networking_v1 import NetworkPolicy
from konverge.operators.nacos.children.network_policy import network_policy
from konverge.operators.nacos.desired import InvalidSpec
from konverge.operators.nacos.resource import ALLOW, Nacos
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import CLUSTER, MYSQL, POSTGRES, SPACE, STANDALONE, World, a_world

pytestmark = [pytest.mark.limit(180), pytest.mark.spec("N-71")]
EGRESS: dict[str, Any] = {"enabled": True, "egress": {"enabled": True}}
SERVERS = {"podSelector": {"matchLabels": {"app": "nacos", "component": "nacos", "middleware": "nacos"}}}
DATABASE = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "data"}}}
LOGS = {"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}], "ports": [{"port": 24224}]}
BETWEEN_SERVERS = ([SERVERS], [("TCP", port) for port in (7848, 8080, 8848, 9848, 9849)])
DNS = ([], [("TCP", 53), ("UDP", 53)])


def rules(policy: NetworkPolicy) -> list[tuple[Any, list[tuple[str, int]]]]:
    """To whom, and on which ports; no peers are all peers."""
    listed = to_dict(policy)["spec"].get("egress", [])
    return [
        (rule.get("to", []), sorted((port["protocol"], port["port"]) for port in rule.get("ports", [])))
        for rule in listed
    ]


def reaches(policy: NetworkPolicy, address: str, port: int) -> bool:
    """Whether a server may connect to an address outside of the cluster."""
    for peers, ports in rules(policy):
        blocks = [ipaddress.ip_network(peer["ipBlock"]["cidr"]) for peer in peers if "ipBlock" in peer]
        if (not ports or ("TCP", port) in ports) and (
            not peers or any(ipaddress.ip_address(address) in block for block in blocks)
        ):
            return True
    return False


def made(spec: dict[str, Any], **egress: Any) -> NetworkPolicy:
    return network_policy(desired_of({**spec, "networkPolicy": {"enabled": True, "egress": egress}}))


def mysql_at(host: str, port: str = "3306") -> dict[str, Any]:
    return {**MYSQL, "database": {**MYSQL["database"], "mysqlHost": host, "mysqlPort": port}}


# ------------------------------------------------------------------ the rules


def test_nothing_is_restricted_unless_it_is_asked_for() -> None:
    policy = made(CLUSTER)
    assert policy.spec.policy_types == ["Ingress"]
    assert rules(policy) == []


@pytest.mark.parametrize("spec", [CLUSTER, STANDALONE])
def test_embedded_storage_needs_servers_and_dns(spec: dict[str, Any]) -> None:
    policy = made(spec, enabled=True)
    assert policy.spec.policy_types == ["Ingress", "Egress"]
    assert rules(policy) == [BETWEEN_SERVERS, DNS]


@pytest.mark.parametrize(
    ("host", "cidr"),
    [
        ("10.0.0.7", "10.0.0.7/32"),
        ("fd00::7", "fd00::7/128"),
        ("[fd00:0::7]", "fd00::7/128"),
        ("::ffff:10.0.0.7", "10.0.0.7/32"),
    ],
)
def test_a_database_with_an_address_is_the_only_one(host: str, cidr: str) -> None:
    expected = [{"ipBlock": {"cidr": cidr}}]
    assert rules(made(mysql_at(host, "3307"), enabled=True)) == [BETWEEN_SERVERS, DNS, (expected, [("TCP", 3307)])]
    postgres = {**POSTGRES, "postgres": {**POSTGRES["postgres"], "host": host, "port": "5433"}}
    assert rules(made(postgres, enabled=True))[2:] == [(expected, [("TCP", 5433)])]


@pytest.mark.parametrize(
    "host", ["my", "my.data.svc.cluster.local", "db.example.com", "fe80::1%eth0", "10.0.0.7,10.0.0.8", "010.0.0.7"]
)
def test_for_a_database_with_a_name_its_port_is_open(host: str) -> None:
    assert rules(made(mysql_at(host), enabled=True)) == [BETWEEN_SERVERS, DNS, ([], [("TCP", 3306)])]


@pytest.mark.parametrize("host", ["my", "10.0.0.7"])
def test_the_spec_says_better_where_the_database_is(host: str) -> None:
    policy = made(mysql_at(host), enabled=True, database=[DATABASE])
    assert rules(policy)[2:] == [([DATABASE], [("TCP", 3306)])]
    assert rules(made(CLUSTER, enabled=True, database=[DATABASE])) == [BETWEEN_SERVERS, DNS]


def test_what_the_spec_allows_besides() -> None:
    assert rules(made(CLUSTER, enabled=True, allow=[LOGS]))[2:] == [(LOGS["to"], [("TCP", 24224)])]
    assert rules(made(CLUSTER, enabled=True, allow=[{}]))[2:] == [([], [])]


def test_without_a_policy_there_is_nothing_that_could_restrict() -> None:
    with pytest.raises(InvalidSpec, match=r"^spec\.networkPolicy\.egress\.enabled: there is no NetworkPolicy without"):
        desired_of({**CLUSTER, "networkPolicy": {"egress": {"enabled": True}}})
    desired_of({**CLUSTER, "networkPolicy": {"egress": {"allow": [LOGS]}}})


# ------------------------------------------------------------------ on a cluster


async def policy_of(world: World) -> NetworkPolicy:
    return await world.client.get(NetworkPolicy, "nacos", SPACE)


@pytest.mark.virtual
async def test_it_is_switched_on_and_off_without_a_restart() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**CLUSTER, "networkPolicy": {"enabled": True}})
        uids = await world.uids()
        await world.update("nacos", networkPolicy={**EGRESS, "egress": {"enabled": True, "allow": [LOGS]}})
        assert rules(await policy_of(world)) == [BETWEEN_SERVERS, DNS, (LOGS["to"], [("TCP", 24224)])]
        await world.update("nacos", networkPolicy={"egress": {"allow": None}})
        assert rules(await policy_of(world)) == [BETWEEN_SERVERS, DNS]
        await world.update("nacos", networkPolicy={"egress": None})
        policy = await policy_of(world)
        assert (policy.spec.policy_types, rules(policy)) == (["Ingress"], [])
        assert await world.uids() == uids


@pytest.mark.virtual
async def test_it_is_there_from_the_beginning_and_restored_when_others_widen_it() -> None:
    async with a_world() as world, world.operating():
        world.mysql()
        await world.create("nacos", {**MYSQL, "networkPolicy": EGRESS})
        while not await world.pods():
            await world.advance(0.1)
        expected = [BETWEEN_SERVERS, DNS, ([], [("TCP", 3306)])]
        await world.advance(0.1)
        assert rules(await policy_of(world)) == expected, "before any server connects"
        await world.until("nacos")
        assert (await policy_of(world)).metadata.generation == 1, "it was never wider"
        await world.client.patch(NetworkPolicy, "nacos", MergePatch({"spec": {"egress": [{}]}}), SPACE)
        await world.advance(10.0)
        assert rules(await policy_of(world)) == expected
        await world.client.delete(NetworkPolicy, "nacos", SPACE)
        await world.advance(10.0)
        assert rules(await policy_of(world)) == expected


async def moved(world: World, host: str, **spec: Any) -> None:
    """The database goes to another host."""
    world.databases.add_server(host, 3306, "mysql").add("nacos", "nacos", "word")
    allowed = {"metadata": {"annotations": {ALLOW: f"database=mysql://{host}:3306/nacos"}}}
    await world.client.patch(Nacos, "nacos", MergePatch(allowed), SPACE)
    await world.change("nacos", database={"mysqlHost": host}, **spec)


async def seen_until_ready(world: World) -> list[NetworkPolicy]:
    """The policy as it was whenever a server of the earlier template was there."""
    uids, seen = set((await world.uids()).values()), []
    for _ in range(600):
        await world.advance(1.0)
        if not uids & set((await world.uids()).values()):
            break
        seen.append(await policy_of(world))
    await world.until_ready()
    return seen


@pytest.mark.virtual
@pytest.mark.parametrize("before", [EGRESS, {"enabled": True}, None])
async def test_servers_keep_their_database_until_they_are_replaced(before: dict[str, Any] | None) -> None:
    """Also where the policy comes with the change of the database."""
    async with a_world() as world, world.operating():
        world.databases.add_server("10.0.0.1", 3306, "mysql").add("nacos", "nacos", "word")
        await world.up("nacos", {**mysql_at("10.0.0.1"), **({"networkPolicy": before} if before else {})})
        if before == EGRESS:
            assert reaches(await policy_of(world), "10.0.0.1", 3306)
            assert not reaches(await policy_of(world), "10.0.0.2", 3306)
        egress = {"enabled": True, "allow": [LOGS]}
        await moved(world, "10.0.0.2", networkPolicy={"enabled": True, "egress": egress})
        seen = await seen_until_ready(world)
        assert len(seen) > 5
        assert all(reaches(policy, host, 3306) for policy in seen for host in ("10.0.0.1", "10.0.0.2"))
        assert {reaches(policy, "10.0.0.3", 3306) for policy in seen} == {before != EGRESS}
        assert max(len(rules(policy)) for policy in seen) == 5, "no rule is there twice"
        block = {"ipBlock": {"cidr": "10.0.0.2/32"}}
        assert rules(await policy_of(world)) == [
            BETWEEN_SERVERS,
            DNS,
            ([block], [("TCP", 3306)]),
            (LOGS["to"], [("TCP", 24224)]),
        ]


@pytest.mark.virtual
async def test_a_restored_service_leaves_nothing_open() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**CLUSTER, "networkPolicy": EGRESS})
        await world.client.delete(Service, "nacos-client", SPACE)
        await world.client.delete(NetworkPolicy, "nacos", SPACE)
        await world.advance(10.0)
        await world.client.get(Service, "nacos-client", SPACE)
        assert rules(await policy_of(world)) == [BETWEEN_SERVERS, DNS]
