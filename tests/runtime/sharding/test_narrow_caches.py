"""Caches that hold a share alone: what they do not hold is never taken for absent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config
from konverge.cache.record import Key
from konverge.client import Client, ConnectionLost, MergePatch, Static
from konverge.client.call import Call
from konverge.objects import CustomResource, Model, ObjectMeta, crd
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.runtime import Context, Controller, Manager, Owns
from konverge.runtime.sharding import Sharding
from konverge.runtime.sharding.selecting import SelectedShare
from konverge.runtime.tasks.gone import Gone
from konverge.runtime.tasks.manager_tasks import TaskContext
from tests.runtime.sharding.test_by_namespace import SPACES

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-81")]


class Shape(Model):
    size: int = 0


class Aerial(CustomResource[Shape, Shape], group="aaa.konverge.dev", version="v1"):
    """A kind that comes before Secrets in every order."""


class Zeppelin(CustomResource[Shape, Shape], group="zzz.konverge.dev", version="v1"):
    """A kind that comes after them."""


@pytest.fixture
async def place() -> AsyncIterator[ApiServer]:
    async with ApiServer(config=Config(feature_gates=frozenset({"ShardedListAndWatch"}))) as server:
        client = client_of(server)
        for space in SPACES:
            await client.create(Namespace(metadata=ObjectMeta(name=space)))
            await client.create(Secret(metadata=ObjectMeta(name="s", namespace=space)))
        yield server


def client_of(server: ApiServer) -> Client:
    return Client(server.transport, credentials=Static.bearer(server.token))


class Process:
    def __init__(self, server: ApiServer, controller: Controller[Secret]) -> None:
        self.manager = Manager(client_of(server), name="op", sharding=Sharding(name="op", by="namespace"))
        self.manager.add(controller)
        self.stop = asyncio.Event()

    def start(self) -> None:
        self.serving = asyncio.create_task(self.manager.serve(self.stop))

    def owned(self) -> set[str]:
        assert self.manager.shares is not None
        return {space for space in SPACES if self.manager.shares.admits(Key(space, "s"))}

    async def end(self) -> None:
        self.stop.set()
        await self.serving


class Looking:
    """A reconciler that looks beyond its own namespace, and notes what it sees there."""

    def __init__(self) -> None:
        self.elsewhere = ""
        self.listed: list[int] = []
        self.got: list[bool] = []
        self.deleted: list[bool] = []

    async def __call__(self, ctx: Context[Secret]) -> None:
        if not self.elsewhere:
            return
        self.listed.append(len(await ctx.list(Secret, "")))
        self.got.append(await ctx.get(Secret, "s", self.elsewhere) is not None)
        self.deleted.append(await ctx.delete(ConfigMap, "extra", self.elsewhere))
        if ctx.obj.metadata.labels.get("round") == "1":
            await ctx.client.create(ConfigMap(metadata=ObjectMeta(name="made", namespace=self.elsewhere)))


async def test_what_is_in_other_shares_is_read_live(place: ApiServer) -> None:
    client = client_of(place)
    for space in SPACES:
        await client.create(ConfigMap(metadata=ObjectMeta(name="extra", namespace=space)))
    looking = Looking()
    first = Process(place, Controller(Secret, looking, owns=[ConfigMap]))
    second = Process(place, Controller(Secret, Looking(), owns=[ConfigMap]))
    seen_by_task: list[int] = []
    for process in (first, second):

        async def count(ctx: TaskContext) -> None:
            while True:
                await asyncio.sleep(1)
                seen_by_task.append(len(await ctx.list(Secret, "")))

        process.manager.add_task(count, leader_only=True)
        process.start()
        await asyncio.sleep(8)
    assert first.owned()
    assert second.owned()
    assert seen_by_task
    assert set(seen_by_task) == {len(SPACES)}, "a task sees all there is"
    looking.elsewhere = min(second.owned())
    for number in ("1", "2"):
        label = MergePatch({"metadata": {"labels": {"round": number}}})
        await client.patch(Secret, "s", label, min(first.owned()))
        await asyncio.sleep(1)
    assert set(looking.listed) == {len(SPACES)}
    assert looking.got == [True, True], "nothing waits for a write that our caches never show"
    assert looking.deleted == [True, False]
    for process in (first, second):
        await process.end()


@pytest.mark.parametrize("kind", [Aerial, Zeppelin])
async def test_an_optional_kind_that_is_not_installed_stops_nothing(
    place: ApiServer, kind: type[Aerial | Zeppelin]
) -> None:
    worked: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        worked.append(ctx.request.namespace)

    process = Process(place, Controller(Secret, reconcile, owns=[Owns(kind, optional=True)]))
    process.start()
    await asyncio.sleep(6)
    assert sorted(worked) == sorted(SPACES)
    client = client_of(place)
    await client.create(crd(kind))
    await asyncio.sleep(60)
    for space in SPACES:
        await client.create(kind(metadata=ObjectMeta(name="x", namespace=space), spec=Shape()))
    await asyncio.sleep(1)
    owned = process.manager.engines["secret"].caches.owned[0]
    assert {key.namespace for key, _ in owned.items()} == set(SPACES), "it asks for the share of now"
    await process.end()


async def test_what_was_asked_for_an_earlier_share_fills_no_cache(place: ApiServer) -> None:
    """A kind is installed while our share changes: nothing else would make its cache list again."""
    share = SelectedShare()
    share.works, share.resources = True, frozenset({Secret.resource})
    inner = client_of(place)
    caller = share.client(inner).caller
    for verb, attribute in (("list", "call"), ("watch", "stream")):
        passing = getattr(inner.caller, attribute)

        async def while_it_changes(call: Call, passing: Any = passing) -> Any:
            share.selector = f"{share.selector} "
            return await passing(call)

        setattr(caller._inner, attribute, while_it_changes)  # type: ignore[attr-defined]
        query = {"watch": "true"} if verb == "watch" else {}
        with pytest.raises(ConnectionLost):
            await getattr(caller, attribute)(Call(verb, Secret.resource, query=query))


def test_only_lists_and_watches_of_our_kinds_in_all_namespaces_ask_for_the_share() -> None:
    share = SelectedShare()
    share.resources, share.selector = frozenset({Secret.resource}), "ours"
    asked = {"shardSelector": "ours"}

    def query(verb: str, kind: type[Secret | ConfigMap] = Secret, namespace: str = "") -> dict[str, str]:
        return share.query(Call(verb, kind.resource, namespace))  # type: ignore[arg-type]

    assert query("list") == {}, "not before the server was asked whether it selects"
    share.works = True
    assert (query("list"), query("watch")) == (asked, asked)
    assert (query("get"), query("create"), query("deletecollection")) == ({}, {}, {})
    assert (query("list", ConfigMap), query("watch", ConfigMap)) == ({}, {}), "a kind that is needed as a whole"
    assert query("list", namespace="default") == {}
    share.works = False
    assert query("list") == {}


class _Answering:
    """A caller that says what it was asked for; the share may change while it answers."""

    near = True

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.closed = 0
        self._meanwhile = meanwhile

    async def call(self, call: Call) -> Any:
        self.asked.append((call.verb, call.query))
        self._meanwhile()
        return self

    stream = call

    async def aclose(self) -> None:
        self.closed += 1


def selecting(answering: _Answering, share: SelectedShare) -> Any:
    inner = Client.__new__(Client)
    inner._use_caller(answering, mapper=None)  # type: ignore[arg-type]
    return share.client(inner).caller


async def test_the_selector_is_added_to_what_is_asked_for() -> None:
    share = SelectedShare()
    share.works, share.resources, share.selector = True, frozenset({Secret.resource}), "ours"
    answering = _Answering()
    caller = selecting(answering, share)
    assert caller.near is True
    asked: list[tuple[str, dict[str, str]]] = []
    for verb, send in (("list", caller.call), ("watch", caller.stream)):
        assert await send(Call(verb, Secret.resource, query={"limit": "5"})) is answering
        assert await send(Call(verb, ConfigMap.resource, query={"limit": "5"})) is answering
        asked += [(verb, {"limit": "5", "shardSelector": "ours"}), (verb, {"limit": "5"})]
    assert answering.asked == asked
    assert answering.closed == 0
    answering.near = False
    assert caller.near is False


async def test_a_watch_of_an_earlier_share_is_closed() -> None:
    share = SelectedShare()
    share.works, share.resources = True, frozenset({Secret.resource})

    def change() -> None:
        share.selector += " "

    answering = _Answering(change)
    caller = selecting(answering, share)
    with pytest.raises(ConnectionLost, match="our share has changed"):
        await caller.call(Call("list", Secret.resource))
    assert answering.closed == 0
    with pytest.raises(ConnectionLost, match="our share has changed"):
        await caller.stream(Call("watch", Secret.resource))
    assert answering.closed == 1
    assert await caller.stream(Call("watch", ConfigMap.resource)) is answering, "not of our share at all"
    assert answering.closed == 1


async def test_an_object_that_moves_to_another_share_is_not_gone(place: ApiServer) -> None:
    gone: list[str] = []

    async def on_gone(about: Gone) -> None:
        gone.append(about.request.namespace)

    first = Process(place, Controller(Secret, nothing, on_gone=on_gone))
    second = Process(place, Controller(Secret, nothing))
    first.start()
    await asyncio.sleep(5)
    second.start()
    await asyncio.sleep(10)
    assert second.owned()
    await second.end()
    await asyncio.sleep(5)
    assert first.owned() == set(SPACES)
    assert not gone, "they were in the other share, and came back"
    await client_of(place).delete(Secret, "s", SPACES[0])
    await asyncio.sleep(1)
    assert gone == [SPACES[0]]
    await first.end()


async def nothing(ctx: Context[Secret]) -> None: ...
