"""The store: every write takes the next revision, guarded by the revision that the writer saw.

One thread, no waiting: between a check and its write nothing can happen, so optimistic locking is one comparison.

Memory runs ahead of the disk by what waits there. When the disk fails, what did not reach it is taken back, so that
memory is the disk again; those who follow a table see the change back, watchers have seen neither.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec

from konverge import clock
from konverge.apiserver.storage.failures import Failed, InDoubt, Lost
from konverge.apiserver.storage.records import Draft, Event, Obj, Record, Release, record_of, reverse
from konverge.apiserver.storage.table import Table

log = logging.getLogger("konverge.storage")


class Exists(Exception):
    """A create of a key that is taken."""


class Missing(Exception):
    """A guarded write of a key that is gone."""


class Mismatch(Exception):
    """The object has changed since the writer read it."""


class Compacted(Exception):
    """The history does not reach back so far."""


class HistoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How far back old revisions are kept; whichever is reached first."""

    seconds: float = 300.0  # upstream: DefaultCompactInterval, five minutes
    events: int = 100_000
    superseded_bytes: int = 64 * 1024 * 1024  # old states that nothing but the history holds


_MOST_FORGOTTEN = 64
"""Old events dropped by one write, at most: more than it adds, and never so many that other requests are delayed."""


_STOPPING = "the server is stopping"
_MOST_TAKEN_BACK = 1024
"""How many times back it is known which revisions were taken back: many more than there can be in one request."""


class Listener(Protocol):
    """What a journal reports, on the loop's thread."""

    def on_durable(self, revision: int) -> None:
        """Everything up to a revision is on disk."""

    def on_failed(self, error: Failed) -> None:
        """The disk fails; from here until `on_recovered` nothing is written."""

    def on_doubt(self) -> None:
        """Whether the writes that wait are on disk is not known, and may not be known for long."""

    def on_truth(self, revision: int) -> None:
        """Of the writes that wait, those up to a revision are on disk and the others are not."""

    def on_recovered(self, revision: int) -> None:
        """The disk works again. The next write comes after this revision."""

    def on_lost(self, error: Lost) -> None:
        """What was acknowledged is not on disk, and nothing will be written any more."""


class Journal(Protocol):
    """Makes events durable, in order, and reports how far it has come."""

    def start(self, listener: Listener) -> None: ...
    def append(self, table: str, event: Event) -> None: ...
    def compact(self, revision: int) -> None: ...
    async def close(self) -> None: ...


