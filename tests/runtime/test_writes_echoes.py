"""A controller is not woken by its own writes, but by everything else."""

from __future__ import annotations

import asyncio

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch, Static
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime import Context, Controller, Manager
from konverge.sim.faults import Faulty


class Counter:
    """Copies the desired value that it has seen."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def reconcile(self, ctx: Context[ConfigMap]) -> None:
        desired = ctx.obj.data.get("desired", "")
        self.seen.append(desired)
        await self.hold.wait()
        if ctx.obj.data.get("seen") != desired:
            await ctx.client.patch(ConfigMap, "one", MergePatch({"data": {"seen": desired}}), "default")


@pytest.mark.virtual
@pytest.mark.spec("R-07")
async def test_a_controller_is_not_woken_by_its_own_write() -> None:
    counter = Counter()
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default"), data={"desired": "a"}))
        controller = Controller(ConfigMap, counter.reconcile, namespaces=("default",))
        async with Manager(client).add(controller).running():
            await asyncio.sleep(5)
    assert counter.seen == ["a"]


@pytest.mark.virtual
@pytest.mark.spec("R-07")
async def test_a_foreign_change_that_only_a_list_shows_is_not_hidden_by_an_own_write() -> None:
    counter = Counter()
    async with ApiServer() as server:
        credentials = Static.bearer(server.token)
        cut_off = Faulty(server.transport, [])
        async with (
            Client(server.transport, credentials=credentials) as other,
            Client(cut_off, credentials=credentials) as client,
        ):
            await other.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default"), data={"desired": "a"}))
            counter.hold.clear()
            controller = Controller(ConfigMap, counter.reconcile, namespaces=("default",))
            async with Manager(client).add(controller).running():
                await asyncio.sleep(1)  # it has read the desired value a, and is about to write
                cut_off.cut_all()
                await other.patch(ConfigMap, "one", MergePatch({"data": {"desired": "b"}}), "default")
                counter.hold.set()
                await asyncio.sleep(0)
                server.store.compact(server.store.revision)  # the watch has to start again, with a list
                await asyncio.sleep(60)
            assert (await other.get(ConfigMap, "one", "default")).data == {"desired": "b", "seen": "b"}
    assert counter.seen[-1] == "b"
