"""What users see of a resource in several versions; the same on the embedded and on the real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from konverge.client import Client, InternalError, JsonPatch, MergePatch, NotFound
from konverge.objects import crd_dict
from konverge.objects.custom.definition import lone_crd_dict
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Controller, Manager
from konverge.runtime.webhooks import migrate_stored_versions
from konverge.testing import eventually
from tests.objects.pools import GROUP, Pool, PoolSpec, PoolV1, PoolV1Spec, PoolV3, PoolV3Spec, Zone

VERSIONS = (PoolV1, Pool, PoolV3)
DEFINITION = f"pools.{GROUP}"
KEPT = f"{GROUP}/preserved-v2"
SPACE = "default"
PATIENCE = 180.0
"""Seconds for a real server to take something up, on a machine that is busy with other things."""


async def reconcile(ctx: Any) -> None:
    return None


def operator(name: str = "pools") -> Manager:
    return Manager(name=name).add(Controller(Pool, reconcile, versions=VERSIONS))


async def define(client: Client) -> None:
    """What `konverge run --install-crds` does, over an older definition too."""
    await client.apply(crd_dict(*VERSIONS), field_manager="konverge", force=True)


def meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=SPACE)


def pool(name: str, **spec: Any) -> Pool:
    return Pool(metadata=meta(name), spec=PoolSpec(**spec))


async def converted(client: Client) -> None:
    """Wait until the server calls the operator: it learns of it a moment after the definition says so."""
    probes: list[Any] = [pool("probe"), PoolV1(metadata=meta("probe"), spec=PoolV1Spec(size="1x1"))]
    probes.append(PoolV3(metadata=meta("probe"), spec=PoolV3Spec()))

    async def answers() -> bool:
        try:
            for probe in probes:
                await client.create(probe, dry_run=True)
        except (NotFound, InternalError):
            return False
        return True

    await eventually(answers, timeout=PATIENCE)


async def written_and_read_in_every_version(client: Client) -> None:
    created = await client.create(PoolV1(metadata=meta("a"), spec=PoolV1Spec(size="3x8", note="hi")))
    assert created.spec.size == "3x8"
    new, old, newest = [await client.get(kind, "a", SPACE) for kind in (Pool, PoolV1, PoolV3)]
    assert (new.spec.nodes, new.spec.cores, new.spec.note) == (3, 8, "hi")
    assert (old.spec.size, newest.spec.nodes) == ("3x8", 3)
    assert {new.metadata.uid, old.metadata.uid, newest.metadata.uid} == {created.metadata.uid}
    assert new.metadata.annotations == {}

    updated = await client.patch(PoolV1, "a", MergePatch({"spec": {"size": "4x8"}}), SPACE)
    assert updated.spec.size == "4x8"
    assert updated.metadata.generation == 2
    assert (await client.get(Pool, "a", SPACE)).spec.nodes == 4
    await client.patch_sub(PoolV1, "a", "status", MergePatch({"status": {"phase": "Ready"}}), SPACE)
    assert (await client.get(PoolV3, "a", SPACE)).status.phase == "Ready"
    assert (await client.get(PoolV3, "a", SPACE)).spec.nodes == 4


async def nothing_is_lost_by_a_version_that_cannot_say_it(client: Client) -> None:
    await client.create(pool("b", nodes=2, zones=[Zone(name="x", weight=3)], images=["i"], extra={"k": {"v": [1]}}))
    old = await client.get(PoolV1, "b", SPACE)
    assert KEPT in old.metadata.annotations
    old.spec.note, old.spec.size = "changed", "5x1"
    await client.replace(old)
    new = await client.get(Pool, "b", SPACE)
    assert (new.spec.nodes, new.spec.note) == (5, "changed")
    assert (new.spec.zones, new.spec.images, new.spec.extra) == ([Zone(name="x", weight=3)], ["i"], {"k": {"v": [1]}})
    assert new.metadata.annotations == {}, "what was kept is no annotation of the stored object"


async def applied_in_another_version_than_the_stored(client: Client) -> None:
    text = {"apiVersion": f"{GROUP}/v1", "kind": "Pool", "metadata": {"name": "c", "namespace": SPACE}}
    await client.apply({**text, "spec": {"size": "2x2"}}, field_manager="one", force=True)
    await client.patch(Pool, "c", MergePatch({"spec": {"zones": [{"name": "z"}]}}), SPACE)
    await client.apply({**text, "spec": {"size": "3x2"}}, field_manager="one", force=True)
    new = await client.get(Pool, "c", SPACE)
    assert (new.spec.nodes, new.spec.cores, new.spec.zones) == (3, 2, [Zone(name="z")])
    again = await client.apply({**text, "spec": {"size": "3x2"}}, field_manager="one", force=True)
    assert again["metadata"]["resourceVersion"] == new.metadata.resource_version, "the same again changes nothing"
    patched = await client.patch(PoolV1, "c", MergePatch({"spec": {"size": "3x2"}}), SPACE)
    assert patched.metadata.resource_version == new.metadata.resource_version
    labelled = await client.patch(PoolV1, "c", MergePatch({"metadata": {"labels": {"a": "b"}}}), SPACE)
    assert labelled.metadata.generation == new.metadata.generation, "a label is no change of the spec"


async def lists_and_watches_in_every_version(client: Client, count: int) -> None:
    before = await client.list(Pool, SPACE)
    for number in range(count):
        await client.create(pool(f"many-{number}", nodes=number, cores=2))
    olds = {obj.metadata.name: obj.spec.size for obj in await client.list(PoolV1, SPACE)}
    news = {obj.metadata.name: obj.spec.nodes for obj in await client.list(Pool, SPACE)}
    for number in range(count):
        assert olds[f"many-{number}"] == f"{number}x2"
        assert news[f"many-{number}"] == number
    seen_old, seen_new = await asyncio.gather(
        _watched(client, PoolV1, before.metadata.resource_version, count),
        _watched(client, Pool, before.metadata.resource_version, count),
    )
    assert sorted(obj.spec.size for obj in seen_old) == sorted(f"{number}x2" for number in range(count))
    assert sorted(obj.spec.nodes for obj in seen_new) == list(range(count))


async def _watched(client: Client, kind: Any, since: str, count: int) -> list[Any]:
    seen: list[Any] = []
    async with asyncio.timeout(PATIENCE), aclosing(client.watch(kind, SPACE, resource_version=since)) as events:
        async for event in events:
            if event.type == "ADDED":
                seen.append(event.object)
            if len(seen) == count:
                break
    return seen


async def store_in(client: Client, version: str) -> None:
    """Make another version the stored one, and wait until objects are stored so."""
    probe = await client.create(pool("probe"))
    definition = await client.get(CustomResourceDefinition, DEFINITION)
    operations = [
        {"op": "replace", "path": f"/spec/versions/{index}/storage", "value": each.name == version}
        for index, each in enumerate(definition.spec.versions)
    ]
    await client.patch(CustomResourceDefinition, DEFINITION, JsonPatch(operations))

    async def noted() -> bool:
        return version in (await client.get(CustomResourceDefinition, DEFINITION)).status.stored_versions

    async def stored() -> bool:
        """A patch without a change is written where the stored form is another one."""
        patched = await client.patch(Pool, "probe", MergePatch({}), SPACE)
        return patched.metadata.resource_version != probe.metadata.resource_version

    await eventually(noted, timeout=PATIENCE)
    await eventually(stored, timeout=PATIENCE)
    await client.delete(Pool, "probe", SPACE)


async def the_stored_version_changes(client: Client) -> None:
    """Stored as v2, then as v1, then as v2 again: nothing is lost on the way."""
    await client.create(pool("kept", nodes=20000, cores=3, zones=[Zone(name="x", weight=2)]))
    await store_in(client, "v1")
    for name, nodes in (("kept", 20000), ("later", 7)):
        if name == "later":
            await client.create(PoolV1(metadata=meta("later"), spec=PoolV1Spec(size="7x3")))
        obj = await client.get(Pool, name, SPACE)
        assert (obj.spec.nodes, obj.spec.cores) == (nodes, 3)
    assert (await client.get(PoolV1, "kept", SPACE)).spec.size == "9999x3"
    await client.patch(Pool, "kept", MergePatch({"spec": {"note": "n"}}), SPACE)
    await store_in(client, "v2")
    obj = await client.get(Pool, "kept", SPACE)
    assert (obj.spec.nodes, obj.spec.note, obj.spec.zones) == (20000, "n", [Zone(name="x", weight=2)])
    assert (await client.get(PoolV1, "later", SPACE)).spec.size == "7x3"
    assert (await client.get(Pool, "later", SPACE)).spec.nodes == 7


async def stored_objects_are_migrated(client: Client) -> None:
    """After it each object is stored in the stored version, and older versions could be removed."""
    await client.create(pool("moved", nodes=20000, zones=[Zone(name="x")]))
    await store_in(client, "v1")
    await client.create(pool("new", nodes=3))
    before = {name: await client.get(Pool, name, SPACE) for name in ("moved", "new")}
    assert await migrate_stored_versions(client, DEFINITION) >= 2
    assert (await client.get(CustomResourceDefinition, DEFINITION)).status.stored_versions == ["v1"]
    after = {name: await client.get(Pool, name, SPACE) for name in ("moved", "new")}
    versions = {name: obj.metadata.resource_version for name, obj in after.items()}
    assert versions["moved"] != before["moved"].metadata.resource_version, "it was written again"
    assert versions["new"] == before["new"].metadata.resource_version, "it was stored so already"
    assert (after["moved"].spec.nodes, after["moved"].spec.zones) == (20000, [Zone(name="x")])
    assert after["moved"].metadata.generation == 1, "nothing was changed"
    assert await migrate_stored_versions(client, DEFINITION) == 0
    await store_in(client, "v2")


async def before_there_were_versions(client: Client) -> None:
    """Objects of the first release, which knew one version."""
    await client.create(lone_crd_dict(PoolV1))

    async def created() -> bool:
        try:
            await client.create(PoolV1(metadata=meta("first"), spec=PoolV1Spec(size="4x2", note="old")))
        except NotFound:
            return False
        return True

    await eventually(created, timeout=PATIENCE)


async def after_there_are_versions(client: Client) -> None:
    old, new = await client.get(PoolV1, "first", SPACE), await client.get(Pool, "first", SPACE)
    assert (old.spec.size, new.spec.nodes, new.spec.note) == ("4x2", 4, "old")
    assert [obj.spec.nodes for obj in await client.list(Pool, SPACE)] == [4]
    stored = (await client.get(CustomResourceDefinition, DEFINITION)).status.stored_versions
    assert stored == ["v1", "v2"]


async def without_the_operator(client: Client) -> None:
    """Other versions than the stored fail and nothing is lost."""
    with pytest.raises(InternalError, match="conversion webhook"):
        await client.create(PoolV1(metadata=meta("away"), spec=PoolV1Spec(size="1x1")))
    await client.create(pool("alone", nodes=6))
    assert (await client.get(Pool, "alone", SPACE)).spec.nodes == 6


async def with_the_operator_again(client: Client) -> None:
    assert (await client.get(PoolV1, "alone", SPACE)).spec.size == "6x1"
