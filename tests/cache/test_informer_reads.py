"""The form in which an informer keeps objects, its indexes, and waiting until it shows what was written."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.cache import CacheSpec, CacheTooLarge, Change, Informer, Key, Lister, by_label
from konverge.cache.record import Meta, Record
from tests.cache.scripted import CONFIG_MAPS, Script, end, informed, line, names

pytestmark = pytest.mark.virtual


def by_name(record: Record, meta: Meta) -> list[str]:
    return [meta.name]


# ------------------------------------------------------------------ form


@pytest.mark.spec("R-10")
async def test_an_object_is_kept_as_the_server_wrote_it() -> None:
    """Without a projection or a transform: a number with its zeros, the fields in their order."""
    written = b'{"spec":{"b":1.50,"a":"\\u00e9"},"metadata":{"name":"a","namespace":"shop","resourceVersion":"3"}}'
    async with informed(Script(b'{"type":"ADDED","object":' + written + b"}\n" + end(7))) as informer:
        await informer.synced.wait()
        record = informer.get(Key("shop", "a"))
        assert record is not None
        assert record.raw == written


@pytest.mark.parametrize(
    ("spec", "selective"),
    [
        ({}, False),
        ({"label_selector": "a=b"}, True),
        ({"field_selector": "a=b"}, True),
        ({"namespaces": ("a",)}, False),
    ],
)
def test_a_selector_makes_a_cache_selective(spec: dict[str, Any], selective: bool) -> None:
    assert CacheSpec(resource=CONFIG_MAPS, **spec).selective is selective


@pytest.mark.spec("R-11")
async def test_a_cache_may_hold_exactly_its_bound_and_grow_later() -> None:
    two = line("ADDED", "a", 1) + line("ADDED", "b", 2) + end(3)
    async with informed(Script(two, line("ADDED", "c", 4)), max_objects=2) as informer:
        await informer.synced.wait()
        await asyncio.sleep(1)
        assert (informer.count, names(informer)) == (3, {"a", "b", "c"})
    with pytest.raises(ExceptionGroup) as caught:
        await Informer(Script(two), CacheSpec(resource=CONFIG_MAPS, max_objects=1)).run()  # type: ignore[arg-type]
    assert caught.group_contains(CacheTooLarge)


@pytest.mark.spec("R-12")
async def test_a_cache_of_several_namespaces_is_as_current_as_its_oldest() -> None:
    script = Script(line("ADDED", "a", 3, namespace="x") + end(5), line("ADDED", "b", 3, namespace="y") + end(9))
    async with informed(script, namespaces=("x", "y")) as informer:
        await informer.synced.wait()
        assert (informer.version, informer.count, informer.answered.is_set()) == (5, 2, True)
        assert [key.name for key, _ in informer.items("y")] == ["b"]
        assert list(informer.items("z")) == []


# ------------------------------------------------------------------ handlers and indexes


async def test_changes_are_read_in_batches_only_while_every_handler_is_busy() -> None:
    async with informed(Script(end(3))) as informer:
        assert not informer._is_busy(), "without a handler there is no reason to wait"
        busy = {"a": True, "b": False}
        remove = [informer.add_handler(lambda change: None, lambda name=name: busy[name]) for name in busy]  # type: ignore[misc]
        assert not informer._is_busy()
        busy["b"] = True
        assert informer._is_busy()
        remove[0]()
        busy["a"] = False
        assert informer._is_busy()


@pytest.mark.spec("R-10")
async def test_indexes_of_one_name_are_shared_only_when_their_function_is_the_same() -> None:
    script = Script(line("ADDED", "a", 1, labels={"x": "1"}) + end(3))
    async with informed(script, {"key": by_name}) as informer:
        await informer.synced.wait()
        other = informer.ensure_index("key", label := by_label("x"))
        assert informer.ensure_index("key", by_name) == "key"
        third = informer.ensure_index("key", by_label("y"))
        assert len({"key", other, third}) == 3
        assert informer.ensure_index("key", label) == other
        calls: list[str] = []

        def noted(record: Record, meta: Meta) -> list[str]:
            calls.append(meta.name)
            return []

        assert informer.ensure_index("noted", noted) == informer.ensure_index("noted", noted) == "noted"
        assert calls == ["a"], "objects are indexed once, however many ask for the index"
        assert informer.keys_by_index("key", "a") == informer.keys_by_index(other, "1") == [Key("shop", "a")]
        assert informer.keys_by_index(third, "1") == []
        lister = Lister(informer, json.loads, {"mine": other})
        assert lister.keys_by_index("mine", "1") == [Key("shop", "a")]
        assert [obj["metadata"]["name"] for obj in lister.by_index("mine", "1")] == ["a"]
        assert (lister.has_index("mine"), lister.has_index("key")) == (True, False)
        with pytest.raises(LookupError, match=r"has no index 'key' .*declared: mine\)"):
            lister.keys_by_index("key", "a")
        with pytest.raises(LookupError, match=r"declared: none\)"):
            Lister(informer, json.loads, {}).keys_by_index("key", "a")
        with pytest.raises(LookupError, match=r"declared: a, b\)"):
            Lister(informer, json.loads, {"b": other, "a": other}).keys_by_index("key", "a")
        assert Lister(informer, json.loads).has_index("key")


@pytest.mark.spec("R-10")
async def test_a_lister_sorts_and_selects() -> None:
    objects = [line("ADDED", name, 1, namespace=namespace) for namespace, name in (("z", "b"), ("a", "c"), ("z", "a"))]
    async with informed(Script(b"".join(objects) + end(3))) as informer:
        await informer.synced.wait()
        lister = Lister(informer, json.loads)
        listed = [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in lister.list()]
        assert listed == [("a", "c"), ("z", "a"), ("z", "b")]
        assert [obj["metadata"]["name"] for obj in lister.list("z")] == ["a", "b"]
        informer.add_index("name", by_name)
        assert [obj["metadata"]["name"] for obj in lister.by_index("name", "c")] == ["c"]
        informer.add_index("all", lambda record, meta: ["x"])
        by_index = [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in lister.by_index("all", "x")]
        assert by_index == listed, "in the same order"
        assert lister.raw("c", "a") is informer.get(Key("a", "c"))
        assert lister.raw("c", "z") is None


# ------------------------------------------------------------------ waiting


async def waits(waiting: asyncio.Task[None]) -> bool:
    await asyncio.sleep(0.01)
    return not waiting.done()


class Opened(Script):
    """Lets the test push lines into the last stream."""

    async def push(self, data: bytes) -> None:
        (reflector,) = self.informer.reflectors
        await reflector._feed(data)
        await asyncio.sleep(0)

    informer: Informer


@pytest.mark.spec("R-12")
async def test_waiting_for_a_deletion_ends_when_the_object_is_gone_or_going_or_another() -> None:
    for event in (
        line("DELETED", "a", 9),
        line("MODIFIED", "a", 9, deletionTimestamp="2026-01-01T00:00:00Z"),
        line("MODIFIED", "a", 9, uid="another"),
    ):
        script = Opened(line("ADDED", "a", 3) + end(7))
        async with informed(script) as informer:
            await informer.synced.wait()
            await asyncio.sleep(0.01)
            script.informer = informer
            waiting = asyncio.create_task(informer.wait_for_deletion(Key("shop", "a"), "a", informer.mark("shop")))
            await script.push(line("MODIFIED", "a", 8))
            assert await waits(waiting)
            await script.push(event)
            assert not await waits(waiting)
            assert informer._waiters == []


@pytest.mark.spec("R-12")
async def test_a_waiter_may_see_several_changes_before_it_runs() -> None:
    script = Opened(end(7))
    async with informed(script) as informer:
        await asyncio.sleep(0.01)
        script.informer = informer
        waiting = asyncio.create_task(informer.wait_for_version(Key("shop", "a"), 8))
        await asyncio.sleep(0)
        await script.push(line("ADDED", "a", 8) + line("BOOKMARK", "", 9) + line("ADDED", "b", 10))
        await waiting
        assert names(informer) == {"a", "b"}


@pytest.mark.spec("R-12")
async def test_waiting_for_a_version_ends_exactly_with_it_and_is_forgotten_when_cancelled() -> None:
    script = Opened(end(7))
    async with informed(script) as informer:
        await informer.synced.wait()
        await asyncio.sleep(0.01)
        script.informer = informer
        await asyncio.wait_for(informer.wait_for_version(Key("shop", "a"), 7), 0.01)
        waiting = [asyncio.create_task(informer.wait_for_version(Key("shop", "a"), version)) for version in (9, 10)]
        await script.push(line("ADDED", "b", 8))
        assert await waits(waiting[0])
        await script.push(line("ADDED", "c", 9))
        assert not await waits(waiting[0])
        assert await waits(waiting[1])
        waiting[1].cancel()
        await asyncio.wait(waiting)
        assert informer._waiters == []


@pytest.mark.spec("R-09")
async def test_a_handler_sees_every_change_in_order_and_a_removed_one_none() -> None:
    changes = line("ADDED", "a", 8) + line("MODIFIED", "a", 9) + line("DELETED", "a", 10)
    script = Opened(end(7))
    async with informed(script) as informer:
        await informer.synced.wait()
        await asyncio.sleep(0.01)
        script.informer = informer
        seen: list[Change] = []
        removed: list[Change] = []
        remove = informer.add_handler(removed.append)
        informer.add_handler(seen.append)
        remove()
        await script.push(changes)
        assert [change.type.value for change in seen] == ["added", "updated", "deleted"]
        assert not any(change.initial for change in seen)
        assert removed == []
        assert seen[0].meta is not seen[0].meta, "a change that is kept does not hold the metadata as well"


@pytest.mark.spec("R-11")
async def test_a_cache_of_everything_covers_every_namespace() -> None:
    async with informed(Script(end(3))) as informer:
        assert informer.covers(["shop"])
        assert informer.covers([])
