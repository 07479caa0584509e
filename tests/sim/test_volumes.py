"""Storage: claims are bound, wait for a pod, grow and are reclaimed; Services get load balancer addresses."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch, NotFound
from konverge.objects.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod, Service
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, condition, pod

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-17")]


def claim(name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": whole}


def volume(name: str, size: str, **spec: Any) -> dict[str, Any]:
    whole = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "hostPath": {"path": "/x"}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": whole}


def user(name: str, claim_name: str) -> Pod:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}])


async def read(cluster: Cluster, name: str) -> PersistentVolumeClaim:
    return await cluster.client.get(PersistentVolumeClaim, name, SPACE)


async def forget(cluster: Cluster, name: str) -> None:
    """Delete a claim for good; the protection controller is not here to take its finalizer away."""
    await cluster.client.delete(PersistentVolumeClaim, name, SPACE)
    await cluster.client.patch(PersistentVolumeClaim, name, MergePatch({"metadata": {"finalizers": None}}), SPACE)
    await cluster.settle()


async def test_the_default_class_provisions_at_once_and_reclaims(cluster: Cluster) -> None:
    await cluster.client.create(claim("data"))
    await cluster.settle()
    result = await read(cluster, "data")
    assert result.status.phase == "Bound"
    assert str(result.status.capacity["storage"]) == "1Gi"
    made = await cluster.client.get(PersistentVolume, result.spec.volume_name or "")
    assert made.status.phase == "Bound"
    assert made.spec.claim_ref is not None
    assert made.spec.claim_ref.name == "data"
    await forget(cluster, "data")
    with pytest.raises(NotFound):
        await _gone(cluster, made)


async def _gone(cluster: Cluster, made: PersistentVolume) -> None:
    await cluster.client.patch(PersistentVolume, made.metadata.name, MergePatch({"metadata": {"finalizers": None}}))
    await cluster.client.get(PersistentVolume, made.metadata.name)


async def test_a_waiting_class_provisions_when_a_pod_is_placed(cluster: Cluster) -> None:
    await cluster.client.create(claim("data", storageClassName="standard-wait"))
    await cluster.settle()
    assert (await read(cluster, "data")).status.phase == "Pending"
    await cluster.client.create(user("web", "data"))
    await cluster.settle()
    result, web = await read(cluster, "data"), await cluster.client.get(Pod, "web", SPACE)
    assert result.status.phase == "Bound"
    assert result.metadata.annotations["volume.kubernetes.io/selected-node"] == web.spec.node_name
    assert condition(web, "Ready") == ("True", "")


async def test_pods_wait_for_their_claims_and_say_so(cluster: Cluster) -> None:
    await cluster.client.create(user("web", "data"))
    await cluster.settle()
    web = await cluster.client.get(Pod, "web", SPACE)
    assert web.status.conditions[0].message == (
        '0/3 nodes are available: persistentvolumeclaim "data" not found. '
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    await cluster.client.create(claim("data", storageClassName="none"))
    await cluster.settle()
    web = await cluster.client.get(Pod, "web", SPACE)
    assert "pod has unbound immediate PersistentVolumeClaims" in (web.status.conditions[0].message or "")
    assert (await read(cluster, "data")).status.phase == "Pending"
    await cluster.client.create(volume("by-hand", "5Gi", storageClassName="none"))
    await cluster.settle()
    assert (await read(cluster, "data")).spec.volume_name == "by-hand"
    assert condition(await cluster.client.get(Pod, "web", SPACE), "Ready") == ("True", "")


async def test_the_smallest_volume_that_will_do_is_taken_and_kept(cluster: Cluster) -> None:
    for name, size in (("large", "10Gi"), ("small", "1Gi"), ("right", "4Gi")):
        await cluster.client.create(volume(name, size, storageClassName="hand"))
    await cluster.client.create(claim("data", "3Gi", storageClassName="hand"))
    await cluster.settle()
    assert (await read(cluster, "data")).spec.volume_name == "right"
    await forget(cluster, "data")
    assert (await cluster.client.get(PersistentVolume, "right")).status.phase == "Released"
    assert (await cluster.client.get(PersistentVolume, "large")).status.phase == "Available"


@pytest.mark.spec("S-76")
@pytest.mark.parametrize("uid", [{}, {"uid": ""}])
async def test_a_volume_that_is_reserved_for_a_name_is_available(cluster: Cluster, uid: dict[str, str]) -> None:
    reserved = {"namespace": SPACE, "name": "data", **uid}
    policy = {"storageClassName": "hand", "persistentVolumeReclaimPolicy": "Delete"}
    await cluster.client.create(volume("mine", "1Gi", claimRef=reserved, **policy))
    await cluster.settle()
    assert (await cluster.client.get(PersistentVolume, "mine")).status.phase == "Available"
    await cluster.client.create(claim("other", storageClassName="hand"))
    await cluster.client.create(claim("data", storageClassName="hand"))
    await cluster.settle()
    assert (await read(cluster, "other")).status.phase == "Pending"
    assert (await read(cluster, "data")).spec.volume_name == "mine"
    assert (await cluster.client.get(PersistentVolume, "mine")).status.phase == "Bound"


@pytest.mark.spec("S-76")
@pytest.mark.parametrize("released", [{"claimRef": None}, {"claimRef": {"uid": None}}])
async def test_a_released_volume_is_available_when_it_is_set_free(cluster: Cluster, released: dict[str, Any]) -> None:
    await cluster.client.create(volume("disk", "1Gi", storageClassName="hand"))
    await cluster.client.create(claim("data", storageClassName="hand"))
    await cluster.settle()
    await forget(cluster, "data")
    assert (await cluster.client.get(PersistentVolume, "disk")).status.phase == "Released"
    await cluster.client.patch(PersistentVolume, "disk", MergePatch({"spec": released}))
    await cluster.settle()
    assert (await cluster.client.get(PersistentVolume, "disk")).status.phase == "Available"
    await cluster.client.create(claim("data", storageClassName="hand"))
    await cluster.settle()
    assert (await read(cluster, "data")).spec.volume_name == "disk"
    assert (await cluster.client.get(PersistentVolume, "disk")).status.phase == "Bound"


async def test_a_claim_that_asks_for_more_grows(cluster: Cluster) -> None:
    await cluster.client.create(claim("data"))
    await cluster.settle()
    desired = MergePatch({"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    await cluster.client.patch(PersistentVolumeClaim, "data", desired, SPACE)
    await cluster.settle()
    result = await read(cluster, "data")
    assert str(result.status.capacity["storage"]) == "2Gi"
    made = await cluster.client.get(PersistentVolume, result.spec.volume_name or "")
    assert str(made.spec.capacity["storage"]) == "2Gi"


async def test_load_balancers_have_addresses(cluster: Cluster) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": SPACE},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "web"}},
    }
    await cluster.client.create(body)
    await cluster.settle()
    web = await cluster.client.get(Service, "web", SPACE)
    assert web.spec.cluster_ip
    assert web.spec.ports[0].node_port
    assert web.status.load_balancer is not None
    assert [item.ip for item in web.status.load_balancer.ingress] == ["127.255.0.1"]
    await cluster.client.patch(Service, "web", MergePatch({"spec": {"type": "ClusterIP"}}), SPACE)
    await cluster.settle()
    web = await cluster.client.get(Service, "web", SPACE)
    assert not (web.status.load_balancer and web.status.load_balancer.ingress)
