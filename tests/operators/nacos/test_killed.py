"""The operator is killed after every single write, and the next process goes on where it was.

Each process lives for a number of writes; the answer to the last one never reaches it. If processes of one write each
reach the desired state, the operator reaches it from every state between two writes.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Call, Client
from konverge.client.wrappers import Wrapper
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.kubelet.behaviour import Rule
from konverge.wire.message import Response
from tests.operators.nacos.world import CLUSTER, POSTGRES, SPACE, World, a_world, is_ready

pytestmark = [pytest.mark.long, pytest.mark.virtual, pytest.mark.spec("N-14", "N-20")]
SLOW = [Rule(image="*nacos-server*", behave="ready after 4s")]


class MortalCalls(Wrapper):
    """Ends after so many writes: they happen, but the answer to the last one is lost."""

    def __init__(self, client: Client, writes: int) -> None:
        super().__init__(client.caller)
        self.left = writes
        self.dead = asyncio.Event()
        self.last = ""

    async def call(self, call: Call) -> Response:
        if not self._counts(call):
            return await self._inner.call(call)
        await self._hang_if(self.left == 0)
        self.left -= 1
        response = await self._inner.call(call)
        if self.left == 0:
            self.last = str(call)
            self.dead.set()
        await self._hang_if(self.left == 0)
        return response

    @staticmethod
    def _counts(call: Call) -> bool:
        kind = call.resource
        return call.writes and kind is not None and kind.kind != "Event" and kind.group != "authorization.k8s.io"

    @staticmethod
    async def _hang_if(dead: bool) -> None:
        if dead:
            await asyncio.get_running_loop().create_future()


class Mortal(Client):
    def __init__(self, client: Client, writes: int) -> None:
        self.calls = MortalCalls(client, writes)
        self._use_caller(self.calls, client.mapper)


async def by_mortals(world: World, writes: int, *, limit: int = 400, phase: str = "Running") -> list[str]:
    """Processes of so many writes each, one after the other, until the Nacos runs, or sleeps; their last writes."""
    last_writes = []
    for _ in range(limit):
        client = Mortal(world.client, writes)
        async with world.operating(client=client):
            for _ in range(120):
                await world.advance(1.0)
                if client.calls.dead.is_set():
                    break
                nacos = await world.nacos("nacos")
                if nacos.status.phase == phase and (phase != "Running" or is_ready(nacos)):
                    return last_writes
        last_writes.append(client.calls.last)
    raise AssertionError(f"not running after {limit} processes: {last_writes[-10:]}")


@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.limit(180)
async def test_a_life_of_killed_processes(writes: int) -> None:
    async with a_world(nodes=5, rules=SLOW) as world:
        await world.create("nacos", CLUSTER)
        last_writes = await by_mortals(world, writes)
        assert len(last_writes) >= 6 // writes
        await world.change("nacos", image="harbor.cloud.io/nacos/nacos-server:v2.0.5")
        await by_mortals(world, writes)
        images = {pod.spec.containers[0].image for pod in await world.client.list(Pod, SPACE)}
        assert images == {"harbor.cloud.io/nacos/nacos-server:v2.0.5"}
        await world.change("nacos", replicas=4)
        await by_mortals(world, writes)
        await world.change("nacos", replicas=3)
        await by_mortals(world, writes)
        assert (await world.client.get(StatefulSet, "nacos", SPACE)).spec.replicas == 3


@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.limit(180)
async def test_a_rotation_by_killed_processes(writes: int) -> None:
    async with a_world(rules=SLOW) as world:
        server = await world.postgres()
        spec: dict[str, Any] = {**POSTGRES, "certification": {"enabled": True}}
        await world.create("nacos", spec)
        await by_mortals(world, writes)
        await world.replace_secret("admin", username="nacos", password="second")
        await world.change("nacos", config="a=1\n")
        await by_mortals(world, writes)
        async with world.operating():
            await world.advance(60.0)
        assert server.databases["nacos"].accepts("nacos", "second")


@pytest.mark.limit(180)
async def test_volumes_grow_by_killed_processes() -> None:
    async with a_world(rules=SLOW) as world:
        await world.create("nacos", {**CLUSTER, "volume": {"enabled": True, "requests": {"storage": "1Gi"}}})
        await by_mortals(world, 1)
        await world.change("nacos", volume={"requests": {"storage": "2Gi"}})
        await by_mortals(world, 1)
        template = (await world.client.get(StatefulSet, "nacos", SPACE)).spec.volume_claim_templates[0]
        assert str(template.spec.resources.requests["storage"]) == "2Gi"  # type: ignore[union-attr]
