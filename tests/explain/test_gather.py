"""What is asked of a cluster: little, what the caller may read, and never what is in a Secret."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Call, Client, NotFound, Recording, Static
from konverge.explain import Gatherer, Health, gather
from konverge.sim import Cluster
from tests.explain.samples import SPACE, create, deployment, obj, ref, stateful_set

pytestmark = [pytest.mark.virtual, pytest.mark.spec("O-82")]


async def recorded(cluster: Cluster, name: str) -> tuple[Any, list[Call]]:
    recording = Recording(cluster.client)
    answer = await Gatherer(recording).why(ref("Deployment", name))
    return answer, recording.calls


async def test_a_deployment_costs_the_pods_that_it_selects() -> None:
    async with Cluster(nodes=1) as cluster:
        await create(cluster.client, deployment("web", "crash-loop"), *(deployment(f"other-{n}") for n in range(5)))
        await asyncio.sleep(120)
        answer, calls = await recorded(cluster, "web")
    assert answer.cause == "crash-loop"
    assert {call.verb for call in calls} <= {"get", "list"}
    pods = [
        call.query
        for call in calls
        if call.resource is not None and call.resource.plural == "pods" and call.verb == "list"
    ]
    assert [query.get("labelSelector") for query in pods] == ["app=web"]
    assert len(calls) <= 15
    assert len(set(map(repr, calls))) == len(calls), "nothing is asked for twice"


async def test_the_content_of_a_secret_is_never_read() -> None:
    async with Cluster(nodes=1) as cluster:
        mounted = [{"name": name, "secret": {"secretName": name}} for name in ("here", "gone")]
        await create(cluster.client, obj("Secret", "here", data={"k": "c2VjcmV0"}), deployment("web", volumes=mounted))
        await asyncio.sleep(60)
        answer, calls = await recorded(cluster, "web")
    assert answer.sentence.endswith("whose Secret `gone` does not exist")
    secrets = [call for call in calls if call.resource is not None and call.resource.plural == "secrets"]
    assert secrets
    assert all("as=PartialObjectMetadata" in call.accept for call in secrets)


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap", "ServiceAccount"])
async def test_nor_is_that_of_the_object_itself(kind: str) -> None:
    async with Cluster(nodes=1, controllers=False, kubelet=False, scheduler=False) as cluster:
        await create(cluster.client, obj(kind, "here", **({} if kind == "ServiceAccount" else {"data": {"k": "c2Vj"}})))
        recording = Recording(cluster.client)
        gatherer = Gatherer(recording)
        answer = await gatherer.why(ref(kind, "here"))
    assert answer.sentence == f"{ref(kind, 'here')} exists"
    assert "data" not in (gatherer.world.get(ref(kind, "here")) or {"data": "not read"})
    reads = [call for call in recording.calls if call.resource is not None and call.resource.kind == kind]
    assert [call.verb for call in reads] == ["get"]
    assert all("as=PartialObjectMetadata" in call.accept for call in reads)


async def reader_of(cluster: Cluster, **resources: list[str]) -> Client:
    """A client that may get and list these and nothing else; a group's name has `_` for its dots, `core` is none."""
    rules = [
        {
            "apiGroups": ["" if group == "core" else group.replace("_", ".")],
            "resources": names,
            "verbs": ["get", "list"],
        }
        for group, names in resources.items()
    ]
    role, binding = obj("Role", "reader", rules=rules), obj("RoleBinding", "reader")
    binding["subjects"] = [{"kind": "ServiceAccount", "name": "reader", "namespace": SPACE}]
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    for each in (role, binding):
        each["apiVersion"] = "rbac.authorization.k8s.io/v1"
    await create(cluster.client, obj("ServiceAccount", "reader"), role, binding)
    token = (await cluster.client.request_token("reader", SPACE)).token
    return Client(cluster.server.transport, credentials=Static.bearer(token))


