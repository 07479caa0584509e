"""A crash after any write, and a write whose answer is lost: the next process completes what was begun."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Client, ConnectionLost, MergePatch
from konverge.client.call import Call
from konverge.client.wrappers import Wrapper
from konverge.objects import CustomResource, Model, ObjectMeta, crd
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime import Context, Controller, Manager, Reconciler, Result, Settings
from konverge.runtime.apply_set import Child, run
from konverge.sim import Cluster
from konverge.wire.message import Response
from tests.runtime.objects import SPACE, config_map

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-62", "R-64")]

assert run  # loaded before a loop runs


class ShelfSpec(Model):
    names: list[str] = []


class Shelf(CustomResource[ShelfSpec, ShelfSpec], group="tests.konverge.dev", version="v1"):
    """A ConfigMap for each name, each after the one before."""


class ShelfReconciler(Reconciler[Shelf]):
    async def reconcile(self, ctx: Context[Shelf]) -> None:
        await ctx.apply_set(chain(ctx.obj.spec.names))

    async def cleanup(self, ctx: Context[Shelf]) -> Result | None:
        result = await ctx.apply_set([])
        return None if result.ready else Result(requeue_after=30)


def chain(names: list[str]) -> list[Child[ConfigMap]]:
    children: list[Child[ConfigMap]] = []
    for name in names:
        children.append(Child(config_map(name, a="1"), after=[child.desired for child in children[-1:]]))
    return children


class Crashing(Wrapper):
    """The process dies at a write: the last one that reaches the server, or the first one that does not."""

    def __init__(self, inner: Any, after: int) -> None:
        super().__init__(inner)
        self.left = after

    async def call(self, call: Call) -> Response:
        if not call.writes or call.resource is None or call.resource.group == "authorization.k8s.io":
            return await self._inner.call(call)
        self.left -= 1
        if self.left < 0:
            raise ConnectionLost("the process is dead")
        response = await self._inner.call(call)
        if self.left == 0:
            raise ConnectionLost("the process died before the answer came")
        return response


def crashing(client: Client, after: int) -> tuple[Client, Crashing]:
    caller = Crashing(client.caller, after)
    dying = Client.__new__(Client)
    dying._use_caller(caller, client.mapper)
    return dying, caller


STAGES: list[list[str] | None] = [["a", "b"], ["b", "c"], ["d"], None]
"""What a user asks for, one after the other; at last the shelf is deleted."""


async def user(client: Client, shelf: str, stage: int) -> None:
    names = STAGES[stage]
    if names is None:
        await client.delete(Shelf, shelf, SPACE)
    else:
        await client.patch(Shelf, shelf, MergePatch({"spec": {"names": on(shelf, names)}}), SPACE)


def on(shelf: str, names: list[str] | None) -> list[str]:
    return [f"{shelf}-{name}" for name in names or ()]


def operator(client: Client) -> Manager:
    declared = Controller(Shelf, ShelfReconciler(), owns=[ConfigMap], settings=Settings(max_delay=5.0))
    return Manager(client, name="shelves").add(declared)


async def crash(cluster: Cluster, shelf: str, stage: int, write: int) -> bool:
    """A new shelf, whose operator dies at a write of a stage. Whether it came so far."""
    client = cluster.client
    await client.create(Shelf(metadata=ObjectMeta(name=shelf, namespace=SPACE), spec=ShelfSpec()))
    async with operator(client).running():
        for earlier in range(stage):
            await user(client, shelf, earlier)
            await cluster.clock.advance(30)
    dying, caller = crashing(client, write)
    async with operator(dying).running():
        await cluster.settle()
        await user(client, shelf, stage)
        await cluster.clock.advance(10)
    async with operator(client).running():
        await cluster.clock.advance(60)
    children = (await client.list(ConfigMap, SPACE)).items
    present = [(item.metadata.name, item.data) for item in children if item.metadata.name.startswith(f"{shelf}-")]
    assert present == [(name, {"a": "1"}) for name in on(shelf, STAGES[stage])], f"crash at write {write}"
    shelves = [item.metadata.name for item in (await client.list(Shelf, SPACE)).items]
    assert (shelf in shelves) == (STAGES[stage] is not None)
    return caller.left <= 0


@pytest.mark.parametrize("stage", range(len(STAGES)))
async def test_a_crash_after_every_write(stage: int) -> None:
    async with Cluster() as cluster:
        await cluster.client.create(crd(Shelf))
        write = 1
        while await crash(cluster, f"s{write}", stage, write):
            write += 1
    assert write > 2  # there was something to crash after
