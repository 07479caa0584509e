"""What a reflector asks for, and when it asks again: streams, pages, expired history, errors and their back-off."""

from __future__ import annotations

import asyncio
import json

import pytest

from konverge.cache import Key
from konverge.cache.reflector import (
    BOOKMARK_SILENCE,
    FIRST_DELAY,
    JITTER,
    LEEWAY,
    MAX_DELAY,
    PARTIAL_METADATA,
    PARTIAL_METADATA_LIST,
    WATCH_SECONDS,
    Restart,
)
from konverge.client.errors import BadRequest, ClientError, Expired, NotFound, TooManyRequests
from tests.cache.scripted import FOREVER, Script, end, informed, line, names, page, refused

pytestmark = pytest.mark.virtual

STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


# ------------------------------------------------------------------ what it asks for


@pytest.mark.spec("R-07")
async def test_the_state_comes_as_a_stream_and_the_watch_begins_where_it_ends() -> None:
    script = Script(line("ADDED", "a", 3) + end(7), line("ADDED", "b", 9))
    async with informed(script, label_selector="app=x", field_selector="metadata.name!=z") as informer:
        await informer.synced.wait()
        await asyncio.sleep(1)
        assert names(informer) == {"a", "b"}
        assert (informer.version, informer.error, informer.served) == (9, "", True)
    selectors = {"labelSelector": "app=x", "fieldSelector": "metadata.name!=z"}
    assert script.queries() == [selectors | STREAMED, selectors | {"resourceVersion": "7"}]
    for call in script.calls:
        assert (call.verb, call.query["watch"], call.query["allowWatchBookmarks"]) == ("watch", "true", "true")
        assert WATCH_SECONDS[0] <= int(call.query["timeoutSeconds"]) <= WATCH_SECONDS[1]
        assert call.timeout is not None
        assert call.timeout > int(call.query["timeoutSeconds"]), "the server ends it, not the client"
        assert call.accept == "application/json"
    assert script.calls[1].headers == (("accept-encoding", "identity"),)


@pytest.mark.spec("R-07")
async def test_a_server_that_cannot_stream_the_state_is_asked_for_pages() -> None:
    script = Script(refused(BadRequest), page(5, "a", more="next"), page(6, "b"), (b"", 200.0), b"")
    async with informed(script, label_selector="app=x", metadata_only=True) as informer:
        await informer.synced.wait()
        assert names(informer) == {"a", "b"}
        await asyncio.sleep(300)
    selector = {"labelSelector": "app=x"}
    assert script.queries() == [
        selector | STREAMED,
        selector | {"limit": "500", "resourceVersion": "0"},
        selector | {"limit": "500", "continue": "next"},
        selector | {"resourceVersion": "5"},
        selector | {"resourceVersion": "5"},
    ], "the version of the first page counts; a watch that ends is resumed, without a list"
    assert [call.verb for call in script.calls] == ["watch", "list", "list", "watch", "watch"]
    assert [call.accept for call in script.calls[:3]] == [
        PARTIAL_METADATA,
        PARTIAL_METADATA_LIST,
        PARTIAL_METADATA_LIST,
    ]


@pytest.mark.spec("R-07")
@pytest.mark.parametrize("streaming", [True, False])
async def test_an_expired_history_is_listed_again_at_its_newest_version(streaming: bool) -> None:
    gone = json.dumps({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}).encode() + b"\n"
    state, again = (end(7), line("ADDED", "b", 8) + end(9)) if streaming else (page(7), page(9, "b"))
    script = Script(state, (gone, 0.0), again, refused(Expired), again, b"")
    async with informed(script, streaming=streaming) as informer:
        await asyncio.sleep(60)
        assert names(informer) == {"b"}
        (reflector,) = informer.reflectors
        assert (reflector.health.restarts[Restart.EXPIRED], reflector.health.lists) == (2, 3)
        assert (informer.error, reflector.health.failures) == ("", 0)
    newest = STREAMED if streaming else {"limit": "500", "resourceVersion": ""}
    assert script.queries()[2] == script.queries()[4] == newest
    assert script.queries()[3] == script.queries()[5] == {"resourceVersion": "9"}