async def test_what_was_refused_twice_is_not_taken_for_missing() -> None:
    """The Thing names one Secret and its pod, found later, another: two queries that are refused with one text."""
    names = {"plural": "things", "kind": "Thing"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "x.io", "names": names, "scope": "Namespaced", "versions": [version]}
    async with Cluster(nodes=1, controllers=False, kubelet=False, scheduler=False) as cluster:
        client = cluster.client
        await create(client, obj("CustomResourceDefinition", "things.x.io", spec, namespace=""))
        await asyncio.sleep(1)
        status = {"conditions": [{"type": "Ready", "status": "False", "message": "waits"}]}
        thing = obj("Thing", "t", {"secretName": "first"}, status=status) | {"apiVersion": "x.io/v1"}
        owner = await client.create(thing, resource=await client.mapper.kind("x.io/v1", "Thing"))
        volumes = [{"name": "v", "secret": {"secretName": "second"}}]
        containers = [{"name": "c", "image": "i"}]
        pod = obj("Pod", "p", {"nodeName": "node-1", "containers": containers, "volumes": volumes})
        meta = {"apiVersion": "x.io/v1", "kind": "Thing", "name": "t", "uid": owner["metadata"]["uid"]}
        pod["metadata"]["ownerReferences"] = [meta]
        await create(client, obj("Secret", "first"), obj("Secret", "second"), pod)
        reader = await reader_of(cluster, core=["pods", "serviceaccounts"], x_io=["things"])
        gatherer = Gatherer(reader)
        answer = await gatherer.why(ref("Thing", "t", group="x.io"))
    assert [step.ref.kind for step in answer.chain] == ["Thing", "Pod"]
    assert "secrets in default: you may not list them" in answer.unread
    assert not [name for name in ("first", "second") if gatherer.world.is_missing(ref("Secret", name))]


async def test_what_the_caller_may_not_read_is_said() -> None:
    async with Cluster(nodes=1) as cluster:
        secret = {"envFrom": [{"secretRef": {"name": "gone"}}]}
        await create(cluster.client, deployment("web", container=secret))
        await asyncio.sleep(60)
        reader = await reader_of(cluster, apps=["deployments", "replicasets"], core=["pods"])
        answer = await Gatherer(reader).why(ref("Deployment", "web"))
        overview = await Gatherer(reader).sick(SPACE)
    # The kubelet's own message has the cause, though the caller cannot see whether the Secret exists.
    assert answer.sentence.endswith("whose Secret `gone` does not exist")
    assert "secrets in default: you may not list them" in answer.unread
    assert "events in default: you may not list them" in answer.unread
    assert [entry.ref.name for entry in overview] == ["web"]


async def test_a_list_without_an_end_is_cut_off_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cluster(nodes=1, controllers=False, kubelet=False, scheduler=False) as cluster:
        client = cluster.client
        pod = {"containers": [{"name": "c", "image": "i"}]}
        for number in range(5):
            made = obj("Pod", f"p-{number}", pod)
            made["metadata"]["labels"] = {"app": "web"}
            await create(client, made)
        await create(client, obj("Service", "web", {"selector": {"app": "web"}, "ports": [{"port": 80}]}))
        monkeypatch.setattr("konverge.explain.gather.PAGE", 2)
        answer = await Gatherer(client, most=3).why(ref("Service", "web"))
        whole = await Gatherer(client).why(ref("Service", "web"))
    assert answer.unread == ["pods in default: there are more than 3; the others were not looked at"]
    assert answer.health is Health.READY, "what was not read is not claimed to be missing"
    assert (whole.unread, whole.chain[0].says) == ([], "selects 5 pods, none of which is ready")


async def test_an_object_that_does_not_exist_is_no_answer() -> None:
    async with Cluster(nodes=1) as cluster:
        with pytest.raises(NotFound):
            await Gatherer(cluster.client).why(ref("Deployment", "web"))


async def test_everything_that_is_not_ready_comes_once_the_sickest_first() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        service = obj("Service", "crash", {"selector": {"app": "crash"}, "ports": [{"port": 80}]})
        big = deployment("big", container={"resources": {"requests": {"cpu": "900"}}})
        await create(client, deployment("fine"), big, deployment("crash", "crash-loop"), service)
        await create(client, stateful_set("db", storage_class="fast"))
        await asyncio.sleep(300)
        answers = await Gatherer(client).sick(SPACE)
        everywhere = await Gatherer(client).sick()
    assert [(str(answer.ref), answer.worst) for answer in answers] == [
        ("Deployment crash", Health.FAILED),
        ("Service crash", Health.FAILED),
        ("StatefulSet db", Health.FAILED),
        ("Deployment big", Health.WAITING),
    ]
    assert [answer.sentence for answer in everywhere] == [answer.sentence for answer in answers]


async def test_a_large_cluster_is_judged_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = []
    in_a_thread = asyncio.to_thread

    async def to_thread(work: Any, *parts: Any) -> Any:
        beside.append(work)
        return await in_a_thread(work, *parts)

    async with Cluster(nodes=1) as cluster:
        await create(cluster.client, stateful_set("db", storage_class="fast"))
        await cluster.settle()
        near = [answer.sentence for answer in await Gatherer(cluster.client).sick(SPACE)]
        assert near
        monkeypatch.setattr(asyncio, "to_thread", to_thread)
        await Gatherer(cluster.client).sick(SPACE)
        assert not beside
        monkeypatch.setattr(gather, "ASIDE_FROM", 1)
        assert [answer.sentence for answer in await Gatherer(cluster.client).sick(SPACE)] == near
        assert len(beside) >= 3  # what is sick, what is needed to say why, and again
