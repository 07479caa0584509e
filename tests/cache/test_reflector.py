"""How a reflector reads: at once, or in batches while all handlers are busy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from konverge.cache import CacheSpec, Informer
from konverge.cache.reflector import BATCH_PAUSE
from konverge.cache.store import Change
from konverge.client.call import Call
from konverge.objects.resource import Resource
from konverge.wire.message import Headers, Response
from konverge.wire.stream import ResponseStream
from tests.cache.scripted import Script, informed, names

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")


def line(kind: str, name: str, version: int, **metadata: object) -> bytes:
    meta = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version), **metadata}
    return json.dumps({"type": kind, "object": {"metadata": meta}}).encode() + b"\n"


END = line("BOOKMARK", "", 1, annotations={"k8s.io/initial-events-end": "true"})


class Wire:
    """A far server: the state, then a stream that the test fills; records when its source was paused and resumed."""

    near = False

    def __init__(self) -> None:
        self.flow: list[tuple[str, float]] = []
        self.changes: asyncio.Future[ResponseStream] = asyncio.get_running_loop().create_future()

    async def call(self, call: Call) -> Response:
        raise AssertionError("nothing but streams is asked for")

    async def stream(self, call: Call) -> ResponseStream:
        stream = ResponseStream(self, 200, Headers(), high=1 << 20, gzip=False, body_limit=None)
        if "sendInitialEvents" in call.query:
            stream.push(line("ADDED", "old", 1))
            asyncio.get_running_loop().call_later(1, stream.push, END)
        else:
            self.changes.set_result(stream)
        return stream

    def _note(self, what: str) -> None:
        self.flow.append((what, asyncio.get_running_loop().time()))

    def pause(self) -> None:
        self._note("pause")

    def resume(self) -> None:
        self._note("resume")

    def reader_waits(self) -> None: ...

    async def discard(self, stream: ResponseStream) -> None: ...


async def follow(wire: Wire, is_busy: Callable[[], bool], *kinds: bytes) -> list[str]:
    """The names of the objects that a handler receives, after these lines came one by one."""
    informer = Informer(wire, CacheSpec(resource=CONFIG_MAPS))
    names: list[str] = []

    def handler(change: Change) -> None:
        names.append(change.key.name)

    informer.add_handler(handler, is_busy)
    running = asyncio.create_task(informer.run())
    stream = await wire.changes
    for data in kinds:
        stream.push(data)
        await asyncio.sleep(BATCH_PAUSE * 2)
    running.cancel()
    await asyncio.wait([running])
    return names


@pytest.mark.virtual
async def test_a_busy_handler_receives_changes_in_batches() -> None:
    """Of changes alone: the state is read as fast as it comes."""
    wire = Wire()
    assert await follow(wire, lambda: True, line("ADDED", "a", 2), line("ADDED", "b", 3)) == ["old", "a", "b"]
    assert [what for what, _ in wire.flow] == ["pause", "resume"] * 2
    assert wire.flow[1][1] - wire.flow[0][1] == pytest.approx(BATCH_PAUSE)


class NearWire(Wire):
    """A server in this process."""

    near = True

    async def call(self, call: Call) -> Response:
        assert (call.verb, "sendInitialEvents" in call.query) == ("list", False)
        items = [{"metadata": {"name": "old", "namespace": "default", "resourceVersion": "1"}}]
        return Response(200, Headers(), json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode())

    async def stream(self, call: Call) -> ResponseStream:
        assert (call.query["resourceVersion"], call.query["allowWatchBookmarks"], call.timeout) == ("1", "false", None)
        return await super().stream(call)


@pytest.mark.virtual
async def test_in_one_process_the_state_is_listed_and_nothing_is_gained_by_batches() -> None:
    wire = NearWire()
    assert await follow(wire, lambda: True, line("ADDED", "a", 2), line("ADDED", "b", 3)) == ["old", "a", "b"]
    assert wire.flow == []


@pytest.mark.virtual
async def test_a_stream_that_cannot_rest_is_read_at_once() -> None:
    async with informed(Script(END, line("ADDED", "a", 2))) as informer:
        informer.add_handler(lambda change: None, lambda: True)
        await asyncio.sleep(1)
        assert (names(informer), informer.error) == ({"a"}, "")


@pytest.mark.virtual
async def test_an_idle_handler_receives_changes_at_once() -> None:
    wire = Wire()
    assert await follow(wire, lambda: False, line("ADDED", "a", 2), line("ADDED", "b", 3)) == ["old", "a", "b"]
    assert wire.flow == []
