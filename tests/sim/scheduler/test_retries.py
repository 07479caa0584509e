"""A pod without a place is tried again when another pod makes one: by coming, by other labels, by asking for less."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch, StrategicPatch
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.runtime import Request
from konverge.sim.cluster import Cluster
from konverge.sim.scheduler import Scheduler
from tests.sim.conftest import SPACE, pod
from tests.sim.scheduler.test_scheduler import asks, cluster_of, node, place, where

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-72")]

HOST = "host"


def term(kind: str, app: str) -> dict[str, Any]:
    """Affinity that a pod insists on: `podAffinity` or `podAntiAffinity` to the pods of an app on the same node."""
    near = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}


def hosts(*names: str) -> list[Node]:
    return [node(name, {HOST: name}) for name in names]


async def relabel(cluster: Cluster, name: str, app: str) -> None:
    await cluster.client.patch(Pod, name, MergePatch({"metadata": {"labels": {"app": app}}}), SPACE)
    await cluster.settle()


async def test_a_pod_comes_beside_which_another_must_run() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        message = (await place(cluster, pod("client", affinity=term("podAffinity", "db"))))[0]
        assert "2 node(s) didn't match pod affinity rules" in message
        await place(cluster, pod("other", labels={"app": "web"}))
        assert await where(cluster, "client") == message
        placed = await place(cluster, pod("db", labels={"app": "db"}, nodeSelector={HOST: "b"}))
        assert placed == ["b"]
        assert await where(cluster, "client") == "b"


async def test_a_pod_that_another_scheduler_has_placed_counts_as_well() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        await place(cluster, pod("client", affinity=term("podAffinity", "db")))
        await cluster.client.create(pod("db", labels={"app": "db"}, nodeName="b"))
        await cluster.settle()
        assert await where(cluster, "client") == "b"


def spread(name: str) -> Pod:
    """It may run on `a` alone, and not beside its like while `b` has none."""
    even = {"topologyKey": HOST, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "nodeAffinityPolicy": "Ignore"}
    even["labelSelector"] = {"matchLabels": {"app": "web"}}
    return pod(name, labels={"app": "web"}, topologySpreadConstraints=[even], nodeSelector={HOST: "a"})


async def test_a_pod_comes_into_the_domain_that_had_too_few() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        placed = await place(cluster, spread("one"), spread("two"))
        assert placed[0] == "a"
        assert "1 node(s) didn't match pod topology spread constraints" in placed[1]
        await place(cluster, pod("far", labels={"app": "web"}, nodeSelector={HOST: "b"}))
        assert await where(cluster, "two") == "a"


async def test_a_pod_leaves_the_domain_that_had_too_many_by_its_labels() -> None:
    async with cluster_of(*hosts("a", "b")) as cluster:
        await place(cluster, spread("one"), spread("two"))
        await relabel(cluster, "one", "db")
        assert await where(cluster, "two") == "a"


@pytest.mark.parametrize(
    ("before", "after", "waiting"),
    [
        ("web", "db", {"affinity": term("podAffinity", "db")}),
        ("db", "web", {"affinity": term("podAntiAffinity", "db")}),
    ],
)
async def test_a_placed_pod_gets_other_labels(before: str, after: str, waiting: dict[str, Any]) -> None:
    async with cluster_of(*hosts("a")) as cluster:
        placed = await place(cluster, pod("there", labels={"app": before}), pod("waiting", **waiting))
        assert "affinity rules" in placed[1]
        await relabel(cluster, "there", after)
        assert await where(cluster, "waiting") == "a"


async def resize(cluster: Cluster, name: str, cpu: str) -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    patch = StrategicPatch({"spec": {"containers": [container]}})
    await cluster.client.patch(Pod, name, patch, SPACE, subresource="resize")
    await cluster.settle()


async def test_a_placed_pod_asks_for_less() -> None:
    async with cluster_of(node("a")) as cluster:
        placed = await place(cluster, pod("large", **asks("1500m")), pod("waiting", **asks("1")))
        assert "1 Insufficient cpu" in placed[1]
        await resize(cluster, "large", "1100m")
        assert await where(cluster, "waiting") == placed[1]
        await resize(cluster, "large", "1")
        assert await where(cluster, "waiting") == "a"


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pods that the scheduler looks at, one after the other."""
    names: list[str] = []
    look = Scheduler._place

    async def counted(self: Scheduler, key: Request) -> None:
        names.append(key.name)
        await look(self, key)

    monkeypatch.setattr(Scheduler, "_place", counted)
    return names


async def test_only_those_are_looked_at_again_for_whom_something_changed(looked_at: list[str]) -> None:
    async with cluster_of(*hosts("a")) as cluster:
        await place(cluster, pod("large", **asks("3")), pod("client", affinity=term("podAffinity", "db")))
        looked_at.clear()
        await place(cluster, pod("small"))
        assert looked_at == ["small", "client"]
        await relabel(cluster, "small", "web")
        assert looked_at == ["small", "client", "client"]
        await cluster.client.patch(Pod, "small", MergePatch({"metadata": {"annotations": {"a": "b"}}}), SPACE)
        await cluster.settle()
        assert looked_at == ["small", "client", "client"]
