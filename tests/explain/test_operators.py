"""Custom resources: the chain goes through them, and to an operator that is away or may not do what it has to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.client import Client, MergePatch, Static
from konverge.explain import Gatherer, Health, Ref
from konverge.operators.webapp import controllers
from konverge.operators.webapp.operator import OPERATOR
from konverge.runtime import Manager
from konverge.runtime.rbac import permissions, rules_for
from konverge.sim import Cluster, Rule
from tests.explain.samples import SPACE, create, deployment, obj, why
from tests.operators.nacos.world import EMBEDDED, STANDALONE, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("O-81")]
GROUP = "apps.konverge.dev"
ROBOT = "webapp-operator"


def web_app(name: str = "shop", **spec: Any) -> dict[str, Any]:
    made = obj("WebApp", name, {"image": "nginx:1.20", "replicas": 2, **spec})
    return made | {"apiVersion": f"{GROUP}/v1"}


@asynccontextmanager
async def cluster_with_definition(**options: Any) -> AsyncIterator[Cluster]:
    async with Cluster(nodes=1, **options) as cluster:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await cluster.settle()
        yield cluster


def manager(client: Client) -> Manager:
    made = Manager(client, name=OPERATOR.identity, check_permissions=False)
    for controller in controllers():
        made.add(controller)
    return made


async def test_the_chain_goes_from_a_custom_resource_to_the_container() -> None:
    async with cluster_with_definition(rules=[Rule(image="nginx*", behave="exit 7")]) as cluster:
        await create(cluster.client, web_app())
        async with manager(cluster.client).running():
            await asyncio.sleep(300)
            answer = await why(cluster.client, "WebApp", "shop", group=GROUP)
    kinds = [step.ref.kind for step in answer.chain]
    assert (kinds, answer.cause) == (["WebApp", "Deployment", "ReplicaSet", "Pod"], "crash-loop")
    assert answer.sentence.startswith("WebApp shop waits for pod shop-")
    assert "(and 1 more), which crashes in a loop: container web exits with code 7" in answer.sentence
    assert answer.tree is not None
    assert {branch.ref.kind for branch in answer.tree.children} == {"Deployment", "Service"}


async def test_a_ready_custom_resource_is_ready() -> None:
    async with cluster_with_definition() as cluster, manager(cluster.client).running():
        await create(cluster.client, web_app())
        await asyncio.sleep(60)
        answer = await why(cluster.client, "WebApp", "shop", group=GROUP)
        assert await Gatherer(cluster.client).sick(SPACE) == []
    assert (answer.health, answer.sentence) == (Health.READY, "WebApp shop is ready")


async def test_an_operator_that_may_not_create_what_it_has_to() -> None:
    rules = rules_for(permissions(controllers()))
    poorer = [rule for rule in rules if "apps" not in rule["apiGroups"]]
    poorer.append({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]})
    role = obj("ClusterRole", ROBOT, namespace="", rules=poorer)
    subject = {"kind": "ServiceAccount", "name": ROBOT, "namespace": SPACE}
    binding = obj("ClusterRoleBinding", ROBOT, namespace="", subjects=[subject])
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROBOT}
    for each in (role, binding):
        each["apiVersion"] = "rbac.authorization.k8s.io/v1"
    async with cluster_with_definition() as cluster:
        client = cluster.client
        await create(client, obj("ServiceAccount", ROBOT), role, binding)
        token = (await client.request_token(ROBOT, SPACE)).token
        robot = Client(cluster.server.transport, credentials=Static.bearer(token))
        async with manager(robot).running():
            await create(client, web_app())
            await asyncio.sleep(120)
            answer = await why(client, "WebApp", "shop", group=GROUP)
    assert (answer.health, answer.cause) == (Health.WAITING, "no-permission")
    assert answer.sentence == (
        f"WebApp shop waits: its operator ({SPACE}/{ROBOT}) may not create deployments.apps in namespace {SPACE}"
    )
    assert "resources: [deployments], verbs: [create]" in answer.advice


async def test_an_operator_that_nothing_is_heard_of() -> None:
    async with cluster_with_definition() as cluster:
        await create(cluster.client, web_app())
        young = await why(cluster.client, "WebApp", "shop", group=GROUP)
        await asyncio.sleep(120)
        old = await why(cluster.client, "WebApp", "shop", group=GROUP)
    assert (young.health, old.health, old.cause) == (Health.PROGRESSING, Health.WAITING, "operator-away")
    assert old.sentence == "WebApp shop waits: its operator has not looked at it, and none seems to run"


async def test_an_operator_whose_own_pod_does_not_run() -> None:
    system = deployment("webapp-operator", "image-pull-error")
    system["metadata"]["namespace"] = "konverge-system"
    async with cluster_with_definition() as cluster:
        client = cluster.client
        await create(client, obj("Namespace", "konverge-system", namespace=""))
        await asyncio.sleep(1)
        await create(client, system, web_app())
        await asyncio.sleep(120)
        answer = await why(client, "WebApp", "shop", group=GROUP)
    assert (answer.cause, [step.ref.namespace for step in answer.chain]) == (
        "image-pull",
        [SPACE, "konverge-system", "konverge-system", "konverge-system"],
    )
    assert answer.sentence.startswith("WebApp shop waits for pod webapp-operator-")


async def test_an_operator_whose_lease_has_no_holder() -> None:
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
    async with cluster_with_definition() as cluster:
        await create(cluster.client, web_app(), obj("Lease", "webapp-operator", spec))
        await asyncio.sleep(120)
        answer = await why(cluster.client, "WebApp", "shop", group=GROUP)
    assert answer.cause == "operator-away"
    assert answer.sentence.endswith("gone no longer renews its Lease `webapp-operator`")


async def test_a_new_spec_that_the_operator_does_not_look_at() -> None:
    async with cluster_with_definition() as cluster:
        client = cluster.client
        async with manager(client).running():
            await create(client, web_app())
            await asyncio.sleep(60)
        await client.patch("webapps", "shop", MergePatch({"spec": {"replicas": 3}}), SPACE)
        await asyncio.sleep(120)
        answer = await why(client, "WebApp", "shop", group=GROUP)
    assert (answer.health, answer.cause) == (Health.WAITING, "operator-away")
    assert "has not looked at its present spec" in answer.sentence


async def test_a_finalizer_that_no_running_operator_removes() -> None:
    async with cluster_with_definition() as cluster:
        client = cluster.client
        app = web_app()
        app["metadata"]["finalizers"] = ["example.com/webapp"]
        await create(client, app)
        await client.delete("webapps", "shop", SPACE)
        await asyncio.sleep(120)
        answer = await why(client, "WebApp", "shop", group=GROUP)
    assert answer.cause == "finalizer"
    assert "`example.com/webapp` is removed, by a controller of which no trace was seen" in answer.sentence


async def test_the_chain_of_a_nacos_and_its_tree() -> None:
    volume = {"enabled": True, "requests": {"storage": "1Gi"}, "storageClass": "fast"}
    async with a_world() as world, world.operating():
        mq = obj("Nacos", "mq", {**EMBEDDED, "volume": volume}) | {"apiVersion": "nacos.io/v1alpha1"}
        await create(world.client, mq)
        await asyncio.sleep(300)
        answer = await why(world.client, "Nacos", "mq", group="nacos.io")
    assert answer.sentence == (
        "Nacos mq waits for pod mq-0 (and 2 more), which waits for claim db-mq-0, "
        "whose storage class `fast` does not exist"
    )
    assert answer.tree is not None
    below = {
        (branch.ref.kind, branch.ref.name): [child.ref.kind for child in branch.children]
        for branch in answer.tree.children
    }
    assert below["StatefulSet", "mq"] == ["Pod", "Pod", "Pod"], "pods stand below the StatefulSet"
    assert below["Service", "mq-client"] == ["EndpointSlice"]


@pytest.mark.spec("N-44")
async def test_a_nacos_that_hibernates_is_as_it_should_be() -> None:
    async with a_world() as world, world.operating():
        await world.create("mq", {**STANDALONE, "hibernate": True})
        await world.until("mq", "Hibernated")
        answer = await why(world.client, "Nacos", "mq", group="nacos.io")
    assert (answer.health, answer.at_rest) == (Health.READY, True)
    assert answer.sentence == "Nacos mq hibernates: no server runs; spec.hibernate: false wakes them"


async def test_references_of_custom_resources_are_part_of_the_tree() -> None:
    """By the pure core: a custom resource may name a Secret that its operator waits for."""
    from konverge.explain import Explainer, World

    status = {"conditions": [{"type": "Ready", "status": "False", "message": "secret db-password is not there"}]}
    spec = {"database": {"secretName": "db-password", "configMapRef": {"name": "settings"}}}
    base = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "s", "namespace": "n"}}
    shop, target = base | {"spec": spec, "status": status}, Ref("Shop", "s", "n", "example.com")
    settings = obj("ConfigMap", "settings", namespace="n")
    answer = Explainer(World([shop, settings])).why(target)
    assert answer.sentence == "Shop s waits: its Secret `db-password` does not exist"
    # An operator that speaks of something else may create that Secret itself.
    status["conditions"][0]["message"] = "the issuer is not ready"
    answer = Explainer(World([shop, settings])).why(target)
    assert answer.sentence == "Shop s is not ready: the issuer is not ready"
