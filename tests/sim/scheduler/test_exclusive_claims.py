"""Claims that one pod alone may use (ReadWriteOncePod): others wait, and the more important take them over."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Namespace, Pod
from konverge.objects.kinds.scheduling_v1 import PriorityClass
from konverge.objects.meta import ObjectMeta
from konverge.sim.cluster import Cluster
from konverge.sim.kubelet.behaviour import ANNOTATION
from tests.sim.conftest import SPACE, pod
from tests.sim.scheduler.test_filters import create_priorities, left
from tests.sim.scheduler.test_scheduler import NO_VICTIMS, asks, cluster_of, node, place, where

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-75")]

IN_USE = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
WAITS = f"0/2 nodes are available: 2 {IN_USE}. " + NO_VICTIMS.format(2)


async def create_claim(cluster: Cluster, name: str, mode: str = "ReadWriteOncePod", namespace: str = SPACE) -> None:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": name, "namespace": namespace}
    await cluster.client.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
    await cluster.settle()


def user(name: str, *claims: str, cpu: str = "500m", **spec: Any) -> Pod:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return pod(name, **asks(cpu, volumes=volumes, **spec))


async def test_the_second_pod_waits_until_the_first_is_gone() -> None:
    async with cluster_of(node("a"), node("b")) as cluster:
        await create_claim(cluster, "data")
        assert await place(cluster, user("one", "data"), user("two", "data")) == ["a", WAITS]
        await cluster.client.delete(Pod, "one", SPACE)
        await cluster.settle()
        assert await where(cluster, "two") == "a"


async def test_claims_of_other_modes_and_names_are_shared() -> None:
    async with cluster_of(node("a"), node("b")) as cluster:
        await create_claim(cluster, "shared", "ReadWriteOnce")
        for name in ("one", "two"):
            await create_claim(cluster, name)
        placed = await place(cluster, user("one", "shared", "one"), user("two", "shared", "two"))
        assert placed == ["a", "b"]


async def test_a_claim_of_the_same_name_in_another_namespace_is_another() -> None:
    async with cluster_of(node("a"), node("b")) as cluster:
        await cluster.client.create(Namespace(metadata=ObjectMeta(name="elsewhere")))
        other = user("other", "data")
        other.metadata.namespace = "elsewhere"
        for namespace in (SPACE, "elsewhere"):
            await create_claim(cluster, "data", namespace=namespace)
        await cluster.client.create(other)
        await cluster.settle()
        assert await place(cluster, user("mine", "data")) == ["b"]


async def test_a_more_important_pod_takes_it_over_and_spares_who_does_not_use_it() -> None:
    async with cluster_of(node("a")) as cluster:
        await create_priorities(cluster)
        await create_claim(cluster, "data")
        low = {"priorityClassName": "low"}
        await place(
            cluster, user("beside", **low), user("uses", "data", **low), user("above", priorityClassName="middle")
        )
        await place(cluster, user("important", "data", priorityClassName="high"))
        assert await left(cluster) == {"above": "a", "beside": "a", "important": "a"}


async def test_room_is_made_beside_the_claim() -> None:
    async with cluster_of(node("a")) as cluster:
        await create_priorities(cluster)
        await create_claim(cluster, "data")
        await place(cluster, user("uses", "data", priorityClassName="middle"), user("beside", priorityClassName="low"))
        await place(cluster, user("kept", priorityClassName="middle"))
        await place(cluster, user("important", "data", cpu="1500m", priorityClassName="high"))
        assert await left(cluster) == {"important": "a", "kept": "a"}


async def test_nobody_has_to_go_where_a_user_is_as_important_or_on_another_node() -> None:
    async with cluster_of(node("a"), node("b")) as cluster:
        await create_priorities(cluster)
        for name in ("one", "two", "three"):
            await create_claim(cluster, name)
        low, high = {"priorityClassName": "low"}, {"priorityClassName": "high"}
        await place(cluster, user("a-1", "one", **low), user("b-2", "two", **low), user("a-3", "three", **high))
        placed = await place(cluster, user("both", "one", "two", **high), user("equal", "one", "three", **high))
        assert placed == [WAITS, WAITS]
        assert await left(cluster) == {"a-1": "a", "a-3": "a", "b-2": "b", "both": None, "equal": None}


@pytest.mark.parametrize("waits", ["low", "patient"])
async def test_a_claim_that_is_taken_over_goes_to_nobody_else(waits: str) -> None:
    async with cluster_of(node("a"), node("b")) as cluster:
        await create_priorities(cluster)
        patient = PriorityClass(metadata=ObjectMeta(name="patient"), value=100, preemption_policy="Never")
        await cluster.client.create(patient)  # as important, but preempts nobody
        await create_claim(cluster, "data")
        await place(cluster, user("uses", "data", priorityClassName="low"))
        await place(cluster, user("a-waits", "data", priorityClassName=waits))
        await place(cluster, user("important", "data", priorityClassName="high"))
        assert await left(cluster) == {"a-waits": None, "important": "a"}
        await cluster.client.delete(Pod, "important", SPACE)
        await cluster.settle()
        assert await where(cluster, "a-waits") == "a"


async def test_a_claim_that_is_taken_over_goes_to_whoever_is_more_important_still() -> None:
    async with cluster_of(node("a")) as cluster:
        await create_priorities(cluster)
        await create_claim(cluster, "data")
        uses = user("uses", "data", priorityClassName="low")
        uses.metadata.annotations[ANNOTATION] = "stop 20s"
        await place(cluster, uses)
        await place(cluster, user("a-waits", "data", priorityClassName="high"))
        await place(cluster, user("important", "data", priorityClassName="highest"))
        assert await left(cluster) == {"uses": "a", "a-waits": None, "important": None}
        await cluster.clock.advance(30)
        assert await left(cluster) == {"a-waits": None, "important": "a"}