async def test_several_namespaces_are_watched_one_by_one_and_synced_together() -> None:
    script = Script(end(7), (b"", FOREVER))
    async with informed(script, namespaces=("shop", "bank")) as informer:
        await asyncio.sleep(1)
        assert not informer.synced.is_set(), "the second has not answered"
        assert informer.covers(["shop", "bank"])
        assert not informer.covers(["shop", "park"])
    assert sorted(call.namespace for call in script.calls[:2]) == ["bank", "shop"]


# ------------------------------------------------------------------ errors


@pytest.mark.spec("R-09")
async def test_failures_are_retried_more_and_more_slowly_and_success_ends_that() -> None:
    script = Script(*[ClientError("refused")] * 12, end(3), (b"", 200.0), ClientError("again"))
    async with informed(script) as informer:
        await asyncio.sleep(1)
        assert informer.error == "refused"
        await asyncio.wait_for(informer.synced.wait(), 1000)
        (reflector,) = informer.reflectors
        assert (reflector.health.restarts[Restart.ERROR], informer.error) == (12, "")
        await asyncio.sleep(400)
        assert informer.error == "", "the last failure is over"
    pauses = [later - earlier for earlier, later in zip(script.times, script.times[1:], strict=False)]
    for number, pause in enumerate(pauses[:12]):
        shortest = min(FIRST_DELAY * 2**number, MAX_DELAY)
        assert shortest <= pause <= shortest * (1 + JITTER), number
    assert len({round(pause / FIRST_DELAY, 6) for pause in pauses[8:12]}) > 1, "a fleet does not come back in step"
    again = script.times[script.calls.index(script.calls[14]) :]
    assert FIRST_DELAY <= again[1] - again[0] <= FIRST_DELAY * (1 + JITTER), "from the beginning after a good watch"


@pytest.mark.spec("R-09")
async def test_a_server_that_is_busy_says_when_to_come_back() -> None:
    busy = json.dumps({"type": "ERROR", "object": {"code": 429, "details": {"retryAfterSeconds": 40}}}).encode() + b"\n"
    script = Script(refused(TooManyRequests, retry_after=20), end(3), (busy, 0.0), b"")
    async with informed(script):
        await asyncio.sleep(100)
    assert script.times[1] == pytest.approx(20)
    assert script.times[3] - script.times[2] == pytest.approx(40)
    assert script.queries()[3] == {"resourceVersion": "3"}, "nothing is lost: no list is needed"


async def test_a_resource_that_the_server_does_not_have_is_answered_and_not_served() -> None:
    script = Script(refused(NotFound), end(3))
    async with informed(script) as informer:
        await asyncio.wait_for(informer.answered.wait(), 0.5)
        (reflector,) = informer.reflectors
        assert (informer.synced.is_set(), informer.served, reflector.health.missing) == (False, False, True)
        await informer.synced.wait()
        assert (informer.served, reflector.health.missing) == (True, False)


async def test_any_other_refusal_is_no_answer() -> None:
    script = Script(refused(TooManyRequests), end(3))
    async with informed(script) as informer:
        await asyncio.sleep(0.01)
        assert (informer.answered.is_set(), informer.reflectors[0].health.missing) == (False, False)
        await informer.synced.wait()


@pytest.mark.spec("R-07")
async def test_pages_of_whole_objects_are_asked_for_as_such() -> None:
    script = Script(refused(BadRequest), page(5, "a"))
    async with informed(script) as informer:
        await informer.synced.wait()
    assert [call.accept for call in script.calls[:2]] == ["application/json", "application/json"]


