"""Quotas: their status follows what exists, whatever is counted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch
from konverge.kube import quota
from konverge.objects import crd
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import (
    ConfigMap,
    PersistentVolumeClaim,
    Pod,
    ResourceQuota,
    Service,
)
from tests.kube.conftest import Run, make_ready, running
from tests.kube.interposed import Interposed
from tests.kube.objects import Widget, WidgetSpec
from tests.kube.triggers import Triggers

virtual = pytest.mark.virtual
pytestmark = [pytest.mark.spec("R-43")]


async def create_quota(client: Client, **spec: Any) -> None:
    meta = {"name": "q", "namespace": "default"}
    await client.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec})


async def used(client: Client) -> dict[str, str]:
    await asyncio.sleep(1)
    quota_ = await client.get(ResourceQuota, "q", "default")
    assert quota_.status.hard == quota_.spec.hard
    return {name: str(value) for name, value in quota_.status.used.items()}


async def create_pod(client: Client, name: str, **spec: Any) -> Pod:
    container = {"name": "m", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
    body = {"containers": [container], **spec}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}, "default")
    return await client.get(Pod, name, "default")


@virtual
async def test_pods_and_services_are_counted_until_they_are_deleted(client: Client, run: Run) -> None:
    async with run(quota):
        await create_quota(
            client, hard={"pods": "5", "count/deployments.apps": "2", "services": "3", "requests.cpu": "2"}
        )
        # The server's own Service is in this namespace.
        assert await used(client) == {
            "pods": "0", "count/deployments.apps": "0", "services": "1", "requests.cpu": "0",
        }  # fmt: skip
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"ports": [{"port": 80}]},
        }
        await client.create(service, "default")
        pod = await create_pod(client, "a")
        await create_pod(client, "b")
        expected = {"pods": "2", "count/deployments.apps": "0", "services": "2", "requests.cpu": "1"}
        assert await used(client) == expected
        await make_ready(client, pod, ready=False, phase="Succeeded")
        assert await used(client) == {**expected, "pods": "1", "requests.cpu": "500m"}
        await client.delete(Pod, "b", "default", grace_period=0)
        await client.delete(Service, "web", "default")
        assert await used(client) == {**expected, "pods": "0", "requests.cpu": "0", "services": "1"}


@virtual
async def test_a_quota_counts_objects_of_any_kind(client: Client, run: Run) -> None:
    await client.create(crd(Widget))
    await asyncio.sleep(1)
    async with run(quota):
        await create_quota(client, hard={"count/widgets.tests.konverge.dev": "5", "configmaps": "10"})
        assert await used(client) == {"count/widgets.tests.konverge.dev": "0", "configmaps": "0"}
        await client.create(Widget(metadata=ObjectMeta(name="w", namespace="default"), spec=WidgetSpec()))
        await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default")))
        await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="kube-public")))
        assert await used(client) == {"count/widgets.tests.konverge.dev": "1", "configmaps": "1"}
        await client.delete(Widget, "w", "default")
        assert await used(client) == {"count/widgets.tests.konverge.dev": "0", "configmaps": "1"}


@virtual
async def test_a_new_limit_appears_in_the_status(client: Client, run: Run) -> None:
    async with run(quota):
        await create_quota(client, hard={"pods": "5"})
        await used(client)
        await client.patch(ResourceQuota, "q", MergePatch({"spec": {"hard": {"pods": "7", "secrets": "1"}}}), "default")
        assert await used(client) == {"pods": "0", "secrets": "0"}
        await client.patch(ResourceQuota, "q", MergePatch({"spec": {"hard": {"secrets": None}}}), "default")
        assert await used(client) == {"pods": "0"}


@virtual
async def test_the_scopes_of_a_quota_choose_pods(client: Client, run: Run) -> None:
    async with run(quota):
        await create_quota(client, hard={"pods": "5"}, scopes=["Terminating"])
        await create_pod(client, "a")
        await create_pod(client, "b", activeDeadlineSeconds=60)
        assert await used(client) == {"pods": "1"}


@virtual
async def test_claims_are_counted_by_storage_class(client: Client, run: Run) -> None:
    fast = "fast.storageclass.storage.k8s.io/"
    async with run(quota):
        hard = {"requests.storage": "10Gi", f"{fast}requests.storage": "5Gi", f"{fast}persistentvolumeclaims": "3"}
        await create_quota(client, hard=hard)
        for name, kind in (("a", "fast"), ("b", "slow")):
            spec = {
                "accessModes": ["ReadWriteOnce"], "storageClassName": kind,
                "resources": {"requests": {"storage": "1Gi"}},
            }  # fmt: skip
            body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
            await client.create(body, "default")
        assert await used(client) == {
            "requests.storage": "2Gi", f"{fast}requests.storage": "1Gi", f"{fast}persistentvolumeclaims": "1",
        }  # fmt: skip
        await client.patch(PersistentVolumeClaim, "b", MergePatch({"metadata": {"finalizers": None}}), "default")
        await client.delete(PersistentVolumeClaim, "b", "default")
        assert (await used(client))["requests.storage"] == "1Gi"


@virtual
async def test_names_that_are_no_kind_keep_what_they_have(client: Client, run: Run) -> None:
    """Of a kind that is no longer served, of a kind without a namespace, and of another controller."""
    names = {"count/gone.example.com": "4", "count/nodes": "5", "example.com/points": "6"}
    await create_quota(client, hard={**dict.fromkeys(names, "9"), "pods": "1"})
    status = {"status": {"hard": dict.fromkeys(names, "9"), "used": names}}
    await client.patch(ResourceQuota, "q", MergePatch(status), "default", subresource="status")
    async with run(quota):
        assert await used(client) == {**names, "pods": "0"}


@virtual
async def test_counts_of_kinds_without_a_scope_are_zero_in_a_scoped_quota(client: Client, run: Run) -> None:
    """The server refuses such a name in a scoped quota today, but for pods."""
    async with run(quota):
        await create_quota(client, hard={"count/pods": "5"}, scopes=["Terminating"])
        await create_pod(client, "a")
        await create_pod(client, "b", activeDeadlineSeconds=60)
        assert await used(client) == {"count/pods": "1"}


@virtual
async def test_other_names_in_a_scoped_quota_that_was_stored_earlier_are_zero(
    server: ApiServer, client: Client, run: Run
) -> None:
    await create_quota(client, hard={"pods": "5"}, scopes=["Terminating"])
    server.objects.update(
        "", "resourcequotas", "default", "q", lambda stored: stored["spec"]["hard"].update({"count/configmaps": "5"})
    )
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    async with run(quota):
        assert await used(client) == {"pods": "0", "count/configmaps": "0"}


@virtual
async def test_a_quota_that_is_being_deleted_or_settled_is_not_written(client: Client) -> None:
    interposed = Interposed(client)
    async with running(interposed, quota):
        await create_quota(client, hard={"pods": "5"})
        await used(client)
        before = len(interposed.writes())
        await client.patch(ResourceQuota, "q", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
        await asyncio.sleep(400)
        assert interposed.writes()[before:] == []
        kept = MergePatch({"metadata": {"finalizers": ["tests.konverge.dev/kept"]}})
        await client.patch(ResourceQuota, "q", kept, "default")
        await client.delete(ResourceQuota, "q", "default")
        await create_pod(client, "a")
        await client.patch(ResourceQuota, "q", MergePatch({"spec": {"hard": {"pods": "7"}}}), "default")
        await asyncio.sleep(5)
        assert interposed.writes()[before:] == []


def test_which_changes_concern_a_quota() -> None:
    trigger = Triggers(*quota.controllers())
    cached = [
        ResourceQuota(metadata=ObjectMeta(name="q", namespace="default")),
        ResourceQuota(metadata=ObjectMeta(name="far", namespace="elsewhere")),
    ]
    mine = {"resourcequota default/q"}

    def pod(generation: int = 1, phase: str = "Running", **labels: str) -> Pod:
        meta = {"name": "p", "namespace": "default", "generation": generation, "uid": "u", "labels": labels}
        return from_dict(Pod, {"metadata": meta, "spec": {"containers": []}, "status": {"phase": phase}})

    assert trigger.of(None, pod(), cached=cached) == mine
    assert trigger.of(pod(), None, cached=cached) == mine
    assert trigger.of(pod(), pod(a="b"), cached=cached) == set()
    assert trigger.of(pod(), pod(2), cached=cached) == mine
    assert trigger.of(pod(), pod(phase="Failed"), cached=cached) == mine
    assert trigger.of(pod(phase="Succeeded"), pod(phase="Failed"), cached=cached) == set()
    for kind in (Service, PersistentVolumeClaim):
        obj = kind(metadata=ObjectMeta(name="x", namespace="default"))
        assert trigger.of(obj, None, cached=cached) == mine
        assert trigger.of(None, obj, cached=cached) == mine
