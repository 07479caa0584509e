"""The operator as a whole: what it may do, what it counts, what it comes with."""

from __future__ import annotations

import pytest

from konverge.client import Client, MergePatch, Static
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.observe.exposition import render
from konverge.operators.catalog import find
from konverge.operators.nacos.operator import controllers
from konverge.operators.nacos.resource import Nacos
from konverge.runtime.rbac import permissions, rules_for
from konverge.sim.cluster import Cluster
from tests.operators.nacos.world import CLUSTER, SPACE, STANDALONE, World, a_simulated_world, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180)]


async def service_account(cluster: Cluster) -> Client:
    """The operator's own, with nothing but what the declaration says."""
    rules = rules_for(permissions(controllers()))
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "op"}}
    await cluster.client.create({**role, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "op", "namespace": SPACE}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "op"}
    binding = {**role, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": ref}
    await cluster.client.create(binding)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "op", "namespace": SPACE}}
    await cluster.client.create(account)
    token = await cluster.client.request_token("op", SPACE)
    return Client(cluster.server.transport, credentials=Static.bearer(token.token))


@pytest.mark.spec("N-14", "N-15", "N-16")
async def test_the_declared_permissions_are_enough_for_a_whole_life() -> None:
    async with (
        a_world(nodes=4) as world,
        await service_account(world.cluster) as client,
        world.operating(client=client, check_permissions=True),
    ):
        volume = {"enabled": True, "requests": {"storage": "1Gi"}}
        image = "nacos/nacos-server:v3.0.3"
        world.servers.version = "3.0.3"
        await world.up("nacos", {**CLUSTER, "image": image, "volume": volume})
        await world.advance(60.0)
        await world.update("nacos", replicas=4, config="a=1\n")
        await world.change("nacos", volume={"requests": {"storage": "2Gi"}})
        await world.advance(10.0)
        await world.until("nacos")
        claims = await world.client.list(PersistentVolumeClaim, SPACE)
        assert {str(claim.spec.resources.requests["storage"]) for claim in claims} == {"2Gi"}  # type: ignore[union-attr]
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(120.0)
        assert not await world.client.list(Pod, SPACE)


@pytest.mark.spec("N-17")
async def test_metrics_of_a_resource_are_exposed_until_it_is_deleted() -> None:
    async with a_world() as world, world.operating() as operator:
        await world.up("nacos", STANDALONE)
        await world.advance(60.0)
        text = render(operator.numbers).decode()
        assert 'nacos_phase{name="nacos",namespace="default",phase="Running"} 1.0' in text
        assert 'nacos_verified{name="nacos",namespace="default"} 1.0' in text
        assert 'nacos_rounds_interrupted_total{code="200",name="nacos",namespace="default"}' in text
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(60.0)
        assert 'name="nacos",namespace="default"' not in render(operator.numbers).decode()


@pytest.mark.spec("N-01")
async def test_the_samples_come_up() -> None:
    async with a_simulated_world(nodes=4) as (world, _), world.operating():
        world.databases.add_server("mysql.default.svc", 3306, "mysql").add("nacos", "nacos", "change-me")
        world.databases.add_server("postgres.default.svc", 5432, "postgresql").add("nacos", "nacos", "change-me")
        for sample in find("nacos").sample_objects():
            await world.client.create(sample, resource=Nacos.resource if sample["kind"] == "Nacos" else None)
        for name in ("nacos-single", "nacos-cluster", "nacos-pg"):
            await world.until(name)


@pytest.mark.spec("N-06")
async def test_embedded_servers_get_their_first_administrator() -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await world.secret("admin", username="nacos", password="mine")
        spec = {**CLUSTER, "image": "nacos/nacos-server:v2.4.3", "certification": {"enabled": True}}
        await world.up("nacos", {**spec, "adminCredentialsSecretRef": {"name": "admin"}})
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "AdminRotated") == ("True", "Bootstrapped")
        address = nacos.status.servers[0].instance or ""
        assert await world.asked.login(address, username="nacos", password="mine")