@pytest.mark.spec("R-07")
async def test_a_position_that_the_server_has_not_reached_is_given_up() -> None:
    ahead = refused(BadRequest, "Too large resource version: 9, current: 3")
    script = Script(end(9), (b"", 130.0), ahead, end(3))
    async with informed(script) as informer:
        await asyncio.sleep(300)
        assert informer.version == 3
    assert script.queries()[2:4] == [{"resourceVersion": "9"}, STREAMED]


@pytest.mark.spec("R-09")
async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop() -> None:
    script = Script(end(3), *[(b"", 0.0)] * 50)
    async with informed(script) as informer:
        await asyncio.sleep(8)
        (reflector,) = informer.reflectors
        assert reflector.health.restarts[Restart.TIMEOUT] == pytest.approx(10, abs=1)
    assert all(
        later - earlier == pytest.approx(FIRST_DELAY)
        for earlier, later in zip(script.times[1:], script.times[2:], strict=False)
    )


async def test_an_error_in_the_stream_keeps_the_changes_before_it() -> None:
    broken = line("ADDED", "a", 8) + b'{"type": "ERROR", "object": {"code": 500, "message": "etcd is away"}}\n'
    script = Script(end(7), (broken, 0.0), b"")
    async with informed(script) as informer:
        await asyncio.sleep(0.1)
        assert (names(informer), informer.error) == ({"a"}, "etcd is away")
        assert informer.get(Key("shop", "a")) is not None
        await asyncio.sleep(10)
    assert script.queries()[2] == {"resourceVersion": "8"}


async def test_a_server_that_is_busy_and_does_not_say_for_how_long_is_asked_again() -> None:
    script = Script(refused(TooManyRequests), end(3))
    async with informed(script) as informer:
        await asyncio.wait_for(informer.synced.wait(), 10)
    assert FIRST_DELAY <= script.times[1] <= FIRST_DELAY * (1 + JITTER)


async def test_a_server_that_refused_to_stream_is_asked_for_pages_from_then_on() -> None:
    script = Script(refused(BadRequest), page(5), refused(Expired), page(9), b"")
    async with informed(script):
        await asyncio.sleep(60)
    assert [call.verb for call in script.calls] == ["watch", "list", "watch", "list", "watch"]


# ------------------------------------------------------------------ silence


@pytest.mark.spec("R-09")
async def test_a_server_that_sent_bookmarks_and_is_silent_is_given_up() -> None:
    script = Script(end(3), [(60.0, line("BOOKMARK", "", 5))], b"")
    async with informed(script) as informer:
        await asyncio.sleep(400)
        assert informer.reflectors[0].health.restarts[Restart.SILENT] == 1
    silent = script.times[2] - script.times[1] - 60
    assert BOOKMARK_SILENCE <= silent <= BOOKMARK_SILENCE + LEEWAY
    assert script.queries()[2] == {"resourceVersion": "5"}


@pytest.mark.spec("R-09")
async def test_a_watch_lives_as_long_as_bookmarks_come() -> None:
    bookmarks = [(60.0, line("BOOKMARK", "", 5 + number)) for number in range(30)]
    script = Script(end(3), bookmarks, b"")
    async with informed(script) as informer:
        await asyncio.sleep(WATCH_SECONDS[0] - 1)
        assert (len(script.calls), informer.version) == (2, 8)
        await asyncio.sleep(WATCH_SECONDS[1] - WATCH_SECONDS[0] + 10)
    assert len(script.calls) == 3, "the server should have ended it by its own limit"


@pytest.mark.spec("R-98")
async def test_a_watch_that_ended_with_a_deletion_is_resumed_before_it() -> None:
    """More objects may have been deleted in the same transaction."""
    gone = [line("DELETED", name, 20) for name in "ab"]
    script = Script(page(10, "a", "b", "c"), (gone[0], 200.0), (gone[0] + gone[1], 200.0), b"")
    async with informed(script, streaming=False) as informer:
        await asyncio.sleep(300)
        assert [query["resourceVersion"] for query in script.queries()[1:]] == ["10", "19"]
        assert names(informer) == {"c"}
