"""The store: the present state of one resource, with indexes, and the changes that each step makes.

Pure: no I/O, no clock. Every method that takes objects in returns the `Change`s it made, in order; an informer passes
those to its handlers. No change can be missed: a relist is a `Replacement` that is compared with the stored state, so
an object that was deleted while no watch was open comes out as a DELETED change with its last known state.

Upstream: threadSafeMap and DeltaFIFO (client-go's tools/cache).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeVar

import msgspec

from konverge.cache.quarantine import Quarantine
from konverge.cache.record import Key, Meta, Record

IndexFunction = Callable[[Record, Meta], Iterable[str]]
"""The index values of an object. Decode `record.raw` for more than metadata."""


class ChangeType(Enum):
    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"


class Change(msgspec.Struct, gc=False):
    """One object became another. `old` is None for ADDED, `new` is None for DELETED."""

    type: ChangeType
    key: Key
    old: Record | None
    new: Record | None
    initial: bool = False
    """Part of a first list: the object did not change, it was only not known before."""
    listed: bool = False
    """Found by comparing with a later list: there may have been states between the two without an event."""
    _meta: Meta | None = None

    @property
    def meta(self) -> Meta:
        """The metadata of the latest state: at hand while the change is delivered, decoded again later."""
        return self._meta or self.latest.meta

    def forget_meta(self) -> None:
        """All handlers were called: a change that is kept, as a reason to reconcile, holds no more than records."""
        self._meta = None

    @property
    def latest(self) -> Record:
        """The new state, or the last known one of a deleted object."""
        record = self.new or self.old
        assert record is not None
        return record


def by_owner(record: Record, meta: Meta) -> Iterable[str]:
    """An index function: the uid of every owner."""
    return [owner.uid for owner in meta.owner_references]


def by_label(name: str) -> IndexFunction:
    """An index function: the value of one label."""

    def values(record: Record, meta: Meta) -> Iterable[str]:
        value = meta.labels.get(name)
        return () if value is None else (value,)

    return values


class _Index:
    """value -> keys, and key -> values, so that an update can remove old values without decoding the old object."""

    __slots__ = ("function", "keys", "stage", "values")

    def __init__(self, name: str, function: IndexFunction) -> None:
        self.function = function
        self.stage = f"cannot be indexed by {name!r}"
        self.keys: dict[str, dict[Key, None]] = {}
        self.values: dict[Key, tuple[str, ...]] = {}

    def put(self, key: Key, record: Record, meta: Meta, quarantine: Quarantine) -> None:
        try:
            returned = self.function(record, meta)
            if returned.__class__ is str:
                raise TypeError(f"the index function returned the text {returned!r}: return a list of texts")
            values = tuple(returned)
            hash(values)  # what cannot be a key of the index fails here, and not below
        except Exception as error:  # the author's function: the object stays in the cache, under no value of this index
            values = ()
            quarantine.report(key, record.version, record.uid, self.stage, error)
        else:
            if quarantine.entries:
                quarantine.release(key, self.stage)
        present = self.values.get(key)
        if present is not None:
            if present == values:
                return
            self.drop(key)
        if values:
            self.values[key] = values
            for value in values:
                self.keys.setdefault(value, {})[key] = None

    def drop(self, key: Key) -> None:
        for value in self.values.pop(key, ()):
            keys = self.keys[value]
            keys.pop(key, None)
            if not keys:
                del self.keys[value]


class Store:
    """All objects of one resource that a watch covers.

    >>> store = Store()
    >>> store.count
    0
    """

    def __init__(
        self, indexes: Mapping[str, IndexFunction] | None = None, quarantine: Quarantine | None = None
    ) -> None:
        self.quarantine = Quarantine() if quarantine is None else quarantine
        self._spaces: dict[str, dict[str, Record]] = {}
        self._indexes = {name: _Index(name, function) for name, function in (indexes or {}).items()}
        self.count = 0
        self.version = 0
        """The newest resourceVersion known to be reflected here, objects and bookmarks alike."""

    # -------------------------------------------------------------- reading

    def get(self, key: Key) -> Record | None:
        namespace, name = key
        space = self._spaces.get(namespace)
        return None if space is None else space.get(name)

    def items(self, namespace: str | None = None) -> Iterator[tuple[Key, Record]]:
        """All objects, or those of one namespace. Safe while the store changes: it iterates over a copy."""
        if namespace is not None:
            space = self._spaces.get(namespace, {})
            return iter([(Key(namespace, name), record) for name, record in space.items()])
        return iter([(Key(ns, name), record) for ns, space in self._spaces.items() for name, record in space.items()])

    def keys_by_index(self, index: str, value: str) -> list[Key]:
        try:
            return list(self._indexes[index].keys.get(value, ()))
        except KeyError:
            declared = ", ".join(sorted(self._indexes)) or "none"
            raise KeyError(
                f"no index {index!r} (declared: {declared}); declare it where the informer is made"
            ) from None

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Declare an index; the objects in the store are indexed at once."""
        index = self._indexes[name] = _Index(name, function)
        for key, record in self.items():
            index.put(key, record, record.meta, self.quarantine)

    # -------------------------------------------------------------- changing

    def apply(self, key: Key, record: Record, meta: Meta, *, initial: bool = False) -> Change | None:
        """An object was added or modified. The stored version again, or an older one, changes nothing."""
        namespace, name = key
        space = self._spaces.get(namespace)
        if space is None:
            space = self._spaces[namespace] = {}
        old = space.get(name)
        if old is not None and old.uid == record.uid and 0 < record.version <= old.version:
            return None
        space[name] = record
        for index in self._indexes.values():
            index.put(key, record, meta, self.quarantine)
        if old is None:
            self.count += 1
            return Change(ChangeType.ADDED, key, None, record, initial, _meta=meta)
        return Change(ChangeType.UPDATED, key, old, record, initial, _meta=meta)

    def delete(self, key: Key, *, listed: bool = False) -> Change | None:
        """An object is gone; `listed`: a later list does not have it."""
        space = self._spaces.get(key.namespace)
        old = space.pop(key.name, None) if space is not None else None
        if old is None or space is None:
            return None
        if not space:
            del self._spaces[key.namespace]
        for index in self._indexes.values():
            index.drop(key)
        self.count -= 1
        return Change(ChangeType.DELETED, key, old, None, listed=listed)

    def replacement(self) -> Replacement:
        return Replacement(self)


