"""Sharding by namespace: caches hold a replica's own share where the server can select it, and all of it elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config
from konverge.cache.record import Key
from konverge.client import Client, Static, TimedOut
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Node, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.sharding import Sharding

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-81")]

SPACES = [f"{word}-{number}-team" for word in ("shop", "bar", "kitchen") for number in range(6)]


class Process:
    def __init__(self, server: ApiServer, name: str) -> None:
        self.name = name
        self.gone: list[str] = []
        client = Client(server.transport, credentials=Static.bearer(server.token))
        self.manager = Manager(client, name="op", sharding=Sharding(name="op", by="namespace"))
        self.manager.add(Controller(Secret, self.reconcile, owns=[ConfigMap], on_gone=self.on_gone))
        self.stop = asyncio.Event()
        self.serving = asyncio.create_task(self.manager.serve(self.stop))
        self.missed: list[str] = []

    async def reconcile(self, ctx: Context[Secret]) -> None:
        child = ConfigMap(metadata=ObjectMeta(name="child", namespace=ctx.request.namespace))
        child.data = {"by": self.name}
        if not list(await ctx.list(ConfigMap, ctx.request.namespace)):
            listed = await ctx.client.list(ConfigMap, ctx.request.namespace, field_selector="metadata.name=child")
            self.missed += [item.metadata.namespace for item in listed.items]
        await ctx.apply(child)

    async def on_gone(self, gone: object) -> None:
        self.gone.append(str(gone.request))  # type: ignore[attr-defined]

    def cached(self) -> set[str]:
        return {key.namespace for key, _ in self.manager.engines["secret"].caches.primary.items()}

    def children(self) -> set[str]:
        informer = self.manager.engines["secret"].caches.owned[0]
        return {key.namespace for key, _ in informer.items() if key.name == "child"}

    def owned(self) -> set[str]:
        assert self.manager.shares is not None
        return {space for space in SPACES if self.manager.shares.admits(Key(space, "s"))}

    async def end(self) -> None:
        self.stop.set()
        await self.serving


@pytest.fixture(params=[True, False], ids=["selecting", "not selecting"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[ApiServer, bool]]:
    gates = frozenset({"ShardedListAndWatch"}) if request.param else frozenset[str]()
    async with ApiServer(config=Config(feature_gates=gates)) as server:
        yield server, request.param


async def test_caches_follow_the_share(place: tuple[ApiServer, bool]) -> None:
    server, selecting = place
    client = Client(server.transport, credentials=Static.bearer(server.token))
    for space in SPACES:
        await client.create(Namespace(metadata=ObjectMeta(name=space)))
        await client.create(Secret(metadata=ObjectMeta(name="s", namespace=space)))
    first = Process(server, "first")
    await asyncio.sleep(5)
    assert first.cached() == first.children() == set(SPACES)
    second = Process(server, "second")
    await asyncio.sleep(10)
    assert first.owned() | second.owned() == set(SPACES)
    assert not first.owned() & second.owned()
    for process in (first, second):
        assert process.owned()
        assert process.cached() == (process.owned() if selecting else set(SPACES))
        assert process.children() == (process.owned() if selecting else set(SPACES))
    await first.end()
    await asyncio.sleep(5)
    assert second.owned() == second.cached() == second.children() == set(SPACES)
    assert not second.missed, "a reconcile must not see less than there is"
    assert not first.gone
    assert not second.gone, "an object that another replica has is not gone"
    await client.delete(Secret, "s", SPACES[0])
    await asyncio.sleep(1)
    assert second.gone == [f"{SPACES[0]}/s"]
    await second.end()


async def test_a_kind_without_a_namespace_cannot_be_shared_by_namespace(server: ApiServer, client: Client) -> None:
    async def nothing(ctx: Context[Node]) -> None: ...

    manager = Manager(client, sharding=Sharding(name="op", by="namespace")).add(Controller(Node, nothing))
    with pytest.raises(ValueError, match="by='key'"):
        await manager.serve(asyncio.Event())


async def test_a_lease_that_runs_out_for_a_moment_leaves_the_caches_as_they_are() -> None:
    async with ApiServer(config=Config(feature_gates=frozenset({"ShardedListAndWatch"}))) as server:
        client = Client(server.transport, credentials=Static.bearer(server.token))
        for space in SPACES:
            await client.create(Namespace(metadata=ObjectMeta(name=space)))
            await client.create(Secret(metadata=ObjectMeta(name="s", namespace=space)))
        only = Process(server, "only")
        await asyncio.sleep(5)
        assert only.manager.shares is not None
        replica = only.manager.shares.replica
        put = replica._client.update
        replica._client.update = _away  # type: ignore[method-assign]
        await asyncio.sleep(11)
        assert not only.owned()
        assert only.cached() == only.children() == set(SPACES)
        replica._client.update = put  # type: ignore[method-assign]
        await asyncio.sleep(5)
        assert only.owned() == set(SPACES)
        assert not only.missed
        await only.end()


async def _away(*arguments: object, **options: object) -> object:
    raise TimedOut("away")
