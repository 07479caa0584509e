"""A machine's whole life while calls fail, watches break and the operator is restarted, by seed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from konverge import clock
from konverge.client import Client, Recording, Static
from konverge.objects import Object
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Secret
from konverge.operators.wukong.kinds import DataVolume, NetworkAttachmentDefinition, VirtualMachine
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.resource import Wukong
from konverge.sim.cluster import Cluster
from konverge.sim.faults import Faulty, Plan
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.operators.wukong.world import MODES, NAME, SPACE, SPEC, World, make_classes, operating

pytestmark = [pytest.mark.virtual, pytest.mark.long, pytest.mark.spec("W-14")]

LAN = [{"name": "default"}, {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}]
CHILDREN: tuple[type[Object], ...] = (
    VirtualMachine, DataVolume, PersistentVolumeClaim, NetworkAttachmentDefinition, Secret,
)  # fmt: skip


class Story:
    """An operator that is killed now and then, with trouble on its way to the API server."""

    def __init__(self, w: World, seed: int) -> None:
        self.w = w
        self.rng = clock.seeded(seed)

    async def operator(self, stack: AsyncExitStack) -> None:
        server = self.w.cluster.server
        plan = Plan.of(self.rng.randrange(1 << 30), faults=10, exchanges=160)
        client = Client(Faulty(server.transport, plan.faults), credentials=Static.bearer(server.token))
        await stack.enter_async_context(client)
        await stack.enter_async_context(operating(client, shutdown_timeout=0.1))

    async def through(self, done: Any) -> None:
        """Operators one after the other, each for a while, until it is done."""
        for _ in range(40):
            async with AsyncExitStack() as stack:
                await self.operator(stack)
                for _ in range(self.rng.randrange(3, 60)):
                    await asyncio.sleep(1)
                    if await done():
                        return
        raise AssertionError(f"never done: {await self.w.find(Wukong, NAME)}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.limit(120)
async def test_a_life_full_of_trouble(seed: int, mode: Any) -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, cdi=mode, timings=QUICK, seed=seed) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        w = World(cluster, kubevirt, None, Recording(cluster.client))  # type: ignore[arg-type]
        story = Story(w, seed)
        await w.create(networks=LAN, powerState="Running")

        async def runs() -> bool:
            result = await w.wukong()
            return result.status.phase == "Running" and await w.condition("Ready") == ("True", "VMRunning")

        await story.through(runs)
        assert [len((await w.client.list(kind, SPACE)).items) for kind in CHILDREN] == [1, 1, 1, 1, 1]
        await w.change(disks=[SPEC["disks"][0] | {"size": "20Gi"}], restartAt="once")

        async def grown() -> bool:
            status = (await w.wukong()).status
            volume = status.volumes[0] if status.volumes else None
            larger = volume is not None and volume.capacity == volume.requested == "22763326670"
            return larger and status.last_restart == "once" and await runs()

        await story.through(grown)
        await w.delete()

        async def gone() -> bool:
            return await w.find(Wukong, NAME) is None

        await story.through(gone)
        await asyncio.sleep(60)
        assert [len((await w.client.list(kind, SPACE)).items) for kind in CHILDREN] == [0, 0, 0, 0, 0]