class Store:
    """The state of the whole server."""

    def __init__(self, *, history: HistoryLimits | None = None, journal: Journal | None = None) -> None:
        self.revision = 1
        self.compacted = 0
        """The oldest revision whose state is still known."""
        self.durable = 1
        self.tables: dict[str, Table] = {}
        self._limits = history or HistoryLimits()
        self._journal = journal
        self._log: deque[tuple[Table, Event]] = deque()
        self._superseded = 0
        self._unpublished: deque[tuple[Table, Event]] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.failure: Failed | None = None
        """Why no write succeeds at present (`Lost`: ever again); None as long as the journal works."""
        self.reverts = 0
        """How often writes were taken back. Who read before and writes after may rest on what never was: `require`."""
        self._taken_back: deque[tuple[int, int]] = deque(maxlen=_MOST_TAKEN_BACK)
        """Revisions, from and to, whose writes did not reach the disk. They are not given again."""
        self._is_in_doubt = False
        self._is_closed = False
        self._reverted: list[Callable[[Table, str], None]] = []
        self._recovered: list[Callable[[], None]] = []
        self._lost: list[Callable[[], None]] = []
        self._advances: list[tuple[int, asyncio.Future[None]]] = []
        self.observers: list[Callable[[Table, Event], None]] = []
        """Called with every change as it is made, in the context of its writer: for tests and simulations."""

    def table(self, name: str) -> Table:
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = Table(name)
        return table

    def get(self, table: str, key: str) -> Record | None:
        existing = self.tables.get(table)
        return None if existing is None else existing.records.get(key)

    def durable_record(self, table: str, key: str) -> Record | None:
        """An object as it is on disk, which is all that a client may see of it."""
        existing = self.tables.get(table)
        return None if existing is None else existing.get_at(self.durable, key)

    def put(
        self,
        table: Table,
        obj: Obj,
        *,
        expected: int | None,
        check: Callable[[Record], None] | None = None,
        draft: Draft | None = None,
    ) -> Record:
        """Write an object. `expected` is the revision it must have now: 0 for none, None for any.

        `draft` is the object as `draft_of` has encoded it. `check` raises for a record that may not be stored. Raises
        Failed at once while the disk fails;
        whether an accepted write is on disk is for `settled` to say.
        """
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        key = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
        old = table.records.get(key)
        _guard(old, expected)
        revision = self.revision + 1
        record = record_of(obj, revision, draft)
        if check is not None:
            check(record)
        self._commit(table, Event(revision, key, clock.now(), record, old))
        return record

    def remove(
        self,
        table: Table,
        key: str,
        *,
        expected: int | None,
        final: Obj | None = None,
        release: Release | None = None,
        draft: Draft | None = None,
    ) -> Record:
        """Remove an object; the result is its last state (`final`, if the removing write changed it).

        `release` says what that write removed from the object, which its last state does not show. `draft` is the
        stored object as `redrafted` has encoded it.
        """
        old = table.records.get(key)
        if old is None:
            raise Missing(key)
        _guard(old, expected)
        revision = self.revision + 1
        if draft is None:
            last = record_of(old.decode() if final is None else final, revision)
        else:
            last = Record(old.namespace, old.name, revision, draft.at(revision), old.labels)
        self._commit(table, Event(revision, key, clock.now(), None, old, last, release=release))
        return last

    def _commit(self, table: Table, event: Event) -> None:
        if self.failure is not None:
            raise self._refusal()
        self.revision = event.revision
        table.apply(event)
        self._log.append((table, event))
        for observe in self.observers:
            observe(table, event)
        if event.old is not None:
            self._superseded += len(event.old.data)
        if self._journal is None:
            self.durable = event.revision
            self._trim(event.time)
            table.publish(event)
            self._advance()
        else:
            self._trim(event.time)
            self._unpublished.append((table, event))
            self._journal.append(table.name, event)

    # --- durability

    def open(self, revision: int, compacted: int) -> None:
        """Begin where a journal's state ends."""
        self.revision = self.durable = max(revision, 1)
        self.compacted = compacted
        if self._journal is not None:
            self._journal.start(self)

    def replay(self, table: Table, event: Event) -> None:
        """Add an event of the journal to the history, without applying it again."""
        table.events.append(event)
        table.revision = max(table.revision, event.revision)
        self._log.append((table, event))
        if event.old is not None:
            self._superseded += len(event.old.data)

    def on_durable(self, revision: int) -> None:
        self.durable = max(self.durable, revision)
        while self._unpublished and self._unpublished[0][1].revision <= revision:
            table, event = self._unpublished.popleft()
            table.publish(event)
        while self._waiting and self._waiting[0][0] <= revision:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
        self._advance()

    async def settled(self, revision: int) -> None:
        """Wait until everything up to a revision is on disk. Without a journal it always is.

        Raises Failed when it turns out that it is not, and InDoubt when the disk does not say.
        """
        if revision > self.durable:
            if self._is_in_doubt:
                raise self._refusal(in_doubt=True)
            self._refuse_taken_back(revision)
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append((revision, waiter))
            await waiter
        elif self._taken_back:
            self._refuse_taken_back(revision)

    async def present_settled(self, reverts: int) -> None:
        """Wait until all is on disk that a request may have read, which began at `reverts` and has written nothing.

        For what others hear of it: a refusal, a dry run, a token, the question to a webhook. Raises Failed.
        """
        self.require(reverts)
        try:
            await self.settled(self.revision)
        except InDoubt as error:
            raise Failed(str(error)) from error

    def _refuse_taken_back(self, revision: int) -> None:
        if any(first <= revision <= last for first, last in self._taken_back):
            raise self._refusal() if self.failure else Failed("the disk failed before it was stored")

    def require(self, reverts: int) -> None:
        """Refuse a request that began at `reverts` and read since then: what it read may have been taken back."""
        if reverts != self.reverts:
            raise Failed("the disk failed while the request was under way")

    # --- a disk that fails

    def on_failed(self, error: Failed) -> None:
        self.failure = error

    def on_doubt(self) -> None:
        self._is_in_doubt = True
        self._refuse_waiting(in_doubt=True)

    def on_truth(self, revision: int) -> None:
        """Publish what is on disk, and take back the rest: newest first, so that memory is the disk again."""
        self.on_durable(revision)
        self._is_in_doubt = False
        reverted = list(reversed(self._unpublished))
        self._unpublished.clear()
        for table, event in reverted:
            table.revert(event, self.durable)
            self._log.pop()
            if event.old is not None:
                self._superseded -= len(event.old.data)
        if reverted:
            self.reverts += 1
            self._taken_back.append((self.durable + 1, self.revision))
        self.revision = self.durable
        for table, event in reverted:
            for callback in self._reverted:
                _call(callback, table, event.key)
            _call(table.notify, reverse(event))
        self._refuse_waiting()

    def on_recovered(self, revision: int) -> None:
        self.failure = Failed(_STOPPING) if self._is_closed else None
        self.revision = self.durable = revision
        self._advance()
        for callback in self._recovered:
            _call(callback)

    def on_lost(self, error: Lost) -> None:
        self.failure = error
        self._is_in_doubt = True
        self._refuse_waiting(in_doubt=True)
        for callback in self._lost:
            _call(callback)

    def _refuse_waiting(self, *, in_doubt: bool = False) -> None:
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(self._refusal(in_doubt=in_doubt))
        self._waiting.clear()

    def _refusal(self, *, in_doubt: bool = False) -> Failed:
        """A new one for each writer: an exception collects the frames that it passes."""
        kind = InDoubt if in_doubt else Lost if isinstance(self.failure, Lost) else Failed
        return kind(str(self.failure))

    def on_revert(self, callback: Callable[[Table, str], None]) -> None:
        """Call back with each object whose last write was taken back, of any table."""
        self._reverted.append(callback)

    def on_recovery(self, callback: Callable[[], None]) -> None:
        """Call back each time when writes are accepted again: those of the server itself may have been lost."""
        self._recovered.append(callback)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call back when `failure` is Lost."""
        self._lost.append(callback)

    async def reached(self, revision: int) -> None:
        """Wait until the store itself has reached a revision (the caller sets the time limit)."""
        while self.durable < revision:
            waiter = asyncio.get_running_loop().create_future()
            self._advances.append((revision, waiter))
            await waiter

    def _advance(self) -> None:
        if self._advances:
            ready = [waiter for revision, waiter in self._advances if revision <= self.durable]
            self._advances = [(r, w) for r, w in self._advances if r > self.durable and not w.done()]
            for waiter in ready:
                if not waiter.done():
                    waiter.set_result(None)

    async def close(self) -> None:
        """Make sure that everything is on disk. Writes are refused from now on: the journal takes no more."""
        if self._journal is None:
            return
        self._is_closed = True
        if self.failure is None:
            self.failure = Failed(_STOPPING)
        await self._journal.close()
        self._is_in_doubt = True
        self._refuse_waiting(in_doubt=True)  # on a disk that did not answer

    # --- history

    def keep_history(self, limits: HistoryLimits) -> None:
        """From now on, old revisions are kept within other limits."""
        self._limits = limits

    def compact(self, revision: int) -> None:
        """Forget what was before a revision."""
        revision = min(revision, self.durable)
        while self._log and self._log[0][1].revision <= revision:
            self._forget()
        self._compacted_to(max(revision, self.compacted))

    def _trim(self, now: float) -> None:
        limits, log = self._limits, self._log
        horizon, forgotten = now - limits.seconds, 0
        for _ in range(_MOST_FORGOTTEN):
            if (
                len(log) <= 1
                or log[0][1].revision > self.durable
                or not (
                    log[0][1].time < horizon or len(log) > limits.events or self._superseded > limits.superseded_bytes
                )
            ):
                break
            forgotten = self._forget()
        if forgotten:
            self._compacted_to(forgotten)

    def _forget(self) -> int:
        table, event = self._log.popleft()
        table.events.popleft()
        if event.old is not None:
            self._superseded -= len(event.old.data)
        return event.revision

    def _compacted_to(self, revision: int) -> None:
        self.compacted = revision
        if self._journal is not None:
            self._journal.compact(revision)

    def changes(self, since: int) -> list[tuple[Table, Event]]:
        """What was written after a revision, as far back as the history reaches."""
        newest = itertools.takewhile(lambda entry: entry[1].revision > since, reversed(self._log))
        return list(newest)[::-1]

    def subscribe(self, table: str, callback: Callable[[Event], None]) -> None:
        """Call back with each durable change of a table, synchronously and before the writer is answered."""
        self.table(table).subscribers.append(callback)


def _call(callback: Callable[..., None], *arguments: object) -> None:
    """A callback that fails must not end the recovery of the journal, which calls it."""
    try:
        callback(*arguments)
    except Exception:
        log.exception("what follows from a disk that failed could not be done")


def _guard(old: Record | None, expected: int | None) -> None:
    if expected is None:
        return
    if expected == 0:
        if old is not None:
            raise Exists(old.key)
    elif old is None:
        raise Missing
    elif old.revision != expected:
        raise Mismatch(old.key)
