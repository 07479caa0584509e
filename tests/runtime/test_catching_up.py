"""A reconcile never sees a cache older than its own last write, also when the watch has died without a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from konverge.apiserver import ApiServer
from konverge.cache.reflector import Reflector, Restart
from konverge.client import Client, MergePatch, Static
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime import Context, Controller, Manager, Result
from konverge.wire.message import Request, Response, Stream, Transport

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-12")]


class Muffled:
    """A transport on which watches can fall silent, as connections do that a firewall has forgotten."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.silent = False
        """From now on no watch says anything; those that begin with the state do, if they begin now."""

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        stream = await self._inner.stream(request)
        return stream if "sendInitialEvents" in request.target else _MuffledStream(stream, self)


class _MuffledStream:
    def __init__(self, inner: Stream, wire: Muffled) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner = inner
        self._wire = wire
        self._silent = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._silent = self._silent or self._wire.silent
            if not self._silent:
                yield chunk

    async def read(self) -> bytes:
        return await self._inner.read()

    async def aclose(self) -> None:
        await self._inner.aclose()


class Counter:
    """Counts on in the object itself, once a second; what it saw must be what it wrote last."""

    def __init__(self, wire: Muffled) -> None:
        self._wire = wire
        self.seen: list[int] = []
        self.reasons: list[str] = []
        self.done = asyncio.Event()

    async def reconcile(self, ctx: Context[ConfigMap]) -> Result:
        number = int(ctx.obj.data.get("number", "0"))
        self.seen.append(number)
        self.reasons.append(", ".join(map(str, ctx.reasons)))
        if number == 2:
            self._wire.silent = True
        if number == 5:
            self.done.set()
            return Result()
        await ctx.client.patch(ConfigMap, "one", MergePatch({"data": {"number": str(number + 1)}}), "default")
        return Result(requeue_after=1)


async def count(*, heard_again: bool) -> tuple[Counter, Reflector]:
    async with ApiServer() as server:
        credentials = Static.bearer(server.token)
        wire = Muffled(server.transport)
        counter = Counter(wire)
        async with Client(wire, credentials=credentials) as client:
            await client.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default"), data={}))
            manager = Manager(client).add(Controller(ConfigMap, counter.reconcile, namespaces=("default",)))
            async with manager.running():
                (informer,) = manager.caches.informers.values()
                while wire.silent is False:
                    await asyncio.sleep(0.5)
                if heard_again:
                    await asyncio.sleep(2)
                    wire.silent = False
                await counter.done.wait()
                return counter, informer.reflectors[0]


async def test_a_watch_that_died_without_a_word_is_begun_anew() -> None:
    counter, reflector = await count(heard_again=True)
    assert counter.seen == [0, 1, 2, 3, 4, 5]
    assert reflector.health.restarts[Restart.SILENT] == 1
    assert reflector.health.lists == 1


async def test_where_no_watch_says_anything_the_state_is_read_anew() -> None:
    counter, reflector = await count(heard_again=False)
    assert counter.seen == [0, 1, 2, 3, 4, 5]
    assert reflector.health.restarts[Restart.SILENT] > 1
    assert reflector.health.lists > 1


async def test_a_key_that_was_put_off_keeps_its_reasons() -> None:
    counter, _ = await count(heard_again=True)
    assert counter.reasons[3] == "asked to come back after 1 s"
