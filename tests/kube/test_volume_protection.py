"""Claims and volumes in use stay until no pod uses them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from konverge.client import Client, MergePatch, NotFound
from konverge.kube import volume_protection
from konverge.kube.volume_protection import CLASS
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from konverge.objects.kinds.storage_v1 import VolumeAttributesClass
from konverge.wire.message import Response
from tests.kube.conftest import Run, make_ready, running
from tests.kube.interposed import Interposed
from tests.kube.triggers import Triggers, record

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-43")]


async def claim(client: Client, name: str = "data") -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}},
    }  # fmt: skip
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
    await client.create(body, "default")


async def pod(client: Client, *, on: str = "node-1", volume: Any = None) -> Pod:
    volumes = [{"name": "v", **(volume or {"persistentVolumeClaim": {"claimName": "data"}})}]
    spec = {"containers": [{"name": "m", "image": "i"}], "volumes": volumes, "nodeName": on}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": spec}, "default")
    return await client.get(Pod, "user", "default")


async def is_gone(client: Client, name: str = "data") -> bool:
    await asyncio.sleep(1)
    try:
        await client.get(PersistentVolumeClaim, name, "default")
    except NotFound:
        return True
    return False


async def test_an_unused_claim_is_deleted_at_once(client: Client, run: Run) -> None:
    async with run(volume_protection):
        await claim(client)
        await client.delete(PersistentVolumeClaim, "data", "default")
        assert await is_gone(client)


async def test_a_claim_stays_while_its_pod_exists(client: Client, run: Run) -> None:
    async with run(volume_protection):
        await claim(client)
        user = await pod(client)
        await client.delete(PersistentVolumeClaim, "data", "default")
        assert not await is_gone(client)
        await make_ready(client, user, phase="Succeeded")
        assert not await is_gone(client)  # a pod that is over holds it all the same
        await client.delete(Pod, "user", "default", grace_period=0)
        assert await is_gone(client)


async def test_a_pod_without_a_node_holds_nothing(client: Client, run: Run) -> None:
    async with run(volume_protection):
        await claim(client)
        await pod(client, on="")
        await client.delete(PersistentVolumeClaim, "data", "default")
        assert await is_gone(client)


async def test_the_claim_of_an_ephemeral_volume_is_held_by_its_own_pod_only(client: Client, run: Run) -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    async with run(volume_protection):
        await claim(client, "user-v")
        user = await pod(client, volume={"ephemeral": {"volumeClaimTemplate": template}})
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "user", "uid": user.metadata.uid, "controller": True}
        patch = MergePatch({"metadata": {"ownerReferences": [owner]}})
        await client.patch(PersistentVolumeClaim, "user-v", patch, "default")
        await client.delete(PersistentVolumeClaim, "user-v", "default")
        assert not await is_gone(client, "user-v")
        await make_ready(client, user, phase="Failed")
        assert await is_gone(client, "user-v")


async def test_a_missing_finalizer_is_added_again(client: Client, run: Run) -> None:
    async with run(volume_protection):
        await claim(client)
        await client.patch(PersistentVolumeClaim, "data", MergePatch({"metadata": {"finalizers": None}}), "default")
        await asyncio.sleep(1)
        live = await client.get(PersistentVolumeClaim, "data", "default")
        assert live.metadata.finalizers == [volume_protection.CLAIM]


async def test_a_missing_finalizer_of_a_volume_is_added_again(client: Client, run: Run) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    async with run(volume_protection):
        await client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec})
        for finalizers in (None, ["tests.konverge.dev/kept"]):
            await client.patch(PersistentVolume, "pv", MergePatch({"metadata": {"finalizers": finalizers}}))
            await asyncio.sleep(1)
            live = await client.get(PersistentVolume, "pv")
            assert sorted(live.metadata.finalizers) == sorted([volume_protection.VOLUME, *(finalizers or [])])


async def test_a_bound_claim_reports_since_when_it_is_unused(client: Client, run: Run) -> None:
    async def unused() -> tuple[str, str | None]:
        await asyncio.sleep(1)
        (condition,) = (await client.get(PersistentVolumeClaim, "data", "default")).status.conditions
        return condition.status, condition.reason

    async with run(volume_protection):
        await claim(client)
        bound = MergePatch({"status": {"phase": "Bound"}})
        await client.patch(PersistentVolumeClaim, "data", bound, "default", subresource="status")
        assert await unused() == ("True", "NoPodsUsingPVC")
        await pod(client, on="")
        assert await unused() == ("False", "PodUsingPVC")
        await client.delete(Pod, "user", "default", grace_period=0)
        assert await unused() == ("True", "NoPodsUsingPVC")


async def test_a_volume_stays_while_it_is_bound(client: Client, run: Run) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    async with run(volume_protection):
        await client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec})
        for phase in ("Bound", "Released"):
            patch = MergePatch({"status": {"phase": phase}})
            await client.patch(PersistentVolume, "pv", patch, subresource="status")
            if phase == "Bound":
                await client.delete(PersistentVolume, "pv")
                await asyncio.sleep(1)
                assert (await client.get(PersistentVolume, "pv")).metadata.finalizers == [volume_protection.VOLUME]
        await asyncio.sleep(1)
        with pytest.raises(NotFound):
            await client.get(PersistentVolume, "pv")


def made_pod(*volumes: dict[str, Any], on: str = "node-1", phase: str = "Running", uid: str = "u") -> Pod:
    spec = {"containers": [], "volumes": list(volumes), "nodeName": on}
    metadata = {"name": "user", "namespace": "default", "uid": uid}
    return from_dict(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


DATA = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
OWN = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
PLAIN = {"name": "v", "emptyDir": {}}


@pytest.mark.parametrize(
    ("volumes", "claims"),
    [([DATA], {"data"}), ([OWN], {"user-v"}), ([PLAIN], set()), ([PLAIN, DATA, OWN], {"data", "user-v"}), ([], set())],
)
def test_which_claims_a_pod_concerns(volumes: list[dict[str, Any]], claims: set[str]) -> None:
    of_claims, *_ = volume_protection.controllers()
    trigger, seen = Triggers(of_claims), made_pod(*volumes)
    expected = {f"pvc-protection default/{name}" for name in claims}
    assert trigger.of(None, seen) == trigger.of(seen, None) == trigger.of(seen, seen) == expected
    found = record(seen)
    assert set(volume_protection.by_claim(found, found.meta)) == {f"default/{name}" for name in claims}


async def test_the_server_is_asked_before_a_claim_is_released(client: Client) -> None:
    """The cache may be behind: a pod that uses the claim has just been bound."""
    await claim(client)
    await client.patch(PersistentVolumeClaim, "data", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
    interposed = Interposed(client, near=False)
    listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [to_dict(made_pod(DATA))]}
    answer = Response(200, body=msgspec.json.encode(listed))
    interposed.rules.append(lambda call: answer if call.verb == "list" and "/pods" in call.target() else None)
    async with running(interposed, volume_protection):
        await client.delete(PersistentVolumeClaim, "data", "default")
        assert not await is_gone(client)
        interposed.rules.clear()
        await client.patch(PersistentVolumeClaim, "data", MergePatch({"metadata": {"labels": {"a": "c"}}}), "default")
        assert await is_gone(client)


async def test_only_claims_that_are_bound_report_their_use_and_only_changes_of_it(client: Client) -> None:
    interposed = Interposed(client)
    async with running(interposed, volume_protection):
        await claim(client)
        await pod(client)
        await asyncio.sleep(1)
        assert (await client.get(PersistentVolumeClaim, "data", "default")).status.conditions == []
        bound = MergePatch({"status": {"phase": "Bound", "conditions": [{"type": "Resizing", "status": "True"}]}})
        await client.patch(PersistentVolumeClaim, "data", bound, "default", subresource="status")
        await asyncio.sleep(1)
        live = await client.get(PersistentVolumeClaim, "data", "default")
        assert [(c.type, c.status, c.reason) for c in live.status.conditions] == [
            ("Resizing", "True", None),
            ("Unused", "False", "PodUsingPVC"),
        ]
        assert live.status.conditions[1].last_transition_time
        before = len(interposed.writes())
        await client.patch(PersistentVolumeClaim, "data", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
        await asyncio.sleep(1)
        assert interposed.writes()[before:] == []
        await make_ready(client, await client.get(Pod, "user", "default"), phase="Succeeded")
        await asyncio.sleep(1)
        live = await client.get(PersistentVolumeClaim, "data", "default")
        assert [(c.type, c.status) for c in live.status.conditions] == [("Resizing", "True"), ("Unused", "True")]


async def test_an_ephemeral_volume_of_another_pod_of_that_name_holds_nothing(client: Client, run: Run) -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    async with run(volume_protection):
        await claim(client, "user-v")
        await pod(client, volume={"ephemeral": {"volumeClaimTemplate": template}})
        await client.delete(PersistentVolumeClaim, "user-v", "default")
        assert await is_gone(client, "user-v")


async def classes(client: Client) -> list[str]:
    await asyncio.sleep(1)
    return [item.metadata.name for item in await client.list(VolumeAttributesClass)]


async def test_a_class_of_attributes_stays_while_it_is_named(client: Client, run: Run) -> None:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass"}
    async with run(volume_protection):
        for name in ("gold", "unused"):
            body = {**kind, "metadata": {"name": name}, "driverName": "x.io", "parameters": {"iops": "1"}}
            await client.create(body)
        assert CLASS in (await client.get(VolumeAttributesClass, "gold")).metadata.finalizers
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec |= {"volumeAttributesClassName": "gold"}
        meta = {"name": "data"}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
        await client.create(claim, "default")
        for name in ("gold", "unused"):
            await client.delete(VolumeAttributesClass, name)
        assert await classes(client) == ["gold"]
        await client.delete(PersistentVolumeClaim, "data", "default")
        assert await classes(client) == []


async def test_a_volume_holds_its_class_too(client: Client, run: Run) -> None:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": "gold"}}
    async with run(volume_protection):
        await client.create({**kind, "driverName": "x.io", "parameters": {"iops": "1"}})
        spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "volumeAttributesClassName": "gold"}
        spec |= {"csi": {"driver": "x.io", "volumeHandle": "v"}}
        await client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec})
        await client.delete(VolumeAttributesClass, "gold")
        assert await classes(client) == ["gold"]
        await client.delete(PersistentVolume, "v")
        assert await classes(client) == []