@pytest.mark.spec("N-06", "N-20")
async def test_a_missing_secret_of_the_administrator_is_reported_before_anything_is_created() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", {**STANDALONE, "image": "n:v2.4.3", "adminCredentialsSecretRef": {"name": "admin"}})
        await world.advance(20.0)
        nacos = await world.nacos("nacos")
        assert (nacos.status.phase, condition(nacos, "Ready")) == ("Creating", ("False", "SecretMissing"))
        assert nacos.status.event[-1].message == "get secret default/admin failed: there is none; create it"
        await world.secret("admin", username="nacos", password="mine")
        await world.until("nacos")


@pytest.mark.spec("N-08")
async def test_two_clusters_in_one_namespace_do_not_meet() -> None:
    async with a_world(nodes=6) as world, world.operating():
        for name in ("one", "one-client"):
            await world.create(name, CLUSTER)
        for name in ("one", "one-client"):
            nacos = await world.until(name)
            assert {node.pod_name for node in nacos.status.servers} == {f"{name}-{number}" for number in range(3)}


async def made_by(world: World, kind: str, name: str) -> list[str]:
    obj = await world.client.get(kind, name, SPACE)
    return [entry["manager"] for entry in obj["metadata"]["managedFields"]]


@pytest.mark.spec("N-14")
async def test_fields_that_others_add_are_left_to_them() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", CLUSTER)
        note = MergePatch({"metadata": {"annotations": {"theirs": "kept"}}})
        await world.client.patch("services", "nacos-client", note, SPACE)
        await world.advance(60.0)
        service = await world.client.get("services", "nacos-client", SPACE)
        assert service["metadata"]["annotations"]["theirs"] == "kept"
        assert "nacos-operator" in await made_by(world, "services", "nacos-client")


def inherited(name: str, owner: dict[str, str]) -> dict[str, object]:
    """A StatefulSet as the older operators made it, with the hook that wipes the raft data."""
    labels = {"app": name, "middleware": "nacos", "component": "nacos"}
    wipe = {"preStop": {"exec": {"command": ["rm", "-rf", "/home/nacos/data/protocol/raft"]}}}
    servers = " ".join(f"{name}-{number}.{name}-headless.{SPACE}.svc.cluster.local:8848" for number in range(3))
    env = [{"name": "NACOS_SERVERS", "value": servers}]
    command = ["sh", "-c", "ping"]
    container = {"name": name, "image": CLUSTER["image"], "command": command, "lifecycle": wipe, "env": env}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": SPACE, "ownerReferences": [owner]},
        "spec": {
            "replicas": 3,
            "serviceName": f"{name}-headless",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.mark.spec("N-01", "N-14")
async def test_a_stateful_set_of_an_older_operator_is_taken_over() -> None:
    async with a_world() as world:
        made = await world.create("nacos", CLUSTER)
        owner = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "name": "nacos", "uid": made.metadata.uid}
        await world.client.create(inherited("nacos", {**owner, "controller": True}))  # type: ignore[dict-item]
        await world.cluster.settle()
        async with world.operating():
            await world.until("nacos")
        for pod in await world.client.list(Pod, SPACE):
            assert pod.spec.containers[0].lifecycle is None
            assert not pod.spec.containers[0].command


@pytest.mark.spec("N-12")
async def test_a_stateful_set_of_another_owner_is_left_alone() -> None:
    async with a_world() as world, world.operating():
        node = (await world.client.list("nodes"))[0]["metadata"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": node["name"], "uid": node["uid"], "controller": True}
        await world.client.create(inherited("nacos", owner))  # type: ignore[arg-type]
        await world.create("nacos", CLUSTER)
        nacos = await world.until("nacos", "Failed", limit=400.0)
        assert "controlled by Node " in nacos.status.event[-1].message
        live = await world.client.get("statefulsets", "nacos", SPACE)
        assert live["spec"]["template"]["spec"]["containers"][0]["command"]
