"""The six broken samples on a real cluster: kube-apiserver, kube-controller-manager, kube-scheduler, and kwok's nodes.

kwok runs no containers: of those the tests write the status that a kubelet would write.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, Config, Forbidden, MergePatch, Static, load_config
from konverge.explain import Answer, Gatherer, Health, Ref
from konverge.explain.needs import BY_KIND, EVENTS
from konverge.explain.reading import condition, mapping, text
from konverge.operators.webapp import WebApp, controllers
from konverge.operators.webapp.operator import OPERATOR
from konverge.runtime import Manager
from konverge.runtime.rbac import Permission
from tests.explain.samples import create, deployment, obj, ref, stateful_set
from tests.real.clients.waiting import LIMIT, until, until_allowed, until_served
from tests.real.clusters import real_on_real

pytestmark = pytest.mark.spec("O-81")
PODS = BY_KIND["Pod"]
_numbers = count()


@pytest.fixture(scope="module")
def kubeconfig(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with real_on_real(binaries, tmp_path_factory.mktemp("why")) as path:
        yield path


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        yield client


@pytest.fixture
async def space(client: Client) -> AsyncIterator[str]:
    name = f"why-{next(_numbers)}"
    await create(client, obj("Namespace", name, namespace=""))
    await until(client, BY_KIND["ServiceAccount"], name, lambda accounts: "default" in accounts)
    yield name
    await client.delete(BY_KIND["Namespace"], name)


async def put(client: Client, space: str, *objects: dict[str, Any]) -> None:
    for each in objects:
        each["metadata"]["namespace"] = space
    await create(client, *objects)


async def why(client: Client, space: str, kind: str, name: str) -> Answer:
    return await Gatherer(client).why(ref(kind, name, space))


def pods(holds: Callable[[dict[str, Any]], bool]) -> Callable[[dict[str, Any]], bool]:
    return lambda objects: bool(objects) and all(holds(pod) for pod in objects.values())


is_unplaced = pods(lambda pod: text(condition(pod, "PodScheduled"), "status") == "False")


# A node that has just come has a taint for a while, and the scheduler does not see all nodes at once.
is_mismatched = pods(
    lambda pod: text(condition(pod, "PodScheduled"), "message").startswith("0/2 nodes are available: 2 node(s) didn't")
)


def is_observed(workloads: dict[str, Any]) -> bool:
    """Whether its controller has written the status that belongs to the spec: until then a workload progresses."""
    return all(
        mapping(each, "status").get("observedGeneration") == each["metadata"]["generation"]
        and mapping(each, "status").get("replicas")
        for each in workloads.values()
    )


def is_forbidden(events: dict[str, Any]) -> bool:
    return any("forbidden" in event["message"] for event in events.values())


def is_seen(apps: dict[str, Any]) -> bool:
    return mapping(apps["shop"], "status").get("observedGeneration") == 1


def is_available(deployments: dict[str, Any]) -> bool:
    return is_observed(deployments) and mapping(deployments["web"], "status").get("availableReplicas") == 1


def is_unready(deployments: dict[str, Any]) -> bool:
    return is_observed(deployments) and not mapping(deployments["web"], "status").get("readyReplicas")


runs = pods(lambda pod: text(pod, "status", "phase") == "Running")


async def running_pod(client: Client, space: str) -> str:
    """Its name, when the Deployment counts it: a count of the past must not come after what a test writes."""
    name = next(iter(await until(client, PODS, space, runs)))
    await until(client, BY_KIND["Deployment"], space, is_available)
    return name


async def until_enforced(client: Client, space: str) -> None:
    """The admission of the server learns of a quota's status in its own time: ask until it refuses a pod."""
    pod = obj("Pod", "probe", {"containers": [{"name": "main", "image": "app:1"}]}, namespace=space)
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                await client.create(pod, dry_run=True)
            except Forbidden:
                return


async def test_a_missing_storage_class(client: Client, space: str) -> None:
    await put(client, space, stateful_set("db", storage_class="fast"))
    await until(client, PODS, space, is_unplaced)
    await until(client, BY_KIND["StatefulSet"], space, is_observed)
    answer = await why(client, space, "StatefulSet", "db")
    assert answer.sentence == (
        "StatefulSet db waits for pod db-0, which waits for claim data-db-0, whose storage class `fast` does not exist"
    )


async def test_a_crash_loop(client: Client, space: str) -> None:
    await put(client, space, deployment("web"))
    name = await running_pod(client, space)
    ended = {"exitCode": 137, "reason": "OOMKilled", "startedAt": None, "finishedAt": None}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}
    status = {"name": "main", "image": "app:1", "imageID": "", "ready": False, "restartCount": 3}
    status |= {"state": waiting, "lastState": {"terminated": ended}}
    unready = [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]
    body = MergePatch({"status": {"containerStatuses": [status], "conditions": unready}})
    await client.patch(PODS, name, body, space, subresource="status")
    await until(client, BY_KIND["Deployment"], space, is_unready)
    answer = await why(client, space, "Deployment", "web")
    assert answer.cause == "out-of-memory"
    assert "container main needs more memory than it may have (OOMKilled, exit code 137)" in answer.sentence


