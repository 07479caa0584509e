"""What several steps of a reconcile read: each state of an object is decoded once, and not in every step again.

A step always sees what the cache has at that moment, also after it waited for something: what is kept from an earlier
step is used only while the cache has the same record. The steps share these objects, so none of them changes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, TypeVar

from konverge.cache.record import Key, Record
from konverge.objects import Object
from konverge.runtime.base_context import BaseContext

K = TypeVar("K", bound=Object)


class Reads:
    """Of one reconcile."""

    def __init__(self, ctx: BaseContext, namespace: str) -> None:
        self._ctx = ctx
        self._namespace = namespace
        self._objects: dict[tuple[type[Object], str], tuple[Record, Any]] = {}
        self._lists: dict[tuple[type[Object], str, str], tuple[list[Record | None], Any]] = {}

    async def get(self, kind: type[K], name: str) -> K | None:
        """As `ctx.get`."""
        lister = self._ctx.caches.covering(kind, Key(self._namespace, name))
        record = lister.raw(name, self._namespace) if lister is not None else None
        if record is None:
            return await self._ctx.get(kind, name)
        known = self._objects.get((kind, name))
        if known is None or known[0] is not record:
            known = self._objects[kind, name] = record, await self._ctx.get(kind, name)
        found: K | None = known[1]
        return found

    def indexed(self, kind: type[K], index: str, value: str) -> Sequence[K]:
        """As `ctx.indexed`."""
        lister = self._ctx.caches.lister(kind)
        if lister is None:
            return self._ctx.indexed(kind, index, value)
        records = [lister.raw(key.name, key.namespace) for key in sorted(lister.keys_by_index(index, value))]
        known = self._lists.get((kind, index, value))
        if known is None or not _same(known[0], records):
            known = self._lists[kind, index, value] = records, self._ctx.indexed(kind, index, value)
        found: Sequence[K] = known[1]
        return found


def _same(known: list[Record | None], records: list[Record | None]) -> bool:
    return len(known) == len(records) and all(map(is_, known, records))
