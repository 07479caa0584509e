"""Which events are worth writing: the same event again is counted, many similar ones are combined, a flood is dropped.

The numbers are client-go's, because people know what `kubectl describe` shows of them: similar events are combined from
the tenth within ten minutes on; a source may write 25 events about one object at once and then one every five minutes.
Pure: it is given the time.

Upstream: EventCorrelator (client-go's tools/record/events_cache.go).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

import msgspec

from konverge.token_bucket import TokenBucket

# upstream: defaultAggregateMaxEvents, defaultAggregateIntervalInSeconds, defaultSpamBurst, 1 / defaultSpamQPS
SIMILAR = 10
WINDOW = 600.0
BURST = 25
REFILL = 300.0
REMEMBERED = 4096
"""Objects and events remembered, the least recently used being forgotten. Upstream: maxLruCacheEntries."""

COMBINED = "(combined from similar events): "


class About(msgspec.Struct, frozen=True):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""


class Occurrence(msgspec.Struct):
    """What to write: a new event (`count` 1), or a higher count of one that was written."""

    about: About
    type: str
    reason: str
    message: str
    first: float
    last: float
    count: int = 1
    name: str = ""
    """The name of the Event object, set by the first write."""
    component: str = ""
    """The component that reports it."""


class _Similar(msgspec.Struct):
    since: float
    messages: set[str] = msgspec.field(default_factory=set)


class Correlator:
    """Remembers the events of late.

    >>> about = About("v1", "Pod", "shop", "web", "u-1")
    >>> correlator = Correlator()
    >>> [correlator.correlate(about, "Normal", "Pulled", "image pulled", now).count for now in (1.0, 2.0, 3.0)]
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self._events: OrderedDict[tuple[str, ...], Occurrence] = OrderedDict()
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, ...], TokenBucket] = OrderedDict()

    def correlate(self, about: About, type: str, reason: str, message: str, now: float) -> Occurrence | None:
        """What to write for this event, or None when the source reports too much about one object."""
        source = (about.uid, about.kind, about.namespace, about.name)
        combined = self._is_one_of_many((*source, type, reason), message, now)
        text = COMBINED + message if combined else message
        key = (*source, type, reason, COMBINED if combined else message)
        bucket = self._buckets.get(source) or _remember(self._buckets, source, TokenBucket(1 / REFILL, BURST))
        if not bucket.try_take(now):
            return None
        known = self._events.get(key)
        if known is None:
            return _remember(self._events, key, Occurrence(about, type, reason, text, now, now))
        known.count += 1
        known.last, known.message = now, text
        self._events.move_to_end(key)
        return known

    def _is_one_of_many(self, key: tuple[str, ...], message: str, now: float) -> bool:
        similar = self._similar.get(key)
        if similar is None or now - similar.since > WINDOW:
            similar = _remember(self._similar, key, _Similar(now))
        if message not in similar.messages and len(similar.messages) < SIMILAR:
            similar.messages.add(message)
        return message not in similar.messages or len(similar.messages) >= SIMILAR


V = TypeVar("V")


def _remember(cache: OrderedDict[tuple[str, ...], V], key: tuple[str, ...], value: V) -> V:
    cache[key] = value
    if len(cache) > REMEMBERED:
        cache.popitem(last=False)
    return value
