"""The three tables of the document, reconcile by reconcile, as the API server and the Nacos servers see them.

A row of a table is what was stored and requested, and never what the operator says about itself:

- writes: the objects that exist or differ after the reconcile, each by exactly one request of it (`Step.writes`);
- asked: the servers that received a request;
- phases: the stored `status.phase` before and after;
- result: what the reconciler returned to its queue.

The document's reads (GET StatefulSet, LIST Pods) are answered by caches: the stored conditions show what they read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from konverge.objects import Object
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos.operator import NacosReconciler
from konverge.operators.nacos.resource import AnyNacos, Nacos
from konverge.runtime import Context, Result
from tests.operators.nacos.world import CLUSTER, SPACE, STANDALONE, World, a_world, condition

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.limit(180),
    pytest.mark.spec("N-04", "N-07", "N-08", "N-09", "N-10", "N-11", "N-13"),
]

KINDS: tuple[type[Object], ...] = (
    *(ConfigMap, Secret, StatefulSet, Service, Job, PodDisruptionBudget, Pod, PersistentVolumeClaim),
)
State = dict[tuple[str, str], tuple[str, str]]
Row = tuple[list[str], list[str], str, str]


@dataclass
class Table:
    """A world whose only controller runs row by row."""

    world: World
    results: list[Result | None] = field(default_factory=list)

    async def row(self) -> Row:
        world = self.world
        await world.advance(5.0)
        world.servers.calls.clear()
        self.results.clear()
        before, phase = await self._stored(), (await world.nacos("nacos")).status.phase
        done = await world.cluster.step("nacos", manager=world.operator)
        assert done is not None
        after, nacos = await self._stored(), await world.nacos("nacos")
        phases = nacos.status.phase if phase == nacos.status.phase else f"{phase or 'None'} -> {nacos.status.phase}"
        (result,) = self.results
        assert result is not None
        assert result.requeue_after is not None
        requeue = "Requeue 5s" if result.requeue_after == 5.0 else "Success"
        assert requeue != "Success" or 27.0 <= result.requeue_after <= 33.0, "the next look at a running cluster"
        requested = [(call.resource.kind, call.name, call.subresource) for call in done.writes if call.resource]
        children = [(kind, name) for kind, name, _ in requested if kind not in ("Nacos", "Event")]
        changes = dict(changes_between(before, after))
        assert sorted(children) == sorted(changes), "one request for each change, and no other"
        status = [entry for entry in requested if entry[0] == "Nacos"]
        assert status in ([], [("Nacos", "nacos", "status")]), "one write of the status in a reconcile"
        written = [f"{changes[child]} {child[0]} {child[1]}" for child in children]
        return written, sorted(name for name, _ in world.servers.calls), phases, requeue

    async def _stored(self) -> State:
        """All objects that the operator could write: kind and name -> uid and version."""
        return {
            (kind.resource.kind, item.metadata.name): (item.metadata.uid, item.metadata.resource_version)
            for kind in KINDS
            for item in await self.world.client.list(kind, SPACE)
        }

    async def conditions(self) -> list[str]:
        """What the checks read, as it is stored."""
        nacos = await self.world.nacos("nacos")
        return ["/".join(condition(nacos, type)) for type in ("PodsReady", "MembersVerified", "Ready")]


def changes_between(before: State, after: State) -> Iterator[tuple[tuple[str, str], str]]:
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old is None or new is None:
            yield key, "CREATE" if old is None else "DELETE"
        elif old != new:
            yield key, "UPDATE" if old[0] == new[0] else "RECREATE"


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[Result | None]:
    """What the reconciler returns, one by one."""
    returned: list[Result | None] = []
    reconcile = NacosReconciler.reconcile

    async def recorded(self: NacosReconciler, ctx: Context[AnyNacos]) -> Result | None:
        returned.append(await reconcile(self, ctx))
        return returned[-1]

    monkeypatch.setattr(NacosReconciler, "reconcile", recorded)
    return returned


async def test_standalone_create(results: list[Result | None]) -> None:
    async with a_world(hold=["statefulset"]) as world, world.operating(paused=["nacos"]):
        table = Table(world, results)
        await world.create("nacos", {**STANDALONE, "volume": {}})  # pods made by hand have no claims
        assert await table.row() == ([], [], "None -> Creating", "Requeue 5s")
        assert await table.conditions() == ["Unknown/Creating", "Unknown/Creating", "False/Creating"]
        made = ["CREATE ConfigMap nacos", "CREATE StatefulSet nacos", "CREATE Service nacos"]
        assert await table.row() == (made, [], "Creating", "Requeue 5s")
        await check_children(world, replicas=1, services={"nacos": {8848, 7848, 9848}})
        assert await table.row() == ([], [], "Creating", "Requeue 5s")
        assert await table.conditions() == ["False/PodsMissing", "Unknown/Creating", "False/PodsMissing"]
        await world.cluster.simulate_stateful_set_pods("nacos")
        assert await table.row() == ([], [], "Creating", "Requeue 5s")
        assert await table.conditions() == ["True/EnoughReady", "Unknown/Creating", "False/PodsMissing"]
        assert await table.row() == ([], ["nacos-0"], "Creating", "Requeue 5s")
        assert (await table.conditions())[:2] == ["True/EnoughReady", "True/AllUp"]
        assert await table.row() == ([], [], "Creating -> Running", "Success")
        assert await table.conditions() == ["True/EnoughReady", "True/AllUp", "True/Running"]
        await check_running(world, version="2.0.4", servers=1)


async def test_cluster_create(results: list[Result | None]) -> None:
    async with a_world(hold=["statefulset"]) as world, world.operating(paused=["nacos"]):
        table = Table(world, results)
        await world.create("nacos", CLUSTER)
        assert await table.row() == ([], [], "None -> Creating", "Requeue 5s")
        made = [
            "CREATE ConfigMap nacos",
            "CREATE StatefulSet nacos",
            "CREATE Service nacos-headless",
            "CREATE Service nacos-client",
        ]
        assert await table.row() == (made, [], "Creating", "Requeue 5s")
        services = {"nacos-headless": {8848, 7848, 9848}, "nacos-client": {8848, 9848}}
        await check_children(world, replicas=3, services=services)
        assert await table.row() == ([], [], "Creating", "Requeue 5s")
        assert (await table.conditions())[0] == "False/PodsMissing"
        await world.cluster.simulate_stateful_set_pods("nacos", ready=1)
        assert await table.row() == ([], [], "Creating", "Requeue 5s")
        assert (await table.conditions())[0] == "False/PodsNotReady"
        await world.cluster.simulate_stateful_set_pods("nacos", ready=2)
        assert await table.row() == ([], [], "Creating", "Requeue 5s")
        assert (await table.conditions())[0] == "True/EnoughReady"
        await world.cluster.simulate_stateful_set_pods("nacos", ready=3)
        assert await table.row() == ([], ["nacos-0", "nacos-1", "nacos-2"], "Creating", "Requeue 5s")
        assert (await table.conditions())[1] == "True/AllUp"
        assert await table.row() == ([], [], "Creating -> Running", "Success")
        await check_running(world, version="2.0.4", servers=3)


async def test_scale_from_three_to_five(results: list[Result | None]) -> None:
    async with a_world(hold=["statefulset"]) as world, world.operating(paused=["nacos"]):
        table = Table(world, results)
        await bring_up(table, CLUSTER)
        await world.advance(60.0)
        assert (await table.row())[0] == ["CREATE PodDisruptionBudget nacos"], "the first look at a running cluster"
        await world.change("nacos", replicas=5)
        assert await table.row() == (["UPDATE StatefulSet nacos"], [], "Running", "Requeue 5s")
        assert (await world.client.get(StatefulSet, "nacos", SPACE)).spec.replicas == 5
        assert await table.row() == ([], [], "Running", "Requeue 5s")
        assert await table.conditions() == ["False/PodsMissing", "Unknown/Changed", "False/PodsMissing"]
        assert condition(await world.nacos("nacos"), "Progressing")[0] == "True", "the phase does not show it"
        await world.cluster.simulate_stateful_set_pods("nacos")
        await grow_lists(world)
        assert await table.row() == ([], [], "Running", "Requeue 5s")
        assert (await table.conditions())[0] == "True/EnoughReady"
        assert await table.row() == ([], [f"nacos-{number}" for number in range(5)], "Running", "Requeue 5s")
        assert await table.row() == ([], [], "Running", "Success")
        await check_running(world, version="2.0.4", servers=5)


async def bring_up(table: Table, spec: dict[str, Any]) -> None:
    await table.world.create("nacos", spec)
    for _ in range(3):
        await table.row()
    await table.world.cluster.simulate_stateful_set_pods("nacos")
    for _ in range(3):
        await table.row()


async def grow_lists(world: World) -> None:
    """In the document's world the StatefulSet controller has restarted the older pods with the longer list."""
    for number in range(3):
        await world.client.delete("pods", f"nacos-{number}", "default")
    await world.cluster.settle()
    await world.cluster.simulate_stateful_set_pods("nacos")


async def check_children(world: World, *, replicas: int, services: dict[str, set[int]]) -> None:
    """All of the resource, and what the second row has to make."""
    owner = await world.nacos("nacos")
    stateful_set = await world.client.get(StatefulSet, "nacos", SPACE)
    stored = (await world.client.list(Service, SPACE, label_selector="app=nacos")).items
    config = await world.client.get(ConfigMap, "nacos", SPACE)
    assert stateful_set.spec.replicas == replicas
    assert {item.metadata.name: {port.port for port in item.spec.ports} for item in stored} == services
    for item in stored:
        assert item.spec.selector == stateful_set.spec.selector.match_labels, item.metadata.name
    for child in itertools.chain([stateful_set, config], stored):
        (reference,) = child.metadata.owner_references
        assert (reference.uid, reference.controller) == (owner.metadata.uid, True)


async def check_running(world: World, *, version: str, servers: int) -> None:
    nacos: Nacos = await world.nacos("nacos")
    status = nacos.status
    assert (status.phase, status.version, len(status.servers)) == ("Running", version, servers)
    assert (status.event[-1].code, status.event[-1].status) == (200, True)
    assert status.observed_generation == nacos.metadata.generation
