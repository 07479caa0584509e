"""Watches: every change once and in order, selectors, bookmarks, ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config, WatchLimits
from tests.apiserver.api import CONFIG_MAPS, Api, Watch


@pytest.mark.spec("S-06")
async def test_a_watch_sends_the_state_and_then_changes(api: Api) -> None:
    await api.create("b")
    await api.create("a")
    async with api.watch() as watch:
        assert await watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        await api.create("c")
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
        await api.call("DELETE", f"{CONFIG_MAPS}/b")
        events = [await watch.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert versions[-1] == api.server.store.revision


@pytest.mark.spec("S-06")
async def test_a_resumed_watch_loses_and_repeats_no_event(api: Api) -> None:
    first = await api.create("a")
    for number in range(5):
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"n": str(number)}})
    async with api.watch(resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        seen = [(await watch.next())["object"] for _ in range(3)]
    async with api.watch(resourceVersion=seen[-1]["metadata"]["resourceVersion"]) as watch:
        seen += [(await watch.next())["object"] for _ in range(2)]
    assert [obj["data"]["n"] for obj in seen] == ["0", "1", "2", "3", "4"]


async def test_a_watch_from_a_future_version_begins_there(api: Api) -> None:
    async with api.watch(resourceVersion=str(api.server.store.revision + 2)) as watch:
        for name in "abc":
            await api.create(name)
        assert await watch.take(1) == [("ADDED", "c")]


@pytest.mark.spec("S-06")
async def test_a_watch_follows_objects_into_and_out_of_its_selector(api: Api) -> None:
    async with api.watch(labelSelector="on=yes", resourceVersion=str(api.server.store.revision)) as watch:
        await api.create("a")
        await api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"on": "yes"}}})
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
        out = await api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"on": "no"}}})
        events = [await watch.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    last = events[-1]["object"]["metadata"]
    assert last["labels"] == {"on": "yes"}  # the content that was selected …
    assert last["resourceVersion"] == out["metadata"]["resourceVersion"]  # … at the version of the change


@pytest.mark.spec("S-06")
async def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    await api.create("a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(**query) as watch:
        assert await watch.take(1) == [("ADDED", "a")]
        mark = await watch.next()
        await api.create("b")
        assert await watch.take(1) == [("ADDED", "b")]
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.virtual
@pytest.mark.spec("S-06")
async def test_bookmarks_come_each_minute_and_before_the_end(api: Api) -> None:
    async with api.watch(allowWatchBookmarks="true", timeoutSeconds="130") as watch:
        events = await watch.rest(within=150)
    first, *later = events
    assert first["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert [event["type"] for event in later] == ["BOOKMARK"] * 3  # at 60, 120 and 128 seconds
    assert later[0]["object"]["metadata"] == {"resourceVersion": str(api.server.store.revision)}


@pytest.mark.virtual
async def test_a_watch_ends_after_its_timeout(api: Api) -> None:
    async with api.watch(timeoutSeconds="5") as watch:
        assert await watch.rest(within=6) == []


@pytest.mark.spec("S-06", "S-04")
async def test_a_watch_from_an_old_version_ends_with_an_error_event(api: Api) -> None:
    first = await api.create("a")
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
    api.server.store.compact(api.server.store.revision)
    async with api.watch(resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        (event,) = await watch.rest()
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 410
    assert event["object"]["reason"] == "Expired"


class StuckSink:
    """The sink of a client that never reads."""

    def __init__(self) -> None:
        self.buffered = 0
        self.closed = False

    def write(self, data: bytes) -> None:
        self.buffered += len(data)

    async def drain(self) -> None:
        await asyncio.Event().wait()


@pytest.mark.spec("S-06", "S-15")
async def test_the_watch_of_a_slow_reader_is_ended_alone() -> None:
    async with ApiServer(config=Config(watch=WatchLimits(buffered=10_000))) as server:
        api = Api(server)
        query = {"watch": "1", "resourceVersion": str(server.store.revision)}
        response = await server.handle(api.request("GET", CONFIG_MAPS, query=query))
        stuck = StuckSink()
        assert response.producer is not None
        async with api.watch() as watch:
            slow = asyncio.ensure_future(response.producer(stuck))
            await asyncio.sleep(0)
            for number in range(20):
                await api.create(f"c{number}", data={"x": "y" * 1000})
                assert await watch.take(1) == [("ADDED", f"c{number}")]
            await slow
        assert stuck.buffered < 20_000
        assert not server.streams


@pytest.mark.spec("S-06")
async def test_changes_during_the_initial_state_come_after_it(api: Api) -> None:
    """The initial state is sent in pieces; what changes meanwhile comes after it, once."""
    big = "x" * 20_000
    for number in range(20):
        await api.create(f"c{number:02}", data={"x": big})
    state: dict[str, str] = {}
    async with api.watch() as watch:
        assert (await watch.next())["object"]["metadata"]["name"] == "c00"
        await api.call("DELETE", f"{CONFIG_MAPS}/c19")
        await api.patch(f"{CONFIG_MAPS}/c01", {"data": {"x": "new"}})
        events = [await watch.next() for _ in range(21)]
    for event in events:
        name = event["object"]["metadata"]["name"]
        state[name] = event["type"]
    assert state.pop("c19") == "DELETED"
    assert state.pop("c01") == "MODIFIED"
    assert set(state.values()) == {"ADDED"}


async def test_an_event_is_encoded_once_for_all_watchers(api: Api) -> None:
    chunks: list[list[bytes]] = []

    class Sink:
        buffered, closed = 0, False

        def __init__(self) -> None:
            self.written: list[bytes] = []
            chunks.append(self.written)

        def write(self, data: bytes) -> None:
            self.written.append(data)

        async def drain(self) -> None: ...

    query: dict[str, Any] = {"watch": "1", "resourceVersion": str(api.server.store.revision)}
    tasks = []
    for _ in range(3):
        response = await api.server.handle(api.request("GET", CONFIG_MAPS, query=query))
        assert response.producer is not None
        tasks.append(asyncio.ensure_future(response.producer(Sink())))
    await asyncio.sleep(0)
    await api.create("a")
    assert len({id(written[0]) for written in chunks}) == 1
    assert json.loads(chunks[0][0])["type"] == "ADDED"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_stopping_the_server_ends_its_watches() -> None:
    async with ApiServer() as server:
        api = Api(server)
        async with api.watch() as watch:
            reading = asyncio.create_task(watch.rest())
            await asyncio.sleep(0)
            for stream in tuple(server.streams):
                stream.end()
            assert await reading == []


@pytest.mark.virtual
async def test_a_table_that_is_watched_later_shows_later_ages(api: Api) -> None:
    await api.create("a")
    ages = []
    for _ in range(2):
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        stream = await api.server.transport.stream(
            api.request("GET", CONFIG_MAPS, query={"watch": "true"}, accept=table)
        )
        event = await Watch(stream).next()
        await stream.aclose()
        ages.append(event["object"]["rows"][0]["cells"][-1])
        await asyncio.sleep(3600)
    assert ages == ["0s", "60m"]
