"""One resource's objects: the present state, its keys in order, its recent changes and its watchers.

Keys are `namespace/name` (or `name`), and their order is that of the real store: by the bytes of the whole key. The
sorted list is updated when a client lists, so that a burst of creates pays for one sort.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Protocol

from konverge.apiserver.storage.records import Event, Record

_MOST_INSERTED = 64  # up to so many new keys are cheaper to insert singly than to sort again (measured)


class Watcher(Protocol):
    """Receives changes, synchronously: it must not block and must not raise."""

    def deliver(self, event: Event) -> None: ...


class Table:
    """The state of one resource. Only the store writes to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.records: dict[str, Record] = {}
        self.revision = 0
        """The revision of the newest change."""
        self.events: deque[Event] = deque()
        self.watchers: dict[str, dict[Watcher, None]] = {}
        """By scope: "" (all), "namespace/", or one key. So a watch of one object costs others nothing."""
        self.subscribers: list[Callable[[Event], None]] = []
        self._keys: list[str] = []
        self._new: list[str] = []

    def apply(self, event: Event) -> None:
        """Make a change the present state."""
        self.revision = event.revision
        self.events.append(event)
        if event.record is None:
            del self.records[event.key]
            self._sort()
            del self._keys[bisect_left(self._keys, event.key)]
        else:
            if event.old is None:
                self._new.append(event.key)
            self.records[event.key] = event.record

    def revert(self, event: Event, durable: int) -> None:
        """Undo the newest change: it is not on disk. `durable` is the newest revision that is."""
        newest = self.events.pop()
        assert newest is event
        self.revision = self.events[-1].revision if self.events else min(self.revision, durable)
        if event.old is None:
            del self.records[event.key]
            self._sort()
            del self._keys[bisect_left(self._keys, event.key)]
            return
        if event.record is None:
            self._new.append(event.key)
        self.records[event.key] = event.old

    def restore(self, record: Record) -> None:
        """Add a record at start, without an event."""
        self.records[record.key] = record
        self._new.append(record.key)

    def keys(self, prefix: str = "", after: str = "") -> list[str]:
        """The sorted keys below a prefix (empty, or ending in `/`), from `after` on."""
        self._sort()
        start = bisect_left(self._keys, max(prefix, after))
        end = bisect_left(self._keys, prefix[:-1] + "0") if prefix else len(self._keys)  # "0" comes after "/"
        return self._keys[start:end]

    def watch(self, scope: str, watcher: Watcher) -> Callable[[], None]:
        """Notify a watcher of changes in a scope from now on; returns a function that stops it."""
        self.watchers.setdefault(scope, {})[watcher] = None

        def stop() -> None:
            bucket = self.watchers.get(scope)
            if bucket is not None:
                bucket.pop(watcher, None)
                if not bucket:
                    del self.watchers[scope]

        return stop

    def publish(self, event: Event) -> None:
        """Notify subscribers and watchers."""
        self.notify(event)
        if not self.watchers:
            return
        event.frames = {}
        namespace = event.shown.namespace
        for scope in ("", f"{namespace}/", event.key) if namespace else ("", event.key):
            for watcher in tuple(self.watchers.get(scope, ())):
                watcher.deliver(event)
        event.frames = None

    def notify(self, event: Event) -> None:
        """Notify subscribers."""
        for subscriber in tuple(self.subscribers):
            subscriber(event)

    def since(self, revision: int) -> list[Event]:
        """The changes after a revision, oldest first."""
        events = list(takewhile(lambda event: event.revision > revision, reversed(self.events)))
        events.reverse()
        return events

    def at(self, revision: int, prefix: str = "", after: str = "") -> list[Record]:
        """The objects below a prefix as they were at a revision, in the order of their keys, from `after` on."""
        keys, records = self.keys(prefix, after), self.records
        undone = self.undone(revision) if self.revision > revision else None
        if not undone:
            return [records[key] for key in keys]
        first = max(prefix, after)
        before = {key: records[key] for key in keys if key not in undone}
        before |= {key: old for key, old in undone.items() if old and key >= first and key.startswith(prefix)}
        return [before[key] for key in sorted(before)]

    def get_at(self, revision: int, key: str) -> Record | None:
        """One object as it was at a revision."""
        record = self.records.get(key)
        if self.revision <= revision or (record is not None and record.revision <= revision):
            return record
        return self.undone(revision).get(key, record)

    def undone(self, revision: int) -> dict[str, Record | None]:
        """How the state at an old revision differs from the present one."""
        overlay: dict[str, Record | None] = {}
        for event in reversed(self.since(revision)):
            overlay[event.key] = event.old
        return overlay

    def _sort(self) -> None:
        if not self._new:
            return
        if len(self._new) <= _MOST_INSERTED:
            for key in self._new:
                insort(self._keys, key)
        else:
            self._keys.extend(self._new)
            self._keys.sort()
        self._new.clear()
