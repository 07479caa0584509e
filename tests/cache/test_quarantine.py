"""Objects that something fails on: set aside, reported once, taken up again; all others go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cache import CacheSpec, Change, ChangeType, Informer, Key, Lister, Meta, Record
from konverge.cache.quarantine import MAX_REPORTS, READ, Quarantine, Unreadable
from konverge.cache.store import Store
from konverge.cache.watch_state import Watching
from konverge.client import Client, MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.labels import parse
from konverge.wire.message import Headers, Request, Response, Stream, Transport
from tests.cache.scripted import Script, end, informed
from tests.cache.scripted import line as event
from tests.cache.scripted import page as scripted_page
from tests.cache.test_informer import config_map, make_client
from tests.cache.test_watch_state import bookmark, feed, line

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-05", "R-08")]

A, B, C = Key("ns", "a"), Key("ns", "b"), Key("ns", "c")


def obj(name: str, version: int, *, bad: bool = False, uid: str = "") -> dict[str, Any]:
    """An object; a bad one has labels that are no texts."""
    meta = {"name": name, "namespace": "ns", "resourceVersion": str(version), "uid": uid or f"uid-{name}"}
    return {"metadata": {**meta, "labels": {"l": 1 if bad else "1"}}}


def listed(*objects: dict[str, Any], version: int = 10) -> bytes:
    return b"".join(line("ADDED", o) for o in objects) + bookmark(version, ends_list=True)


def begin(*objects: dict[str, Any]) -> Watching:
    watching = Watching(Store())
    watching.begin_list()
    feed(watching, listed(*objects))
    return watching


def relist(watching: Watching, *objects: dict[str, Any], version: int = 20) -> list[Change]:
    watching.reset_stream()
    watching.begin_list()
    return feed(watching, listed(*objects, version=version))


def keys(store: Store) -> dict[str, int]:
    return {key.name: record.version for key, record in store.items()}


def quarantined(watching: Watching) -> list[tuple[str, int]]:
    return [(entry.key.name, entry.version) for entry in watching.store.quarantine]


# ------------------------------------------------------------------ in the watch


def test_an_unreadable_object_of_the_first_list_is_left_out_and_the_rest_is_there() -> None:
    watching = begin(obj("a", 1), obj("b", 2, bad=True), obj("c", 3))
    assert keys(watching.store) == {"a": 1, "c": 3}
    assert watching.synced
    assert quarantined(watching) == [("b", 2)]
    (entry,) = watching.store.quarantine
    assert (entry.stage, entry.uid) == (READ, "uid-b")
    assert "Expected `str`" in entry.error


def test_it_is_taken_up_when_it_is_readable_again() -> None:
    watching = begin(obj("b", 2, bad=True))
    (change,) = feed(watching, line("MODIFIED", obj("b", 11)))
    assert (change.type, change.key) == (ChangeType.ADDED, B)
    assert quarantined(watching) == []


def test_an_unreadable_event_leaves_the_stored_state_and_moves_the_position() -> None:
    watching = begin(obj("a", 1), obj("b", 2))
    assert feed(watching, line("MODIFIED", obj("a", 11, bad=True)) + line("MODIFIED", obj("b", 12)))[0].key == B
    assert keys(watching.store) == {"a": 1, "b": 12}
    assert (watching.position, watching.store.version) == (12, 12)
    assert quarantined(watching) == [("a", 11)]
    feed(watching, line("MODIFIED", obj("a", 11, bad=True)))  # repeated after a new connection
    assert (watching.position, watching.store.quarantine.reported) == (12, 1)
    (change,) = feed(watching, line("MODIFIED", obj("a", 13)))
    assert change.old is not None
    assert (change.old.version, quarantined(watching)) == (1, [])


def test_an_unreadable_deletion_is_a_deletion() -> None:
    watching = begin(obj("a", 1), obj("b", 2, bad=True))
    (change,) = feed(watching, line("DELETED", obj("a", 11, bad=True)))
    assert (change.type, change.key) == (ChangeType.DELETED, A)
    assert feed(watching, line("DELETED", obj("b", 12, bad=True))) == []
    assert (keys(watching.store), quarantined(watching)) == ({}, [])


def test_a_readable_deletion_ends_it_as_well() -> None:
    watching = begin(obj("b", 2, bad=True))
    assert feed(watching, line("DELETED", obj("b", 12))) == []
    assert quarantined(watching) == []


@pytest.mark.spec("R-98")
@pytest.mark.parametrize("bad", [True, False])
def test_deletions_that_share_a_version_are_all_seen_readable_or_not(bad: bool) -> None:
    watching = begin(obj("a", 1), obj("b", 2, bad=True), obj("c", 3))
    gone = b"".join(line("DELETED", obj(name, 20, bad=bad)) for name in "abc")
    assert [(change.type, change.key) for change in feed(watching, gone)] == [
        (ChangeType.DELETED, A),
        (ChangeType.DELETED, C),
    ]
    assert (keys(watching.store), quarantined(watching)) == ({}, [])
    assert (watching.position, watching.resume_from) == (20, 19)


@pytest.mark.spec("R-98")
def test_a_deletion_of_what_is_stored_counts_beside_an_unreadable_object_of_another_uid() -> None:
    watching = begin(obj("a", 1), obj("b", 2))
    feed(watching, line("MODIFIED", obj("b", 11, bad=True, uid="other")) + line("DELETED", obj("a", 20)))
    (change,) = feed(watching, line("DELETED", obj("b", 20)))
    assert (change.key, quarantined(watching)) == (B, [])


def test_a_relist_keeps_what_is_stored_of_an_unreadable_object() -> None:
    watching = begin(obj("a", 1), obj("b", 2), obj("c", 3))
    changes = relist(watching, obj("a", 15, bad=True), obj("c", 16))
    assert [(change.type, change.key) for change in changes] == [(ChangeType.DELETED, B), (ChangeType.UPDATED, C)]
    assert keys(watching.store) == {"a": 1, "c": 16}
    assert quarantined(watching) == [("a", 15)]


def test_a_relist_drops_what_is_stored_of_another_object_of_that_name() -> None:
    watching = begin(obj("a", 1))
    (change,) = relist(watching, obj("a", 15, bad=True, uid="other"))
    assert (change.type, keys(watching.store)) == (ChangeType.DELETED, {})
    assert quarantined(watching) == [("a", 15)]


def test_a_relist_without_the_object_ends_it() -> None:
    watching = begin(obj("b", 2, bad=True), obj("c", 3, bad=True))
    relist(watching, obj("c", 3, bad=True))
    assert quarantined(watching) == [("c", 3)]
    assert watching.store.quarantine.reported == 2  # not again for the same version


def test_a_relist_of_one_namespace_says_nothing_about_another() -> None:
    quarantine = Quarantine()
    quarantine.report(Key("other", "x"), 1, "u", READ, ValueError("no"))
    watching = Watching(Store(quarantine=quarantine), namespace="ns")
    watching.begin_list()
    feed(watching, listed(obj("a", 1)))
    assert [entry.key for entry in quarantine] == [Key("other", "x")]


def test_a_relist_in_which_it_is_readable_ends_it() -> None:
    watching = begin(obj("b", 2, bad=True))
    (change,) = relist(watching, obj("b", 2))
    assert (change.key, quarantined(watching)) == (B, [])


def test_a_relist_of_the_own_namespace_without_the_object_ends_it() -> None:
    watching = Watching(Store(), namespace="ns")
    watching.begin_list()
    feed(watching, listed(obj("a", 1), obj("b", 2, bad=True)))
    assert quarantined(watching) == [("b", 2)]
    relist(watching, obj("a", 1))
    assert quarantined(watching) == []


def test_an_unreadable_event_that_was_seen_before_says_nothing() -> None:
    watching = begin(obj("a", 10))
    feed(watching, line("MODIFIED", obj("a", 10, bad=True)) + line("MODIFIED", obj("a", 9, bad=True)))
    assert quarantined(watching) == []
    feed(watching, line("MODIFIED", obj("a", 0, bad=True)))
    assert quarantined(watching) == [("a", 0)], "a version that cannot be compared is never old"


def test_pages_go_the_same_way() -> None:
    watching = Watching(Store())
    watching.begin_list()
    raws = [json.dumps(o).encode() for o in (obj("a", 1), obj("b", 2, bad=True), obj("c", 3))]
    assert [change.key for change in watching.add_listed(raws)] == [A, C]
    assert quarantined(watching) == [("b", 2)]


def test_what_has_not_even_a_name_is_an_error_of_the_stream() -> None:
    watching = begin()
    stream = watching.feed(line("ADDED", obj("a", 11)) + line("MODIFIED", {"metadata": {"labels": {"a": 1}}}))
    assert [change.key for change in next(stream)] == [A]  # what came before it is delivered
    with pytest.raises(ValueError, match="name"):
        next(stream)


@pytest.mark.spec("R-100")
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("bad", [True, False])
def test_an_unreadable_object_that_is_deleted_before_the_list_ends_is_not_in_it(stored: bool, bad: bool) -> None:
    """Neither what cannot be read of it, nor what is stored of it, stays."""
    watching = begin(*([obj("a", 1), obj("b", 2)] if stored else []))
    watching.begin_list()
    initial = line("ADDED", obj("a", 11, bad=True)) + line("ADDED", obj("b", 12))
    changes = feed(watching, initial + line("DELETED", obj("a", 13, bad=bad)) + bookmark(13, ends_list=True))
    assert [change.key for change in changes] == ([A, B] if stored else [B])
    assert (keys(watching.store), quarantined(watching)) == ({"b": 12}, [])


@pytest.mark.spec("R-100")
def test_an_unreadable_object_of_the_first_list_that_is_deleted_before_its_end_is_forgotten() -> None:
    watching = Watching(Store())
    watching.begin_list()
    initial = line("ADDED", obj("a", 1, bad=True)) + line("DELETED", obj("a", 2, bad=True))
    assert feed(watching, initial + bookmark(2, ends_list=True)) == []
    assert (keys(watching.store), quarantined(watching)) == ({}, [])


# ------------------------------------------------------------------ nested too deeply


LEVELS = 5000
"""The API server accepts ten thousand; a decoder, about as many as Python has stack for."""
DEEP = '{"metadata":{"name":"no"},"a":' * LEVELS + "1" + "}" * LEVELS


def deep(obj: dict[str, Any], place: str = "spec") -> bytes:
    """The object with something deep in it, in the order of the API server, which sorts the fields of custom ones."""
    spoiled = {"alpha": "}]", **obj, place: "DEEP"} if place != "managedFields" else json.loads(json.dumps(obj))
    if place == "managedFields":
        spoiled["metadata"] = {"annotations": {"n": 'a "{['}, "managedFields": "DEEP", **obj["metadata"]}
    return json.dumps(dict(sorted(spoiled.items())), separators=(",", ":")).replace('"DEEP"', DEEP).encode()


def deep_line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)


@pytest.mark.spec("R-99")
@pytest.mark.parametrize("place", ["data", "spec", "managedFields"])
def test_an_object_that_is_nested_too_deeply_is_set_aside_like_others(place: str) -> None:
    watching = Watching(Store())
    watching.begin_list()
    first = deep_line("ADDED", deep(obj("b", 2), place))
    feed(watching, line("ADDED", obj("a", 1)) + first + line("ADDED", obj("c", 3)) + bookmark(10, ends_list=True))
    assert keys(watching.store) == {"a": 1, "c": 3}
    (entry,) = watching.store.quarantine
    assert (entry.key, entry.version, entry.uid, entry.stage) == (B, 2, "uid-b", READ)
    assert "recursion" in entry.error
    feed(watching, deep_line("MODIFIED", deep(obj("a", 11), place)))
    assert keys(watching.store) == {"a": 1, "c": 3}
    assert quarantined(watching) == [("b", 2), ("a", 11)]
    changes = feed(watching, deep_line("DELETED", deep(obj("a", 12), place)) + line("MODIFIED", obj("b", 13)))
    assert [change.key for change in changes] == [A, B]
    assert (quarantined(watching), watching.position) == ([], 13)


@pytest.mark.spec("R-99")
async def test_a_page_with_an_object_that_is_nested_too_deeply_gives_the_others() -> None:
    items = b",".join([json.dumps(obj("a", 1)).encode(), deep(obj("b", 2), "data"), json.dumps(obj("c", 3)).encode()])
    head = b'{"metadata":{"resourceVersion":"10","continue":"%b","shardInfo":{"selector":"{"}},"items":[%b]}'
    script = Script(head % (b"more", items), scripted_page(11, "d"), event("MODIFIED", "d", 12))
    async with informed(script, streaming=False) as informer:
        await asyncio.sleep(1)
        assert informer.synced.is_set()
        assert {str(key): record.version for key, record in informer.items()} == {"ns/a": 1, "ns/c": 3, "shop/d": 12}
        assert [(str(entry.key), entry.version) for entry in informer.quarantine] == [("ns/b", 2)]
    assert script.queries()[1:] == [{"limit": "500", "continue": "more"}, {"resourceVersion": "10"}]


@pytest.mark.spec("R-99")
async def test_the_versions_of_a_namespace_are_read_beside_what_is_nested_too_deeply() -> None:
    head = b'{"metadata":{"resourceVersion":"12"},"items":[%b,%b]}'
    heads = head % (deep(obj("a", 11), "managedFields"), json.dumps(obj("b", 2)).encode())
    script = Script(end(10), b"", heads)
    async with informed(script) as informer:
        await asyncio.sleep(1)
        (reflector,) = informer.reflectors
        assert await reflector.list_versions("ns") == (12, {A: ("uid-a", 11), B: ("uid-b", 2)})


# ------------------------------------------------------------------ indexes


def test_an_index_function_that_raises_leaves_the_object_in_the_cache() -> None:
    def by_number(record: Record, meta: Meta) -> Iterable[str]:
        return [str(int(meta.labels["l"]))]

    def labelled(name: str, version: int, label: str) -> bytes:
        labels = {"l": label}
        meta = {"name": name, "namespace": "ns", "resourceVersion": str(version), "uid": name, "labels": labels}
        return line("MODIFIED", {"metadata": meta})

    watching = Watching(Store({"number": by_number, "label": lambda record, meta: meta.labels.values()}))
    store = watching.store
    watching.begin_list()
    feed(watching, labelled("a", 1, "1") + labelled("b", 2, "x") + bookmark(10, ends_list=True))
    assert keys(store) == {"a": 1, "b": 2}
    assert store.keys_by_index("number", "1") == [A]
    assert store.keys_by_index("label", "x") == [B]  # the other index has it
    feed(watching, labelled("a", 11, "y") + labelled("b", 12, "1"))
    assert store.keys_by_index("number", "1") == [B]
    assert [(entry.key, entry.stage) for entry in store.quarantine] == [(A, "cannot be indexed by 'number'")]
    store.add_index("again", by_number)
    assert store.keys_by_index("again", "1") == [B]
    assert store.quarantine.count == 1  # one object, for two reasons
    assert len(store.quarantine.entries) == 2


def test_a_relist_that_shows_the_same_object_does_not_end_what_fails_on_it() -> None:
    watching = Watching(Store({"fails": lambda record, meta: [str(int(meta.labels["l"]))]}))
    watching.begin_list()
    bad = {"metadata": {**obj("a", 1)["metadata"], "labels": {"l": "x"}}}
    feed(watching, listed(bad))
    assert quarantined(watching) == [("a", 1)]
    relist(watching, bad)
    assert quarantined(watching) == [("a", 1)]
    relist(watching)
    assert quarantined(watching) == []


# ------------------------------------------------------------------ reports


def test_a_version_is_reported_once_and_the_next_one_again(caplog: pytest.LogCaptureFixture) -> None:
    quarantine, heard = Quarantine("things"), []
    quarantine.listeners += [lambda entry: heard.append(entry.version), lambda entry: 1 / 0]
    for version in (1, 1, 2, 2):
        quarantine.report(A, version, "u", "fails", ValueError("no"))
    quarantine.report(A, 2, "v", "fails", ValueError())
    assert heard == [1, 2, 2]
    assert quarantine.reported == 3
    assert [str(entry) for entry in quarantine] == ["ns/a fails: ValueError"]
    assert caplog.text.count("it is left out until it changes") == 3
    quarantine.release(A, "other")
    assert quarantine.count == 1
    quarantine.release(A, "fails")
    assert quarantine.count == 0
    quarantine.report(A, 2, "v", "fails", ValueError("no"))
    assert heard == [1, 2, 2, 2]


def test_a_function_that_fails_on_everything_is_not_reported_for_everything(caplog: pytest.LogCaptureFixture) -> None:
    quarantine, heard = Quarantine("things"), []
    quarantine.listeners.append(heard.append)
    for number in range(MAX_REPORTS + 50):
        quarantine.report(Key("ns", str(number)), 1, "u", "fails", ValueError("no"))
    assert len(heard) == MAX_REPORTS
    assert caplog.text.count("for more than 100 objects") == 1
    assert quarantine.count == quarantine.reported == MAX_REPORTS + 50
    quarantine.report(A, 1, "u", "fails otherwise", ValueError("no"))
    assert len(heard) == MAX_REPORTS + 1
    for number in range(60):
        quarantine.forget(Key("ns", str(number)))
    quarantine.report(B, 1, "u", "fails", ValueError("no"))
    assert len(heard) == MAX_REPORTS + 2


def test_each_object_that_is_released_makes_room_for_one_report(caplog: pytest.LogCaptureFixture) -> None:
    quarantine, heard = Quarantine("things"), []
    quarantine.listeners.append(heard.append)
    for number in range(MAX_REPORTS + 1):
        quarantine.report(Key("ns", str(number)), 1, "u", "fails", ValueError("no"))
    assert caplog.text.count("no more are named") == 1
    quarantine.report(Key("ns", "0"), 2, "u", "fails", ValueError("no"))
    assert caplog.text.count("no more are named") == 1
    heard.clear()
    for number in range(2):
        quarantine.release(Key("ns", str(number)), "fails")
    for key in (A, B):
        quarantine.report(key, 1, "u", "fails", ValueError("no"))
    assert [entry.key for entry in heard] == [A]


def test_objects_and_stages_are_apart() -> None:
    quarantine = Quarantine("things")
    for key in (A, B):
        for stage in (READ, "fails"):
            quarantine.report(key, 1, "u", stage, ValueError("no"))
    quarantine.forget(A)
    assert [(entry.key, entry.stage) for entry in quarantine] == [(B, READ), (B, "fails")]
    quarantine.release(B, READ)
    assert quarantine.hides("ns") is None  # it is in the cache, whatever else fails on it
    assert quarantine.unread(B) is None
    quarantine.report(C, 1, "u", READ, ValueError("no"))
    hidden = [quarantine.hides(namespace) for namespace in ("ns", "", None, "other")]
    assert [entry and entry.key for entry in hidden] == [C, C, C, None]


def test_an_object_counts_once_however_often_it_changes() -> None:
    quarantine, heard = Quarantine("things"), []
    quarantine.listeners.append(heard.append)
    for version in range(MAX_REPORTS + 10):
        quarantine.report(A, version, "u", "fails", ValueError("no"))
    assert len(heard) == MAX_REPORTS + 10


# ------------------------------------------------------------------ informers


def spoiled(obj: dict[str, Any]) -> dict[str, Any]:
    if obj.get("data", {}).get("bad"):
        raise ValueError("bad data")
    return obj


async def running(client: Client, spec: CacheSpec) -> tuple[Informer, asyncio.Task[None]]:
    informer = Informer(client.caller, spec)
    task = asyncio.create_task(informer.run())
    await informer.synced.wait()
    return informer, task


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_transform_that_raises_costs_one_object(server: ApiServer, streaming: bool) -> None:
    client = make_client(server)
    await client.create(config_map("good"))
    await client.create(config_map("bad", bad="1"))
    spec = CacheSpec(resource=ConfigMap.resource, transform=spoiled, streaming=streaming)
    informer, task = await running(client, spec)
    lister = Lister(informer, bytes)
    assert lister.get("good", "default") is not None
    with pytest.raises(Unreadable, match=r"configmaps \(changed by spoiled\) default/bad cannot be read: bad data"):
        lister.get("bad", "default")
    for namespace in ("default", None):
        with pytest.raises(Unreadable, match="default/bad"):
            lister.list(namespace)  # never an incomplete list
    assert lister.list("elsewhere") == []
    await client.patch(ConfigMap, "bad", MergePatch({"data": {"bad": None}}), "default")
    await asyncio.sleep(1)
    assert lister.get("bad", "default") is not None
    await ended(task)


async def test_a_read_that_cannot_decode_names_the_object(server: ApiServer) -> None:
    def decode(raw: bytes) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(raw)
        assert "bad" not in decoded.get("data", {}), "a bad one"
        return decoded

    client = make_client(server)
    await client.create(config_map("good", labels={"l": "1"}))
    await client.create(config_map("bad", bad="1"))
    informer, task = await running(client, CacheSpec(resource=ConfigMap.resource))
    informer.add_index("all", lambda record, meta: ["x"])
    lister = Lister(informer, decode)
    assert lister.get("good", "default") is not None
    assert [o["metadata"]["name"] for o in lister.list("default", parse("l"))] == ["good"]
    for read in (lambda: lister.get("bad", "default"), lister.list, lambda: lister.by_index("all", "x")):
        with pytest.raises(Unreadable, match=r"configmaps default/bad cannot be read: a bad one"):
            read()
    await ended(task)


async def test_a_handler_that_raises_disturbs_neither_other_handlers_nor_other_objects(server: ApiServer) -> None:
    def fails(change: Change) -> None:
        if b'"bad"' in change.latest.raw:
            raise ValueError("no")
        seen.append(f"fails {change.key.name}")

    client = make_client(server)
    await client.create(config_map("a", bad="1"))
    informer, task = await running(client, CacheSpec(resource=ConfigMap.resource))
    seen: list[str] = []
    informer.add_handler(fails)  # which is called for what is there
    informer.add_handler(lambda change: seen.append(f"other {change.key.name}"))
    assert [entry.key.name for entry in informer.quarantine] == ["a"]
    seen.clear()
    await client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"l": "1"}}}), "default")
    await client.create(config_map("b"))
    await asyncio.sleep(1)
    assert seen == ["other a", "fails b", "other b"]
    (entry,) = informer.quarantine
    assert entry.stage.startswith("is not handled by ")
    assert entry.stage.endswith("fails")
    assert informer.quarantine.reported == 2
    await client.patch(ConfigMap, "a", MergePatch({"data": {"bad": None}}), "default")
    await asyncio.sleep(1)
    assert informer.quarantine.count == 0
    await client.create(config_map("c", bad="1"))
    await asyncio.sleep(1)
    assert informer.quarantine.count == 1
    await client.delete(ConfigMap, "c", "default")
    await asyncio.sleep(1)
    assert informer.quarantine.count == 0
    await ended(task)


async def test_an_older_change_that_is_delivered_ends_only_what_failed_on_it() -> None:
    """Both states are in the store before the first is delivered: what cannot be indexed is the second."""
    script = Script(end(7), event("ADDED", "a", 8, labels={"l": "1"}) + event("MODIFIED", "a", 9, labels={"l": "x"}))
    index = {"number": lambda record, meta: [str(int(meta.labels["l"]))]}
    async with informed(script, index) as informer:
        await asyncio.sleep(1)
        assert [(entry.key.name, entry.version) for entry in informer.quarantine] == [("a", 9)]


class Garbled:
    """A transport whose answers of one kind are a proxy's page, as long as it is broken."""

    def __init__(self, inner: Transport, *, streams: bool) -> None:
        self._inner, self._streams = inner, streams
        self.broken = True

    async def send(self, request: Request) -> Response:
        if self.broken and not self._streams:
            return Response(200, Headers.of({"Content-Type": "application/json"}), b"<html>busy</html>")
        return await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        inner = await self._inner.stream(request)
        return Page(inner) if self.broken and self._streams else inner


class Page:
    def __init__(self, inner: Stream) -> None:
        self._inner = inner
        self.status, self.headers = 200, inner.headers

    async def read(self) -> bytes:
        return b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"<html>busy</html>\n"

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.mark.parametrize("streams", [True, False])
async def test_an_answer_that_is_no_json_is_a_failure_like_others(server: ApiServer, streams: bool) -> None:
    transport = Garbled(server.transport, streams=streams)
    client = make_client(server, transport)
    informer = Informer(client.caller, CacheSpec(resource=ConfigMap.resource, streaming=streams))
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(20)
    assert not task.done()
    assert "JSON is malformed" in informer.error
    assert 3 <= informer.reflectors[0].health.failures <= 6  # with the usual back-off
    transport.broken = False
    await asyncio.sleep(60)
    assert informer.synced.is_set()
    await ended(task)
