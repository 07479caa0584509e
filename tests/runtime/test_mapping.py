"""From a change to requests: mappers alone, without a manager."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from konverge.cache.quarantine import Quarantine
from konverge.cache.record import Key, Record, receive
from konverge.cache.spec import CacheSpec
from konverge.cache.store import Change, ChangeType
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.resource import Resource
from konverge.runtime import Request, Watches
from konverge.runtime.mapping import OwnedMapper, WatchMapper, guarded

pytestmark = pytest.mark.spec("R-22", "R-23", "R-05")

WEBS = Resource("shop.dev", "v1", "Web", "webs")
KEY = Key("ns", "child")


def owner(name: str, *, api: str = "shop.dev/v1", kind: str = "Web", controller: bool = True) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": controller}


def child(*owners: dict[str, Any], version: int = 1, **data: str) -> Record:
    meta = {"name": "child", "namespace": "ns", "uid": "u", "resourceVersion": str(version), "ownerReferences": owners}
    return receive(json.dumps({"metadata": meta, "data": data}).encode())[1]


def change(old: Record | None, new: Record | None) -> Change:
    kind = ChangeType.ADDED if old is None else ChangeType.DELETED if new is None else ChangeType.UPDATED
    return Change(kind, KEY, old, new)


def owners(old: Record | None, new: Record | None, of: Resource = WEBS) -> list[Request]:
    requests: list[Any] = []
    mapper = OwnedMapper(of, "Child", lambda *given: requests.append(given))
    what = change(old, new)
    mapper(what, Request("ns", "writer"))
    assert all(given[1:] == ("Child", what, Request("ns", "writer")) for given in requests)
    return [given[0] for given in requests]


@pytest.mark.parametrize(
    ("references", "names"),
    [
        ([], []),
        ([owner("a")], ["a"]),
        ([owner("a", api="shop.dev/v2")], ["a"]),  # another version of the same group
        ([owner("a", api="other.dev/v1")], []),
        ([owner("a", api="v1")], []),
        ([owner("a", kind="Site")], []),
        ([owner("a", controller=False)], []),
        ([owner("a", kind="Site", controller=False), owner("b", controller=False), owner("c")], ["c"]),
    ],
)
def test_the_owner_is_the_one_of_our_kind_that_controls(references: list[dict[str, Any]], names: list[str]) -> None:
    assert owners(None, child(*references)) == [Request("ns", name) for name in names]
    assert owners(child(*references), None) == [Request("ns", name) for name in names]


def test_owners_of_the_core_group_and_of_the_cluster() -> None:
    core = child(owner("a", api="v1", kind="Node"))
    assert owners(None, core, Resource("", "v1", "Node", "nodes", namespaced=False)) == [Request("", "a")]
    assert owners(None, core, Resource("", "v1", "Node", "nodes")) == [Request("ns", "a")]


def test_when_the_owner_changes_both_are_queued() -> None:
    none, a, b = child(), child(owner("a")), child(owner("b"))
    assert owners(a, b) == [Request("ns", "b"), Request("ns", "a")]
    assert owners(a, a) == [Request("ns", "a")]
    assert owners(a, none) == [Request("ns", "a")]
    assert owners(none, b) == [Request("ns", "b")]
    assert owners(none, none) == []


# ------------------------------------------------------------------ the author's functions


class Cache:
    """What a mapper knows of an informer."""

    def __init__(self) -> None:
        self.spec = CacheSpec(resource=ConfigMap.resource)
        self.quarantine = Quarantine()
        self.records: dict[Key, Record] = {}

    def get(self, key: Key) -> Record | None:
        return self.records.get(key)


def named(cm: ConfigMap) -> Iterable[Request]:
    for name in cm.data.get("for", "").split():
        if name == "!":
            raise ValueError("no name")
        yield Request("ns", name)


class Mapped:
    def __init__(self, predicate: Any = None, **watch: Any) -> None:
        self.cache = Cache()
        self.names: list[str] = []
        self.enqueued: list[tuple[Any, ...]] = []
        self.calls = 0
        self.watch = Watches(ConfigMap, when=predicate, **(watch or {"requests": self._map}))
        self.mapper = WatchMapper("c", self.watch, self.cache, "caches", self._enqueue)  # type: ignore[arg-type]

    def _enqueue(self, request: Request, *why: Any) -> None:
        self.names.append(request.name)
        self.enqueued.append(why)

    def _map(self, cm: ConfigMap) -> Iterable[Request]:
        self.calls += 1
        return named(cm)

    def see(self, old: Record | None, new: Record | None) -> list[str]:
        self.mapper(change(old, new), None)
        names, self.names = self.names, []
        return names

    @property
    def quarantined(self) -> int:
        return self.cache.quarantine.count


def of(text: str, version: int = 1) -> Record:
    return child(version=version, **{"for": text})


@pytest.mark.virtual
async def test_old_and_new_state_are_mapped_once_each() -> None:
    mapped = Mapped()
    assert mapped.see(None, of("a b")) == ["a", "b"]
    assert mapped.see(of("a b"), of("b c", 2)) == ["a", "b", "c"]
    assert mapped.see(of("b c", 2), None) == ["b", "c"]
    assert (mapped.calls, mapped.quarantined) == (4, 0)


@pytest.mark.virtual
async def test_a_request_comes_with_the_kind_the_change_and_its_writer() -> None:
    mapped = Mapped()
    what = change(None, of("a"))
    mapped.mapper(what, Request("ns", "writer"))
    assert mapped.enqueued == [("ConfigMap", what, Request("ns", "writer"))]


@pytest.mark.virtual
async def test_a_lookup_gets_the_caches() -> None:
    def lookup(cm: ConfigMap, caches: Any) -> Iterable[Request]:
        return [Request("ns", f"{name}-{caches}") for name in cm.data["for"].split()]

    assert Mapped(lookup=lookup).see(None, of("a b")) == ["a-caches", "b-caches"]


@pytest.mark.virtual
async def test_a_retry_comes_about_a_minute_later_as_a_change_of_the_present_state() -> None:
    delays = []
    for _ in range(20):
        mapped = Mapped()
        mapped.see(None, of("!"))
        mapped.cache.records[KEY] = present = of("a", 2)
        began = asyncio.get_running_loop().time()
        while not mapped.names:
            await asyncio.sleep(0.5)
        delays.append(asyncio.get_running_loop().time() - began)
        assert mapped.enqueued == [("ConfigMap", Change(ChangeType.UPDATED, KEY, present, present), None)]
    assert 54 <= min(delays) < max(delays) <= 66.5
    assert max(delays) - min(delays) > 3


@pytest.mark.virtual
async def test_the_predicate_is_asked_first() -> None:
    mapped = Mapped(predicate=lambda old, new: new.metadata.resource_version == "2")
    assert mapped.see(None, of("a")) == []
    assert mapped.see(None, of("a", 2)) == ["a"]
    assert mapped.calls == 1


@pytest.mark.virtual
async def test_a_state_that_cannot_be_mapped_is_reported_when_it_is_the_latest() -> None:
    mapped = Mapped()
    assert mapped.see(None, of("a ! b")) == ["a"]
    assert (mapped.quarantined, mapped.cache.quarantine.reported) == (1, 1)
    assert mapped.see(of("a ! b"), of("c", 2)) == ["a", "c"]
    assert (mapped.quarantined, mapped.cache.quarantine.reported) == (0, 1)
    assert mapped.see(of("c", 2), of("!", 3)) == ["c"]
    assert mapped.cache.quarantine.reported == 2
    assert mapped.see(of("!", 4), None) == []
    assert mapped.cache.quarantine.reported == 3
    mapped.mapper.stop()


@pytest.mark.virtual
async def test_an_old_state_that_cannot_be_mapped_is_no_news() -> None:
    mapped = Mapped()
    assert mapped.see(of("!"), of("c", 2)) == ["c"]
    assert mapped.cache.quarantine.reported == 0
    for _ in range(2):
        assert mapped.see(of("c", 2), of("!", 3)) == ["c"]
    assert (mapped.quarantined, mapped.cache.quarantine.reported) == (1, 1)
    mapped.mapper.stop()


@pytest.mark.virtual
async def test_a_mapper_that_first_fails_after_the_end_is_not_called_again() -> None:
    mapped = Mapped()
    mapped.cache.records[KEY] = of("!")
    mapped.mapper.stop()
    mapped.see(None, of("!"))
    await asyncio.sleep(600)
    assert mapped.calls == 1


@pytest.mark.virtual
async def test_a_mapper_is_called_again_as_long_as_it_fails_and_the_object_is_there() -> None:
    mapped = Mapped()
    mapped.cache.records[KEY] = of("!")
    mapped.see(None, of("!"))
    mapped.see(None, of("!"))
    assert mapped.calls == 2
    await asyncio.sleep(67)
    assert mapped.calls == 3  # one timer for all that failed
    await asyncio.sleep(67)
    assert mapped.calls == 4
    mapped.cache.records[KEY] = of("a", 2)
    await asyncio.sleep(67)
    assert (mapped.calls, mapped.names, mapped.quarantined) == (5, ["a"], 0)
    await asyncio.sleep(600)
    assert mapped.calls == 5
    mapped.see(None, of("!"))
    del mapped.cache.records[KEY]
    await asyncio.sleep(600)
    assert mapped.calls == 6


@pytest.mark.virtual
async def test_after_the_end_no_mapper_is_called_again() -> None:
    mapped = Mapped()
    mapped.cache.records[KEY] = of("!")
    mapped.see(None, of("!"))
    mapped.mapper.stop()
    mapped.see(None, of("!"))
    await asyncio.sleep(600)
    assert mapped.calls == 2


def test_a_predicate_that_fails_says_yes_and_is_reported() -> None:
    quarantine = Quarantine()
    predicate = guarded(lambda change: 1 // (change.latest.version - 1) > 1, quarantine, "fails")
    assert predicate(change(None, of("a"))) is True
    assert [(entry.key, entry.stage, entry.version) for entry in quarantine] == [(KEY, "fails", 1)]
    assert predicate(change(None, of("a", 3))) is False
    assert quarantine.count == 0


@pytest.mark.virtual
async def test_a_failure_names_what_failed_and_for_which_controller() -> None:
    def picky(old: ConfigMap | None, new: ConfigMap | None) -> bool:
        raise ValueError("no")

    mapped = Mapped(predicate=picky)
    assert mapped.see(None, of("!")) == []
    assert sorted(entry.stage for entry in mapped.cache.quarantine) == [
        "cannot be judged by the predicate of c",
        "cannot be mapped to requests of c",
    ]
    assert {(entry.key, entry.version, entry.uid) for entry in mapped.cache.quarantine} == {(KEY, 1, "u")}
    mapped.mapper.stop()
