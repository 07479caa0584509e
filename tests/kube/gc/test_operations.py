"""The requests of the garbage collector: guarded by uid and version, and none without a need."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from konverge import ObjectMeta
from konverge.client import Client, Conflict, MergePatch, NotFound
from konverge.client.call import Call
from konverge.client.errors import MalformedAnswer
from konverge.kube.gc.metadata import FOREGROUND, ORPHAN, Identity, Metadata, Reference, read_metadata
from konverge.kube.gc.operations import NamespacedOwner, Operations, UnservedKind
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace
from konverge.objects.meta import OwnerReference
from konverge.objects.resource import Resource
from konverge.wire.message import Response
from tests.kube.interposed import Interposed, reads, refusing

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-41")]


def kinds(api_version: str, kind: str) -> Resource | None:
    return {("v1", "ConfigMap"): ConfigMap.resource, ("v1", "Namespace"): Namespace.resource}.get((api_version, kind))


def owner(uid: str, *, blocks: bool | None = None, controller: bool | None = None) -> OwnerReference:
    return OwnerReference(
        api_version="v1", kind="ConfigMap", name=uid, uid=uid, block_owner_deletion=blocks, controller=controller
    )


async def made(client: Client, *owners: OwnerReference, **meta: Any) -> Identity:
    metadata = ObjectMeta(name="a", namespace="default", owner_references=list(owners), **meta)
    created = await client.create(ConfigMap(metadata=metadata))
    return Identity("ConfigMap", "v1", "default", "a", created.metadata.uid)


async def live(client: Client) -> ObjectMeta:
    return (await client.get(ConfigMap, "a", "default")).metadata


def test_where_an_object_is() -> None:
    operations = Operations(None, kinds)  # type: ignore[arg-type]
    assert operations.locate(Identity("ConfigMap", "v1", "default", "a", "u")) == (ConfigMap.resource, "default")
    assert operations.locate(Identity("Namespace", "v1", "default", "a", "u")) == (Namespace.resource, "")
    with pytest.raises(NamespacedOwner):
        operations.locate(Identity("ConfigMap", "v1", "", "a", "u"))
    with pytest.raises(UnservedKind):
        operations.locate(Identity("Other", "v1", "default", "a", "u"))


async def test_the_live_object_has_the_same_uid(client: Client) -> None:
    identity = await made(client, owner("o", blocks=True))
    operations = Operations(client, kinds)
    found = await operations.live(identity)
    assert found is not None
    assert (found.name, found.uid) == ("a", identity.uid)
    assert found.owners == (Reference("ConfigMap", "v1", "o", "o", True),)
    assert await operations.live(identity._replace(uid="other")) is None
    assert await operations.live(identity._replace(name="b")) is None


@pytest.mark.parametrize(("code", "error"), [(500, Exception), (403, Exception)])
async def test_a_refused_read_says_nothing_about_the_object(client: Client, code: int, error: type[Exception]) -> None:
    interposed = Interposed(client)
    identity = await made(client)
    interposed.rules.append(refusing("a", code))
    with pytest.raises(error):
        await Operations(interposed, kinds).live(identity)
    interposed.rules[:] = [lambda call: Response(200, body=b'{"metadata":{}}') if reads(call, "a") else None]
    with pytest.raises(MalformedAnswer):
        await Operations(interposed, kinds).live(identity)


async def test_references_are_dropped_and_others_kept(client: Client) -> None:
    identity = await made(client, owner("x"), owner("y", controller=True), owner("z"))
    interposed = Interposed(client)
    operations = Operations(interposed, kinds)
    await operations.drop_references(identity, set())
    assert interposed.calls == []
    await operations.drop_references(identity, {"other"})
    assert interposed.writes() == []
    await operations.drop_references(identity._replace(uid="other"), {"x"})
    assert interposed.writes() == []
    await operations.drop_references(identity, {"x", "z"})
    assert [(o.uid, o.controller) for o in (await live(client)).owner_references] == [("y", True)]
    await operations.drop_references(identity, {"y"})
    assert (await live(client)).owner_references == []
    await operations.drop_references(identity, {"y"})
    await operations.unblock(identity)
    await operations.drop_finalizer(identity, "none")
    assert (await live(client)).owner_references == []
    await operations.drop_references(identity._replace(name="gone"), {"y"})


async def test_no_owner_waits_for_an_object_that_is_unblocked(client: Client) -> None:
    identity = await made(client, owner("x", blocks=True, controller=True), owner("y"), owner("z", blocks=False))
    operations = Operations(client, kinds)
    await operations.unblock(identity._replace(uid="other"))
    assert [o.block_owner_deletion for o in (await live(client)).owner_references] == [True, None, False]
    await operations.unblock(identity)
    found = (await live(client)).owner_references
    assert [(o.uid, o.block_owner_deletion, o.controller) for o in found] == [
        ("x", False, True), ("y", None, None), ("z", False, None),
    ]  # fmt: skip


async def test_one_finalizer_is_dropped(client: Client) -> None:
    identity = await made(client, finalizers=[FOREGROUND, "tests.konverge.dev/kept", "tests.konverge.dev/last"])
    interposed = Interposed(client)
    operations = Operations(interposed, kinds)
    await operations.drop_finalizer(identity, "other")
    assert interposed.writes() == []
    await operations.drop_finalizer(identity, FOREGROUND)
    assert (await live(client)).finalizers == ["tests.konverge.dev/kept", "tests.konverge.dev/last"]
    await operations.drop_finalizer(identity, "tests.konverge.dev/last")
    await operations.drop_finalizer(identity, "tests.konverge.dev/kept")
    assert (await live(client)).finalizers == []


async def test_a_patch_is_guarded_by_the_version_that_was_read(client: Client) -> None:
    identity = await made(client, owner("x"), owner("y"))
    body = msgspec.json.encode(await client.get(ConfigMap.resource, "a", "default"))
    await client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
    interposed = Interposed(client)
    interposed.rules.append(lambda call: Response(200, body=body) if reads(call, "a") else None)
    with pytest.raises(Conflict):
        await Operations(interposed, kinds).drop_references(identity, {"x"})
    assert len((await live(client)).owner_references) == 2


async def seen(client: Client, identity: Identity) -> Metadata:
    found = await Operations(client, kinds).live(identity)
    assert found is not None
    return found


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_an_object_is_deleted_with_a_policy(client: Client, policy: Any) -> None:
    identity = await made(client, owner("x"))
    before = await seen(client, identity)
    interposed = Interposed(client)
    assert await Operations(interposed, kinds).delete(identity, before, policy)
    (call,) = interposed.calls
    assert identity.uid.encode() in call.body
    assert before.version.encode() in call.body
    assert policy.encode() in call.body
    if policy == "Background":
        assert not await Operations(client, kinds).delete(identity, before, policy)
    else:
        expected = {"Foreground": FOREGROUND, "Orphan": ORPHAN}[policy]
        assert (await live(client)).finalizers == [expected]


@pytest.mark.parametrize(
    ("change", "deleted"),
    [({"labels": {"a": "b"}}, True), ({"ownerReferences": None}, False)],
)
async def test_only_a_change_of_its_owners_keeps_an_object(
    client: Client, change: dict[str, Any], deleted: bool
) -> None:
    identity = await made(client, owner("x"))
    before = await seen(client, identity)
    await client.patch(ConfigMap, "a", MergePatch({"metadata": change}), "default")
    operations = Operations(client, kinds)
    if deleted:
        assert await operations.delete(identity, before, "Background")
        with pytest.raises(NotFound):
            await live(client)
    else:
        with pytest.raises(Conflict):
            await operations.delete(identity, before, "Background")
        await live(client)


async def test_a_new_object_of_the_same_name_is_another_one(client: Client) -> None:
    identity = await made(client, owner("x"))
    before = await seen(client, identity)
    await client.delete(ConfigMap, "a", "default")
    again = await made(client, owner("x"))
    assert not await Operations(client, kinds).delete(identity, before, "Background")
    assert (await live(client)).uid == again.uid


async def test_a_conflict_without_a_change_is_an_error(client: Client) -> None:
    identity = await made(client)
    before = await seen(client, identity)
    interposed = Interposed(client)
    interposed.rules.append(refusing("a", 409, verb="delete"))
    with pytest.raises(Conflict):
        await Operations(interposed, kinds).delete(identity, before, "Background")
    assert len([call for call in interposed.calls if call.verb == "delete"]) == 1
    assert isinstance(interposed.calls[0], Call)


def test_what_an_object_says_about_its_deletion() -> None:
    def meta(*finalizers: str, deleting: bool = True) -> Metadata:
        timestamp = "2026-01-01T00:00:00Z" if deleting else None
        document = {"metadata": {"name": "a", "uid": "u", "finalizers": finalizers, "deletionTimestamp": timestamp}}
        return read_metadata(msgspec.json.encode(document))

    assert meta(FOREGROUND).deletes_dependents
    assert not meta(FOREGROUND, deleting=False).deletes_dependents
    assert not meta(ORPHAN).deletes_dependents
    assert meta(ORPHAN).starts_deletion(ORPHAN, None)
    assert meta(ORPHAN).starts_deletion(ORPHAN, meta(ORPHAN, deleting=False))
    assert meta(ORPHAN).starts_deletion(ORPHAN, meta())
    assert not meta(ORPHAN).starts_deletion(ORPHAN, meta(ORPHAN))
    assert not meta(ORPHAN, deleting=False).starts_deletion(ORPHAN, None)
    assert not meta().starts_deletion(ORPHAN, None)
    with pytest.raises(msgspec.DecodeError):
        read_metadata(b'{"metadata":{"name":"a","uid":""}}')
    with pytest.raises(msgspec.DecodeError):
        read_metadata(b"{}")
