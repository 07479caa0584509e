"""A user of a cluster by lightkube: conditions, logs, commands in containers, patches, collections, custom resources.

What lightkube's own end-to-end tests need of a cluster; they are in no distribution of it. Commands are given by the
asynchronous client: the other one may leave a thread that reads from its next connection.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lightkube import ApiError, AsyncClient, Client
from lightkube.generic_resource import get_generic_resource, load_in_cluster_generic_resources
from lightkube.models.core_v1 import Container, EnvVar, PodSpec, ServicePort, ServiceSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod, Service
from lightkube.types import PatchType
from steps import DEPLOYMENT, done

NAMESPACE = "light-cluster"
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "lamps.light.konverge.dev"},
    "spec": {
        "group": "light.konverge.dev",
        "scope": "Namespaced",
        "names": {"plural": "lamps", "kind": "Lamp"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def container(name: str, script: str) -> Container:
    command = ["sh", "-c", script]
    return Container(name=name, image="ubuntu:24.04", command=command, env=[EnvVar(name="WHO", value=name)])


def pod(name: str, *containers: Container) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name), spec=PodSpec(containers=list(containers), terminationGracePeriodSeconds=1)
    )


def conditions(client: Client) -> None:
    for node in client.list(Node):
        client.wait(Node, node.metadata.name, for_conditions=["Ready"])
    client.create(Deployment.from_dict(DEPLOYMENT))
    client.wait(Deployment, "web", for_conditions=["Available"])
    done("conditions")


def logs(client: Client) -> None:
    client.create(pod("talks", container("main", "while true; do echo a line; sleep 1; done")))
    client.wait(Pod, "talks", for_conditions=["Ready"])
    lines = client.log("talks", follow=True)
    assert next(iter(lines)) == "a line\n"
    client.delete(Pod, "talks")
    done("logs")


async def commands() -> None:
    client = AsyncClient(namespace=NAMESPACE)
    await client.create(pod("works", container("main", "sleep 300"), container("side", "sleep 300")))
    await client.wait(Pod, "works", for_conditions=["Ready"])
    for name in ("main", "side"):
        command = ["sh", "-c", 'printf %s "$WHO"']
        said = await client.exec("works", container=name, command=command, stdout=True, raise_on_error=True)
        assert said.stdout == name, said
    said = await client.exec("works", container="main", command=["cat"], stdin="in and out\n", stdout=True)
    assert (said.stdout, said.exit_code) == ("in and out\n", 0), said
    said = await client.exec("works", container="main", command=["sh", "-c", "exit 3"], stdout=True)
    assert said.exit_code == 3, said
    await client.delete(Pod, "works")
    await client.close()
    done("commands")


def patches(client: Client) -> None:
    first = ServiceSpec(ports=[ServicePort(name="a", port=80, targetPort=8080)], selector={"app": "none"})
    client.create(Service(metadata=ObjectMeta(name="patched"), spec=first))
    second = {"name": "b", "port": 81, "targetPort": 8081}

    def ports(patch: Any, kind: PatchType) -> list[tuple[str, int]]:
        patched = client.patch(Service, "patched", patch, patch_type=kind)
        return sorted((port.name, port.targetPort) for port in patched.spec.ports)

    assert ports({"spec": {"ports": [second]}}, PatchType.STRATEGIC) == [("a", 8080), ("b", 8081)]
    changed = {"spec": {"ports": [{**second, "targetPort": 8082}]}}
    assert ports(changed, PatchType.STRATEGIC) == [("a", 8080), ("b", 8082)]
    assert ports({"spec": {"ports": [second]}}, PatchType.MERGE) == [("b", 8081)]
    added = [{"op": "add", "path": "/spec/ports/-", "value": {"name": "a", "port": 80, "targetPort": 8080}}]
    assert ports(added, PatchType.JSON) == [("a", 8080), ("b", 8081)]
    done("patches")


def collections(client: Client) -> None:
    for name in ("one", "two"):
        client.create(ConfigMap(metadata=ObjectMeta(name=name)))
    everywhere = {(found.metadata.namespace, found.metadata.name) for found in client.list(ConfigMap, namespace="*")}
    assert everywhere >= {(NAMESPACE, "one"), (NAMESPACE, "two")}, everywhere
    client.deletecollection(ConfigMap)
    left = {found.metadata.name for found in client.list(ConfigMap)}
    assert not left & {"one", "two"}, left
    try:
        client.get(ConfigMap, "one")
    except ApiError as error:
        status = error.status
    assert (status.code, status.reason, status.details.name) == (404, "NotFound", "one")
    done("collections")


def custom(client: Client) -> None:
    client.create(CustomResourceDefinition.from_dict(DEFINITION))
    client.wait(CustomResourceDefinition, DEFINITION["metadata"]["name"], for_conditions=["Established"])
    assert get_generic_resource("light.konverge.dev/v1", "Lamp") is None
    load_in_cluster_generic_resources(client)
    lamp = get_generic_resource("light.konverge.dev/v1", "Lamp")
    client.create(lamp(metadata={"name": "desk"}, spec={"on": True}))
    assert client.get(lamp, name="desk").spec["on"] is True
    client.delete(CustomResourceDefinition, DEFINITION["metadata"]["name"])
    done("custom")


def main() -> None:
    client = Client(namespace=NAMESPACE)
    client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    conditions(client)
    logs(client)
    asyncio.run(commands())
    patches(client)
    collections(client)
    custom(client)
    client.delete(Namespace, NAMESPACE)


main()
