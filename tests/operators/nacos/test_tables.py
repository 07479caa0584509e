"""The three tables of the document, reconcile by reconcile and word for word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.nacos.world import CLUSTER, STANDALONE, World, a_world, condition

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.limit(180),
    pytest.mark.spec("N-04", "N-07", "N-08", "N-09", "N-10", "N-11", "N-13"),
]

LOOK = ("GET StatefulSet nacos", "LIST Pod app=nacos")


async def one_reconcile(world: World) -> tuple[str, tuple[str, ...], tuple[str, ...], str, str]:
    """Step, requests to Kubernetes, servers asked, phases, result."""
    world.reports.clear()
    await world.advance(5.0)
    done = await world.cluster.step("nacos", manager=world.operator)
    assert done is not None
    (report,) = world.reports
    phases = report.phase if report.before == report.phase else f"{report.before or 'None'} -> {report.phase}"
    writes = [f"{call.verb} {call.resource.kind}/{call.subresource}" for call in done.writes]
    # One write of the status in a reconcile, whatever else it did.
    assert sum(write.endswith("Nacos/status") for write in writes) <= 1
    result = "Success" if report.requeue is None else f"Requeue {report.requeue:g}s"
    return report.step, report.requests, report.asked, phases, result


async def test_standalone_create() -> None:
    async with a_world(hold=["statefulset"]) as world, world.operating(paused=["nacos"]):
        await world.create("nacos", {**STANDALONE, "volume": {}})  # pods made by hand have no claims
        assert await one_reconcile(world) == ("PreCheck", (), (), "None -> Creating", "Requeue 5s")
        made = ("CREATE ConfigMap nacos", "CREATE StatefulSet nacos", "CREATE Service nacos")
        assert await one_reconcile(world) == ("MakeEnsure", made, (), "Creating", "Requeue 5s")
        assert await one_reconcile(world) == ("CheckKind", LOOK, (), "Creating", "Requeue 5s")
        await world.cluster.simulate_stateful_set_pods("nacos")
        assert await one_reconcile(world) == ("CheckKind", LOOK, (), "Creating", "Requeue 5s")
        assert await one_reconcile(world) == ("CheckNacos", LOOK, ("nacos-0",), "Creating", "Requeue 5s")
        updated = ("UPDATE Nacos Status",)
        assert await one_reconcile(world) == ("UpdateStatus", updated, (), "Creating -> Running", "Success")


async def bring_up(world: World, spec: dict[str, Any]) -> None:
    await world.create("nacos", spec)
    for _ in range(3):
        await one_reconcile(world)
    await world.cluster.simulate_stateful_set_pods("nacos")
    for _ in range(3):
        await one_reconcile(world)


async def test_cluster_create() -> None:
    async with a_world(hold=["statefulset"]) as world, world.operating(paused=["nacos"]):
        await world.create("nacos", CLUSTER)
        assert await one_reconcile(world) == ("PreCheck", (), (), "None -> Creating", "Requeue 5s")
        made = (
            "CREATE ConfigMap nacos",
            "CREATE StatefulSet nacos",
            "CREATE Service nacos-headless",
            "CREATE Service nacos-client",
        )
        assert await one_reconcile(world) == ("MakeEnsure", made, (), "Creating", "Requeue 5s")
        assert await one_reconcile(world) == ("CheckKind", LOOK, (), "Creating", "Requeue 5s")
        await world.cluster.simulate_stateful_set_pods("nacos", ready=1)
        assert await one_reconcile(world) == ("CheckKind", LOOK, (), "Creating", "Requeue 5s")
        await world.cluster.simulate_stateful_set_pods("nacos", ready=2)
        assert await one_reconcile(world) == ("CheckKind", LOOK, (), "Creating", "Requeue 5s")
        await world.cluster.simulate_stateful_set_pods("nacos", ready=3)
        all_three = ("nacos-0", "nacos-1", "nacos-2")
        assert await one_reconcile(world) == ("CheckNacos", LOOK, all_three, "Creating", "Requeue 5s")
        updated = ("UPDATE Nacos Status",)
        assert await one_reconcile(world) == ("UpdateStatus", updated, (), "Creating -> Running", "Success")


async def test_scale_from_three_to_five() -> None:
    async with a_world(hold=["statefulset"]) as world, world.operating(paused=["nacos"]):
        await bring_up(world, CLUSTER)
        await world.advance(60.0)
        await world.cluster.step("nacos", manager=world.operator)  # the look after which there is a budget
        await world.change("nacos", replicas=5)
        made = ("UPDATE StatefulSet nacos",)
        assert await one_reconcile(world) == ("MakeEnsure", made, (), "Running", "Requeue 5s")
        assert await one_reconcile(world) == ("CheckKind", LOOK, (), "Running", "Requeue 5s")
        on_its_way = await world.nacos("nacos")
        assert condition(on_its_way, "Ready") == ("False", "PodsMissing")
        assert condition(on_its_way, "Progressing")[0] == "True", "the phase does not show it, as in the document"
        await world.cluster.simulate_stateful_set_pods("nacos")
        await grow_lists(world)
        assert await one_reconcile(world) == ("CheckKind", LOOK, (), "Running", "Requeue 5s")
        all_five = tuple(f"nacos-{number}" for number in range(5))
        assert await one_reconcile(world) == ("CheckNacos", LOOK, all_five, "Running", "Requeue 5s")
        assert await one_reconcile(world) == ("UpdateStatus", ("UPDATE Nacos Status",), (), "Running", "Success")


async def grow_lists(world: World) -> None:
    """In the document's world the StatefulSet controller has restarted the older pods with the longer list."""
    for number in range(3):
        await world.client.delete("pods", f"nacos-{number}", "default")
    await world.cluster.settle()
    await world.cluster.simulate_stateful_set_pods("nacos")
