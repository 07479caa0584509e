"""The deletion of a namespace: everything in it, in order, with conditions that say what remains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from konverge import Manager, ObjectMeta, Resource, Settings
from konverge.client import Client, MergePatch, NotFound, Served
from konverge.kube import namespace
from konverge.objects import crd
from konverge.objects.kinds.core_v1 import ConfigMap, Container, Namespace, Pod, PodSpec, Secret, ServiceAccount
from konverge.wire.message import Response
from tests.kube.conftest import Run
from tests.kube.interposed import Interposed, answering, reads, refusing
from tests.kube.objects import Widget, WidgetSpec

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-39")]


async def shop(client: Client) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name="shop")))
    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="shop")))


async def is_gone(client: Client, name: str = "shop") -> bool:
    try:
        await client.get(Namespace, name)
    except NotFound:
        return True
    return False


async def conditions(client: Client) -> dict[str, tuple[str, str | None, str | None]]:
    present = (await client.get(Namespace, "shop")).status.conditions
    return {condition.type: (condition.status, condition.reason, condition.message) for condition in present}


async def test_everything_in_a_namespace_is_deleted_custom_kinds_too(client: Client, run: Run) -> None:
    await client.create(crd(Widget))
    await shop(client)
    async with run(namespace):
        await asyncio.sleep(1)
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop")))
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
        await client.create(Widget(metadata=ObjectMeta(name="w", namespace="shop"), spec=WidgetSpec()))
        await client.delete(Namespace, "shop")
        await asyncio.sleep(1)
        assert await is_gone(client)
        assert not (await client.list(Widget)).items
        assert [
            config_map.metadata.namespace
            for config_map in await client.list(ConfigMap, field_selector="metadata.name=a")
        ] == ["default"]
        await client.get(Namespace, "default")


async def test_a_finalizer_is_respected_and_named_in_the_conditions(client: Client, run: Run) -> None:
    await shop(client)
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop", finalizers=["example.com/keep"])))
    await client.create(Secret(metadata=ObjectMeta(name="b", namespace="shop")))
    async with run(namespace):
        await client.delete(Namespace, "shop")
        await asyncio.sleep(60)
        assert not (await client.list(Secret, "shop")).items
        assert await conditions(client) == {
            "NamespaceDeletionDiscoveryFailure": (
                "False", "ResourcesDiscovered", "All resources successfully discovered",
            ),
            "NamespaceDeletionGroupVersionParsingFailure": (
                "False", "ParsedGroupVersions", "All legacy kube types successfully parsed",
            ),
            "NamespaceDeletionContentFailure": (
                "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization",
            ),
            "NamespaceContentRemaining": (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 1 resource instances",
            ),
            "NamespaceFinalizersRemaining": (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances",
            ),
        }  # fmt: skip
        await client.patch(ConfigMap, "a", MergePatch({"metadata": {"finalizers": None}}), "shop")
        await asyncio.sleep(10)
        assert await is_gone(client)


async def test_pods_of_a_namespace_are_deleted_first(client: Client, run: Run) -> None:
    await shop(client)
    spec = PodSpec(containers=[Container(name="main", image="app:1")], node_name="node-1")
    await client.create(Pod(metadata=ObjectMeta(name="p", namespace="shop"), spec=spec))
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop")))
    async with run(namespace):
        await client.delete(Namespace, "shop")
        await asyncio.sleep(20)
        # The pod is on a node: it stays until its kubelet has ended it.
        assert (await client.get(Pod, "p", "shop")).metadata.deletion_timestamp
        await client.get(ConfigMap, "a", "shop")
        remaining = (await conditions(client))["NamespaceContentRemaining"]
        assert remaining[2] == "Some resources are remaining: pods. has 1 resource instances"
        assert (await conditions(client))["NamespaceDeletionContentFailure"][0] == "False"
        await asyncio.sleep(20)
        failure = (await conditions(client))["NamespaceDeletionContentFailure"]
        assert failure == (
            "True",
            "ContentDeletionFailed",
            "Failed to delete all resource types, 1 remaining: "
            "unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods",
        )
        await client.delete(Pod, "p", "shop", grace_period=0)
        await asyncio.sleep(1)
        assert await is_gone(client)


async def test_a_namespace_with_a_finalizer_of_another_is_emptied_and_stays(client: Client, run: Run) -> None:
    await client.create({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"},
        "spec": {"finalizers": ["kubernetes", "example.com/other"]},
    })  # fmt: skip
    async with run(namespace):
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop")))
        await client.delete(Namespace, "shop")
        await asyncio.sleep(60)
        assert (await client.get(Namespace, "shop")).spec.finalizers == ["example.com/other"]
        assert not (await client.list(ConfigMap, "shop")).items


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[None]:
    manager = Manager(client, name="kube", settings=Settings(base_delay=0.01))
    for controller in namespace.controllers():
        manager.add(controller)
    async with manager.running():
        yield


async def test_a_namespace_stays_while_a_group_cannot_be_asked_for_its_content(client: Client) -> None:
    """The server of the group is away: what it holds in the namespace would be lost sight of."""
    await shop(client)
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop")))
    interposed = Interposed(client)
    stale = {"metadata": {"name": "away.dev"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    interposed.rules.append(answering("/apis", {"kind": "APIGroupDiscoveryList", "items": [stale]}))
    async with running(interposed):
        await client.delete(Namespace, "shop")
        await asyncio.sleep(3600)
        assert not (await client.list(ConfigMap, "shop")).items, "what is known is deleted"
        assert (await conditions(client))["NamespaceDeletionDiscoveryFailure"] == (
            "True",
            "DiscoveryFailed",
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
            "away.dev/v1: stale GroupVersion discovery: away.dev/v1",
        )
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert await is_gone(client)


async def test_a_kind_that_cannot_be_listed_keeps_the_namespace(client: Client) -> None:
    await shop(client)
    interposed = Interposed(client, near=False)
    interposed.rules.append(refusing("", 500, b'{"kind":"Status","message":"the disk is full"}', verb="list"))
    async with running(interposed):
        await client.delete(Namespace, "shop")
        await asyncio.sleep(600)
        _, reason, message = (await conditions(client))["NamespaceDeletionContentFailure"]
        assert (reason, message) == (
            "ContentDeletionFailed",
            "Failed to delete all resource types, 1 remaining: the disk is full",
        )
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert await is_gone(client)


@pytest.mark.parametrize("new", [{"uid": "another"}, {"deletionTimestamp": None}])
async def test_the_content_of_a_new_namespace_of_the_same_name_is_kept(client: Client, new: dict[str, str]) -> None:
    """The cache still shows the old namespace, which was deleted; the server has a new one."""
    await shop(client)
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop")))
    await client.delete(Namespace, "shop")
    live = await client.get("namespaces", "shop")
    live["metadata"].update(new)
    body = msgspec.json.encode(live)
    interposed = Interposed(client)
    interposed.rules.append(lambda call: Response(200, body=body) if reads(call, "shop") else None)
    async with running(interposed):
        await asyncio.sleep(600)
        await client.get(ConfigMap, "a", "shop")
        assert {verb for verb, _ in interposed.writes()} <= {"create"}, "nothing but the manager's own questions"


def test_a_kind_that_the_preferred_version_lacks_is_deleted_too() -> None:
    verbs = ("delete", "list")
    served = [
        Served(resource=Resource("x.dev", "v1", "A", "as"), verbs=verbs),
        Served(resource=Resource("x.dev", "v1beta1", "A", "as"), verbs=verbs, preferred=False),
        Served(resource=Resource("x.dev", "v1beta1", "B", "bs"), verbs=verbs, preferred=False),
        Served(resource=Resource("x.dev", "v1", "C", "cs", namespaced=False), verbs=verbs),
        Served(resource=Resource("x.dev", "v1", "D", "ds"), verbs=("create",)),
        Served(resource=Resource("events.k8s.io", "v1", "Event", "events"), verbs=verbs),
    ]
    chosen = [(kind.resource.plural, kind.resource.version) for kind in namespace.deletable(served)]
    assert chosen == [("as", "v1"), ("bs", "v1beta1")]
