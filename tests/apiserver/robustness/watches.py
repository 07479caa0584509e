"""Watchers that keep a cache through faults, and what they must have seen in the end."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

from konverge.wire.message import Stream
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.robustness.model import Listed, Object
from tests.apiserver.robustness.world import KEYS, Died, World, listed


class Seen(NamedTuple):
    """One event of a watch."""

    revision: int
    type: str
    key: str
    value: str


class Span(NamedTuple):
    """What one watcher saw from a list on, until it had to list again."""

    start: Listed
    events: list[Seen]
    reached: list[int]
    """The revisions of events and bookmarks, in the order in which they came."""


class Watcher:
    """Lists and watches as an informer does: goes on from the last revision, and lists again after 410."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.spans: list[Span] = []

    async def begin(self) -> None:
        """The first list, before anything happens."""
        start = await self._world.with_server(listed)
        self.spans.append(Span(start, [], [start.revision]))

    @property
    def saw_everything(self) -> bool:
        return len(self.spans) == 1

    async def run(self, until: asyncio.Future[int]) -> None:
        """Until it has seen the revision that `until` becomes."""
        while not self._has_seen(until):
            try:
                await self._follow(until)
            except Died:
                continue
            await asyncio.sleep(0.1)

    async def _follow(self, until: asyncio.Future[int]) -> None:
        if self.spans[-1].reached[-1] < 0:
            start = await self._world.with_server(listed)
            if start is None:
                return
            self.spans.append(Span(start, [], [start.revision]))
        await self._world.with_server(lambda api: self._watch(api, until))

    async def _watch(self, api: Api, until: asyncio.Future[int]) -> None:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.spans[-1].reached[-1],
            "timeoutSeconds": 20,
        }
        stream = await api.server.transport.stream(api.request("GET", CONFIG_MAPS, query=query))
        try:
            if stream.status == 410:
                self.spans[-1].reached.append(-1)
            if stream.status == 200:
                await self._read(stream, until)
        finally:
            await stream.aclose()

    async def _read(self, stream: Stream, until: asyncio.Future[int]) -> None:
        span, buffer = self.spans[-1], b""
        async for chunk in stream:
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                self._take(span, json.loads(line))
            if span.reached[-1] < 0 or self._has_seen(until):
                return

    def _take(self, span: Span, event: dict[str, Any]) -> None:
        if event["type"] == "ERROR":
            assert event["object"]["code"] == 410, event
            span.reached.append(-1)
            return
        metadata = event["object"]["metadata"]
        revision = int(metadata["resourceVersion"])
        span.reached.append(revision)
        if event["type"] != "BOOKMARK" and metadata["name"] in KEYS:
            value = event["object"].get("data", {}).get("value", "")
            span.events.append(Seen(revision, event["type"], metadata["name"], value))

    def _has_seen(self, until: asyncio.Future[int]) -> bool:
        return until.done() and self.spans[-1].reached[-1] >= until.result()


def check(watchers: list[Watcher], final: Listed) -> dict[int, Seen]:
    """What must hold of all spans together; returns every change that somebody saw, by its revision."""
    changes: dict[int, Seen] = {}
    for watcher in watchers:
        for span in watcher.spans:
            for event in span.events:
                assert changes.setdefault(event.revision, event) == event, "two watchers saw different changes"
    for watcher in watchers:
        for span in watcher.spans:
            _check_order(span)
            _check_complete(span, changes)
    for watcher in watchers:
        assert _cache(watcher.spans[-1], final.revision) == final.objects, "a cache differs from the list"
    return changes


def _check_order(span: Span) -> None:
    revisions = [event.revision for event in span.events]
    assert revisions == sorted(set(revisions)), f"events repeat or go back: {revisions}"
    reached = [revision for revision in span.reached if revision >= 0]
    assert reached == sorted(reached), f"a bookmark or an event goes back: {reached}"
    assert not span.events or span.events[0].revision > span.start.revision, "an event of before the list"


def _check_complete(span: Span, changes: dict[int, Seen]) -> None:
    end = max(span.reached)
    expected = [revision for revision in sorted(changes) if span.start.revision < revision <= end]
    missed = set(expected) - {event.revision for event in span.events}
    assert not missed, f"a watcher missed {sorted(missed)}"


def _cache(span: Span, revision: int) -> dict[str, Object]:
    """What an informer holds at a revision."""
    cache = dict(span.start.objects)
    for event in span.events:
        if event.revision > revision:
            break
        if event.type == "DELETED":
            assert event.key in cache, f"{event.key} was deleted and was not there"
            del cache[event.key]
        else:
            assert (event.key in cache) == (event.type == "MODIFIED"), f"{event} of an object that should not be there"
            cache[event.key] = Object(event.revision, event.value)
    return cache
