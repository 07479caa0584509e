"""The workload of the runtime benchmark (bench/peers/WORKLOAD.md): its objects, how they are created and watched."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from konverge.client import AlreadyExists, ApiStatusError, Client, MergePatch
from konverge.objects.resource import Resource

NAMESPACE = "bench"
BENCHES = Resource("bench.konverge.dev", "v1", "Bench", "benches")
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_NAMESPACES = Resource("", "v1", "Namespace", "namespaces", False)

PAYLOAD = "".join(chr(97 + (i * 7 + i // 26) % 26) for i in range(1500))

_SPEC = {"type": "object", "properties": {"payload": {"type": "string"}, "replicas": {"type": "integer"}}}
_STATUS = {"type": "object", "properties": {"phase": {"type": "string"}, "observedGeneration": {"type": "integer"}}}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "benches.bench.konverge.dev"},
    "spec": {
        "group": BENCHES.group,
        "scope": "Namespaced",
        "names": {"plural": "benches", "singular": "bench", "kind": "Bench", "listKind": "BenchList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
            }
        ],
    },
}

T = TypeVar("T")


async def each(items: Iterable[T], at_once: int, work: Callable[[T], Awaitable[None]]) -> None:
    """Do the work for every item, `at_once` at a time."""
    source = iter(items)

    async def worker() -> None:
        for item in source:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())


def bench(name: str) -> dict[str, Any]:
    return {
        "apiVersion": BENCHES.api_version,
        "kind": "Bench",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"team": "payments", "tier": "backend"},
            "annotations": {"bench.konverge.dev/note": "n" * 200},
        },
        "spec": {"payload": PAYLOAD, "replicas": 3},
    }


def config_map(name: str, uid: str) -> dict[str, Any]:
    owner = {
        "apiVersion": BENCHES.api_version,
        "kind": "Bench",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": {"app": "bench"}, "ownerReferences": [owner],
        },
        "data": {"payload": PAYLOAD},
    }  # fmt: skip


async def set_up(client: Client) -> None:
    for body, resource in (
        (DEFINITION, _DEFINITIONS),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, _NAMESPACES),
    ):
        with contextlib.suppress(AlreadyExists):
            await client.create(body, resource=resource)
    for _ in range(300):  # a new definition is not served at once
        try:
            await client.create(bench("probe"), resource=BENCHES)
            break
        except AlreadyExists:
            break
        except ApiStatusError:
            await asyncio.sleep(0.1)
    await client.delete(BENCHES, "probe", NAMESPACE)


async def clear(client: Client) -> None:
    for resource in (BENCHES, CONFIG_MAPS):
        while (await client.list(resource, NAMESPACE, limit=1)).items:
            await client.delete_collection(resource, NAMESPACE)


async def fill(client: Client, count: int, *, reconciled: bool = False) -> None:
    """So many Benches; with `reconciled`, as an operator would have left them."""

    async def create(number: int) -> None:
        name = f"b-{number:05d}"
        made = await client.create(bench(name), resource=BENCHES)
        if reconciled:
            meta = made["metadata"]
            await client.create(config_map(name, meta["uid"]), resource=CONFIG_MAPS)
            status = MergePatch({"status": {"phase": "Ready", "observedGeneration": meta["generation"]}})
            await client.patch(BENCHES, name, status, NAMESPACE, subresource="status")

    await each(range(count), 24, create)


async def all_ready(client: Client, version: str, count: int) -> None:
    """Until so many Benches are Ready, seen by a watch from this version on."""
    ready: set[str] = set()
    async for event in client.watch(BENCHES, NAMESPACE, resource_version=version):
        meta, status = event.object["metadata"], event.object.get("status", {})
        if status.get("phase") == "Ready" and status.get("observedGeneration") == meta.get("generation"):
            ready.add(meta["name"])
            if len(ready) == count:
                return
