"""Objects that something failed on: they are set aside and reported, and all others go on.

An object that cannot be decoded, or on which a transform, an index function, a predicate, a mapper or another handler
raises, must not end the cache that a whole process reads from. Such a failure is noted here with its stage (what failed
on it), and ends when the stage succeeds on a later version of the object, or the object is gone.

A version of an object is reported once for each stage, however often it is listed or delivered again. A function that
fails on everything is reported for `MAX_REPORTS` objects; the rest are only counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import msgspec

from konverge.cache.record import Key

READ = "cannot be read"
"""The stage of objects that are not in the cache at all: its readers would take them for absent."""
MAX_REPORTS = 100
"""Objects of one stage that are reported at a time."""

_log = logging.getLogger("konverge.cache")


class Unreadable(Exception):
    """An object that was asked for is there, but cannot be read; the message names it and the cause."""


class Quarantined(msgspec.Struct, frozen=True):
    """One object that something failed on."""

    key: Key
    stage: str
    version: int
    uid: str
    error: str

    def __str__(self) -> str:
        return f"{self.key} {self.stage}: {self.error}"


class Quarantine:
    """The quarantined objects of one cache. `what` names it in messages: `configmaps`."""

    def __init__(self, what: str = "object") -> None:
        self.entries: dict[tuple[Key, str], Quarantined] = {}
        """Empty almost always."""
        self.reported = 0
        """Versions of objects that were reported, in total."""
        self.listeners: list[Callable[[Quarantined], None]] = []
        self._what = what
        self._stages: dict[str, int] = {}

    def __iter__(self) -> Iterator[Quarantined]:
        return iter(list(self.entries.values()))

    @property
    def count(self) -> int:
        """Objects in quarantine, for whatever reasons."""
        return len({key for key, _ in self.entries})

    def report(self, key: Key, version: int, uid: str, stage: str, error: BaseException) -> None:
        """Something failed on this version of an object."""
        place = key, stage
        known = self.entries.get(place)
        if known is not None and (known.version, known.uid) == (version, uid):
            return
        entry = Quarantined(key, stage, version, uid, str(error) or type(error).__name__)
        self.entries[place] = entry
        self.reported += 1
        if known is None:
            self._stages[stage] = self._stages.get(stage, 0) + 1
        count = self._stages[stage]
        if count > MAX_REPORTS:
            if known is None and count == MAX_REPORTS + 1:
                _log.error("%s %s for more than %d objects: no more are named", self._what, stage, MAX_REPORTS)
            return
        _log.error("%s %s; it is left out until it changes", self._what, entry, exc_info=error if count == 1 else None)
        for listener in self.listeners:
            try:
                listener(entry)
            except Exception:
                _log.exception("%s %s: this could not be reported", self._what, key)

    def release(self, key: Key, stage: str) -> None:
        """The stage succeeded on the object."""
        if self.entries and self.entries.pop((key, stage), None) is not None:
            self._stages[stage] -= 1
            _log.info("%s %s: no longer %s", self._what, key, stage)

    def forget(self, key: Key) -> None:
        """The object is gone."""
        for stage in self._stages:
            self.release(key, stage)

    def unread(self, key: Key) -> Quarantined | None:
        """The entry of an object that is not in the cache though it exists, or whose latest state is not."""
        return self.entries.get((key, READ)) if self.entries else None

    def hides(self, namespace: str | None) -> Quarantined | None:
        """An object of this namespace (or of any) that is not in the cache though it exists."""
        return next(
            (e for e in self.entries.values() if e.stage == READ and namespace in (None, "", e.key.namespace)), None
        )
