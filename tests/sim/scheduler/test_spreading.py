"""Pods of which namespaces a term speaks: those that it names, those that it selects by their labels, or its own."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Namespace, Pod
from konverge.objects.meta import ObjectMeta
from konverge.sim.cluster import Cluster
from tests.sim.conftest import pod
from tests.sim.scheduler.test_retries import HOST, hosts, looked_at
from tests.sim.scheduler.test_scheduler import cluster_of, place, where

__all__ = ["looked_at"]  # a fixture
pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-73")]

RED = {"matchLabels": {"team": "red"}}


def term(kind: str, **namespaces: Any) -> dict[str, Any]:
    """`podAffinity` or `podAntiAffinity` to the databases of some namespaces, as the whole spec of a pod."""
    near = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "db"}}, **namespaces}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}


async def create_namespace(cluster: Cluster, name: str, team: str) -> None:
    await cluster.client.create(Namespace(metadata=ObjectMeta(name=name, labels={"team": team})))


async def relabel(cluster: Cluster, name: str, team: str) -> None:
    await cluster.client.patch(Namespace, name, MergePatch({"metadata": {"labels": {"team": team}}}))
    await cluster.settle()


async def put(cluster: Cluster, host: str, namespace: str, **spec: Any) -> None:
    """A database of a namespace on a node."""
    item: Pod = pod(f"db-{host}", labels={"app": "db"}, nodeSelector={HOST: host}, **spec)
    item.metadata.namespace = namespace
    await cluster.client.create(item)
    await cluster.settle()


async def test_namespaces_are_selected_by_their_labels() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        await create_namespace(cluster, "one", "blue")
        await create_namespace(cluster, "two", "red")
        await put(cluster, "a", "one")
        await put(cluster, "b", "two")
        near = term("podAffinity", namespaceSelector=RED)
        far = term("podAntiAffinity", namespaceSelector=RED)
        assert await place(cluster, pod("near", **near), pod("far", **far)) == ["b", "a"]


async def test_an_empty_selector_selects_all_namespaces() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        await create_namespace(cluster, "one", "blue")
        await put(cluster, "b", "one")
        assert await place(cluster, pod("near", **term("podAffinity", namespaceSelector={}))) == ["b"]


async def test_named_and_selected_namespaces_count_and_then_the_own_one_does_not() -> None:
    async with cluster_of(*hosts("a", "b", "c")) as cluster:
        await create_namespace(cluster, "one", "blue")
        await create_namespace(cluster, "two", "red")
        await put(cluster, "a", "one")
        await put(cluster, "b", "two")
        await put(cluster, "c", "default")
        far = term("podAntiAffinity", namespaceSelector=RED, namespaces=["one"])
        assert await place(cluster, pod("far", **far)) == ["c"]


async def test_without_a_selector_the_own_namespace_counts_or_those_that_are_named() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        await create_namespace(cluster, "one", "blue")
        await put(cluster, "a", "default")
        await put(cluster, "b", "one")
        own, named = term("podAffinity"), term("podAffinity", namespaces=["one"])
        assert await place(cluster, pod("own", **own), pod("named", **named)) == ["a", "b"]


@pytest.mark.parametrize(
    ("kind", "before", "after"), [("podAffinity", "blue", "red"), ("podAntiAffinity", "red", "blue")]
)
async def test_a_pod_is_tried_again_when_a_namespace_has_other_labels(kind: str, before: str, after: str) -> None:
    async with cluster_of(*hosts("a")) as cluster:
        await create_namespace(cluster, "one", before)
        await put(cluster, "a", "one")
        placed = await place(cluster, pod("waiting", **term(kind, namespaceSelector=RED)))
        assert "1 node(s) didn't match pod " in placed[0]
        await relabel(cluster, "one", after)
        assert await where(cluster, "waiting") == "a"


async def test_a_placed_pod_repels_those_of_the_namespaces_that_it_selects() -> None:
    blue = {"matchLabels": {"team": "blue"}}
    async with cluster_of(*hosts("a")) as cluster:
        await create_namespace(cluster, "one", "green")
        await put(cluster, "a", "one", **term("podAntiAffinity", namespaceSelector=blue))
        await relabel(cluster, "default", "red")
        assert await place(cluster, pod("db", labels={"app": "db"})) == ["a"]
        await relabel(cluster, "default", "blue")
        repelled = await place(cluster, pod("repelled", labels={"app": "db"}))
        assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in repelled[0]
        await relabel(cluster, "default", "red")
        assert await where(cluster, "repelled") == "a"


async def test_pods_are_looked_at_again_for_the_labels_of_a_namespace_alone(looked_at: list[str]) -> None:
    async with cluster_of(*hosts("a")) as cluster:
        await place(cluster, pod("waiting", **term("podAffinity", namespaceSelector=RED)))
        looked_at.clear()
        await cluster.client.patch(Namespace, "default", MergePatch({"metadata": {"annotations": {"a": "b"}}}))
        await cluster.settle()
        assert looked_at == []
        await relabel(cluster, "default", "blue")
        assert looked_at == ["waiting"]
