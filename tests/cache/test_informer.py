"""Informers on an embedded API server, over a transport that breaks in every way, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.cache import CacheSpec, CacheTooLarge, Change, Informer, Key, Lister, by_label
from konverge.cache.reflector import MIN_AGE, Restart
from konverge.client import Client, MergePatch, NotFound, RetryPolicy, Static
from konverge.objects.codec import decoder
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace
from konverge.objects.labels import parse
from konverge.objects.meta import Object, ObjectMeta
from konverge.sim.loop import VirtualLoop
from konverge.wire.errors import ConnectFailed, ConnectionLost
from konverge.wire.message import Headers, Request, Response, Stream, Transport
from tests.sizes import examples

CONFIG_MAPS = CacheSpec(resource=ConfigMap.resource)
ACCEPTED = {200, 201}


class Faulty:
    """A transport that fails requests and cuts, delays and repeats streams, as its dice say."""

    def __init__(self, inner: Transport, trouble: float) -> None:
        self._inner = inner
        self.trouble = trouble

    async def send(self, request: Request) -> Response:
        refusal = await self._trouble()
        return refusal or await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        refusal = await self._trouble()
        if refusal is not None:
            return Canned(refusal)
        return Cut(await self._inner.stream(request), self)

    async def _trouble(self) -> Response | None:
        rng = clock.rng()
        if rng.random() >= self.trouble:
            return None
        what = rng.choice(["refused", "lost", "slow", 429, 500, 503])
        if what == "refused":
            raise ConnectFailed("refused")
        if what == "lost":
            raise ConnectionLost("lost")
        if what == "slow":
            await asyncio.sleep(rng.choice([1, 20]))
            return None
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": what, "message": "trouble"}
        return Response(int(what), Headers.of({"Content-Type": "application/json"}), json.dumps(body).encode())


class Canned:
    def __init__(self, response: Response) -> None:
        self.status, self.headers = response.status, response.headers
        self._body = response.body

    async def read(self) -> bytes:
        return self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None: ...


class Cut:
    """Passes a stream on in odd pieces, sometimes twice a line, until it breaks."""

    def __init__(self, inner: Stream, faults: Faulty) -> None:
        self._inner, self._faults = inner, faults
        self.status, self.headers = inner.status, inner.headers

    async def read(self) -> bytes:
        return await self._inner.read()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rng = clock.rng()
        async for chunk in self._inner:
            if rng.random() < self._faults.trouble:
                await asyncio.sleep(rng.choice([0.5, 30]))
            if rng.random() < self._faults.trouble and chunk.endswith(b"\n"):
                yield chunk  # repeated
            cut = rng.randint(0, len(chunk))
            yield chunk[:cut]
            if rng.random() < self._faults.trouble / 2:
                raise ConnectionLost("cut in the middle")
            yield chunk[cut:]

    async def aclose(self) -> None:
        await self._inner.aclose()


def make_client(server: ApiServer, transport: Transport | None = None) -> Client:
    return Client(transport or server.transport, credentials=Static.bearer(server.token), retry=RetryPolicy(retries=0))


def config_map(name: str, namespace: str = "default", labels: dict[str, str] | None = None, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels or {}), data=data)


class Mirror:
    """Rebuilds the state from the changes that a handler receives."""

    def __init__(self) -> None:
        self.state: dict[Key, int] = {}

    def __call__(self, change: Change) -> None:
        if change.new is None:
            assert change.old is not None
            assert self.state.pop(change.key) == change.old.version
        else:
            assert (change.old is None) == (change.key not in self.state)
            self.state[change.key] = change.new.version


async def random_writes(client: Client, server: ApiServer, steps: int) -> None:
    rng = clock.rng()
    for _ in range(steps):
        name = f"cm-{rng.randint(0, 6)}"
        what = rng.random()
        try:
            if what < 0.5:
                await client.apply(config_map(name, v=str(rng.random())), field_manager="t")
            elif what < 0.8:
                await client.delete(ConfigMap, name, "default")
            elif what < 0.9:
                server.store.compact(server.store.revision)
            else:
                await asyncio.sleep(rng.choice([0, 1, 200]))
        except NotFound:
            pass


@pytest.mark.spec("R-08", "R-07")
@settings(max_examples=examples(1 / 3))
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 0.5]), st.booleans())
def test_the_cache_equals_the_server_after_any_faults(seed: int, trouble: float, streaming: bool) -> None:
    async def main() -> None:
        async with ApiServer() as server:
            quiet = make_client(server)
            faults = Faulty(server.transport, trouble)
            spec = CacheSpec(resource=ConfigMap.resource, namespaces=("default",), streaming=streaming)
            informer = Informer(make_client(server, faults).caller, spec)
            mirror = Mirror()
            informer.add_handler(mirror)
            running = asyncio.create_task(informer.run())
            await random_writes(quiet, server, 60)
            faults.trouble = 0.0
            await asyncio.sleep(700)  # longer than any back-off, any watch and any silence
            listed = await quiet.list(ConfigMap, "default")
            expected = {Key("default", cm.metadata.name): int(cm.metadata.resource_version) for cm in listed}
            assert {key: record.version for key, record in informer.items()} == expected
            assert mirror.state == expected
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        runner.run(main())


# ------------------------------------------------------------------ single promises

pytestmark = pytest.mark.virtual


class Running:
    def __init__(self, informer: Informer) -> None:
        self.informer = informer

    async def __aenter__(self) -> Informer:
        self._task = asyncio.create_task(self.informer.run())
        await asyncio.wait(
            [self._task, asyncio.create_task(self.informer.synced.wait())], return_when="FIRST_COMPLETED"
        )
        return self.informer

    async def __aexit__(self, *exc: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.mark.spec("R-10", "R-09")
async def test_a_lister_reads_what_the_server_has_and_readers_cannot_change_the_cache(server: ApiServer) -> None:
    client = make_client(server)
    await client.create(config_map("b", labels={"app": "web"}, v="1"))
    await client.create(config_map("a", labels={"app": "db"}))
    informer = Informer(client.caller, CacheSpec(resource=ConfigMap.resource), {"app": by_label("app")})
    lister = Lister(informer, decoder(ConfigMap).decode)
    async with Running(informer):
        assert [cm.metadata.name for cm in lister.list("default")] == ["a", "b"]
        assert [cm.metadata.name for cm in lister.list(selector=parse("app in (web)"))] == ["b"]
        assert [cm.metadata.name for cm in lister.by_index("app", "db")] == ["a"]
        copy = lister.get("b", "default")
        assert copy is not None
        copy.data["v"] = "spoiled"
        again = lister.get("b", "default")
        assert again is not None
        assert again.data == {"v": "1"}
        assert lister.get("absent", "default") is None


@pytest.mark.spec("R-09")
async def test_a_late_handler_receives_the_cached_objects(server: ApiServer) -> None:
    client = make_client(server)
    await client.create(config_map("a"))
    async with Running(Informer(client.caller, CONFIG_MAPS)) as informer:
        delivered: list[Change] = []
        remove = informer.add_handler(delivered.append)
        await client.create(config_map("b"))
        await asyncio.sleep(1)
        remove()
        await client.create(config_map("c"))
        await asyncio.sleep(1)
    assert [(change.key.name, change.initial) for change in delivered if change.key.namespace == "default"] == [
        ("a", True),
        ("b", False),
    ]


@pytest.mark.spec("R-11")
async def test_a_cache_holds_only_what_its_specification_covers(server: ApiServer) -> None:
    client = make_client(server)
    for space in ("one", "two", "three"):
        await client.create(Namespace(metadata=ObjectMeta(name=space)))
        await client.create(config_map("in", space, {"app": "web"}))
        await client.create(config_map("out", space))
    spec = CacheSpec(resource=ConfigMap.resource, namespaces=("one", "two"), label_selector="app=web")
    async with Running(Informer(client.caller, spec)) as informer:
        assert sorted(str(key) for key, _ in informer.items()) == ["one/in", "two/in"]
        await client.patch(ConfigMap, "in", MergePatch({"metadata": {"labels": {"app": None}}}), "one")
        await asyncio.sleep(1)
        assert [str(key) for key, _ in informer.items()] == ["two/in"]
        assert informer.get(Key("three", "in")) is None


class _FewFields(Object):
    """Some fields of a ConfigMap."""

    resource = ConfigMap.resource
    immutable: bool = False


def _count_characters(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "data": {"length": str(len(obj.get("data", {}).get("v", "")))}}


@pytest.mark.spec("R-11")
@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"metadata_only": True}, {"data": None, "labels": {"a": "b"}}),
        ({"transform": _count_characters}, {"data": {"length": "1000"}, "labels": {"a": "b"}}),
        ({"projection": _FewFields}, {"data": None, "labels": {"a": "b"}}),
    ],
    ids=["metadata", "transform", "projection"],
)
async def test_metadata_only_transform_and_projection_store_less(
    server: ApiServer, streaming: bool, options: dict[str, Any], kept: dict[str, Any]
) -> None:
    """In the first state as well as in what the watch brings."""
    client = make_client(server)

    def made(name: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name=name, namespace="default", labels={"a": "b"}), data={"v": "x" * 1000})

    await client.create(made("listed"))
    spec = CacheSpec(resource=ConfigMap.resource, namespaces=("default",), streaming=streaming, **options)
    async with Running(Informer(client.caller, spec)) as informer:
        await client.create(made("watched"))
        await asyncio.sleep(1)
        for name in ("listed", "watched"):
            record = informer.get(Key("default", name))
            assert record is not None
            assert len(record.raw) < 500
            assert (record.meta.name, record.uid != "", record.version > 0) == (name, True, True)
            stored = msgspec.json.decode(record.raw)
            assert {"data": stored.get("data"), "labels": stored["metadata"].get("labels")} == kept


@pytest.mark.spec("R-11")
async def test_the_error_of_a_too_large_cache_says_what_to_do(server: ApiServer) -> None:
    client = make_client(server)
    for number in range(5):
        await client.create(config_map(f"cm-{number}"))
    informer = Informer(client.caller, CacheSpec(resource=ConfigMap.resource, max_objects=3))
    with pytest.raises(ExceptionGroup) as caught:
        await informer.run()
    (error,) = caught.value.exceptions
    assert isinstance(error, CacheTooLarge)
    assert "raise INFORMER_CACHE_SIZE" in str(error)


@pytest.mark.spec("R-12")
async def test_waiting_for_a_version_ends_when_the_cache_shows_it(server: ApiServer) -> None:
    client = make_client(server)
    async with Running(Informer(client.caller, CONFIG_MAPS)) as informer:
        made = await client.create(config_map("a"))
        key = Key("default", "a")
        await informer.wait_for_version(key, int(made.metadata.resource_version))
        assert informer.get(key) is not None


@pytest.mark.spec("R-12")
async def test_a_list_after_a_write_shows_the_write_whatever_its_version(server: ApiServer) -> None:
    """A restored backup counts from an earlier version: waiting for the number alone would have no end."""
    client = make_client(server)
    await client.create(config_map("a"))
    async with Running(Informer(client.caller, CONFIG_MAPS)) as informer:
        waiting = asyncio.create_task(informer.wait_for_version(Key("default", "a"), 1 << 40))
        for _ in range(2):  # a new connection first, then a new list
            assert not waiting.done()
            await asyncio.sleep(2 * MIN_AGE)
            informer.restart_watch("default")
        await waiting
        assert informer.reflectors[0].health.lists == 2


@pytest.mark.spec("R-07")
async def test_a_watch_that_was_just_opened_is_not_restarted(server: ApiServer) -> None:
    client = make_client(server)
    async with Running(Informer(client.caller, CONFIG_MAPS)) as informer:
        for _ in range(3):
            informer.restart_watch("default")
            await asyncio.sleep(0.1)
        assert informer.reflectors[0].health.lists == 1
        assert informer.reflectors[0].health.restarts[Restart.SILENT] == 0


@pytest.mark.spec("R-81")
async def test_what_is_asked_for_may_change_and_is_listed_again_at_once(server: ApiServer) -> None:
    client = make_client(server)
    async with Running(Informer(client.caller, CONFIG_MAPS)) as informer:
        (reflector,) = informer.reflectors
        await asyncio.sleep(1)
        for lists in (2, 3):
            reflector.list_again()
            reflector.list_again()
            await asyncio.sleep(1)
            assert reflector.health.lists == lists, "however young the watch is, and once for both"
        await client.create(config_map("a"))
        await asyncio.sleep(1)
        assert informer.get(Key("default", "a")) is not None


class Mute:
    """A transport whose streams can fall silent, and stay so."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.mute = False

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        return Muted(await self._inner.stream(request), self)


