"""What another client does to the objects of a WebApp: repaired, and said once; what is not ours is left alone."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from konverge.client import JsonPatch, MergePatch, StrategicPatch
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Event, Service
from konverge.operators.webapp.children import LABEL
from tests.operators.webapp.conftest import NAME, SPACE, World, reported

pytestmark = [pytest.mark.virtual, pytest.mark.spec("A-08")]

CONTAINER = "/spec/template/spec/containers/0"


def replaced(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


def added(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "add", "path": path, "value": value}]


def removed(path: str) -> list[dict[str, Any]]:
    return [{"op": "remove", "path": path}]


def essence(deployment: Deployment) -> Any:
    containers = [(entry.name, entry.image, entry.env) for entry in deployment.spec.template.spec.containers]
    return deployment.spec.replicas, containers, deployment.metadata.labels.get(LABEL)


def reach(service: Service) -> Any:
    ports = [
        (port.name, port.port, port.target_port, port.protocol, port.node_port, port.app_protocol)
        for port in service.spec.ports
    ]
    return service.spec.type, ports, service.spec.selector, service.spec.external_name, service.metadata.labels


async def repaired(world: World) -> Counter[str]:
    """What the events say was repaired, once everything has come to rest and was looked at some more times."""
    await world.cluster.settle()
    await world.cluster.clock.advance(95)
    events = await world.client.list(Event, SPACE, field_selector="reason=DriftRepaired")
    return Counter({event.message or "": event.count or 1 for event in events})


DEPLOYMENT: list[tuple[list[dict[str, Any]], str]] = [
        (replaced("/spec/replicas", 7), "replicas 7 → 2"),
        (replaced(f"{CONTAINER}/image", "evil:1"), "image evil:1 → nginx:1.20"),
        (
            replaced(f"{CONTAINER}/name", "other"),
            "containers ['other'] → ['web'], image None → nginx:1.20, env",
        ),
        (added("/spec/template/spec/containers/-", {"name": "side", "image": "a:1"}),
         "containers ['web', 'side'] → ['web']"),
        (added("/spec/template/spec/containers/0", {"name": "side", "image": "a:1"}),
         "containers ['side', 'web'] → ['web']"),
        (removed(f"{CONTAINER}/env/0"), "env"),
        (removed(f"{CONTAINER}/env"), "env"),
        (added(f"{CONTAINER}/env/-", {"name": "C", "value": "3"}), "env"),
        (replaced(f"{CONTAINER}/env/0/value", "9"), "env"),
        (added(f"{CONTAINER}/env/1", {"name": "EMPTY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
         "env"),
        (replaced(f"{CONTAINER}/env/1", {"name": "EMPTY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
         "env"),
        (removed("/metadata/labels"), "label None → shop"),
]  # fmt: skip


async def test_a_deployment_is_put_back(world: World) -> None:
    await world.create(env={"A": "1", "EMPTY": ""})
    before, seen = essence(await world.deployment()), Counter[str]()
    for drift, said in DEPLOYMENT:
        await world.client.patch(Deployment, NAME, JsonPatch(drift), SPACE)
        assert essence(await world.deployment()) != before, said
        seen[f"Deployment was changed: {said}"] += 1
        assert await repaired(world) == seen
        assert essence(await world.deployment()) == before


HTTP = {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}


SERVICE: list[tuple[dict[str, Any], str]] = [
    ({"selector": {"else": "where"}}, "selector"),
    ({"selector": {LABEL: "other"}}, "selector"),
    ({"selector": {LABEL: None, "else": "where"}}, "selector"),
    ({"selector": None}, "selector"),
    ({"ports": [HTTP | {"protocol": "UDP"}]}, "port 80/UDP → 80"),
    ({"ports": [HTTP | {"targetPort": 9}]}, "port 80:9 → 80"),
    ({"ports": [HTTP | {"name": "web"}]}, "port 80 called web → 80"),
    ({"ports": [HTTP | {"appProtocol": "grpc"}]}, "port 80 for grpc → 80"),
    ({"ports": [HTTP, {"name": "more", "port": 81}]}, "port [80, '81 called more'] → 80"),
    ({"type": "NodePort"}, "type NodePort → ClusterIP"),
    ({"type": "LoadBalancer"}, "type LoadBalancer → ClusterIP"),
    (
        {"type": "ExternalName", "externalName": "a.example.com", "clusterIP": None, "clusterIPs": None},
        "type ExternalName → ClusterIP",
    ),
]


async def test_a_service_is_put_back(world: World) -> None:
    await world.create()
    before, seen = reach(await world.service()), Counter[str]()
    for drift, said in SERVICE:
        await world.client.patch(Service, NAME, MergePatch({"spec": drift}), SPACE)
        assert reach(await world.service()) != before, said
        seen[f"Service was changed: {said}"] += 1
        assert await repaired(world) == seen
        assert reach(await world.service()) == before
    assert before[:3] == ("ClusterIP", [("http", 80, 80, "TCP", None, None)], {LABEL: NAME})


async def test_a_label_of_the_service_is_put_back(world: World) -> None:
    await world.create()
    await world.client.patch(Service, NAME, MergePatch({"metadata": {"labels": {LABEL: "x", "mine": "1"}}}), SPACE)
    assert await repaired(world) == {"Service was changed: label x → shop": 1}
    assert (await world.service()).metadata.labels == {LABEL: NAME, "mine": "1"}


async def test_what_a_webapp_does_not_speak_of_is_left_to_others(world: World) -> None:
    await world.create(env={"A": "1"})
    more = {
        "metadata": {"annotations": {"a": "b"}, "labels": {"team": "x"}},
        "spec": {
            "minReadySeconds": 3,
            "template": {
                "metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
                "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "1m"}}}]},
            },
        },
    }
    await world.client.patch(Deployment, NAME, StrategicPatch(more), SPACE)
    await world.client.patch(Service, NAME, MergePatch({"spec": {"sessionAffinity": "ClientIP"}}), SPACE)
    await world.cluster.settle()
    world.writes()
    assert await repaired(world) == {}
    assert [call for call in reported(world.writes()) if call != "patch webapps/status"] == []
    await world.change(image="nginx:1.21")
    container = (await world.deployment()).spec.template.spec.containers[0]
    assert (container.image, container.resources is not None) == ("nginx:1.21", True)
    assert (await world.deployment()).spec.min_ready_seconds == 3
    assert (await world.service()).spec.session_affinity == "ClientIP"


async def test_an_object_that_took_the_name_in_the_meantime_is_not_written(world: World) -> None:
    """The cache still has ours: the write names its uid, and is refused."""
    await world.create()
    world.cluster.hold("webapp", manager=world.manager)
    await world.change(replicas=5)
    real, mine = world.recording.caller.call, await world.service()

    async def call(call):  # type: ignore[no-untyped-def]
        if call.verb == "patch" and call.resource == Deployment.resource:
            world.recording.caller.call = real  # type: ignore[method-assign]
            await world.client.delete(Deployment, NAME, SPACE, propagation="Orphan")
            await world.cluster.settle()
            labels = {"app": "stranger"}
            container = {"name": "web", "image": "theirs:1"}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
            await world.client.create(
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": NAME, "namespace": SPACE},
                    "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
                }
            )
        return await real(call)

    world.recording.caller.call = call  # type: ignore[method-assign]
    world.cluster.release("webapp", manager=world.manager)
    await world.cluster.settle()
    await world.cluster.clock.advance(95)
    deployment = await world.deployment()
    assert (deployment.spec.replicas, deployment.spec.template.spec.containers[0].image) == (1, "theirs:1")
    assert deployment.metadata.owner_references == []
    ready = next(entry for entry in (await world.app()).status.conditions if entry.type == "Ready")
    assert (ready.status, ready.reason) == ("False", "NotOwned")
    assert (await world.service()).metadata.uid == mine.metadata.uid


async def test_a_write_that_the_server_undoes_is_no_repair(world: World) -> None:
    """A webhook that insists on its own image: a condition, and one event."""
    await world.create()
    real = world.recording.caller.call

    async def call(call):  # type: ignore[no-untyped-def]
        if call.verb == "patch" and call.resource == Deployment.resource:
            body = json.loads(call.body)
            body["spec"]["replicas"] = 7
            call = call.__class__(
                call.verb, call.resource, call.namespace, call.name, body=json.dumps(body).encode(),
                content_type=call.content_type,
            )  # fmt: skip
        return await real(call)

    world.recording.caller.call = call  # type: ignore[method-assign]
    await world.client.patch(Deployment, NAME, MergePatch({"spec": {"replicas": 7}}), SPACE)
    await world.cluster.settle()
    await world.cluster.clock.advance(300)
    ready = next(entry for entry in (await world.app()).status.conditions if entry.type == "Ready")
    assert (ready.status, ready.reason) == ("False", "NotKept")
    assert "replicas 7 → 2" in ready.message
    assert [reason for reason, _ in await world.events()][3:] == ["NotKept"]
    world.recording.caller.call = real  # type: ignore[method-assign]
    await world.cluster.clock.advance(95)
    assert (await world.deployment()).spec.replicas == 2
    assert (await world.app()).status.conditions[0].status == "True"
