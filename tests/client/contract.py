"""What the client promises against any API server: the same functions run on the real one and on the embedded one.

Each takes a client and a namespace of its own. A module that wants them makes both fixtures and calls `run`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from konverge.client import (
    AlreadyExists,
    BadRequest,
    Client,
    Conflict,
    DryRun,
    FieldOwner,
    Invalid,
    JsonPatch,
    MergePatch,
    MethodNotAllowed,
    Namespaced,
    NotFound,
    Recording,
    StrategicPatch,
    Strict,
    UnknownKind,
    UnsupportedMediaType,
    merge_between,
)
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.objects.labels import parse
from konverge.objects.meta import ObjectMeta
from konverge.objects.resource import Resource

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
Check = Callable[[Client, str], Awaitable[None]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


def config_map(name: str, namespace: str = "", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": "contract"}), data=data)


def deployment(name: str) -> dict[str, object]:
    labels = {"app": name}
    container = {"name": "main", "image": "nginx:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


@check
async def create_get_and_delete_typed(client: Client, namespace: str) -> None:
    created = await client.create(config_map("a", namespace, k="v"))
    assert created.metadata.uid
    read = await client.get(ConfigMap, "a", namespace=namespace)
    assert read.data == {"k": "v"}
    assert read.metadata.resource_version == created.metadata.resource_version
    assert await client.delete(ConfigMap, "a", namespace=namespace) is None
    with pytest.raises(NotFound) as gone:
        await client.get(ConfigMap, "a", namespace=namespace)
    assert not gone.value.kind_missing
    assert gone.value.details.name == "a"


@check
async def dynamic_access_by_resource_and_by_name(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    await space.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}})
    for kind in (CONFIG_MAPS, "cm", "configmap", "configmaps", "ConfigMap", "configmaps.v1."):
        stored = await space.get(kind, "a")
        assert stored["data"] == {"k": "v"}
    listed = await space.list("cm", field_selector="metadata.name=a")
    assert [(item["kind"], item["apiVersion"]) for item in listed] == [("ConfigMap", "v1")]


@check
async def names_with_a_group(client: Client, namespace: str) -> None:
    for name in ("deploy", "deployments", "deployments.apps", "Deployment", "deployments.v1.apps"):
        assert await client.mapper.find(name) == Resource("apps", "v1", "Deployment", "deployments")
    assert (await client.mapper.find("events")).group == "", "the core group wins"
    assert "status" in (await client.mapper.served("deploy")).subresources
    with pytest.raises(UnknownKind, match="nonsense"):
        await client.mapper.find("nonsense")


@check
async def creating_twice_and_creating_wrongly(client: Client, namespace: str) -> None:
    await client.create(config_map("a", namespace))
    with pytest.raises(AlreadyExists):
        await client.create(config_map("a", namespace))
    with pytest.raises(Invalid) as wrong:
        await client.create(config_map("Not A Name", namespace))
    assert [cause.field for cause in wrong.value.causes] == ["metadata.name"]
    with pytest.raises(NotFound, match="absent"):
        await client.create(config_map("a", "absent-namespace"))


@check
async def update_of_a_dict_is_locked(client: Client, namespace: str) -> None:
    await client.create(config_map("a", namespace, k="1"))
    first = await client.get(CONFIG_MAPS, "a", namespace=namespace)
    second = await client.get(CONFIG_MAPS, "a", namespace=namespace)
    first["data"]["k"] = "2"
    await client.update(first)
    second["data"]["k"] = "3"
    with pytest.raises(Conflict, match="Read the object again"):
        await client.update(second)


@check
async def replace_of_a_typed_object(client: Client, namespace: str) -> None:
    held = await client.create(Lease(metadata=ObjectMeta(name="leader", namespace=namespace)))
    held.spec.holder_identity = "me"
    stored = await client.replace(held)
    assert stored.spec.holder_identity == "me"
    held.spec.holder_identity = "you"
    with pytest.raises(Conflict):
        await client.replace(held)


@check
async def the_four_patches(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    await space.create(deployment("web"))
    merged = await space.patch(Deployment, "web", MergePatch({"spec": {"replicas": 2}}))
    assert merged.spec.replicas == 2
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    assert (await space.patch(Deployment, "web", JsonPatch(operations))).spec.replicas == 3
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox"}]}}}}
    patched = await space.patch(Deployment, "web", StrategicPatch(sidecar))
    assert {c.name for c in patched.spec.template.spec.containers} == {"main", "side"}
    desired = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"paused": True}}
    applied = await space.apply(desired, field_manager="contract")
    assert applied["spec"]["paused"] is True


@check
async def merge_between_two_typed_objects(client: Client, namespace: str) -> None:
    before = await client.create(config_map("a", namespace, keep="1", drop="2"))
    after = await client.get(ConfigMap, "a", namespace=namespace)
    after.data = {"keep": "1", "new": "3"}
    patch = merge_between(before, after, lock=True)
    stored = await client.patch(ConfigMap, "a", patch, namespace=namespace)
    assert stored.data == {"keep": "1", "new": "3"}
    with pytest.raises(Conflict):
        await client.patch(ConfigMap, "a", patch, namespace=namespace)


@check
async def apply_owns_fields_and_conflicts(client: Client, namespace: str) -> None:
    owner, other = FieldOwner(client, "one"), FieldOwner(client, "two")
    first = await owner.apply(config_map("a", namespace, k="1"))
    assert first.metadata.managed_fields[0].manager == "one"
    with pytest.raises(Conflict, match="force=True") as refused:
        await other.apply(config_map("a", namespace, k="2"))
    assert [cause.reason for cause in refused.value.causes] == ["FieldManagerConflict"]
    assert (await other.apply(config_map("a", namespace, k="2"), force=True)).data == {"k": "2"}


@check
async def status_and_scale(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    await space.create(deployment("web"))
    body = MergePatch({"status": {"observedGeneration": 7}})
    changed = await space.patch(Deployment, "web", body, subresource="status")
    assert changed.status.observed_generation == 7
    await space.scale(Deployment, "web", 4)
    scale = await space.get_sub(Deployment, "web", "scale")
    assert scale["kind"] == "Scale"
    assert scale["spec"]["replicas"] == 4
    assert (await space.get(Deployment, "web")).spec.replicas == 4


@check
async def lists_pages_and_selectors(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    for index in range(5):
        await space.create(config_map(f"m-{index}", index=str(index)))
    chosen = parse("app=contract")
    whole = await space.list(ConfigMap, label_selector=chosen)
    assert [item.metadata.name for item in whole] == [f"m-{index}" for index in range(5)]
    assert int(whole.metadata.resource_version) > 0
    pages = [page async for page in space.pages(ConfigMap, limit=2, label_selector=chosen)]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({page.metadata.resource_version for page in pages}) == 1
    names = [item.metadata.name async for item in space.each(ConfigMap, limit=3, label_selector="app=contract")]
    assert names == [f"m-{index}" for index in range(5)]
    metadata, raw = await space.list_bytes(ConfigMap, field_selector="metadata.name=m-3")
    assert metadata.resource_version
    assert len(raw) == 1
    assert b'"m-3"' in raw[0]
    _, partial = await space.list_bytes(ConfigMap, field_selector="metadata.name=m-3", metadata_only=True)
    assert b'"data"' not in partial[0]
    deleted = await space.delete_collection(ConfigMap, label_selector="app=contract")
    assert len(deleted) == 5


@check
async def watching(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    start = (await space.list(ConfigMap)).metadata.resource_version
    await space.create(config_map("w", k="1"))
    await space.patch(ConfigMap, "w", MergePatch({"data": {"k": "2"}}))
    await space.delete(ConfigMap, "w")
    seen = []
    async with aclosing(space.watch(ConfigMap, resource_version=start, label_selector="app=contract")) as events:
        async for event in events:
            seen.append((event.type, event.object.data))
            if event.type == "DELETED":
                break
    assert seen == [("ADDED", {"k": "1"}), ("MODIFIED", {"k": "2"}), ("DELETED", {"k": "2"})]


@check
async def watching_from_the_present_state(client: Client, namespace: str) -> None:
    space = Namespaced(client, namespace)
    await space.create(config_map("w", k="1"))
    kinds: list[str] = []
    stream = space.watch_bytes(
        ConfigMap,
        label_selector="app=contract",
        send_initial_events=True,
        resource_version_match="NotOlderThan",
    )
    async with aclosing(stream) as batches:
        async for batch in batches:
            kinds += [kind for kind, _ in batch]
            if b"k8s.io/initial-events-end" in batch[-1][1]:
                break
    assert kinds == ["ADDED", "BOOKMARK"]


@check
async def a_watch_ends_when_its_time_is_up(client: Client, namespace: str) -> None:
    events = [event async for event in client.watch(Secret, namespace, resource_version="0", timeout_seconds=1)]
    assert {event.type for event in events} <= {"ADDED", "BOOKMARK"}


@check
async def wrappers_on_the_wire(client: Client, namespace: str) -> None:
    recording = Recording(client)
    dry = DryRun(Namespaced(recording, namespace))
    assert (await dry.create(config_map("a"))).metadata.name == "a"
    with pytest.raises(NotFound):
        await dry.get(ConfigMap, "a")
    assert [call.verb for call in recording.calls] == ["create", "get"]
    assert [call.verb for call in recording.writes] == ["create"]
    unknown = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dta": {}}
    with pytest.raises(BadRequest, match="unknown field"):
        await Strict(Namespaced(client, namespace)).create(unknown)


@check
async def deleting_with_preconditions(client: Client, namespace: str) -> None:
    made = await client.create(config_map("a", namespace))
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "a", namespace=namespace, uid="00000000-0000-0000-0000-000000000000")
    await client.delete(ConfigMap, "a", namespace=namespace, uid=made.metadata.uid, propagation="Background")
    space = await client.delete(Namespace, namespace)
    assert space is not None
    assert space.metadata.deletion_timestamp


@check
async def what_the_server_does_not_do(client: Client, namespace: str) -> None:
    nowhere = Resource("nowhere.example.com", "v1", "Thing", "things")
    with pytest.raises(NotFound, match="CustomResourceDefinition") as missing:
        await client.list(nowhere)
    assert missing.value.kind_missing
    with pytest.raises(MethodNotAllowed):
        await client.list(Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False))
    assert (await client.version())["major"] == "1"


@check
async def strategic_patches_are_for_built_ins(client: Client, namespace: str) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{namespace}s.contract.example.com"},
        "spec": {
            "group": "contract.example.com",
            "scope": "Namespaced",
            "names": {"plural": f"{namespace}s", "kind": f"K{namespace}".title().replace("-", "")},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    },
                }
            ],
        },
    }
    await client.create(definition)
    kind = definition["spec"]["names"]["kind"]  # type: ignore[index]
    selector = f"metadata.name={namespace}s.contract.example.com"
    async with aclosing(client.watch("crd", field_selector=selector)) as events:
        async for event in events:
            conditions = event.object.get("status", {}).get("conditions") or []
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                break
    thing = {"apiVersion": "contract.example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"n": 1}}
    resource = Resource("contract.example.com", "v1", str(kind), f"{namespace}s")
    await client.create(thing, namespace, resource=resource)
    with pytest.raises(UnsupportedMediaType, match="use MergePatch"):
        await client.patch(resource, "a", StrategicPatch({"spec": {"n": 2}}), namespace)
    assert (await client.patch(resource, "a", MergePatch({"spec": {"n": 2}}), namespace))["spec"] == {"n": 2}
