"""Garbage collection: background, foreground, orphan, absent owners, cycles, custom kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch, NotFound
from konverge.client.discovery import Served
from konverge.kube.gc.controller import GarbageCollector
from konverge.kube.gc.monitors import deletable
from konverge.objects import crd
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import OwnerReference
from konverge.objects.resource import Resource
from tests.kube.objects import Widget, WidgetSpec

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-41")]


@pytest.fixture
async def collecting(client: Client) -> AsyncIterator[None]:
    running = asyncio.create_task(GarbageCollector().run(client))
    await asyncio.sleep(1)
    yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def make(client: Client, name: str, *owners: Any, blocks: bool = True, **meta: Any) -> ConfigMap:
    references = [
        OwnerReference(
            api_version="v1",
            kind="ConfigMap",
            name=owner.metadata.name,
            uid=owner.metadata.uid,
            block_owner_deletion=blocks or None,
        )
        for owner in owners
    ]
    metadata = ObjectMeta(name=name, namespace="default", owner_references=references, **meta)
    return await client.create(ConfigMap(metadata=metadata))


async def there(client: Client, *names: str) -> list[str]:
    present = {cm.metadata.name for cm in (await client.list(ConfigMap, "default")).items}
    return [name for name in names if name in present]


async def test_dependents_are_deleted_with_their_owner(client: Client, collecting: None) -> None:
    owner = await make(client, "a")
    child = await make(client, "b", owner)
    await make(client, "c", child)
    await client.delete(ConfigMap, "a", "default", propagation="Background")
    await asyncio.sleep(5)
    assert await there(client, "a", "b", "c") == []


async def test_a_dependent_stays_while_one_owner_is_left(client: Client, collecting: None) -> None:
    first, second = await make(client, "a"), await make(client, "b")
    await make(client, "c", first, second)
    await client.delete(ConfigMap, "a", "default")
    await asyncio.sleep(5)
    kept = await client.get(ConfigMap, "c", "default")
    assert [owner.name for owner in kept.metadata.owner_references] == ["b"]
    await client.delete(ConfigMap, "b", "default")
    await asyncio.sleep(5)
    assert await there(client, "c") == []


async def test_a_foreground_deletion_waits_for_blocking_dependents(client: Client, collecting: None) -> None:
    owner = await make(client, "a")
    await make(client, "b", owner, finalizers=["example.com/hold"])
    await make(client, "free", owner, blocks=False)
    await client.delete(ConfigMap, "a", "default", propagation="Foreground")
    await asyncio.sleep(5)
    assert await there(client, "a", "b") == ["a", "b"]
    await client.patch(ConfigMap, "b", MergePatch({"metadata": {"finalizers": None}}), "default")
    await asyncio.sleep(5)
    assert await there(client, "a", "b", "free") == []


async def test_an_orphaning_deletion_keeps_the_dependents(client: Client, collecting: None) -> None:
    owner = await make(client, "a")
    await make(client, "b", owner)
    await client.delete(ConfigMap, "a", "default", propagation="Orphan")
    await asyncio.sleep(5)
    assert await there(client, "a", "b") == ["b"]
    assert (await client.get(ConfigMap, "b", "default")).metadata.owner_references == []


async def test_an_absent_owner_or_one_in_another_namespace_does_not_count(client: Client, collecting: None) -> None:
    ghost = ConfigMap(metadata=ObjectMeta(name="ghost", uid="00000000-0000-4000-8000-000000000000"))
    await make(client, "a", ghost)
    await client.create(ConfigMap(metadata=ObjectMeta(name="far", namespace="kube-system")))
    far = await client.get(ConfigMap, "far", "kube-system")
    await make(client, "b", far)
    await asyncio.sleep(5)
    assert await there(client, "a", "b") == []


async def test_a_cycle_of_blocking_owners_is_deleted(client: Client, collecting: None) -> None:
    first = await make(client, "a")
    second = await make(client, "b", first)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": second.metadata.uid,
                 "blockOwnerDeletion": True}  # fmt: skip
    await client.patch(ConfigMap, "a", MergePatch({"metadata": {"ownerReferences": [reference]}}), "default")
    await client.delete(ConfigMap, "a", "default", propagation="Foreground")
    await asyncio.sleep(60)
    assert await there(client, "a", "b") == []


async def test_custom_kinds_are_collected_as_soon_as_they_exist(client: Client, collecting: None) -> None:
    await client.create(crd(Widget))
    await asyncio.sleep(2)
    widget = await client.create(Widget(metadata=ObjectMeta(name="w", namespace="default"), spec=WidgetSpec()))
    owner = OwnerReference(api_version=widget.api_version, kind="Widget", name="w", uid=widget.metadata.uid)
    meta = ObjectMeta(name="of-widget", namespace="default", owner_references=[owner])
    await client.create(ConfigMap(metadata=meta))
    await asyncio.sleep(5)
    assert await there(client, "of-widget") == ["of-widget"]
    await client.delete(Widget, "w", "default")
    await asyncio.sleep(5)
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "of-widget", "default")


# ------------------------------------------------------------------ monitored kinds

ALL = ("create", "delete", "get", "list", "watch")


def served(
    kind: str, version: str, *, preferred: bool = True, group: str = "shop.dev", verbs: tuple[str, ...] = ALL
) -> Served:
    resource = Resource(group, version, kind, f"{kind.lower()}s")
    return Served(resource=resource, verbs=verbs, preferred=preferred)


@pytest.mark.spec("R-41")
def test_every_kind_is_monitored_once_even_if_the_preferred_version_lacks_it() -> None:
    every = [
        served("Widget", "v1"),
        served("Widget", "v1beta1", preferred=False),
        served("Gadget", "v1beta1", preferred=False),
        served("Gadget", "v1alpha1", preferred=False),
        served("Review", "v1", verbs=("create",)),
        served("Event", "v1", group=""),
    ]
    assert [(resource.kind, resource.version) for resource in deletable(every)] == [
        ("Widget", "v1"),
        ("Gadget", "v1beta1"),
    ]
    assert [resource.version for resource in deletable(reversed(every[:2]))] == ["v1"]
