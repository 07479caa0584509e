"""The lister: typed reads from a cache. It never uses the network, and never returns the cache's own memory: every
object is decoded for its reader, so that changing it changes nothing else.

What cannot be read is never left out in silence: a controller that takes an object for absent may create it again, or
delete what depends on it. So a read that concerns such an object raises `Unreadable`, and names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from konverge.cache.informer import Informer
from konverge.cache.quarantine import Quarantined, Unreadable
from konverge.cache.record import Key, Record, new_key
from konverge.objects.labels import Selector

T = TypeVar("T")

Keys: TypeAlias = list[Key]


class Lister(Generic[T]):
    """Reads of one resource.

    `decode` turns the JSON of an object into what is returned; `lister.raw` gives the record itself. `indexes` are the
    indexes that may be read, with the names that they have in the informer; by default all, under their own names.
    """

    def __init__(
        self, informer: Informer, decode: Callable[[bytes], T], indexes: Mapping[str, str] | None = None
    ) -> None:
        self.informer = informer
        self._decode = decode
        self._indexes = indexes

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object as the cache has it, or None."""
        key, informer = new_key((namespace, name)), self.informer
        if informer.quarantine.entries and (entry := informer.quarantine.unread(key)):
            raise self._unreadable(entry)
        record = informer.get(key)
        if record is None:
            return None
        try:
            return self._decode(record.raw)
        except Exception as error:
            raise self._unreadable_because(key, error) from error

    def list(self, namespace: str | None = None, selector: Selector | None = None) -> Sequence[T]:
        """All objects, or those of a namespace and with matching labels, sorted by name."""
        if entry := self.informer.quarantine.hides(namespace):
            raise self._unreadable(entry)
        return self._decoded(sorted(self._select(namespace, selector)))

    def by_index(self, index: str, value: str) -> Sequence[T]:
        """The objects under a value of a declared index."""
        keys = sorted(self.keys_by_index(index, value))
        return self._decoded([(key, record) for key in keys if (record := self.informer.get(key)) is not None])

    def has_index(self, index: str) -> bool:
        return self._indexes is None or index in self._indexes

    def keys_by_index(self, index: str, value: str) -> Keys:
        """The keys under a value of a declared index. LookupError for an index that was not declared."""
        if self._indexes is None:
            return self.informer.keys_by_index(index, value)
        here = self._indexes.get(index)
        if here is None:
            declared = ", ".join(sorted(self._indexes)) or "none"
            kind = self.informer.spec.resource.kind
            raise LookupError(
                f"{kind} has no index {index!r} in this controller (declared: {declared}): add it to "
                f"indexes={{{kind}: {{{index!r}: …}}}}"
            )
        return self.informer.keys_by_index(here, value)

    def raw(self, name: str, namespace: str = "") -> Record | None:
        return self.informer.get(Key(namespace, name))

    def _decoded(self, items: Iterable[tuple[Key, Record]]) -> Sequence[T]:
        decode, key = self._decode, Key("", "")
        objects = []
        try:
            for item in items:
                key = item[0]
                objects.append(decode(item[1].raw))
        except Exception as error:
            raise self._unreadable_because(key, error) from error
        return objects

    def _unreadable_because(self, key: Key, error: Exception) -> Unreadable:
        return Unreadable(f"{self.informer.spec} {key} cannot be read: {error}")

    def _unreadable(self, entry: Quarantined) -> Unreadable:
        return Unreadable(f"{self.informer.spec} {entry}")

    def _select(self, namespace: str | None, selector: Selector | None) -> Iterator[tuple[Key, Record]]:
        items = self.informer.items(namespace)
        if selector is None:
            return items
        return ((key, record) for key, record in items if selector.matches(record.meta.labels))