async def test_a_missing_secret(client: Client, space: str) -> None:
    await put(client, space, deployment("web", container={"envFrom": [{"secretRef": {"name": "gone"}}]}))
    name = await running_pod(client, space)
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "gone" not found'}}
    status = {"name": "main", "image": "app:1", "imageID": "", "ready": False, "restartCount": 0, "state": waiting}
    unready = [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]
    body = MergePatch({"status": {"containerStatuses": [status], "conditions": unready}})
    await client.patch(PODS, name, body, space, subresource="status")
    await until(client, BY_KIND["Deployment"], space, is_unready)
    answer = await why(client, space, "Deployment", "web")
    assert (answer.cause, answer.sentence.endswith("whose Secret `gone` does not exist")) == ("missing-secret", True)


async def test_a_quota(client: Client, space: str) -> None:
    await put(client, space, obj("ResourceQuota", "small", {"hard": {"pods": "0"}}))
    quotas = await client.mapper.find("resourcequotas")
    await until(client, quotas, space, lambda all_: mapping(all_["small"], "status").get("hard"))
    await until_enforced(client, space)
    await put(client, space, deployment("web"))
    await until(client, BY_KIND["Deployment"], space, lambda all_: condition(all_["web"], "ReplicaFailure"))
    answer = await why(client, space, "Deployment", "web")
    assert answer.cause == "quota"
    assert "ResourceQuota `small` would be exceeded: pods=1 requested, pods=0 used, pods=0 allowed" in answer.sentence


async def test_an_unschedulable_pod(client: Client, space: str) -> None:
    await put(client, space, deployment("web", nodeSelector={"gpu": "yes"}))
    await until(client, PODS, space, is_mismatched)
    await until(client, BY_KIND["Deployment"], space, is_observed)
    answer = await why(client, space, "Deployment", "web")
    assert (answer.health, answer.cause) == (Health.WAITING, "affinity")
    assert answer.sentence.endswith("fits on none of 2 nodes: 2 have labels other than it asks for")


async def test_an_operator_without_permission(client: Client, space: str, kubeconfig: Path) -> None:
    for definition in OPERATOR.definitions():
        await client.apply(definition, field_manager="test", force=True)
    definitions = BY_KIND["CustomResourceDefinition"]
    name = "webapps.apps.konverge.dev"
    await until(client, definitions, "", lambda all_: text(condition(all_[name], "Established"), "status") == "True")
    await until_served(client, WebApp.resource)
    await put(client, space, obj("ServiceAccount", "robot"))
    group = "rbac.authorization.k8s.io"
    role, binding = obj("ClusterRole", space, namespace=""), obj("ClusterRoleBinding", space, namespace="")
    role["rules"] = [
        {"apiGroups": ["apps.konverge.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events", "services"], "verbs": ["create", "patch"]},
    ]
    binding["subjects"] = [{"kind": "ServiceAccount", "name": "robot", "namespace": space}]
    binding["roleRef"] = {"apiGroup": group, "kind": "ClusterRole", "name": space}
    role["apiVersion"] = binding["apiVersion"] = f"{group}/v1"
    await create(client, role, binding)
    token = (await client.request_token("robot", space)).token
    admin: Config = load_config(kubeconfig=kubeconfig)
    robot = Config(
        server=admin.server,
        tls=replace(admin.tls, certificate_file="", certificate_data="", key_file="", key_data=""),
        credentials=Static.bearer(token),
    )
    app = obj("WebApp", "shop", {"image": "nginx:1", "replicas": 1}) | {"apiVersion": "apps.konverge.dev/v1"}
    async with Client.connect(robot) as poor:
        await until_allowed(poor, [Permission("apps.konverge.dev", "webapps", "list")])
        manager = Manager(poor, name=OPERATOR.identity, check_permissions=False)
        for controller in controllers():
            manager.add(controller)
        async with manager.running():
            await put(client, space, app)
            await until(client, EVENTS, space, is_forbidden)
            await until(client, WebApp.resource, space, is_seen)
            answer = await Gatherer(client).why(Ref("WebApp", "shop", space, "apps.konverge.dev"))
    assert answer.cause == "no-permission"
    assert answer.sentence == (
        f"WebApp shop waits: its operator ({space}/robot) may not create deployments.apps in namespace {space}"
    )


async def test_everything_that_is_not_ready(client: Client, space: str) -> None:
    await put(client, space, deployment("fine"), deployment("web", nodeSelector={"gpu": "yes"}))
    await until(client, PODS, space, lambda all_: any(is_unplaced({"": pod}) for pod in all_.values()))
    await until(
        client,
        BY_KIND["Deployment"],
        space,
        lambda all_: is_observed(all_) and mapping(all_["fine"], "status").get("availableReplicas") == 1,
    )
    gatherer = Gatherer(client)
    answers = await gatherer.sick(space)
    inside = [answer.ref.name for answer in answers if answer.ref.namespace == space]
    assert (inside, gatherer.unread) == (["web"], [])
