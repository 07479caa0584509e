"""The operator is killed after every single write, and the next process goes on where it was.

Each process lives for one write, and its answer never reaches it. If a spec is fulfilled by such processes, it is
fulfilled from every state between two writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from konverge.client import Call, Client
from konverge.client.wrappers import Wrapper
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong.kinds import DataVolume, NetworkAttachmentDefinition, VirtualMachine
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.resource import AnyWukong, Wukong
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from konverge.wire.message import Response
from tests.operators.wukong.world import MODES_IN_TURN, NAME, SPACE, World, make_classes, operating

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-14")]

LAN = [{"name": "default"}, {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}]


class MortalCalls(Wrapper):
    """Ends after one write: it happens, and no caller gets the answer."""

    def __init__(self, client: Client) -> None:
        super().__init__(client.caller)
        self.dead = asyncio.Event()
        self.last = ""

    async def call(self, call: Call) -> Response:
        if not call.writes or call.resource is None or call.resource.kind == "Event":
            return await self._inner.call(call)
        if not self.dead.is_set():
            await self._inner.call(call)
            self.last = f"{call.verb} {call.resource.plural} {call.subresource}".strip()
            self.dead.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("the process must have ended")


class Mortal(Client):
    def __init__(self, client: Client) -> None:
        self.calls = MortalCalls(client)
        self._use_caller(self.calls, client.mapper)


async def by_mortals(w: World, done: Callable[[], Any], *, limit: int = 60) -> list[str]:
    """Processes of one write each until all is as desired; what they wrote."""
    writes_: list[str] = []
    for _ in range(limit):
        client = Mortal(w.client)
        async with operating(client, shutdown_timeout=0.1):
            for _ in range(600):
                await asyncio.sleep(0.5)
                if client.calls.dead.is_set():
                    break
                if await done():
                    return writes_
        writes_.append(client.calls.last)
    raise AssertionError(f"not fulfilled by {limit} processes: {writes_[-10:]}")


@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_a_life_of_killed_processes(mode: Any) -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, cdi=mode, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        await w.create(networks=LAN)

        async def runs() -> bool:
            return (await w.wukong()).status.phase == "Running"

        writes_ = await by_mortals(w, runs)
        made = {"patch datavolumes", "patch virtualmachines", "patch network-attachment-definitions", "patch secrets"}
        assert made <= set(writes_)
        assert all(writes_.count(item) == 1 for item in made), "nothing is made twice"
        first = await w.vmi()
        assert first is not None
        await w.change(restartAt="now")

        async def restarted() -> bool:
            return (await w.wukong()).status.last_restart == "now" and await runs()

        writes_ = await by_mortals(w, restarted)
        assert writes_.count("delete virtualmachineinstances") == 1
        second = await w.vmi()
        assert second is not None
        assert second.metadata.uid != first.metadata.uid
        await w.delete()

        async def gone() -> bool:
            return await w.find(AnyWukong, NAME) is None

        await by_mortals(w, gone)
        await asyncio.sleep(20)
        for kind in (Wukong, VirtualMachine, DataVolume, PersistentVolumeClaim, NetworkAttachmentDefinition):
            assert (await w.client.list(kind, SPACE)).items == []
