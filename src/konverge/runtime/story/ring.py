"""The reconciles of one controller that are remembered: bounded by count and by bytes.

The latest reconcile of each key is kept longest. First the oldest of the others go; only when every key has one left,
the key goes that was reconciled longest ago. A key has a bound of its own in both, so that a busy one costs the others
nothing.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any

import msgspec

from konverge.runtime.story.entry import Entry

_SHARE = 8
"""A key may have one part of so many of the bytes."""


class StoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is remembered of each controller; `reconciles=0` remembers nothing.

    >>> StoryLimits(reconciles=100).per_key
    16
    """

    reconciles: int = 500
    per_key: int = 16
    bytes: int = 1024 * 1024


class Ring:
    """The latest reconciles of one controller."""

    def __init__(self, limits: StoryLimits | None = None) -> None:
        self.limits = limits or StoryLimits()
        self.count = 0
        self.size = 0
        """Bytes, about."""
        self._keys: OrderedDict[Any, Entry | list[Entry]] = OrderedDict()
        """Key -> its reconcile, or its reconciles, the oldest first; the key reconciled last is at the end."""
        self._older: deque[Entry] = deque()
        """Those that are not the latest of their key, by age; dropped ones are skipped."""

    def __iter__(self) -> Iterator[Entry]:
        """All of them, by no order across keys."""
        for key in self._keys:
            yield from self.of(key)

    def of(self, key: Any) -> list[Entry]:
        """Those of one key, the oldest first."""
        kept = self._keys.get(key)
        if kept is None:
            return []
        return list(kept) if isinstance(kept, list) else [kept]

    def keep(self, entry: Entry) -> None:
        """A reconcile has ended."""
        limits = self.limits
        if not limits.reconciles:
            return
        if entry.measure() * _SHARE > limits.bytes:
            entry.shorten()
        keys, key = self._keys, entry.key
        self.count += 1
        self.size += entry.size
        if key in keys:
            self._keep_again(entry)
        else:
            keys[key] = entry
        while self.count > limits.reconciles or (self.size > limits.bytes and self.count > 1):
            self._drop_next()

    def _keep_again(self, entry: Entry) -> None:
        """Another reconcile of a key."""
        kept = self._keys.pop(entry.key)
        entries = kept if isinstance(kept, list) else [kept]
        self._older.append(entries[-1])
        entries.append(entry)
        self._keys[entry.key] = entries
        self._bound_key(entries)

    def _bound_key(self, entries: list[Entry]) -> None:
        """One key has no more than its share."""
        while len(entries) > self.limits.per_key:
            self._forget(entries.pop(0))
        size = sum(entry.size for entry in entries)
        while size * _SHARE > self.limits.bytes and len(entries) > 1:
            size -= entries[0].size
            self._forget(entries.pop(0))
        if len(self._older) > 2 * self.limits.reconciles:
            self._older = deque(entry for entry in self._older if not entry.dropped)

    def _drop_next(self) -> None:
        """The oldest that is not the latest of its key; where there is none, the key reconciled longest ago."""
        while self._older:
            entry = self._older.popleft()
            if not entry.dropped:
                entries = self._keys[entry.key]
                assert isinstance(entries, list)
                entries.remove(entry)
                self._forget(entry)
                return
        _, kept = self._keys.popitem(last=False)
        if isinstance(kept, list):
            for entry in kept:
                self._forget(entry)
        else:
            self._forget(kept)

    def _forget(self, entry: Entry) -> None:
        entry.dropped = True
        self.count -= 1
        self.size -= entry.size
