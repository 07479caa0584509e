"""The steps of a reconcile share what they read, and always see what the cache has at that moment."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.cache.record import Key, Record
from konverge.objects import to_json
from konverge.objects.codec import from_json
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.operators.nacos.steps.reads import Reads

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-78")]


class Cached:
    """A context and its only cache: ConfigMaps, under one value of an index."""

    def __init__(self) -> None:
        self.records: dict[Key, Record] = {}
        self.covers = True
        self.caches = self

    def put(self, name: str, value: str) -> None:
        obj = ConfigMap(metadata=ObjectMeta(name=name, namespace="shop"), data={"a": value})
        self.records[Key("shop", name)] = Record(to_json(obj), 1, "u", 1)

    def lister(self, kind: type[Any]) -> Cached | None:
        return self if self.covers else None

    def covering(self, kind: type[Any], key: Key) -> Cached | None:
        return self.lister(kind)

    def raw(self, name: str, namespace: str) -> Record | None:
        return self.records.get(Key(namespace, name))

    def keys_by_index(self, index: str, value: str) -> list[Key]:
        return [*reversed(self.records)]

    async def get(self, kind: type[Any], name: str) -> ConfigMap | None:
        record = self.records.get(Key("shop", name))
        return None if record is None else from_json(ConfigMap, record.raw)

    def indexed(self, kind: type[Any], index: str, value: str) -> list[ConfigMap]:
        return [from_json(ConfigMap, self.records[key].raw) for key in sorted(self.records)]


def scene() -> tuple[Cached, Reads]:
    cached = Cached()
    cached.put("a", "1")
    return cached, Reads(cached, "shop")  # type: ignore[arg-type]


async def test_an_object_is_decoded_once_for_each_state_of_it() -> None:
    cached, reads = scene()
    first = await reads.get(ConfigMap, "a")
    assert first is not None
    assert await reads.get(ConfigMap, "a") is first
    cached.put("a", "1")
    again = await reads.get(ConfigMap, "a")
    assert again is not first
    assert again == first
    cached.put("a", "2")
    changed = await reads.get(ConfigMap, "a")
    assert changed is not None
    assert changed.data == {"a": "2"}


async def test_an_object_that_is_gone_or_new_is_seen_as_such() -> None:
    cached, reads = scene()
    assert await reads.get(ConfigMap, "a") is not None
    assert await reads.get(ConfigMap, "b") is None
    cached.records.clear()
    cached.put("b", "1")
    assert await reads.get(ConfigMap, "a") is None
    assert await reads.get(ConfigMap, "b") is not None


async def test_a_list_is_read_again_when_any_of_it_is_another() -> None:
    cached, reads = scene()
    first = reads.indexed(ConfigMap, "app", "shop/x")
    assert reads.indexed(ConfigMap, "app", "shop/x") is first
    cached.put("b", "2")
    assert [item.data["a"] for item in reads.indexed(ConfigMap, "app", "shop/x")] == ["1", "2"]
    cached.put("a", "3")
    assert [item.data["a"] for item in reads.indexed(ConfigMap, "app", "shop/x")] == ["3", "2"]
    del cached.records[Key("shop", "b")]
    assert [item.data["a"] for item in reads.indexed(ConfigMap, "app", "shop/x")] == ["3"]


async def test_what_no_cache_has_is_read_each_time() -> None:
    cached, reads = scene()
    cached.covers = False
    first = await reads.get(ConfigMap, "a")
    assert first is not None
    assert await reads.get(ConfigMap, "a") is not first
    assert reads.indexed(ConfigMap, "app", "shop/x") is not reads.indexed(ConfigMap, "app", "shop/x")
