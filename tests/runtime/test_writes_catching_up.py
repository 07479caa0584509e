"""A reconcile never sees a cache older than its own last write, even when the watch has died silently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from konverge.apiserver import ApiServer
from konverge.cache.reflector import Reflector, Restart
from konverge.client import Client, MergePatch, Static
from konverge.objects import ObjectMeta, labels
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Manager, Result, Use, Watches
from konverge.wire.errors import ConnectionLost
from konverge.wire.message import Request, Response, Stream, Transport

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-12")]


class Muffled:
    """A transport on which watches can fall silent, as connections do that a firewall has forgotten."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.silent = ""
        """Watches of this resource say nothing any more; lists and streams that begin with the state still do."""
        self.loses = ""
        """The answer to the next request of this method is lost."""

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        if request.method == self.loses:
            self.loses = ""
            raise ConnectionLost("the answer was lost")
        return response

    async def stream(self, request: Request) -> Stream:
        stream = await self._inner.stream(request)
        return stream if "sendInitialEvents" in request.target else _MuffledStream(stream, self, request.target)


class _MuffledStream:
    def __init__(self, inner: Stream, wire: Muffled, target: str) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner = inner
        self._wire = wire
        self._target = target
        self._silent = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._silent = self._silent or (self._wire.silent != "" and self._wire.silent in self._target)
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
            self._wire.silent = "configmaps"
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
                while not wire.silent:
                    await asyncio.sleep(0.5)
                if heard_again:
                    await asyncio.sleep(2)
                    wire.silent = ""
                await counter.done.wait()
                return counter, informer.reflectors[0]


async def test_a_watch_that_died_silently_is_restarted() -> None:
    counter, reflector = await count(heard_again=True)
    assert counter.seen == [0, 1, 2, 3, 4, 5]
    assert reflector.health.restarts[Restart.SILENT] == 1
    assert reflector.health.lists == 1


async def test_the_state_is_listed_again_when_no_watch_delivers_anything() -> None:
    counter, reflector = await count(heard_again=False)
    assert counter.seen == [0, 1, 2, 3, 4, 5]
    assert reflector.health.restarts[Restart.SILENT] > 1
    assert reflector.health.lists > 1


async def test_a_postponed_key_keeps_its_reasons() -> None:
    counter, _ = await count(heard_again=True)
    assert counter.reasons[3] == "asked to come back after 1 s"


class Keeper:
    """Wants one Secret, and takes another one away each time that it sees two."""

    def __init__(self) -> None:
        self.rounds = 0

    async def reconcile(self, ctx: Context[ConfigMap]) -> None:
        self.rounds += 1
        secrets = await ctx.list(Secret)
        if not secrets:
            await ctx.client.create(Secret(metadata=ObjectMeta(generate_name="made-", namespace="default")))
        elif len(secrets) > 1:
            await ctx.client.delete(Secret, secrets[self.rounds % 2].metadata.name, "default")


@pytest.mark.parametrize(("before", "method"), [(0, "POST"), (2, "DELETE")])
async def test_no_reconcile_runs_before_the_outcome_of_a_lost_write_is_known(before: int, method: str) -> None:
    async with ApiServer() as server:
        wire, keeper, credentials = Muffled(server.transport), Keeper(), Static.bearer(server.token)
        async with (
            Client(server.transport, credentials=credentials) as user,
            Client(wire, credentials=credentials) as client,
        ):
            for name in ("one", "two")[:before]:
                await user.create(Secret(metadata=ObjectMeta(name=name, namespace="default")))
            controller = Controller(
                ConfigMap, keeper.reconcile, namespaces=("default",), uses=[Use(Secret, cached=True)]
            )
            async with Manager(client).add(controller).running():
                wire.silent, wire.loses = "secrets", method
                await user.create(ConfigMap(metadata=ObjectMeta(name="keep", namespace="default")))
                await asyncio.sleep(60)
            assert len(await user.list(Secret, "default")) == 1
    assert keeper.rounds == 2


@pytest.mark.parametrize(
    "selector", [{"label_selector": "mine=yes"}, {"field_selector": "metadata.name=mine"}], ids=["labels", "fields"]
)
async def test_a_reconcile_does_not_wait_for_objects_that_its_cache_does_not_hold(selector: dict[str, str]) -> None:
    rounds = 0

    async def reconcile(ctx: Context[ConfigMap]) -> Result:
        nonlocal rounds
        rounds += 1
        other = Secret(metadata=ObjectMeta(name=f"other-{rounds}", namespace="default", labels={"mine": "no"}))
        await ctx.client.create(other)
        return Result(requeue_after=1) if rounds < 5 else Result()

    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default")))
        watch = Watches(Secret, requests=lambda secret: [], **selector)
        manager = Manager(client).add(Controller(ConfigMap, reconcile, namespaces=("default",), watches=[watch]))
        async with manager.running():
            await asyncio.sleep(8)
            reflectors = [
                reflector for informer in manager.caches.informers.values() for reflector in informer.reflectors
            ]
            assert [reflector.health.restarts[Restart.SILENT] for reflector in reflectors] == [0, 0]
    assert rounds == 5


async def test_a_reconcile_waits_until_its_cache_no_longer_holds_an_object_that_left_the_selection() -> None:
    """It takes the label away; its next run must not see the object with the label, though the watch is silent."""
    selected: list[int] = []

    async def reconcile(ctx: Context[ConfigMap]) -> Result:
        secrets = await ctx.list(Secret, selector=labels.parse("mine=yes"))
        selected.append(len(secrets))
        wire.silent = "secrets"
        for secret in secrets:
            patch = MergePatch({"metadata": {"labels": {"mine": "no"}}})
            await ctx.client.patch(Secret, secret.metadata.name, patch, "default")
        return Result(requeue_after=0.1) if len(selected) < 2 else Result()

    async with ApiServer() as server:
        wire, credentials = Muffled(server.transport), Static.bearer(server.token)
        async with Client(wire, credentials=credentials) as client:
            labelled = Secret(metadata=ObjectMeta(name="s", namespace="default", labels={"mine": "yes"}))
            await client.create(labelled)
            watch = Watches(Secret, requests=lambda secret: [], label_selector="mine=yes")
            controller = Controller(
                ConfigMap, reconcile, namespaces=("default",), watches=[watch], uses=[Use(Secret, "patch")]
            )
            async with Manager(client).add(controller).running():
                await client.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default")))
                await asyncio.sleep(120)
    assert selected == [1, 0]
