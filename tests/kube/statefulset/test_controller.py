"""StatefulSets: order, scaling, rolling updates, partitions, claims and their retention, revisions."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.client.call import Call
from konverge.client.errors import error_from_answer
from konverge.kube.gc.controller import GarbageCollector
from konverge.kube.statefulset import controller as statefulset
from konverge.kube.statefulset.identity import ordinal_of
from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import (
    ControllerRevision,
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetUpdateStrategy,
)
from konverge.objects.kinds.core_v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
)
from konverge.wire.message import Response
from tests.kube.conftest import Run, pods, running
from tests.kube.interposed import Interposed
from tests.kube.kubelet import Kubelet
from tests.kube.objects import rolling_update, set_image, template
from tests.kube.objects import statefulset as web_statefulset

pytestmark = pytest.mark.spec("R-34")


virtual = pytest.mark.virtual


def data() -> PersistentVolumeClaim:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return PersistentVolumeClaim(metadata=ObjectMeta(name="data"), spec=from_dict(PersistentVolumeClaimSpec, spec))


async def patch(client: Client, spec: dict[str, Any]) -> None:
    await client.patch(StatefulSet, "web", MergePatch({"spec": spec}), "default")


async def images(client: Client) -> dict[str, str]:
    return {pod.metadata.name: pod.spec.containers[0].image or "" for pod in await pods(client, "app=web")}


async def claims(client: Client) -> dict[str, list[str]]:
    """name -> owners"""
    live = (await client.list(PersistentVolumeClaim, "default")).items
    return {c.metadata.name: [f"{o.kind} {o.name}" for o in c.metadata.owner_references] for c in live}


@virtual
async def test_pods_are_created_one_after_the_other_and_deleted_in_reverse(client: Client, run: Run) -> None:
    kubelet = Kubelet()
    async with run(statefulset, kubelet):
        await client.create(web_statefulset(3))
        await asyncio.sleep(10)
        assert kubelet.log == [f"{what} web-{n}" for n in range(3) for what in ("bound", "ready")]
        kubelet.log.clear()
        await patch(client, {"replicas": 1})
        await asyncio.sleep(10)
        assert kubelet.log == ["gone web-2", "gone web-1"]
        status = (await client.get(StatefulSet, "web", "default")).status
        assert (status.replicas, status.ready_replicas, status.available_replicas) == (1, 1, 1)
        assert status.current_revision == status.update_revision
        assert (status.current_replicas, status.updated_replicas, status.observed_generation) == (1, 1, 2)


@virtual
async def test_a_pod_has_the_identity_of_its_ordinal(client: Client, run: Run) -> None:
    async with run(statefulset, Kubelet()):
        await client.create(web_statefulset(1, ordinals=StatefulSetOrdinals(start=5)))
        await asyncio.sleep(5)
        (pod,) = await pods(client)
        (revision,) = (await client.list(ControllerRevision, "default")).items
        assert pod.metadata.labels == {
            "app": "web",
            "apps.kubernetes.io/pod-index": "5",
            "statefulset.kubernetes.io/pod-name": "web-5",
            "controller-revision-hash": revision.metadata.name,
        }
        assert (pod.metadata.name, pod.metadata.generate_name) == ("web-5", "web-")
        assert (pod.spec.hostname, pod.spec.subdomain) == ("web-5", "web")
        assert revision.metadata.name == f"web-{revision.metadata.labels['controller.kubernetes.io/hash']}"
        assert revision.data["spec"]["template"]["$patch"] == "replace"
        await patch(client, {"ordinals": {"start": 6}})
        await asyncio.sleep(5)
        assert set(await images(client)) == {"web-6"}


@virtual
async def test_an_ordered_set_waits_for_a_pod_that_is_not_ready_and_a_parallel_set_does_not(
    client: Client, run: Run
) -> None:
    async with run(statefulset, Kubelet(lambda pod: "Running" if ordinal_of(pod) == 1 else "Ready")):
        await client.create(web_statefulset(4))
        await asyncio.sleep(10)
        assert set(await images(client)) == {"web-0", "web-1"}
        await client.delete(StatefulSet, "web", "default", propagation="Orphan")
        for pod in await pods(client):
            await client.delete(Pod, pod.metadata.name, "default", grace_period=0)
        desired = web_statefulset(4, pod_management_policy="Parallel")
        await asyncio.sleep(1)
        await client.patch(StatefulSet, "web", MergePatch({"metadata": {"finalizers": None}}), "default")
        await client.create(desired)
        await asyncio.sleep(10)
        assert set(await images(client)) == {"web-0", "web-1", "web-2", "web-3"}


@virtual
async def test_a_new_template_rolls_down_the_ordinals_and_back(client: Client, run: Run) -> None:
    kubelet = Kubelet()
    async with run(statefulset, kubelet):
        await client.create(web_statefulset(3))
        await asyncio.sleep(10)
        kubelet.log.clear()
        await set_image(client, StatefulSet, "web", "app:2")
        await asyncio.sleep(10)
        assert [line for line in kubelet.log if "bound" not in line] == [
            f"{what} web-{n}" for n in (2, 1, 0) for what in ("gone", "ready")
        ]
        assert set((await images(client)).values()) == {"app:2"}
        await set_image(client, StatefulSet, "web", "app:1")
        await asyncio.sleep(10)
        assert set((await images(client)).values()) == {"app:1"}
        revisions = (await client.list(ControllerRevision, "default")).items
        assert sorted(r.revision or 0 for r in revisions) == [2, 3]  # the first one came back as the third
        status = (await client.get(StatefulSet, "web", "default")).status
        assert status.current_revision == status.update_revision
        assert (status.collision_count, status.updated_replicas) == (0, 3)


@virtual
async def test_a_partition_keeps_the_template_of_lower_ordinals_even_when_they_are_recreated(
    client: Client, run: Run
) -> None:
    async with run(statefulset, Kubelet()):
        await client.create(web_statefulset(3, update_strategy=rolling_update(partition=2)))
        await asyncio.sleep(10)
        await set_image(client, StatefulSet, "web", "app:2")
        await asyncio.sleep(10)
        assert await images(client) == {"web-0": "app:1", "web-1": "app:1", "web-2": "app:2"}
        status = (await client.get(StatefulSet, "web", "default")).status
        assert status.current_revision != status.update_revision
        assert (status.current_replicas, status.updated_replicas) == (2, 1)
        await client.delete(Pod, "web-0", "default", grace_period=0)
        await asyncio.sleep(10)
        assert (await images(client))["web-0"] == "app:1"


@virtual
async def test_the_strategy_on_delete_replaces_only_deleted_pods(client: Client, run: Run) -> None:
    async with run(statefulset, Kubelet()):
        await client.create(web_statefulset(2, update_strategy=StatefulSetUpdateStrategy(type="OnDelete")))
        await asyncio.sleep(10)
        await set_image(client, StatefulSet, "web", "app:2")
        await asyncio.sleep(10)
        assert set((await images(client)).values()) == {"app:1"}
        await client.delete(Pod, "web-0", "default")
        await asyncio.sleep(10)
        assert await images(client) == {"web-0": "app:2", "web-1": "app:1"}


@virtual
async def test_a_pod_that_ended_is_created_again(client: Client, run: Run) -> None:
    async with run(statefulset, Kubelet()):
        await client.create(web_statefulset(2))
        await asyncio.sleep(10)
        before = {pod.metadata.name: pod.metadata.uid for pod in await pods(client)}
        failed = MergePatch({"status": {"phase": "Failed"}})
        await client.patch(Pod, "web-0", failed, "default", subresource="status")
        await asyncio.sleep(10)
        after = {pod.metadata.name: pod.metadata.uid for pod in await pods(client)}
        assert after["web-0"] != before["web-0"]
        assert after["web-1"] == before["web-1"]


@virtual
async def test_min_ready_seconds_delay_the_next_ordinal(client: Client, run: Run) -> None:
    async with run(statefulset, Kubelet()):
        await client.create(web_statefulset(2, min_ready_seconds=30))
        await asyncio.sleep(20)
        assert set(await images(client)) == {"web-0"}
        await asyncio.sleep(20)
        status = (await client.get(StatefulSet, "web", "default")).status
        assert (status.ready_replicas, status.available_replicas) == (2, 1)
        await asyncio.sleep(40)
        assert (await client.get(StatefulSet, "web", "default")).status.available_replicas == 2


@virtual
async def test_the_history_of_revisions_is_limited(client: Client, run: Run) -> None:
    async with run(statefulset, Kubelet()):
        await client.create(web_statefulset(1, revision_history_limit=1))
        for number in range(2, 6):
            await asyncio.sleep(10)
            await set_image(client, StatefulSet, "web", f"app:{number}")
        await asyncio.sleep(10)
        revisions = (await client.list(ControllerRevision, "default")).items
        assert sorted(r.revision or 0 for r in revisions) == [4, 5]


@virtual
async def test_the_revision_below_a_partition_is_kept_while_no_pod_has_it(client: Client) -> None:
    def full(call: Call) -> Response | None:
        if call.verb == "create" and call.resource == Pod.resource:
            raise error_from_answer(403, b'{"kind":"Status","reason":"Forbidden","message":"exceeded quota"}')
        return None

    interposed = Interposed(client)
    async with running(interposed, statefulset, Kubelet()):
        below = {"update_strategy": rolling_update(partition=1), "revision_history_limit": 0}
        await client.create(web_statefulset(1, **below))
        await asyncio.sleep(10)
        await set_image(client, StatefulSet, "web", "app:2")
        await asyncio.sleep(10)
        interposed.rules.append(full)
        await client.delete(Pod, "web-0", "default", grace_period=0)
        await asyncio.sleep(10)
        assert await images(client) == {}
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert await images(client) == {"web-0": "app:1"}


@virtual
@pytest.mark.parametrize(("phase", "present"), [("Pending", ["data-web-0"]), ("Running", [])])
async def test_a_claim_is_made_again_for_a_pod_that_waits_and_not_for_one_that_runs(
    client: Client, run: Run, phase: str, present: list[str]
) -> None:
    async with run(statefulset, Kubelet(lambda pod: phase)):
        await client.create(web_statefulset(1, volume_claim_templates=[data()]))
        await asyncio.sleep(5)
        unheld = MergePatch({"metadata": {"finalizers": None}})
        await client.patch(PersistentVolumeClaim, "data-web-0", unheld, "default")
        await client.delete(PersistentVolumeClaim, "data-web-0", "default")
        await patch(client, {"minReadySeconds": 1})
        await asyncio.sleep(5)
        assert list(await claims(client)) == present


@virtual
async def test_claims_are_created_for_every_ordinal_and_stay(client: Client, run: Run) -> None:
    async with run(statefulset, Kubelet(lambda pod: "Pending")):
        await client.create(web_statefulset(2, pod_management_policy="Parallel", volume_claim_templates=[data()]))
        await asyncio.sleep(5)
        assert await claims(client) == {"data-web-0": [], "data-web-1": []}
        claim = await client.get(PersistentVolumeClaim, "data-web-0", "default")
        assert claim.metadata.labels == {"app": "web"}
        pod = await client.get(Pod, "web-1", "default")
        volume = next(volume for volume in pod.spec.volumes if volume.name == "data")
        assert volume.persistent_volume_claim is not None
        assert volume.persistent_volume_claim.claim_name == "data-web-1"
        status = (await client.get(StatefulSet, "web", "default")).status
        assert (status.replicas, status.updated_replicas, status.available_replicas) == (2, 2, 0)
        await patch(client, {"replicas": 1})
        await asyncio.sleep(5)
        assert set(await claims(client)) == {"data-web-0", "data-web-1"}


@virtual
async def test_the_retention_policy_decides_which_object_owns_the_claims(client: Client, run: Run) -> None:
    policy = StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted="Delete", when_scaled="Delete")
    collecting = asyncio.create_task(GarbageCollector().run(client))
    async with run(statefulset, Kubelet()):
        desired = web_statefulset(2, volume_claim_templates=[data()], persistent_volume_claim_retention_policy=policy)
        await client.create(desired)
        await asyncio.sleep(10)
        assert await claims(client) == {"data-web-0": ["StatefulSet web"], "data-web-1": ["StatefulSet web"]}
        await patch(client, {"replicas": 1})
        await asyncio.sleep(1)
        going = await client.get(PersistentVolumeClaim, "data-web-1", "default")
        assert [owner.kind for owner in going.metadata.owner_references] == ["Pod"]
        assert going.metadata.deletion_timestamp  # its protection is another controller's to lift
        await client.patch(
            PersistentVolumeClaim, "data-web-1", MergePatch({"metadata": {"finalizers": None}}), "default"
        )
        await patch(client, {"replicas": 2})
        await asyncio.sleep(30)
        assert await claims(client) == {"data-web-0": ["StatefulSet web"], "data-web-1": ["StatefulSet web"]}
        assert (await client.get(PersistentVolumeClaim, "data-web-1", "default")).metadata.uid != going.metadata.uid
        assert set(await images(client)) == {"web-0", "web-1"}
        await patch(client, {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}})
        await asyncio.sleep(10)
        assert await claims(client) == {"data-web-0": [], "data-web-1": []}
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)


@virtual
async def test_a_set_adopts_only_pods_with_its_own_names(client: Client, run: Run) -> None:
    for name in ("web-0", "other-0", "web"):
        meta = ObjectMeta(name=name, namespace="default", labels={"app": "web"})
        await client.create(Pod(metadata=meta, spec=template().spec))
    async with run(statefulset, Kubelet()):
        await client.create(web_statefulset(1))
        await asyncio.sleep(5)
        owned = {pod.metadata.name for pod in await pods(client) if pod.metadata.owner_references}
        assert owned == {"web-0"}
        adopted = await client.get(Pod, "web-0", "default")
        assert adopted.metadata.labels["statefulset.kubernetes.io/pod-name"] == "web-0"


@virtual
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_no_ordinal_ever_has_two_pods_whatever_happens_to_them(
    client: Client, run: Run, policy: str, seed: int
) -> None:
    """Pods fail, vanish and are deleted at random; a name is never with two live pods, and all come back."""
    chance = random.Random(seed)
    alive: dict[str, str] = {}
    doubled: list[str] = []
    kubelet = Kubelet(takes=chance.random())

    async def watch() -> None:
        async for event in client.watch(Pod, "default"):
            pod = event.object
            name, uid = pod.metadata.name, pod.metadata.uid
            if event.type == "DELETED":
                alive.pop(name, None)
            elif alive.setdefault(name, uid) != uid:
                doubled.append(name)

    watching = asyncio.create_task(watch())
    async with run(statefulset, kubelet):
        await client.create(web_statefulset(4, pod_management_policy=policy))
        for _ in range(25):
            await asyncio.sleep(chance.random() * 2)
            running = await pods(client, "app=web")
            if not running:
                continue
            victim = chance.choice(running).metadata.name
            match chance.randrange(4):
                case 0:
                    await client.delete(Pod, victim, "default", grace_period=0)
                case 1:
                    await client.delete(Pod, victim, "default")
                case 2:
                    failed = MergePatch({"status": {"phase": "Failed"}})
                    await client.patch(Pod, victim, failed, "default", subresource="status")
                case 3:
                    await patch(client, {"replicas": chance.randrange(2, 6)})
        await patch(client, {"replicas": 4})
        await asyncio.sleep(60)
        assert doubled == []
        assert set(await images(client)) == {"web-0", "web-1", "web-2", "web-3"}
        status = (await client.get(StatefulSet, "web", "default")).status
        assert (status.replicas, status.ready_replicas, status.current_replicas) == (4, 4, 4)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
