"""Waiting for a cache to show something: what the server has now, a version, a deletion."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.cache import CacheSpec, Informer
from konverge.cache.record import Key
from konverge.cache.reflector import MIN_AGE, PARTIAL_METADATA_LIST
from konverge.client import Call, ClientError, Expired, InternalError
from konverge.wire.message import Headers, Response
from tests.cache.scripted import CONFIG_MAPS, Script, end, informed, line, names, refused

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-12")]

A = Key("shop", "a")


def listed(version: int, *objects: tuple[str, str, int]) -> bytes:
    """A list of metadata: name, uid and version of each object."""
    items = [
        {"metadata": {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(number)}}
        for name, uid, number in objects
    ]
    return json.dumps({"metadata": {"resourceVersion": str(version)}, "items": items}).encode()


FIRST = line("ADDED", "a", 3) + end(5)
"""The first state is one object."""


class Server(Script):
    """Streams come from the script, lists of metadata from `lists`."""

    def __init__(self, *answers: Any, lists: tuple[bytes, ...] = ()) -> None:
        super().__init__(FIRST, *answers)
        self.lists = list(lists)
        self.asked: list[tuple[str, str]] = []
        self.list_calls: list[Call] = []

    async def call(self, call: Call) -> Response:
        self.asked.append((call.verb, call.namespace))
        self.list_calls.append(call)
        return Response(200, Headers(), self.lists.pop(0))


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("present", "event", "seconds"),
    [
        (listed(5, ("a", "a", 3)), b"", 0),  # it is as the cache has it
        (listed(9, ("a", "a", 3), ("b", "b", 9)), line("ADDED", "b", 9), 30),
        (listed(9, ("a", "a", 8)), line("MODIFIED", "a", 8), 30),
        (listed(9), line("DELETED", "a", 9), 30),
        (listed(9, ("a", "another", 8)), line("MODIFIED", "a", 8, uid="another"), 30),
        (listed(9, ("b", "b", 7), ("a", "a", 3)), line("ADDED", "b", 7), 30),
        (listed(3), line("DELETED", "a", 9), 30),  # the version of the list itself is not after it
        (b'{"metadata": {"resourceVersion": "9"}, "items": null}', line("DELETED", "a", 9), 30),
    ],
)
async def test_a_cache_shows_what_the_server_has_when_every_object_is_as_there(
    present: bytes, event: bytes, seconds: float
) -> None:
    script = Server([(30.0, event)], lists=(present,))
    async with informed(script) as informer:
        await informer.synced.wait()
        await informer.wait_for_present("shop", informer.mark("shop"))
        assert now() == seconds
        assert script.asked == [("list", "shop")]


async def test_an_object_that_came_after_the_list_is_no_obstacle() -> None:
    script = Server([(1.0, line("ADDED", "c", 12))], lists=(listed(9, ("a", "a", 3)),))
    async with informed(script) as informer:
        await asyncio.sleep(2)
        async with asyncio.timeout(1):
            await informer.wait_for_present("shop", informer.mark("shop"))
        assert names(informer) == {"a", "c"}


async def test_what_the_server_has_is_compared_with_what_the_cache_may_hold() -> None:
    """The same selectors, or an object that the cache leaves out would be waited for without an end."""
    script = Server([(30.0, line("DELETED", "a", 9))], lists=(listed(9),))
    async with informed(script, label_selector="app=x", field_selector="metadata.name!=z") as informer:
        await informer.synced.wait()
        await informer.wait_for_present("shop", informer.mark("shop"))
    (call,) = script.list_calls
    assert call.query == {"labelSelector": "app=x", "fieldSelector": "metadata.name!=z"}
    assert call.accept == PARTIAL_METADATA_LIST, "of each object only its identity is needed"


async def test_a_list_that_cannot_be_read_is_an_error_of_the_client() -> None:
    async with informed(Server(lists=(b"<html>busy</html>",))) as informer:
        await informer.synced.wait()
        with pytest.raises(ClientError, match="cannot be read"):
            await informer.wait_for_present("shop", informer.mark("shop"))


async def test_an_object_of_another_namespace_is_no_obstacle() -> None:
    script = Server([(1.0, line("ADDED", "z", 6, namespace="bank"))], lists=(listed(9, ("a", "a", 3)),))
    async with informed(script) as informer:
        await asyncio.sleep(2)
        assert names(informer) == {"a", "z"}
        async with asyncio.timeout(1):
            await informer.wait_for_present("shop", informer.mark("shop"))


async def test_without_a_namespace_every_object_counts() -> None:
    script = Server([(30.0, line("DELETED", "a", 9))], lists=(listed(9),))
    async with informed(script) as informer:
        await informer.synced.wait()
        await informer.wait_for_present("", informer.mark(""))
        assert now() == 30
    assert script.asked == [("list", "")]


async def test_a_state_that_was_listed_after_the_mark_shows_everything() -> None:
    script = Server()
    informer = Informer(script, CacheSpec(resource=CONFIG_MAPS))  # type: ignore[arg-type]
    before = informer.mark("shop")
    assert not informer.served, "it is not known yet what the server has"
    running = asyncio.create_task(informer.run())
    await informer.synced.wait()
    assert informer.served
    await informer.wait_for_present("shop", before)
    await informer.wait_for_version(A, 99, before)
    await informer.wait_for_deletion(A, "a", before)
    assert script.asked == []
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize("wait", ["present", "version", "deletion"])
async def test_a_later_list_ends_the_waiting_even_where_versions_went_back(wait: str) -> None:
    """A restored backup: what is waited for never comes."""
    again = line("ADDED", "a", 2) + end(4)
    script = Server((b"", 20.0), refused(Expired), again, lists=(listed(9, ("b", "b", 9)),))
    async with informed(script) as informer:
        await informer.synced.wait()
        mark = informer.mark("shop")
        waits = {
            "present": lambda: informer.wait_for_present("shop", mark),
            "version": lambda: informer.wait_for_version(A, 9, mark),
            "deletion": lambda: informer.wait_for_deletion(A, "a", mark),
        }
        waiting = asyncio.create_task(waits[wait]())
        await asyncio.sleep(15)
        assert not waiting.done()
        async with asyncio.timeout(30):
            await waiting
        assert names(informer) == {"a"}


async def test_a_deletion_is_shown_by_absence_by_another_uid_and_by_its_request() -> None:
    events = [
        (10.0, line("MODIFIED", "a", 6, deletionTimestamp="2026-01-01T00:00:00Z")),
        (10.0, line("DELETED", "a", 7)),
        (10.0, line("ADDED", "a", 8, uid="another")),
    ]
    async with informed(Server(events)) as informer:
        await informer.synced.wait()
        mark = informer.mark("shop")
        await informer.wait_for_deletion(A, "a", mark)
        assert now() == 10
        await asyncio.sleep(15)
        await informer.wait_for_deletion(A, "a", mark)
        await asyncio.sleep(10)
        await informer.wait_for_deletion(A, "a", mark)
        assert now() == 35
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await informer.wait_for_deletion(A, "another", mark)


async def test_a_namespace_that_the_cache_does_not_have_is_not_waited_for() -> None:
    script = Server()
    async with informed(script, namespaces=("shop",)) as informer:
        await informer.synced.wait()
        assert informer.mark("other") == 0
        await informer.wait_for_present("other", 0)
        await informer.wait_for_version(Key("other", "a"), 99, 0)
        await informer.wait_for_deletion(Key("other", "a"), "a", 0)
        informer.restart_watch("other")
        assert script.asked == []
        assert list(informer.items("other")) == []
        assert informer.get(Key("other", "a")) is None


async def test_a_watch_that_is_not_open_is_not_restarted() -> None:
    script = Server((b"", 20.0), *[refused(InternalError)] * 50)
    async with informed(script) as informer:
        await informer.synced.wait()
        await asyncio.sleep(100)  # the back-off of a failure runs
        asked = len(script.calls)
        informer.restart_watch("shop")
        await asyncio.sleep(0)
        assert len(script.calls) == asked
        assert names(informer) == {"a"}


async def test_a_watch_is_resumed_first_and_then_listed_again_and_never_too_early() -> None:
    """Two restarts in a row did not help: then the state is listed, which shows everything."""
    script = Server(b"", b"", FIRST, b"", b"", FIRST)
    async with informed(script) as informer:
        await informer.synced.wait()
        opened = []
        for _ in range(4):
            await asyncio.sleep(MIN_AGE / 2)
            before = len(script.calls)
            informer.restart_watch("shop")
            await asyncio.sleep(0.01)
            assert len(script.calls) == before, "the watch was opened just now"
            await asyncio.sleep(MIN_AGE)
            informer.restart_watch("shop")
            informer.restart_watch("shop")
            await asyncio.sleep(0.01)
            opened.append(["sendInitialEvents" in query for query in script.queries()[before:]])
        assert opened == [[False], [True, False], [False], [True, False]]
        assert names(informer) == {"a"}


@pytest.mark.spec("R-103")
async def test_what_a_cache_has_reached_is_said_of_each_namespace() -> None:
    async with informed(Script(end(7), end(9)), namespaces=("shop", "bank")) as informer:
        await asyncio.sleep(1)
        assert [informer.version_in(namespace) for namespace in ("shop", "bank", "other")] == [7, 9, 0]
        assert informer.version == 7
    async with informed(Script(end(7))) as informer:
        await asyncio.sleep(1)
        assert informer.version_in("shop") == 7


async def test_a_version_is_shown_when_the_cache_has_reached_it() -> None:
    async with informed(Server([(10.0, line("MODIFIED", "a", 8))])) as informer:
        await informer.synced.wait()
        mark = informer.mark("shop")
        await informer.wait_for_version(A, 5, mark)
        assert now() == 0
        await informer.wait_for_version(A, 8, mark)
        assert now() == 10
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await informer.wait_for_version(A, 9, mark)
