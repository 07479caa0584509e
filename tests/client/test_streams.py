"""Watches and logs: how they are asked for, how their bytes become events, and how they end."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.client import (
    Client,
    ConnectionLost,
    Expired,
    Forbidden,
    MalformedAnswer,
    Namespaced,
    NotConnected,
    RetryPolicy,
    ServerWarning,
    TimedOut,
)
from konverge.client.binding import Listing, bind_class
from konverge.client.watch import Blocks, split_event
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.wire import ConnectFailed, Headers, Request, Response, Sink, TotalTimeout
from konverge.wire import ConnectionLost as WireLost
from tests.client.scripted import Script, config_map, ok, refused, streamed

HERE = "/api/v1/namespaces/shop"


def event(kind: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode() + b"\n"


async def typed(client: Client, **options: Any) -> list[str]:
    return [f"{seen.type} {seen.object.metadata.name}" async for seen in client.watch(ConfigMap, "shop", **options)]


async def raw(client: Client, **options: Any) -> list[str]:
    batches = [batch async for batch in client.watch_bytes(ConfigMap, "shop", **options)]
    assert all(batches)
    return [f"{kind} {json.loads(body)['metadata']['name']}" for batch in batches for kind, body in batch]


WAYS = pytest.mark.parametrize("read", [typed, raw])

# ------------------------------------------------------------------ how they are asked for


@WAYS
@pytest.mark.parametrize(
    ("options", "limit"),
    [({}, None), ({"timeout_seconds": 300}, 310.0), ({"timeout_seconds": 300, "timeout": 7.0}, 7.0)],
)
async def test_a_watch_is_given_up_a_little_after_the_server_should_have_ended_it(
    read: Any, options: dict[str, Any], limit: float | None
) -> None:
    server = Script(streamed())
    assert await read(server.client(), **options) == []
    (request,) = server.requests
    assert request.timeout == limit
    assert ("timeoutSeconds=300" in request.target) is bool(options)


@WAYS
async def test_bookmarks_can_be_done_without(read: Any) -> None:
    server = Script(streamed())
    await read(server.client(), bookmarks=False, resource_version="5", label_selector="a=b")
    assert server.lines == [f"GET {HERE}/configmaps?resourceVersion=5&labelSelector=a%3Db&watch=1"]


@pytest.mark.parametrize(
    ("metadata_only", "what"),
    [(False, ""), (True, ";as=PartialObjectMetadata{};g=meta.k8s.io;v=v1")],
)
async def test_caches_may_ask_for_metadata_alone(metadata_only: bool, what: str) -> None:
    server = Script(ok({"metadata": {"resourceVersion": "5"}, "items": [config_map("a"), config_map("b")]}), streamed())
    client = server.client()
    meta, items = await client.list_bytes(ConfigMap, "shop", metadata_only=metadata_only, limit=2)
    assert (meta.resource_version, [json.loads(item)["metadata"]["name"] for item in items]) == ("5", ["a", "b"])
    assert all(type(item) is bytes for item in items)
    await raw(client, metadata_only=metadata_only)
    asked = [request.headers.get("accept") for request in server.requests]
    assert asked == [f"application/json{what.format('List')}", f"application/json{what.format('')}"]
    assert server.lines[0] == f"GET {HERE}/configmaps?limit=2"


async def test_a_watch_of_a_namespaced_client_stays_in_its_namespace() -> None:
    server = Script(streamed(event("ADDED", config_map())))
    shop = Namespaced(server.client(), "shop")
    assert [seen.type async for seen in shop.watch(ConfigMap)] == ["ADDED"]
    assert server.lines[0].startswith(f"GET {HERE}/configmaps?")


# ------------------------------------------------------------------ how they begin and end


@WAYS
async def test_a_watch_that_is_refused_says_why_and_is_closed(read: Any) -> None:
    heard: list[ServerWarning] = []
    answer = refused(403, "Forbidden", "not yours")
    answer.headers.add("warning", '299 - "old"')
    with pytest.raises(Forbidden, match="not yours") as error:
        await read(Script(answer).client(on_warning=heard.append))
    assert error.value.request == f"GET {HERE}/configmaps"
    assert [warning.text for warning in heard] == ["old"]


@pytest.mark.virtual
@WAYS
async def test_a_watch_that_cannot_begin_is_tried_again_as_any_read_is(read: Any) -> None:
    server = Script(refused(503), refused(429, retry_after="2"), streamed(event("ADDED", config_map())))
    assert await read(server.client(retry=RetryPolicy())) == ["ADDED a"]
    assert len(server.requests) == 3


class Breaking:
    """A stream that breaks after one event."""

    status, headers = 200, Headers()

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield event("ADDED", config_map())
        raise self.error

    async def read(self) -> bytes:
        raise AssertionError("it is read as it comes")

    async def aclose(self) -> None:
        self.closed += 1


class Opening:
    """A transport with this stream, or with this reason why there is none."""

    def __init__(self, outcome: Breaking | Exception) -> None:
        self.outcome = outcome

    async def send(self, request: Request) -> Response:
        raise AssertionError("only streams are asked for")

    async def stream(self, request: Request) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@WAYS
@pytest.mark.parametrize(
    ("broken", "expected"),
    [(WireLost("gone"), ConnectionLost), (TotalTimeout("slow"), TimedOut)],
)
async def test_a_watch_that_breaks_gives_what_came_before(read: Any, broken: Exception, expected: Any) -> None:
    seen: list[str] = []
    stream = Breaking(broken)
    client = Client(Opening(stream))

    async def follow() -> None:
        if read is typed:
            async for change in client.watch(ConfigMap, "shop"):
                seen.append(change.type)
        else:
            async for batch in client.watch_bytes(ConfigMap, "shop"):
                seen.extend(kind for kind, _ in batch)

    with pytest.raises(expected, match=f"watch {HERE}/configmaps: {broken}"):
        await follow()
    assert (seen, stream.closed) == (["ADDED"], 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [(ConnectFailed("refused"), NotConnected), (TotalTimeout("slow"), TimedOut), (WireLost("gone"), ConnectionLost)],
)
async def test_a_watch_that_cannot_be_opened(error: Exception, expected: Any) -> None:
    client = Client(Opening(error), retry=RetryPolicy(retries=0), server="https://k")
    with pytest.raises(expected) as caught:
        await typed(client)
    assert str(caught.value) == f"GET {HERE}/configmaps at https://k: {error}"


async def endless(sink: Sink, closed: list[str]) -> None:
    try:
        while True:
            sink.write(event("ADDED", config_map()))
            await sink.drain()
    finally:
        closed.append("closed")


@pytest.mark.parametrize("way", ["watch", "watch_bytes"])
async def test_a_watch_is_closed_when_its_reader_stops(way: str) -> None:
    closed: list[str] = []
    client = Script(Response(200, producer=lambda sink: endless(sink, closed))).client()
    changes = getattr(client, way)(ConfigMap, "shop")
    await anext(changes)
    assert closed == []
    await changes.aclose()
    assert closed == ["closed"]


# ------------------------------------------------------------------ from bytes to events


@WAYS
async def test_empty_lines_between_events_mean_nothing(read: Any) -> None:
    text = b"\n" + event("ADDED", config_map("a")) + b"\n\n" + event("DELETED", config_map("b")) + b"\n"
    assert await read(Script(streamed(text)).client()) == ["ADDED a", "DELETED b"]
    assert await read(Script(streamed(b"\n", b"\n\n", event("ADDED", config_map("c")))).client()) == ["ADDED c"]


@WAYS
async def test_an_error_event_in_the_midst_ends_the_watch_with_its_reason(read: Any) -> None:
    status = {"kind": "Status", "status": "Failure", "code": 410, "message": "too old"}
    text = event("ADDED", config_map("a")) + event("ERROR", status) + event("ADDED", config_map("b"))
    with pytest.raises(Expired, match="too old") as error:
        await read(Script(streamed(text)).client())
    assert error.value.request == f"watch {HERE}/configmaps"
    batches = Script(streamed(text)).client().watch_bytes(ConfigMap, "shop")
    assert [json.loads(body)["metadata"]["name"] for _, body in await anext(batches)] == ["a"]
    with pytest.raises(Expired):
        await anext(batches)  # and nothing that came after the error


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"type":"MODIFIED","object":{"a":1}}', ("MODIFIED", b'{"a":1}')),
        (b'{"type":"BOOKMARK","object":{}}', ("BOOKMARK", b"{}")),
        (b'{"type":"ADDED","object":{"a":1}} ', ("ADDED", b'{"a":1}')),
        (b'{"type":"MODIFIED","object":{"a":1}} ', ("MODIFIED", b'{"a":1}')),
        (b'{"type":"MODIFIED", "object":{"x":"\\",\\"object\\":"}}', ("MODIFIED", b'{"x":"\\",\\"object\\":"}')),
        (b'{"type":"%b","object":{}}' % (b"X" * 60), ("X" * 60, b"{}")),
    ],
)
def test_an_event_is_taken_apart_however_it_is_written(line: bytes, expected: tuple[str, bytes]) -> None:
    assert split_event(line) == expected


@pytest.mark.parametrize("line", [b'{"type":"ADDED"}', b'{"type":"MODIFIED","object":', b"[]", b"x}"])
def test_a_line_that_is_no_event(line: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="is not an event"):
        split_event(line)


def test_a_line_may_be_as_long_as_the_limit_and_each_is_measured_alone() -> None:
    blocks = Blocks(limit=10)
    for _ in range(3):
        assert blocks.feed(b"12345") is None
        assert blocks.feed(b"67890") is None
        assert blocks.feed(b"\n123") == b"1234567890"
        assert blocks.feed(b"\n") == b"123"
        assert blocks.rest == b""


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("body", [b'{"items":[]}', b"<html>"])
def test_reading_a_list_leaves_the_collector_as_it_was(enabled: bool, body: bytes) -> None:
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        bind_class(ConfigMap).decode_list(body)
    except MalformedAnswer:
        assert body == b"<html>"
    finally:
        after = gc.isenabled()
        (gc.enable if before else gc.disable)()
    assert after is enabled


async def test_a_listing_is_a_sequence_of_its_items() -> None:
    listing = await Script(ok({"items": [config_map("a"), config_map("b")]})).client().list(ConfigMap)
    assert [item.metadata.name for item in listing] == ["a", "b"]
    assert (len(listing), listing[1].metadata.name, len(Listing())) == (2, "b", 0)


def test_a_class_that_is_no_kind() -> None:
    with pytest.raises(TypeError, match="is no kind: it has no `resource`"):
        bind_class(Headers)  # type: ignore[type-var]


# ------------------------------------------------------------------ logs


async def test_a_log_is_waited_for_without_end_and_may_hold_any_bytes() -> None:
    server = Script(streamed(b"a\xffb\nc\xff"))
    assert [line async for line in server.client().log_lines("p", "shop", container="main")] == ["a\ufffdb", "c\ufffd"]
    (request,) = server.requests
    assert (server.lines, request.timeout) == ([f"GET {HERE}/pods/p/log?container=main&follow=true"], None)
    assert await Script(ok(b"a\xff")).client().log("p", "shop", limit_bytes=2) == "a\ufffd"


@pytest.mark.virtual
async def test_lines_of_a_log_come_as_they_are_written() -> None:
    async def slow(sink: Sink) -> None:
        for number in range(3):
            sink.write(b"line %d\n" % number)
            await sink.drain()
            await asyncio.sleep(60)

    loop = asyncio.get_running_loop()
    start = loop.time()
    lines = Script(Response(200, producer=slow)).client().log_lines("p", "shop")
    assert [(line, loop.time() - start) async for line in lines] == [("line 0", 0), ("line 1", 60), ("line 2", 120)]
