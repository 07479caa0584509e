"""Own writes alone: beside caches that the test moves, and a caller that the test answers for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cache.informer import Informer
from konverge.cache.record import Key, Record, receive
from konverge.cache.spec import CacheSpec
from konverge.cache.store import Change, ChangeType
from konverge.client import ApiStatusError, Client, ConnectionLost, MergePatch
from konverge.client.call import Call
from konverge.client.errors import error_for
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta, Status
from konverge.runtime import Request
from konverge.runtime.writes import Tracked, TrackedCalls, Writes, attribute_to, selected_by_fields
from konverge.wire.message import Headers, Response

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-07", "R-12")]

KEY = Key("ns", "a")
MAPS = ConfigMap.resource
US, THEM = Request("ns", "us"), Request("ns", "them")


def raw(version: int, name: str = "a", uid: str = "u", labels: dict[str, str] | None = None, **more: Any) -> bytes:
    meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version), "labels": labels or {}}
    return json.dumps({"metadata": meta, **more}).encode()


def record(version: int) -> Record:
    return receive(raw(version))[1]


class Cache:
    """What `Writes` knows of an informer."""

    def __init__(self, **spec: Any) -> None:
        self.spec = CacheSpec(resource=MAPS, **spec)
        self.records: dict[Key, Record] = {}
        self.marks = 100
        self.version = 0
        self.waits: list[Any] = []
        self.restarted: list[str] = []
        self.shows = asyncio.Event()
        self.shows.set()

    def get(self, key: Key) -> Record | None:
        return self.records.get(key)

    def covers(self, namespaces: list[str]) -> bool:
        return not self.spec.namespaces or set(namespaces) <= set(self.spec.namespaces)

    def version_in(self, namespace: str) -> int:
        assert namespace == "ns"
        return self.version

    def mark(self, namespace: str) -> int:
        assert namespace == "ns"
        self.marks += 1
        return self.marks

    async def _wait(self, *what: Any) -> None:
        await self.shows.wait()
        self.waits.append(what)

    async def wait_for_version(self, key: Key, version: int, mark: int) -> None:
        await self._wait("version", key, version, mark)

    async def wait_for_deletion(self, key: Key, uid: str, mark: int) -> None:
        await self._wait("deletion", key, uid, mark)

    async def wait_for_present(self, namespace: str, mark: int) -> None:
        await self._wait("present", namespace, mark)

    def restart_watch(self, namespace: str) -> None:
        self.restarted.append(namespace)


class Scene:
    """One controller with caches of ConfigMaps; what was delivered, with the request that need not run."""

    def __init__(self, *caches: Cache) -> None:
        self.caches = caches or (Cache(),)
        self.writes = Writes({MAPS: self.caches})  # type: ignore[dict-item]
        self.delivered: list[tuple[int, int, Request | None]] = []
        self._routes = [self.writes.router(cache, self._deliver) for cache in self.caches]  # type: ignore[arg-type]
        self.answer: Callable[[Call], Any] = lambda call: raw(5)
        self.calls: list[Call] = []
        self.tracked = TrackedCalls(self)  # type: ignore[arg-type]

    near = True

    async def call(self, call: Call) -> Response:
        self.calls.append(call)
        answer = self.answer(call)
        if asyncio.iscoroutine(answer):
            answer = await answer
        return Response(200, Headers.of({}), answer)

    async def stream(self, call: Call) -> Any:
        return "a stream"

    def _deliver(self, change: Change, writer: Request | None) -> None:
        versions = [0 if state is None else state.version for state in (change.old, change.new)]
        self.delivered.append((versions[0], versions[1], writer))

    def event(self, old: int, new: int, *, listed: bool = False, cache: int = 0) -> None:
        before, after = (record(version) if version else None for version in (old, new))
        kind = ChangeType.ADDED if not old else ChangeType.DELETED if not new else ChangeType.UPDATED
        records = self.caches[cache].records
        if after is None:
            records.pop(KEY, None)
        else:
            records[KEY] = after
        self._routes[cache](Change(kind, KEY, before, after, listed=listed))

    def write(self, version: int, request: Request = US) -> None:
        self.writes.end(self.writes.begin(MAPS, KEY), KEY, request, raw(version) if version else b"")

    async def send(self, verb: str, name: str = "a", **more: Any) -> Response:
        return await self.tracked.call(Call(verb, more.pop("resource", MAPS), "ns", name, **more))

    @property
    def remembered(self) -> int:
        return sum(len(cached.objects) for cached in self.writes._cached[MAPS])


# ------------------------------------------------------------------ echoes


async def test_an_event_of_an_object_without_writes_has_no_writer() -> None:
    scene = Scene()
    scene.event(0, 1)
    scene.event(1, 2)
    assert scene.delivered == [(0, 1, None), (1, 2, None)]


async def test_the_event_of_a_write_names_its_writer_once() -> None:
    scene = Scene()
    scene.event(0, 1)
    scene.write(2)
    assert scene.remembered == 1
    scene.event(1, 2)
    assert scene.remembered == 0
    scene.event(2, 3)
    assert scene.delivered == [(0, 1, None), (1, 2, US), (2, 3, None)]


async def test_a_row_of_writes_is_a_row_of_echoes() -> None:
    scene = Scene()
    for version, request in ((1, US), (2, THEM), (3, US)):
        scene.write(version, request)
    for version in (1, 2, 3):
        scene.event(version - 1, version)
    assert scene.delivered == [(0, 1, US), (1, 2, THEM), (2, 3, US)]
    assert scene.remembered == 0


async def test_a_change_that_hides_a_foreign_one_is_no_echo() -> None:
    scene = Scene()
    scene.event(0, 1)
    scene.write(3)
    scene.event(1, 2)  # of another writer
    scene.event(2, 3)
    assert scene.delivered[1:] == [(1, 2, None), (2, 3, US)]
    scene.write(5)
    scene.event(4, 5)  # from a state that we did not know
    assert scene.delivered[3:] == [(4, 5, None)]
    scene.write(6)
    scene.event(5, 6, listed=True)  # there may have been others between the two
    assert scene.delivered[4:] == [(5, 6, None)]
    scene.write(7)
    scene.event(6, 8)  # ours was skipped
    assert scene.delivered[5:] == [(6, 8, None)]
    assert scene.remembered == 0


async def test_a_deletion_has_no_writer() -> None:
    scene = Scene()
    scene.event(0, 1)
    scene.write(2)
    scene.event(1, 0)
    assert scene.delivered[1:] == [(1, 0, None)]
    assert scene.remembered == 1, "the write may come after it, as that of a new object"
    scene.event(0, 2)
    assert scene.delivered[2:] == [(0, 2, US)]


@pytest.mark.spec("R-103")
async def test_a_write_that_takes_the_object_out_of_the_selection_is_forgotten() -> None:
    """It has no event but the deletion."""
    scene = Scene(Cache(label_selector="state=open"))
    (cache,) = scene.caches
    scene.event(0, 1)
    scene.write(12)
    assert scene.writes.has_written(US)
    cache.version = 12
    scene.event(1, 0)
    assert scene.delivered[1:] == [(1, 0, None)]
    assert scene.remembered == 0
    assert not scene.writes.has_written(US), "the cache has reached it"


@pytest.mark.spec("R-103")
async def test_an_informer_forgets_a_write_that_takes_the_object_out_of_its_selection(
    server: ApiServer, client: Client
) -> None:
    informer = Informer(client.caller, CacheSpec(resource=MAPS, label_selector="state=open"))
    writes = Writes({MAPS: [informer]})
    delivered: list[ChangeType] = []
    informer.add_handler(writes.router(informer, lambda change, writer: delivered.append(change.type)))
    running = asyncio.create_task(informer.run())
    await informer.synced.wait()
    attribute_to(writes, US)
    tracked = Tracked(client)
    await tracked.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default", labels={"state": "open"})))
    await asyncio.sleep(1)
    await tracked.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"state": "done"}}}), "default")
    await asyncio.sleep(1)
    assert delivered == [ChangeType.ADDED, ChangeType.DELETED]
    assert not writes._cached[MAPS][0].objects
    assert not writes.has_written(US)
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.spec("R-103")
@pytest.mark.parametrize("shown", [True, False])
async def test_a_write_after_the_deletion_is_still_to_come_back(shown: bool) -> None:
    scene = Scene()
    (cache,) = scene.caches
    scene.event(0, 1)
    scene.write(12, THEM)
    scene.write(30)
    cache.version = 20
    if shown:  # both events came in one piece: the cache is ahead of what is delivered
        cache.version = 30
        cache.records[KEY] = record(30)
        scene._routes[0](Change(ChangeType.DELETED, KEY, record(1), None))
    else:
        scene.event(1, 0)
    assert scene.remembered == 1
    assert scene.writes.has_written(THEM) is shown
    scene.event(0, 30)
    assert scene.delivered[1:] == [(1, 0, None), (0, 30, US)]
    assert scene.remembered == 0
    assert not scene.writes.has_written(THEM)


@pytest.mark.spec("R-103")
async def test_a_write_to_an_object_that_a_later_list_does_not_have_is_forgotten_but_waited_for() -> None:
    """The version of the list is not known before its end."""
    scene = Scene()
    scene.event(0, 1)
    scene.write(12)
    scene.event(1, 0, listed=True)
    assert scene.remembered == 0
    await scene.writes.caught_up(US)
    assert scene.caches[0].waits == [("version", KEY, 12, 101)]


async def test_a_list_that_has_the_object_ends_only_the_writes_that_it_shows() -> None:
    scene = Scene()
    scene.event(0, 1)
    scene.write(2, THEM)
    scene.write(5)
    scene.event(1, 3, listed=True)
    scene.event(3, 5)
    assert scene.delivered[1:] == [(1, 3, None), (3, 5, US)]


async def test_a_write_that_changed_nothing_or_failed_leaves_nothing_behind() -> None:
    scene = Scene()
    scene.event(0, 4)
    scene.write(4)
    scene.write(0)
    assert scene.remembered == 0
    scene.event(4, 5)
    assert scene.delivered[1:] == [(4, 5, None)]


async def test_events_wait_for_the_answer_of_a_write_in_flight() -> None:
    scene = Scene()
    scene.event(0, 1)
    first, second = scene.writes.begin(MAPS, KEY), scene.writes.begin(MAPS, KEY)
    scene.event(1, 2)
    scene.event(2, 3)
    scene.writes.end(first, KEY, US, raw(2))
    assert scene.delivered == [(0, 1, None)]
    scene.writes.end(second, KEY, THEM, b"")
    assert scene.delivered[1:] == [(1, 2, US), (2, 3, None)]
    assert scene.remembered == 0


async def test_a_create_without_a_name_is_known_by_its_answer() -> None:
    scene = Scene()
    scene.writes.created(MAPS, "ns", US, raw(7))
    scene.event(0, 7)
    assert scene.delivered == [(0, 7, US)]
    assert scene.remembered == 0
    scene.writes.created(MAPS, "ns", US, raw(7))  # the event came before the answer
    assert scene.remembered == 0
    await scene.writes.caught_up(US)
    assert scene.caches[0].waits == [("version", KEY, 7, 102)]


# ------------------------------------------------------------------ selective caches


@pytest.mark.parametrize(
    ("spec", "answer", "shown"),
    [
        ({}, raw(2), True),
        ({"namespaces": ("other", "ns")}, raw(2), True),
        ({"namespaces": ("other",)}, raw(2), False),
        ({"label_selector": "app=web"}, raw(2, labels={"app": "web"}), True),
        ({"label_selector": "app=web"}, raw(2, labels={"app": "db"}), False),
        ({"field_selector": "type=x"}, raw(2, type="x"), True),
        ({"field_selector": "type=x"}, raw(2, type="y"), False),
        ({"label_selector": "app=web", "field_selector": "type=x"}, raw(2, labels={"app": "web"}, type="y"), False),
        ({"label_selector": "app=web", "field_selector": "type=x"}, raw(2, labels={"app": "db"}, type="x"), False),
        ({"label_selector": "app=web", "field_selector": "type=x"}, raw(2, labels={"app": "web"}, type="x"), True),
    ],
)
@pytest.mark.parametrize("named", [True, False])
async def test_only_a_cache_that_shows_the_object_is_waited_for(
    spec: dict[str, Any], answer: bytes, shown: bool, named: bool
) -> None:
    scene = Scene(Cache(**spec))
    scene.answer = lambda call: answer
    attribute_to(scene.writes, US)
    response = await scene.send("create" if not named else "patch", name="a" if named else "")
    assert response.body == answer
    assert scene.writes.has_written(US) is shown
    assert scene.remembered == int(shown)
    await scene.writes.caught_up(US)
    assert scene.caches[0].waits == ([("version", KEY, 2, 101)] if shown else [])


async def test_a_cache_that_holds_the_object_shows_that_it_leaves_the_selection() -> None:
    scene = Scene(Cache(label_selector="app=web"))
    scene.event(0, 1)
    scene.write(2)
    assert scene.writes.has_written(US)


async def test_a_create_without_a_name_concerns_the_caches_that_show_it() -> None:
    scene = Scene(Cache(label_selector="app=web"), Cache())
    scene.writes.created(MAPS, "ns", US, raw(2))
    await scene.writes.caught_up(US)
    assert [len(cache.waits) for cache in scene.caches] == [0, 1]


async def test_of_several_caches_each_is_waited_for_and_has_its_own_echo() -> None:
    scene = Scene(Cache(), Cache(label_selector="app=web"), Cache(label_selector="!app"))
    scene.write(2)
    await scene.writes.caught_up(US)
    assert [len(cache.waits) for cache in scene.caches] == [1, 0, 1]
    scene.event(0, 2, cache=0)
    scene.event(0, 2, cache=2)
    assert scene.delivered == [(0, 2, US), (0, 2, US)]


async def test_a_write_that_a_cache_shows_is_not_waited_for() -> None:
    scene = Scene(Cache(), Cache())
    scene.write(2)
    scene.event(0, 2, cache=0)
    assert scene.writes.has_written(US), "the second cache does not show it"
    await scene.writes.caught_up(US)
    assert [len(cache.waits) for cache in scene.caches] == [0, 1]
    scene.write(3)
    scene.event(2, 3, cache=0)
    scene.event(0, 3, cache=1)
    assert not scene.writes.has_written(US)


async def test_an_older_write_that_comes_back_does_not_end_the_wait_for_a_newer_one() -> None:
    scene = Scene()
    scene.write(2)
    scene.write(3)
    scene.event(0, 2)
    assert scene.writes.has_written(US)
    scene.event(2, 3)
    assert not scene.writes.has_written(US)


async def test_a_later_state_shows_the_writes_of_all_requests() -> None:
    scene = Scene()
    scene.write(2, US)
    scene.write(3, THEM)
    scene.event(0, 4)
    assert not scene.writes.has_written(US)
    assert not scene.writes.has_written(THEM)


# ------------------------------------------------------------------ catching up


async def test_a_reconcile_waits_for_versions_deletions_and_lost_writes_and_forgets_them() -> None:
    scene = Scene()
    (cache,) = scene.caches
    scene.event(0, 1)
    assert not scene.writes.has_written(US)
    for note in (
        lambda: scene.write(2),
        lambda: scene.writes.deleted(MAPS, KEY, US),
        lambda: scene.writes.lost(MAPS, "ns", US),
    ):
        note()
        assert scene.writes.has_written(US)
        assert not scene.writes.has_written(THEM)
        await scene.writes.caught_up(US)
        assert not scene.writes.has_written(US)
    assert cache.waits == [("version", KEY, 2, 101), ("deletion", KEY, "u", 102), ("present", "ns", 103)]


async def test_waiting_can_be_cancelled_and_repeated() -> None:
    scene = Scene()
    (cache,) = scene.caches
    scene.event(0, 1)
    scene.write(2)
    scene.writes.deleted(MAPS, KEY, US)
    scene.writes.lost(MAPS, "ns", US)
    cache.shows.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await scene.writes.caught_up(US)
    assert scene.writes.has_written(US)
    scene.writes.restart_watches(US)
    assert cache.restarted == ["ns", "ns", "ns"]
    cache.shows.set()
    await scene.writes.caught_up(US)
    assert [what for what, *_ in cache.waits] == ["version", "deletion", "present"]
    scene.writes.restart_watches(US)
    assert cache.restarted == ["ns", "ns", "ns"]


async def test_only_the_last_version_of_an_object_is_waited_for() -> None:
    scene = Scene()
    scene.write(2)
    scene.write(3)
    await scene.writes.caught_up(US)
    assert scene.caches[0].waits == [("version", KEY, 3, 102)]


async def test_the_deletion_of_an_object_that_no_cache_has_is_not_waited_for() -> None:
    scene = Scene()
    scene.writes.deleted(MAPS, KEY, US)
    assert not scene.writes.has_written(US)


# ------------------------------------------------------------------ which calls count


async def test_calls_outside_of_a_reconcile_and_those_that_write_nothing_pass_through() -> None:
    scene = Scene()
    await scene.send("patch")
    attribute_to(scene.writes, US)
    await scene.send("get")
    await scene.send("patch", query={"dryRun": "All"})
    await scene.send("patch", resource=Secret.resource)
    await scene.send("create", name="", resource=Secret.resource)
    await scene.send("create", resource=None, name="", path="/apis")
    assert len(scene.calls) == 6
    assert not scene.writes.has_written(US)
    assert scene.remembered == 0
    assert scene.tracked.near
    assert await scene.tracked.stream(Call("watch", MAPS, "ns")) == "a stream"  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(("subresource", "counts"), [("", True), ("status", True), ("scale", False)])
async def test_the_answer_is_the_object_for_the_main_resource_and_its_status(subresource: str, counts: bool) -> None:
    scene = Scene()
    attribute_to(scene.writes, US)
    response = await scene.send("update", subresource=subresource)
    assert response.body == raw(5)
    assert scene.writes.has_written(US) is counts
    assert scene.remembered == int(counts)


async def test_a_delete_is_waited_for_and_its_answer_is_no_state() -> None:
    scene = Scene()
    scene.event(0, 1)
    attribute_to(scene.writes, US)
    await scene.send("delete")
    assert scene.remembered == 0
    await scene.writes.caught_up(US)
    assert scene.caches[0].waits == [("deletion", KEY, "u", 101)]


async def test_a_delete_of_a_collection_makes_no_object() -> None:
    scene = Scene()
    attribute_to(scene.writes, US)
    await scene.send("deletecollection", name="")
    assert not scene.writes.has_written(US)
    assert scene.remembered == 0


REFUSALS = [
    error_for(Status(code=code, reason=reason))
    for code, reason in (
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (502, "Unknown"),
        (409, ""),
        (429, ""),
        (499, ""),
        (0, ""),
    )
]
"""Decisions of the API server: a webhook that cannot be reached, say, or no time for the request."""
NO_DECISIONS = [
    error_for(Status(code=code, reason=reason))
    for code, reason in (
        (500, ""),
        (501, ""),
        (502, ""),
        (503, ""),
        (504, ""),
        (504, "Timeout"),
        (500, "ServerTimeout"),
    )
]
"""Of etcd while it changes its leader, and of what stands before the API server."""


@pytest.mark.spec("R-101")
@pytest.mark.parametrize("error", NO_DECISIONS, ids=repr)
async def test_a_write_that_was_answered_without_a_decision_may_have_taken_effect(error: ApiStatusError) -> None:
    def answer(call: Call) -> Any:
        raise error

    scene = Scene()
    attribute_to(scene.writes, US)
    scene.answer = answer
    with pytest.raises(ApiStatusError):
        await scene.send("create", name="")
    await scene.writes.caught_up(US)
    assert scene.caches[0].waits == [("present", "ns", 101)]


@pytest.mark.parametrize("name", ["a", ""])
async def test_a_write_without_an_answer_may_have_taken_effect_and_a_refused_one_has_not(name: str) -> None:
    def fails(error: BaseException) -> Callable[[Call], Any]:
        def answer(call: Call) -> Any:
            raise error

        return answer

    scene = Scene()
    attribute_to(scene.writes, US)
    for refusal in (ValueError("refused"), *REFUSALS):
        scene.answer = fails(refusal)
        with pytest.raises(type(refusal)):
            await scene.send("create", name=name)
        assert not scene.writes.has_written(US)
    scene.answer = fails(ConnectionLost("lost"))
    with pytest.raises(ConnectionLost):
        await scene.send("create", name=name)
    assert scene.remembered == 0
    await scene.writes.caught_up(US)
    assert scene.caches[0].waits == [("present", "ns", 101)]


async def test_a_write_that_is_cancelled_may_have_taken_effect() -> None:
    scene = Scene()
    scene.answer = lambda call: asyncio.sleep(60)

    async def work() -> None:
        attribute_to(scene.writes, US)
        await scene.send("patch")

    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert scene.writes.has_written(US)
    assert scene.remembered == 0


# ------------------------------------------------------------------ field selectors


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name=b", False),
        ("metadata.name==b", False),
        ("metadata.name!=b", True),
        ("metadata.name!=a", False),
        ("metadata.name=a,type=x", True),
        ("metadata.name=a,type=y", False),
        ("type=y,metadata.name=a", False),
        ("on=true", True),
        ("on=True", False),
        ("off=false", True),
        ("none=", True),
        ("count=3", True),
        ("type.deeper=", True),
        ("absent=x", False),
        ("absent!=x", True),
    ],
)
def test_a_field_selector_chooses_as_the_server_does(selector: str, selected: bool) -> None:
    obj = raw(1, type="x", on=True, off=False, none=None, count=3)
    assert selected_by_fields(selector, obj) is selected
