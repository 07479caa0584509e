"""StatefulSets and claims that are lost, stale or being deleted; refusals; adopted pods."""

from __future__ import annotations

import asyncio

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube.statefulset import controller as statefulset
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Event, PersistentVolumeClaim, Pod
from tests.kube.conftest import Run, pods, running
from tests.kube.interposed import Interposed, refusing
from tests.kube.kubelet import Kubelet
from tests.kube.objects import statefulset as web
from tests.kube.statefulset.test_claims import owner, policy, template
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-34")]


async def events(client: Client) -> set[tuple[str | None, str | None, str]]:
    found = [e for e in (await client.list(Event, "default")).items if e.involved_object.kind == "StatefulSet"]
    assert {event.source.component for event in found if event.source} <= {"statefulset-controller"}
    return {(event.type, event.reason, " ".join((event.message or "").split()[:3])) for event in found}


async def test_a_pod_waits_for_a_claim_that_is_being_deleted(client: Client, run: Run) -> None:
    going = template()
    going.metadata = ObjectMeta(name="data-web-0", namespace="default", finalizers=["tests.konverge.dev/kept"])
    await client.create(going)
    await client.delete(PersistentVolumeClaim, "data-web-0", "default")
    async with run(statefulset, Kubelet()):
        await client.create(web(1, volume_claim_templates=[template()]))
        await asyncio.sleep(10)
        assert await pods(client) == []
        released = MergePatch({"metadata": {"finalizers": None}})
        await client.patch(PersistentVolumeClaim, "data-web-0", released, "default")
        await asyncio.sleep(60)
        assert [pod.metadata.name for pod in await pods(client)] == ["web-0"]
        claim = await client.get(PersistentVolumeClaim, "data-web-0", "default")
        assert claim.metadata.deletion_timestamp is None
    assert await events(client) >= {
        ("Normal", "SuccessfulCreate", "Create Claim data-web-0"),
        ("Normal", "SuccessfulCreate", "Create Pod web-0"),
    }


async def test_a_claim_of_a_deleted_pod_is_not_used_again(client: Client, run: Run) -> None:
    """It will be deleted with that pod; the next one waits for it."""
    stale = template()
    stale.metadata = ObjectMeta(name="data-web-0", namespace="default")
    stale.metadata.owner_references = [owner("Pod", "web-0", "gone")]
    await client.create(stale)
    desired = web(
        1, volume_claim_templates=[template()], persistent_volume_claim_retention_policy=policy("Retain", "Delete")
    )
    async with run(statefulset, Kubelet()):
        await client.create(desired)
        await asyncio.sleep(10)
        assert await pods(client) == []
        await client.delete(PersistentVolumeClaim, "data-web-0", "default")
        await client.patch(
            PersistentVolumeClaim, "data-web-0", MergePatch({"metadata": {"finalizers": None}}), "default"
        )
        await asyncio.sleep(10)
        assert [pod.metadata.name for pod in await pods(client)] == ["web-0"]
        claim = await client.get(PersistentVolumeClaim, "data-web-0", "default")
        assert claim.metadata.owner_references == []


async def test_a_lost_claim_of_a_pending_pod_is_created_again(client: Client, run: Run) -> None:
    async with run(statefulset):
        await client.create(web(1, volume_claim_templates=[template()]))
        await asyncio.sleep(5)
        await client.delete(PersistentVolumeClaim, "data-web-0", "default")
        await client.patch(StatefulSet, "web", MergePatch({"metadata": {"labels": {"look": "again"}}}), "default")
        await asyncio.sleep(5)
        claim = await client.get(PersistentVolumeClaim, "data-web-0", "default")
        assert claim.metadata.labels == {"app": "web"}


@pytest.mark.parametrize(("verb", "reason"), [("create", "FailedCreate"), ("delete", "FailedDelete")])
async def test_a_refusal_is_reported_and_the_status_written(client: Client, verb: str, reason: str) -> None:
    interposed = Interposed(client)
    async with running(interposed, statefulset, Kubelet()):
        desired = web(1 if verb == "create" else 2)
        if verb == "create":
            interposed.rules.append(refusing("", 500, verb="create"))
        await client.create(desired)
        await asyncio.sleep(5)
        if verb == "delete":
            interposed.rules.append(refusing("web-1", 500, verb="delete"))
            await client.patch(StatefulSet, "web", MergePatch({"spec": {"replicas": 1}}), "default")
        await asyncio.sleep(5)
        live = await client.get(StatefulSet, "web", "default")
        if verb == "delete":
            assert live.status.observed_generation == live.metadata.generation
            assert live.status.replicas == 2
        interposed.rules.clear()
        await asyncio.sleep(60)
        assert [pod.metadata.name for pod in await pods(client)] == ["web-0"]
    if verb == "delete":
        assert ("Warning", reason, "Delete Pod web-1") in await events(client)
        assert ("Normal", "SuccessfulDelete", "Delete Pod web-1") in await events(client)


async def test_an_adopted_pod_gets_its_labels(client: Client, run: Run) -> None:
    desired = web(1)
    orphan = Pod(
        metadata=ObjectMeta(name="web-0", namespace="default", labels={"app": "web"}), spec=desired.spec.template.spec
    )
    await client.create(orphan)
    async with run(statefulset):
        await client.create(desired)
        await asyncio.sleep(5)
        labels = (await client.get(Pod, "web-0", "default")).metadata.labels
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-0"
    assert labels["apps.kubernetes.io/pod-index"] == "0"
    assert ("Normal", "SuccessfulUpdate", "Update Pod web-0") in await events(client)


async def test_a_set_that_is_being_deleted_creates_nothing(client: Client, run: Run) -> None:
    desired = web(1)
    desired.metadata.finalizers = ["tests.konverge.dev/kept"]
    await client.create(desired)
    await client.delete(StatefulSet, "web", "default")
    async with run(statefulset):
        await asyncio.sleep(5)
        assert await pods(client) == []


def test_a_deleted_claim_concerns_the_set_of_its_pod() -> None:
    trigger = Triggers(*statefulset.controllers())
    claim = template()
    claim.metadata = ObjectMeta(name="data-web-0", namespace="default")
    assert trigger.of(claim, None) == set()
    claim.metadata.owner_references = [owner("StatefulSet", "web", "u", api="apps/v1"), owner("Pod", "odd", "v")]
    assert trigger.of(claim, None) == set()
    claim.metadata.owner_references.append(owner("Pod", "web-0", "w"))
    assert trigger.of(claim, None) == {"statefulset default/web"}
    assert trigger.of(None, claim) == set()
    assert trigger.of(claim, claim) == set()
