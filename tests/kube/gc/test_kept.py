"""What the garbage collector keeps: everything whose owners the server has not confirmed to be absent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.client.call import Call
from konverge.client.errors import TimedOut
from konverge.kube.gc.controller import GarbageCollector
from konverge.objects import crd
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.kinds.rbac_v1 import ClusterRole
from konverge.wire.message import Response
from tests.kube.interposed import Interposed, answering, reads, refusing
from tests.kube.objects import Widget, WidgetSpec

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-41")]

GHOST = "00000000-0000-4000-8000-000000000000"
HOURS = 4 * 3600


@asynccontextmanager
async def collecting(client: Client) -> AsyncIterator[None]:
    running = asyncio.create_task(GarbageCollector().run(client))
    await asyncio.sleep(1)
    try:
        yield
        assert not running.done(), "the garbage collector ended by itself"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def reference(kind: str = "ConfigMap", name: str = "ghost", uid: str = GHOST, api_version: str = "v1") -> Any:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


def reference_to(owner: Any, **changes: Any) -> Any:
    meta = owner.metadata
    return {**reference(owner.kind, meta.name, meta.uid, owner.api_version), **changes}


async def make(client: Client, name: str, *references: Any, namespace: str = "default") -> ConfigMap:
    meta = {"name": name, "namespace": namespace, "ownerReferences": list(references)}
    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    return await client.get(ConfigMap, name, namespace)


async def make_role(client: Client, name: str, *references: Any) -> None:
    meta = {"name": name, "ownerReferences": list(references)}
    await client.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta})


async def define_widgets(client: Client) -> Widget:
    """Serve a kind, and create an object of it."""
    await client.create(crd(Widget))
    await asyncio.sleep(2)
    return await client.create(Widget(metadata=ObjectMeta(name="w", namespace="default"), spec=WidgetSpec()))


async def exists(client: Client, name: str) -> bool:
    return name in {item.metadata.name for item in (await client.list(ConfigMap, "default")).items}


async def events(client: Client) -> list[dict[str, Any]]:
    return [event for event in (await client.list("events", "default")).items if "reason" in event]


# ------------------------------------------------------------------ kinds that are not served


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("nope.dev/v1", "Nope"), ("apps/v1beta1", "Deployment"), ("v1", "configmap"), ("v1", "configmaps"), ("v1", "cm")],
)
async def test_an_owner_of_a_kind_that_is_not_served_keeps_its_dependent(
    client: Client, api_version: str, kind: str
) -> None:
    client = Interposed(client)
    async with collecting(client):
        await make(client, "child", reference(kind, api_version=api_version))
        await make(client, "sibling", reference(kind, api_version=api_version), reference("Secret"))
        before = len(client.writes())
        await asyncio.sleep(HOURS)
        assert len(client.writes()) == before
        assert await exists(client, "child")


async def test_when_the_kind_is_served_the_owner_is_looked_for(client: Client) -> None:
    async with collecting(client):
        await make(client, "child", reference("Widget", api_version=Widget.resource.api_version))
        await asyncio.sleep(HOURS)
        assert await exists(client, "child")
        await client.create(crd(Widget))
        await asyncio.sleep(60)
        assert not await exists(client, "child")


async def test_a_version_that_is_no_longer_served_says_nothing_about_the_owner(client: Client) -> None:
    """Between two discoveries: the path answers 404, but without naming the object."""
    owner = await make(client, "owner")
    interposed = Interposed(client)
    interposed.rules.append(refusing("owner", 404, b"404 page not found\n"))
    async with collecting(interposed):
        await make(client, "child", reference_to(owner))
        await make(client, "strange", reference_to(owner, kind="Secret"))  # other coordinates: it is checked
        await asyncio.sleep(HOURS)
        assert await exists(client, "child")
        assert await exists(client, "strange")


async def test_a_group_whose_server_is_away_keeps_its_dependents_and_is_watched_on(client: Client) -> None:
    widget = await define_widgets(client)
    interposed = Interposed(client)
    group, version = widget.api_version.split("/")
    stale = {"metadata": {"name": group}, "versions": [{"version": version, "freshness": "Stale", "resources": []}]}
    async with collecting(interposed):
        interposed.rules.append(answering("/apis", {"kind": "APIGroupDiscoveryList", "items": [stale]}))
        await asyncio.sleep(HOURS)
        await make(client, "child", reference_to(widget))
        await make(client, "doubtful", reference_to(widget, name="other"))  # whether there is one cannot be verified
        await asyncio.sleep(HOURS)
        assert await exists(client, "child")
        assert await exists(client, "doubtful")
        await client.delete(Widget, "w", "default")
        await asyncio.sleep(5)
        assert not await exists(client, "child"), "the informer of the group did not go on"


async def test_objects_that_went_while_their_kind_was_not_served_are_noticed(client: Client) -> None:
    widget = await define_widgets(client)
    interposed = Interposed(client)
    async with collecting(interposed):
        await make(client, "child", reference_to(widget))
        interposed.rules.append(answering("/apis", {"kind": "APIGroupDiscoveryList", "items": []}))
        await asyncio.sleep(HOURS)
        await client.delete(Widget, "w", "default")
        await asyncio.sleep(HOURS)
        assert await exists(client, "child")
        interposed.rules.clear()
        await asyncio.sleep(HOURS)
        assert not await exists(client, "child")


async def test_a_definition_that_is_deleted_and_created_again(client: Client) -> None:
    async with collecting(client):
        widget = await define_widgets(client)
        await make(client, "child", reference_to(widget))
        await asyncio.sleep(2)
        await client.delete("customresourcedefinitions", crd(Widget).metadata.name)
        await asyncio.sleep(60)
        again = await define_widgets(client)
        await make(client, "child-of-the-new", reference_to(again))
        await asyncio.sleep(HOURS)
        assert not await exists(client, "child")
        assert await exists(client, "child-of-the-new")


# ------------------------------------------------------------------ answers that confirm nothing


@pytest.mark.parametrize("code", [401, 403, 405, 429, 500, 503, 504])
async def test_an_owner_that_cannot_be_read_keeps_its_dependent(client: Client, code: int) -> None:
    interposed = Interposed(client)
    interposed.rules.append(refusing("ghost", code))
    async with collecting(interposed):
        await make(client, "child", reference())
        await asyncio.sleep(HOURS)
        assert await exists(client, "child")
        interposed.rules.clear()
        await asyncio.sleep(HOURS)
        assert not await exists(client, "child")


async def test_an_owner_that_is_not_answered_in_time_keeps_its_dependent(client: Client) -> None:
    def rule(call: Call) -> Response | None:
        if reads(call, "ghost"):
            raise TimedOut("no answer")
        return None

    interposed = Interposed(client)
    interposed.rules.append(rule)
    async with collecting(interposed):
        await make(client, "child", reference())
        await asyncio.sleep(HOURS)
        assert await exists(client, "child")


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"metadata":{"name":"ghost"}}', b'{"metadata":{"uid":""}}'])
async def test_an_answer_that_cannot_be_read_keeps_the_dependent(client: Client, body: bytes) -> None:
    interposed = Interposed(client)
    interposed.rules.append(lambda call: Response(200, body=body) if reads(call, "ghost") else None)
    async with collecting(interposed):
        await make(client, "child", reference())
        await asyncio.sleep(HOURS)
        assert await exists(client, "child")


async def test_a_dependent_that_cannot_be_read_is_kept_until_it_can(client: Client) -> None:
    interposed = Interposed(client)
    interposed.rules.append(refusing("child", 500))
    async with collecting(interposed):
        await make(client, "child", reference())
        await asyncio.sleep(HOURS)
        assert await exists(client, "child")
        interposed.rules.clear()
        await asyncio.sleep(HOURS)
        assert not await exists(client, "child")


# ------------------------------------------------------------------ who the owner is


@pytest.mark.parametrize("order", ["owner seen first", "dependent seen first"])
async def test_a_cluster_scoped_object_with_an_owner_in_a_namespace_is_kept_and_reported(
    client: Client, order: str
) -> None:
    owner = await make(client, "owner")
    if order == "dependent seen first":
        await make_role(client, "role", reference_to(owner))
    async with collecting(client):
        if order == "owner seen first":
            await make_role(client, "role", reference_to(owner))
        await asyncio.sleep(HOURS)
        role = await client.get(ClusterRole, "role")
        assert [ref.uid for ref in role.metadata.owner_references] == [owner.metadata.uid]
        await client.delete(ConfigMap, "owner", "default")
        await asyncio.sleep(HOURS)
        assert (await client.get(ClusterRole, "role")).metadata.uid == role.metadata.uid


@pytest.mark.parametrize("order", ["owner seen first", "dependent seen first"])
async def test_a_reference_into_another_namespace_is_reported(client: Client, order: str) -> None:
    owner = await make(client, "owner")
    if order == "dependent seen first":
        await make_role(client, "role", reference_to(owner))
    async with collecting(client):
        if order == "owner seen first":
            await make_role(client, "role", reference_to(owner))
        await asyncio.sleep(5)
        (event,) = await events(client)
    role = await client.get(ClusterRole, "role")
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "OwnerRefInvalidNamespace", 1)
    assert event["source"] == {"component": "garbage-collector-controller"}
    assert event["message"] == (
        f'ownerRef [v1/ConfigMap, namespace: , name: owner, uid: {owner.metadata.uid}] does not exist in namespace ""'
    )
    assert event["involvedObject"] == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "name": "role",
        "uid": role.metadata.uid,
    }


async def test_a_cluster_scoped_object_with_an_absent_owner_of_a_namespaced_kind_is_kept(client: Client) -> None:
    async with collecting(client):
        await make_role(client, "role", reference())
        await asyncio.sleep(HOURS)
        await client.get(ClusterRole, "role")
        assert await events(client) == []
        # A dependent in a namespace names the same owner, which can be absent there: that is another question.
        await make(client, "child", reference())
        await asyncio.sleep(HOURS)
        assert not await exists(client, "child")
        await client.get(ClusterRole, "role")


async def test_an_object_in_another_namespace_than_its_owner_is_deleted_and_reported(client: Client) -> None:
    owner = await make(client, "far", namespace="kube-system")
    async with collecting(client):
        await make(client, "child", reference_to(owner))
        await asyncio.sleep(5)
        assert not await exists(client, "child")
        (event,) = await events(client)
    assert event["message"].endswith(f'name: far, uid: {owner.metadata.uid}] does not exist in namespace "default"')


async def test_an_owner_of_the_same_name_and_another_uid_is_another_object(client: Client) -> None:
    owner = await make(client, "owner")
    async with collecting(client):
        await make(client, "child", reference_to(owner))
        await make(client, "of-another", reference_to(owner, uid=GHOST))
        await asyncio.sleep(60)
        assert await exists(client, "child")
        assert not await exists(client, "of-another")


async def test_a_reference_with_other_coordinates_and_the_uid_of_an_object_is_verified_by_coordinates(
    client: Client,
) -> None:
    """The uid alone does not make an owner; a kind in another served version does not unmake one."""
    owner = await make(client, "owner")
    async with collecting(client):
        await make(client, "child", reference_to(owner))
        await make(client, "misnamed", reference_to(owner, name="other"))
        await asyncio.sleep(60)
        assert await exists(client, "child")
        assert not await exists(client, "misnamed")
        assert await exists(client, "owner")


# ------------------------------------------------------------------ changes between the check and the deletion


async def test_an_object_that_gets_another_owner_meanwhile_is_not_deleted(client: Client) -> None:
    owner = await make(client, "owner")
    interposed = Interposed(client)
    async with collecting(interposed):
        raced = await _race(client, interposed, {"ownerReferences": [reference_to(owner)]})
        await asyncio.sleep(HOURS)
        assert raced
        assert await exists(client, "child")


async def test_an_object_that_changes_otherwise_meanwhile_is_deleted(client: Client) -> None:
    interposed = Interposed(client)
    async with collecting(interposed):
        raced = await _race(client, interposed, {"labels": {"changed": "yes"}})
        await asyncio.sleep(5)
        assert raced
        assert not await exists(client, "child")


async def _race(client: Client, interposed: Interposed, change: dict[str, Any]) -> list[str]:
    """Another client changes the object after it was checked and before it is deleted."""
    await make(client, "child", reference())
    changed: list[str] = []
    delete = interposed.delete

    async def delete_late(kind: Any, name: str, *arguments: Any, **options: Any) -> Any:
        if not changed:
            changed.append(name)
            await client.patch(ConfigMap, name, MergePatch({"metadata": change}), "default")
        return await delete(kind, name, *arguments, **options)

    interposed.delete = delete_late  # type: ignore[method-assign]
    return changed


async def test_a_new_object_of_the_same_name_is_not_deleted_for_the_old_one(client: Client) -> None:
    interposed = Interposed(client)
    async with collecting(interposed):
        await make(client, "child", reference())
        delete = interposed.delete

        async def delete_late(kind: Any, name: str, *arguments: Any, **options: Any) -> Any:
            interposed.delete = delete  # type: ignore[method-assign]
            await client.delete(ConfigMap, "child", "default")
            await make(client, "child")
            return await delete(kind, name, *arguments, **options)

        interposed.delete = delete_late  # type: ignore[method-assign]
        await asyncio.sleep(HOURS)
        assert interposed.delete == delete
        assert await exists(client, "child")


# ------------------------------------------------------------------ one kind that does not work


async def test_one_kind_that_cannot_be_listed_does_not_stop_the_others(client: Client) -> None:
    def rule(call: Call) -> Response | None:
        if call.resource is not None and call.resource.plural == "secrets":
            return Response(200, body=b"<html>")
        return None

    interposed = Interposed(client)
    interposed.rules.append(rule)
    async with collecting(interposed):
        await make(client, "child", reference())
        await asyncio.sleep(120)
        assert not await exists(client, "child")
        widget = await define_widgets(client)
        await asyncio.sleep(60)
        await make(client, "of-widget", reference_to(widget))
        await asyncio.sleep(5)
        await client.delete(Widget, "w", "default")
        await asyncio.sleep(5)
        assert not await exists(client, "of-widget")


@pytest.mark.parametrize("kind", ["ConfigMap", "Node"])
async def test_an_owner_that_is_absent_is_asked_for_once(client: Client, kind: str) -> None:
    """Thousands of dependents may name it: of a kind with namespaces, and of one without."""
    for number in range(5):
        await make(client, f"child{number}", reference(kind))
    interposed = Interposed(client)
    async with collecting(interposed):
        await asyncio.sleep(60)
    assert not [number for number in range(5) if await exists(client, f"child{number}")]
    assert sum(reads(call, "ghost") for call in interposed.calls) == 1