SLICE = 500
"""Objects handled between two pauses of a large list: the loop is never blocked for more than a millisecond or two."""


class Replacement(msgspec.Struct):
    """A list in progress. Nothing is visible until `commit`, which yields the difference to the stored state.

    Objects that did not change keep the bytes they had, so a relist of an unchanged collection needs no second copy.
    """

    store: Store
    seen: dict[Key, Record] = msgspec.field(default_factory=dict)
    unread: dict[Key, str] = msgspec.field(default_factory=dict)
    """Key -> uid of listed objects that cannot be read: what is stored of them stays."""

    def add(self, key: Key, record: Record) -> None:
        known = self.store.get(key)
        if known is not None and known.raw == record.raw:
            record = known
        self.seen[key] = record

    def drop(self, key: Key) -> None:
        """An object was deleted while the list was in progress."""
        self.seen.pop(key, None)
        self.unread.pop(key, None)

    def commit(self, version: int) -> Iterator[list[Change]]:
        """Replace the stored state, in slices. Deletes come first: a name that was freed and reused is both."""
        for stored in _slices(list(self.store.items())):
            gone = [key for key, record in stored if self._is_gone(key, record)]
            yield [change for key in gone if (change := self.store.delete(key, listed=True))]
        for listed in _slices(list(self.seen.items())):
            yield [change for key, record in listed if (change := self._put(key, record))]
        self.store.version = version
        self.seen.clear()

    def _put(self, key: Key, record: Record) -> Change | None:
        known = self.store.get(key)
        if known is record:
            return None
        if known is not None and known.version >= record.version:
            # The server's history went back (a restored backup): what it lists now counts.
            self.store.delete(key)
        change = self.store.apply(key, record, record.meta)
        return change if known is None else Change(ChangeType.UPDATED, key, known, record, listed=True)

    def _is_gone(self, key: Key, record: Record) -> bool:
        listed = self.seen.get(key)
        uid = self.unread.get(key) if listed is None else listed.uid
        return uid != record.uid


T = TypeVar("T")


def _slices(items: list[T]) -> Iterator[list[T]]:
    return (items[start : start + SLICE] for start in range(0, len(items), SLICE))
