"""Claims that wait for a pod take volumes made by hand that its node can reach, or the pod says what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.client import Conflict, MergePatch
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Event, PersistentVolume, PersistentVolumeClaim, Pod
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.sim.cluster import Cluster
from konverge.sim.scheduler import Scheduler
from konverge.sim.scheduler.filters import Claims
from konverge.sim.scheduler.state import ClusterState, describe
from konverge.sim.volume_matching import on_node
from konverge.sim.volumes import SELECTED_NODE
from tests.sim.conftest import SPACE, pod
from tests.sim.scheduler.test_scheduler import cluster_of, node, place, where
from tests.sim.test_volumes import claim, read, volume

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-77")]

HOST = "kubernetes.io/hostname"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"


def storage_class(provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Two nodes, and a class whose volumes are made by hand."""
    async with cluster_of(node("a", {HOST: "a"}), node("b", {HOST: "b"})) as cluster:
        await cluster.client.create(storage_class("kubernetes.io/no-provisioner"))
        yield cluster


def on(host: str, name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    """A volume that only one node can reach."""
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [host]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    return volume(name, size, storageClassName="local", nodeAffinity=affinity, **spec)


def wants(name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    return claim(name, size, storageClassName="local", **spec)


def uses(name: str, *claims: str, **spec: Any) -> Pod:
    volumes = [{"name": item, "persistentVolumeClaim": {"claimName": item}} for item in claims]
    return pod(name, volumes=volumes, **spec)


async def make(cluster: Cluster, *objects: Any) -> None:
    for item in objects:
        await cluster.client.create(item)
    await cluster.settle()


async def told(cluster: Cluster, kind: str, name: str) -> list[tuple[str, str]]:
    events = await cluster.client.list(Event, SPACE)
    mine = [event for event in events if (event.involved_object.kind, event.involved_object.name) == (kind, name)]
    return [(event.reason or "", event.message or "") for event in mine]


async def test_a_claim_takes_the_volume_that_the_pods_node_reaches(cluster: Cluster) -> None:
    await make(cluster, on("a", "pv-1"), on("b", "pv-2", "2Gi"), wants("data"))
    assert await place(cluster, uses("web", "data", nodeSelector={HOST: "b"})) == ["b"]
    bound = await read(cluster, "data")
    assert (bound.status.phase, bound.spec.volume_name) == ("Bound", "pv-2")
    assert SELECTED_NODE not in bound.metadata.annotations
    made = await cluster.client.get(PersistentVolume, "pv-2")
    assert made.spec.claim_ref is not None
    assert made.spec.claim_ref.uid == bound.metadata.uid
    assert (await cluster.client.get(PersistentVolume, "pv-1")).status.phase == "Available"


async def test_a_pod_goes_where_there_is_a_volume(cluster: Cluster) -> None:
    await make(cluster, on("b", "pv-2"), wants("data"))
    assert await place(cluster, uses("web", "data")) == ["b"]


async def test_without_a_volume_pod_and_claim_say_so_and_go_on_when_there_is_one(cluster: Cluster) -> None:
    await make(cluster, on("a", "small", "1Gi"), wants("data", "2Gi"))
    first = ("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    assert await told(cluster, "PersistentVolumeClaim", "data") == [first]
    message = (await place(cluster, uses("web", "data")))[0]
    assert message.startswith(f"0/2 nodes are available: 2 {NONE_TO_BIND}. preemption: ")
    assert ("FailedScheduling", message) in await told(cluster, "Pod", "web")
    waits = ("WaitForPodScheduled", "waiting for pod web to be scheduled")
    assert waits in await told(cluster, "PersistentVolumeClaim", "data")
    await make(cluster, uses("twin", "data"), uses("other"), uses("third", "none"))
    both = ("WaitForPodScheduled", "waiting for pods twin,web to be scheduled")
    assert both in await told(cluster, "PersistentVolumeClaim", "data")
    assert SELECTED_NODE not in (await read(cluster, "data")).metadata.annotations
    await make(cluster, on("b", "large", "5Gi"))
    assert await where(cluster, "web") == "b"
    assert (await read(cluster, "data")).spec.volume_name == "large"


async def test_each_node_is_asked_by_itself(cluster: Cluster) -> None:
    await make(cluster, on("a", "pv-1"), wants("data"))
    message = (await place(cluster, uses("web", "data", nodeSelector={HOST: "b"})))[0]
    one = "1 node(s) didn't match Pod's node affinity/selector"
    assert message.startswith(f"0/2 nodes are available: 1 {NONE_TO_BIND}, {one}. preemption: ")


async def test_claims_of_a_pod_take_different_volumes_the_smallest_first(cluster: Cluster) -> None:
    await make(cluster, on("a", "pv-1", "9Gi"), on("b", "pv-2", "6Gi"), on("b", "pv-3", "5Gi"))
    await make(cluster, wants("big", "4Gi"), wants("little", "1Gi"))
    assert await place(cluster, uses("web", "big", "little")) == ["b"]
    taken = [(await read(cluster, name)).spec.volume_name for name in ("big", "little")]
    assert taken == ["pv-2", "pv-3"]


async def test_a_claim_that_is_mounted_twice_takes_one_volume(cluster: Cluster) -> None:
    await make(cluster, on("a", "pv-1"), wants("data"))
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": "data"}} for name in ("x", "y")]
    assert await place(cluster, pod("web", volumes=volumes)) == ["a"]


async def test_pods_that_come_together_do_not_take_the_same_volume(cluster: Cluster) -> None:
    await make(cluster, on("a", "pv-1"), on("b", "pv-2"), wants("data-0"), wants("data-1"))
    await make(cluster, uses("web-0", "data-0"), uses("web-1", "data-1"))
    assert sorted([await where(cluster, "web-0"), await where(cluster, "web-1")]) == ["a", "b"]


async def test_a_class_that_provisions_takes_what_is_there_first() -> None:
    async with cluster_of(node("a", {HOST: "a"}), node("b", {HOST: "b"})) as cluster:
        await make(cluster, storage_class("example.com/disks"), on("a", "pv-1"), wants("data"), wants("more"))
        assert await place(cluster, uses("web", "data", nodeSelector={HOST: "b"})) == ["b"]
        provisioned = await read(cluster, "data")
        assert provisioned.spec.volume_name == f"pvc-{provisioned.metadata.uid}"
        assert provisioned.metadata.annotations[SELECTED_NODE] == "b"
        assert await place(cluster, uses("db", "more", nodeSelector={HOST: "a"})) == ["a"]
        assert (await read(cluster, "more")).spec.volume_name == "pv-1"


@pytest.mark.parametrize("named", ["by the volume", "by the claim"])
async def test_a_claim_and_volume_made_for_each_other_wait_for_no_pod(cluster: Cluster, named: str) -> None:
    reserved: dict[str, Any] = {"claimRef": {"namespace": SPACE, "name": "data"}} if named == "by the volume" else {}
    await make(cluster, on("b", "pv-1", **reserved), on("a", "pv-2"))
    await make(cluster, wants("data", **({} if reserved else {"volumeName": "pv-1"})))
    bound = await read(cluster, "data")
    assert (bound.status.phase, bound.spec.volume_name) == ("Bound", "pv-1")
    assert await place(cluster, uses("web", "data")) == ["b"]


async def test_a_claim_whose_named_volume_is_not_there_is_left_alone(cluster: Cluster) -> None:
    await make(cluster, on("a", "pv-1"), wants("data", volumeName="elsewhere"))
    await make(cluster, uses("web", "data"))
    assert SELECTED_NODE not in (await read(cluster, "data")).metadata.annotations
    assert (await cluster.client.get(PersistentVolume, "pv-1")).spec.claim_ref is None


class Cache:
    """What the scheduler's caches are asked, with one object in each."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def get(self, name: str, namespace: str = "") -> Any:
        return self.held if self.held.metadata.name == name else None

    def list(self) -> list[Any]:
        return [self.held]


def at(version: str, **spec: Any) -> PersistentVolume:
    made = from_dict(PersistentVolume, on("a", "pv-1", **spec))
    made.metadata.resource_version = version
    return made


def caches(volumes: Cache, asked: dict[str, Any], provisioner: str) -> Claims:
    kind = from_dict(StorageClass, storage_class(provisioner))
    held: tuple[Any, ...] = (Cache(from_dict(PersistentVolumeClaim, asked)), volumes, Cache(kind))
    return Claims(*held)


def test_a_reservation_holds_until_the_cache_knows_more() -> None:
    volumes = Cache(at("1"))
    claims = caches(volumes, wants("data"), "example.com/disks")
    user, reserved = describe(uses("web", "data")), at("2", claimRef={"namespace": SPACE, "name": "other"})
    assert claims.of(user, ClusterState()).known == [at("1")]
    claims.assume(at("1"), reserved)
    assert claims.of(user, ClusterState()).known == [reserved]
    volumes.held = at("3")
    assert claims.of(user, ClusterState()).known == [at("3")]
    volumes.held = at("1")
    assert claims.of(user, ClusterState()).known == [at("1")]  # it was forgotten


FILLED = {"dataSourceRef": {"apiGroup": "example.com", "kind": "Image", "name": "disk"}}


@pytest.mark.parametrize(
    ("provisioner", "annotated", "more", "searches"),
    [
        ("example.com/disks", False, {}, True),
        ("example.com/disks", True, {}, False),
        ("kubernetes.io/no-provisioner", True, {}, True),
        ("example.com/disks", False, FILLED, False),
        ("example.com/disks", False, {"volumeName": "pv-1"}, False),
    ],
)
def test_claims_that_get_a_volume_otherwise_search_for_none(
    provisioner: str, annotated: bool, more: dict[str, Any], searches: bool
) -> None:
    asked = wants("data", **more)
    asked["metadata"]["annotations"] = {SELECTED_NODE: "a"} if annotated else {}
    found = caches(Cache(at("1")), asked, provisioner).of(describe(uses("web", "data")), ClusterState())
    assert list(found.searching) == (["data"] if searches else [])


async def test_a_volume_that_has_changed_is_not_reserved(cluster: Cluster) -> None:
    await make(cluster, on("a", "pv-1"), wants("data"))
    stale = await cluster.client.get(PersistentVolume, "pv-1")
    await cluster.client.patch(PersistentVolume, "pv-1", MergePatch({"metadata": {"labels": {"taken": "soon"}}}))
    scheduler = Scheduler()
    scheduler._client = cluster.client
    with pytest.raises(Conflict):
        await scheduler._reserve(stale, await read(cluster, "data"))
    assert (await cluster.client.get(PersistentVolume, "pv-1")).spec.claim_ref is None


@pytest.mark.parametrize(("host", "taken"), [("a", {}), ("b", {"data": "mine"})])
def test_what_is_reserved_is_taken_where_it_is_and_nothing_else_elsewhere(host: str, taken: dict[str, str]) -> None:
    asked = from_dict(PersistentVolumeClaim, wants("data"))
    mine = on("b", "mine", "5Gi", claimRef={"namespace": SPACE, "name": "data"})
    volumes = [from_dict(PersistentVolume, body) for body in (on("a", "pv-1"), on("b", "pv-2"), mine)]
    found = on_node([asked], volumes, node(host, {HOST: host}))
    assert {name: volume.metadata.name for name, volume in found.items()} == taken