class Muted(Cut):
    def __init__(self, inner: Stream, owner: Mute) -> None:
        self._inner, self._owner = inner, owner
        self.status, self.headers = inner.status, inner.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            if self._owner.mute:
                await asyncio.Event().wait()
            yield chunk


@pytest.mark.spec("R-07")
async def test_a_list_that_delivers_nothing_is_requested_again(server: ApiServer) -> None:
    mute = Mute(server.transport)
    mute.mute = True
    informer = Informer(make_client(server, mute).caller, CacheSpec(resource=ConfigMap.resource, list_timeout=20))
    running = asyncio.create_task(informer.run())
    await asyncio.sleep(25)
    assert "raise LIST_TIMEOUT" in informer.error
    mute.mute = False
    await asyncio.sleep(25)
    assert informer.synced.is_set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.spec("R-07")
async def test_a_silent_watch_is_renewed(server: ApiServer) -> None:
    """A stream that delivers nothing any more, not even its end, is closed and opened again."""
    mute = Mute(server.transport)
    async with Running(Informer(make_client(server, mute).caller, CONFIG_MAPS)) as informer:
        mute.mute = True
        await make_client(server).create(config_map("a"))
        await asyncio.sleep(10)
        assert informer.get(Key("default", "a")) is None
        mute.mute = False
        await asyncio.sleep(700)
        assert informer.get(Key("default", "a")) is not None
