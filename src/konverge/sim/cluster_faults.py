"""The faults of the world, each at its time: API server restarts, silent nodes, clock jumps, a leader who is lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from konverge.client import ClientError, MergePatch, NotFound
from konverge.objects import times
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.sim.faults import WORLD, Fault, Faulty, Kind, Plan

if TYPE_CHECKING:
    from konverge.sim.cluster import Cluster

LEASE, SPACE = "kube-controller-manager", "kube-system"


class Chaos:
    """A service that performs what a plan has for the world."""

    name = "chaos"

    def __init__(self, cluster: Cluster, transport: Faulty, plan: Plan) -> None:
        self._cluster = cluster
        self._transport = transport
        self._faults = [fault for fault in plan.faults if fault.kind in WORLD]
        self.over = asyncio.Event()

    async def run(self) -> None:
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for fault in self._faults:
                await asyncio.sleep(max(began + fault.at - asyncio.get_running_loop().time(), 0))
                self._transport.happened.append(str(fault))
                group.create_task(self._perform(fault), name=str(fault))
        self.over.set()

    async def _perform(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.RESTART:
                await self.restart(fault.amount)
            case Kind.NODE:
                await self._lose_a_node(fault)
            case Kind.CLOCK:
                self._cluster.clock.jump(fault.amount)
            case _:
                await self._take_leadership()

    async def restart(self, seconds: float) -> None:
        """Away for a while. What was stored is kept; the history, which a server has in memory, is not."""
        self._transport.away = True
        self._transport.cut_all()
        store = self._cluster.server.store
        store.compact(store.revision)
        await asyncio.sleep(seconds)
        self._transport.away = False

    async def _lose_a_node(self, fault: Fault) -> None:
        names = sorted(self._cluster.node_names)
        if not names:
            return
        name = names[int(fault.at * 100) % len(names)]
        self._cluster.lose_node(name)
        await asyncio.sleep(fault.amount)
        with suppress(NotFound):
            await self._cluster.recover_node(name)

    async def _take_leadership(self) -> None:
        """Another holder has the Lease from now on, and never renews it."""
        spec = {"holderIdentity": "another-holder", "renewTime": times.micro_now()}
        with suppress(ClientError):
            await self._cluster.client.patch(Lease, LEASE, MergePatch({"spec": spec}), SPACE)
