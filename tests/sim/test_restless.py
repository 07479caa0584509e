"""A cluster that does not come to rest says who is still at work."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Result
from konverge.sim import Cluster
from konverge.sim.cluster import Unsettled

MAP = ConfigMap(metadata=ObjectMeta(name="settings", namespace="default"), data={"mode": "-"})


async def unsettled(cluster: Cluster, *controllers: Controller[ConfigMap], limit: float = 60.0) -> str:
    manager = Manager(cluster.connect("mine"), name="mine")
    for controller in controllers:
        manager.add(controller)
    async with manager.running():
        await cluster.client.create(MAP)
        with pytest.raises(Unsettled) as caught:
            await cluster.settle(limit=limit)
    return str(caught.value)


@pytest.mark.spec("O-47")
@pytest.mark.virtual
async def test_a_controller_that_always_comes_back_is_named_with_its_key(cluster: Cluster) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> Result:
        body = MergePatch({"data": {"mode": ctx.obj.data["mode"] + "-"}})
        await ctx.client.patch(ConfigMap, ctx.request.name, body, ctx.request.namespace)
        return Result(requeue_after=0.5)

    message = await unsettled(cluster, Controller(ConfigMap, reconcile, name="ticker", namespaces=("default",)))
    assert message.startswith("something still changes after 60 s: ")
    assert "back within 1 s: ticker default/settings (in 0." in message
    assert "asked to come back after 0.5 s" in message
    assert "written meanwhile: configmaps default/settings by mine (" in message


@pytest.mark.spec("O-47")
@pytest.mark.virtual
async def test_two_controllers_that_undo_each_other_are_named_with_what_they_write(cluster: Cluster) -> None:
    def set_to(value: str) -> Controller[ConfigMap]:
        async def reconcile(ctx: Context[ConfigMap]) -> Result:
            if ctx.obj.data.get("mode") != value:
                body = MergePatch({"data": {"mode": value}})
                await ctx.client.patch(ConfigMap, "settings", body, "default", field_manager=f"set-{value}")
                await asyncio.sleep(0.2)
            return Result()

        return Controller(ConfigMap, reconcile, name=f"set-{value}", namespaces=("default",))

    message = await unsettled(cluster, set_to("a"), set_to("b"))
    assert "set-a default/settings (" in message
    assert "configmaps default/settings by set-a (" in message
    assert "configmaps default/settings by set-b (" in message


@pytest.mark.spec("O-47")
@pytest.mark.virtual
async def test_a_task_that_writes_outside_of_controllers_is_named(cluster: Cluster) -> None:
    async def write() -> None:
        await cluster.client.create(MAP)
        for number in itertools.count():
            body = MergePatch({"data": {"number": str(number)}})
            await cluster.client.patch(ConfigMap, "settings", body, "default", field_manager="by-hand")
            await asyncio.sleep(0.5)

    task = asyncio.create_task(write(), name="an endless test")
    with pytest.raises(Unsettled) as caught:
        await cluster.settle(limit=60)
    task.cancel()
    message = str(caught.value)
    assert "tasks that wake within 1 s: an endless test" in message
    assert "configmaps default/settings by by-hand (" in message
    count = int(message.partition("by by-hand (")[2].partition(" ")[0])
    assert 20 <= count <= 42, "the last seconds only"


@pytest.mark.spec("O-47")
async def test_on_the_clock_of_the_machine_work_of_any_manager_counts() -> None:
    release = asyncio.Event()

    async def reconcile(ctx: Context[ConfigMap]) -> Result:
        await release.wait()
        return Result()

    async with Cluster(controllers=False, scheduler=False, kubelet=False) as cluster:
        manager = Manager(cluster.connect("mine"), name="mine").add(
            Controller(ConfigMap, reconcile, name="slow", namespaces=("default",))
        )
        async with manager.running():
            await cluster.client.create(MAP)
            with pytest.raises(Unsettled, match=r"at work: slow default/settings \(in work\)"):
                await cluster.settle(quiet=0.05, limit=0.5)
            release.set()
            await cluster.settle(quiet=0.05)
