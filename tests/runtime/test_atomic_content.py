"""What is applied as a whole: a field of it that is taken back goes, and what the server adds costs one apply."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge import Context, Controller, Manager, ObjectMeta, Reconciler, Result
from konverge.client import Client, MergePatch
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.kinds.networking_v1 import NetworkPolicy
from konverge.sim import Cluster

pytestmark = pytest.mark.virtual


class Policies(Reconciler[ConfigMap]):
    """Makes a NetworkPolicy: its lists are atomic, and the server adds the protocol to ports."""

    async def reconcile(self, ctx: Context[ConfigMap]) -> Result | None:
        source: dict[str, Any] = {"podSelector": {"matchLabels": dict(ctx.obj.data)}}
        rule = {"from": [source], "ports": [{"port": 80}, {"port": 443}]}
        spec = {"podSelector": {"matchLabels": dict(ctx.obj.data)}, "ingress": [rule], "policyTypes": ["Ingress"]}
        metadata = {"name": ctx.request.name, "namespace": ctx.request.namespace}
        await ctx.apply(from_dict(NetworkPolicy, {"metadata": metadata, "spec": spec}))
        return None


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[Manager]:
    manager = Manager(cluster.client, name="policies")
    manager.add(Controller(ConfigMap, Policies(), owns=[NetworkPolicy], label_selector="policy=yes"))
    async with manager.running():
        yield manager


async def source(client: Client, **data: str) -> None:
    meta = ObjectMeta(name="a", namespace="default", labels={"policy": "yes"})
    await client.create(ConfigMap(metadata=meta, data=data))


@pytest.mark.spec("R-25")
async def test_what_is_taken_back_inside_of_atomic_content_goes() -> None:
    async with Cluster(nodes=0) as cluster, running(cluster):
        client = cluster.client
        await source(client, app="web", old="yes")
        await cluster.settle()
        await client.patch(ConfigMap, "a", MergePatch({"data": {"old": None}}), "default")
        await cluster.settle()
        policy = await client.get(NetworkPolicy, "a", "default")
        assert policy.spec.pod_selector.match_labels == {"app": "web"}
        (rule,) = policy.spec.ingress
        (peer,) = rule.from_
        assert peer.pod_selector is not None
        assert peer.pod_selector.match_labels == {"app": "web"}


@pytest.mark.spec("R-25")
async def test_what_the_server_adds_to_it_is_asked_about_once() -> None:
    async with Cluster(nodes=0) as cluster:
        client = cluster.client
        await source(client, app="web")
        async with running(cluster):
            await cluster.settle()
        version = (await client.get(NetworkPolicy, "a", "default")).metadata.resource_version
        async with running(cluster) as manager:  # another start: what the server adds is not known
            for number in range(3):
                note = {"metadata": {"annotations": {"n": str(number)}}}
                await client.patch(ConfigMap, "a", MergePatch(note), "default")
                await cluster.settle()
            entries = [entry for _, _, entry in manager.story.entries()]
            assert len(entries) > 2
            assert sum(call.verb == "patch" for entry in entries for call in entry.calls) == 1
        assert (await client.get(NetworkPolicy, "a", "default")).metadata.resource_version == version
