"""What the gate and the store saw of a run: requests of the operator, changes by whomever, deliveries.

The store reports each change in the context of its writer, so a change belongs to the request that made it without any
guess.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from konverge.apiserver.storage import Event, HistoryLimits, Record, Store
from konverge.apiserver.storage.table import Table
from konverge.check.differences import changed_paths, differences
from konverge.check.folding import folded
from konverge.check.locks import LEASES, is_lock
from konverge.check.model import Change, Delivery, Exchange, Moment, Obj, Place, Ref, Writer
from konverge.check.snapshot import Counted

RESTLESS = frozenset(("coordination.k8s.io/leases", "/events", "events.k8s.io/events"))
"""Written for ever, or only to inform: no part of a state."""

EVERYTHING = HistoryLimits(seconds=math.inf, events=1_000_000, superseded_bytes=1 << 30)
"""Any revision of a run may be shown again."""

_exchange: ContextVar[Exchange | None] = ContextVar("exchange_of_the_operator", default=None)
_writer: ContextVar[Writer] = ContextVar("writer", default="cluster")


@contextmanager
def writing(writer: Writer, exchange: Exchange | None = None) -> Iterator[None]:
    """Changes inside are of this writer, and of this exchange of the operator."""
    tokens = _writer.set(writer), _exchange.set(exchange)
    try:
        yield
    finally:
        _writer.reset(tokens[0])
        _exchange.reset(tokens[1])


class Recorder:
    """Records a run. `on_change` are called with every change that counts, after it was recorded."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.exchanges: list[Exchange] = []
        self.changes: list[Change] = []
        self.deliveries: list[Delivery] = []
        self.reads: Counter[str] = Counter()
        self.requests = 0
        """Of the operator, so far."""
        self.step = 0
        self.step_name = ""
        self.first = 0
        """The revision of the store when the run began."""
        self.newest = 0
        """The revision of the last change of more than times and versions."""
        self.incarnation = 0
        self.locks: set[Ref] = set()
        """Election locks of old kinds that the operator wrote; requests for them are not listed."""
        self.leases: set[Ref] = set()
        """Leases that it wrote."""
        self.down = False
        """There is no incarnation, but there will be one."""
        self.away = False
        """There is none until the check wants one: rest is that of the cluster alone."""
        self.started = 0.0
        """When the present incarnation began."""
        self.asked = False
        """It has sent a request."""
        self.unwatched: Counter[str] = Counter()
        """By resource: watches that the check has ended, and that the present incarnation has not begun again."""
        self.cut_off = 0.0
        """Since when it can."""
        self.at_work: Callable[[], float] = lambda: 0.0
        """Seconds that its process has had something to do, where that is known: these are no rest."""
        self.on_change: list[Callable[[Change], None]] = []
        self.on_request: list[Callable[[Exchange], None]] = []
        """Called with every request that has been answered, watches when they begin."""
        self._places: Counter[Place] = Counter()
        self._moments: Counter[Moment] = Counter()
        self._began = 0.0

    def begin(self) -> None:
        """From now on, changes count."""
        self._began = asyncio.get_running_loop().time()
        self.first = self._store.revision
        self._store.observers.append(self._changed)
        self._store.keep_history(EVERYTHING)

    def resume(self, counted: Counted) -> None:
        """After `begin`: go on counting where another recorder was."""
        self._began -= counted.time
        self.first, self.incarnation, self.requests = counted.first, counted.incarnation, counted.requests
        self._places.update({_as_place(parts): count for parts, count in counted.places})
        self._moments.update({_as_moment(parts): count for parts, count in counted.moments})
        for parts in counted.locks:
            ref = Ref(*parts)
            (self.leases if ref.resource == LEASES else self.locks).add(ref)

    def counted(self) -> Counted:
        """So far."""
        return Counted(
            first=self.first,
            time=self.now(),
            incarnation=self.incarnation,
            requests=self.requests,
            places=tuple((_place_parts(place), count) for place, count in self._places.items()),
            moments=tuple(((moment.type, *_parts(moment)), count) for moment, count in self._moments.items()),
            locks=tuple((ref.resource, ref.namespace, ref.name) for ref in sorted({*self.locks, *self.leases})),
        )

    def end(self) -> None:
        self._store.observers.remove(self._changed)

    def starts(self) -> None:
        """An incarnation begins."""
        self.incarnation += 1
        self.started, self.asked = self.now(), False
        self.unwatched.clear()

    def unwatch(self, resources: Iterable[str]) -> None:
        """The check has ended a watch of each of them, and the operator can begin it again."""
        self.unwatched.update(resources)
        self.cut_off = self.now()

    def watched(self, resource: str) -> None:
        """The operator has begun a watch."""
        self.unwatched -= Counter([resource])

    @property
    def revision(self) -> int:
        """Of the store, now."""
        return self._store.revision

    def now(self) -> float:
        """Seconds since the beginning."""
        return asyncio.get_running_loop().time() - self._began

    # -------------------------------------------------------------- changes

    def _changed(self, table: Table, event: Event) -> None:
        if table.name in RESTLESS:
            if table.name == LEASES and _writer.get() == "operator":
                self.leases.add(Ref(table.name, event.shown.namespace, event.shown.name))
            return
        if is_lock(table.name, event.shown):
            if _writer.get() == "operator":
                self.locks.add(Ref(table.name, event.shown.namespace, event.shown.name))
            return
        moment, found = _moment(table.name, event)
        self._moments[moment] += 1
        number = self._moments[moment]
        exchange = _exchange.get()
        shown = event.shown
        change = Change(
            revision=event.revision,
            time=self.now(),
            moment=Moment(moment.type, *_parts(moment), occurrence=number),
            ref=Ref(table.name, shown.namespace, shown.name),
            uid=str(shown.decode()["metadata"].get("uid", "")),
            writer=_writer.get(),
            incarnation=exchange.incarnation if exchange is not None else 0,
            differences=tuple(found),
            step=self.step,
        )
        self.changes.append(change)
        if moment.type != "MODIFIED" or moment.change:
            self.newest = event.revision
        if exchange is not None:
            exchange.revisions = (*exchange.revisions, event.revision)
        for callback in tuple(self.on_change):
            callback(change)

    def heartbeats_since(self, time: float) -> dict[str, int] | None:
        """Changes of nothing but times, versions and the like, by object; None if there was any other change."""
        recent = [change for change in self.changes if change.time >= time]
        if any(change.moment.type != "MODIFIED" or change.moment.change for change in recent):
            return None
        return dict(Counter(str(change.ref) for change in recent))

    # -------------------------------------------------------------- requests

    def place_of(self, exchange: Exchange) -> Place | None:
        """The place of a write that has been answered; None if it changed nothing. Counts its occurrence."""
        mine = set(exchange.revisions)
        made = [change for change in self.changes[-50:] if change.revision in mine]
        if not made:
            return None
        change = made[0].moment.change
        name = folded(exchange.name or made[0].ref.name)
        place = Place(exchange.verb, exchange.resource, exchange.namespace, name, change)
        self._places[place] += 1
        return Place(*_place_parts(place), occurrence=self._places[place])

    def upcoming(self, place: Place) -> Place:
        """The place of the next write that changes the same; `place` has no occurrence."""
        return Place(*_place_parts(place), occurrence=self._places[place] + 1)

    def record(self, resource: str, namespace: str, name: str) -> Record | None:
        """An object as it is stored now."""
        return self._store.get(resource, f"{namespace}/{name}" if namespace else name)

    def write(self, resource: str, obj: Obj) -> None:
        """Write an object as another process would."""
        with writing("cluster"):
            self._store.put(self._store.table(resource), obj, expected=None)


def _moment(table: str, event: Event) -> tuple[Moment, list[tuple[str, Any, Any]]]:
    shown = event.shown
    name = folded(shown.name)
    if event.record is None:
        return Moment("DELETED", table, shown.namespace, name), []
    if event.old is None:
        return Moment("ADDED", table, shown.namespace, name), []
    found = list(differences(event.old.decode(), event.record.decode()))
    return Moment("MODIFIED", table, shown.namespace, name, changed_paths(found)), found


def _as_place(parts: tuple[str, ...]) -> Place:
    return msgspec.convert(dict(zip(Place.__struct_fields__, parts, strict=False)), Place)


def _as_moment(parts: tuple[str, ...]) -> Moment:
    return msgspec.convert(dict(zip(Moment.__struct_fields__, parts, strict=False)), Moment)


def _parts(moment: Moment) -> tuple[str, str, str, str]:
    return moment.resource, moment.namespace, moment.name, moment.change


def _place_parts(place: Place) -> tuple[str, str, str, str, str]:
    return place.verb, place.resource, place.namespace, place.name, place.change
