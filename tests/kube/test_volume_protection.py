"""Claims and volumes in use stay until no pod uses them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client, MergePatch, NotFound
from konverge.kube import volume_protection
from konverge.objects.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from tests.kube.conftest import Run, make_ready

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
