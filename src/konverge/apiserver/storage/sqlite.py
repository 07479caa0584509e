"""The journal in SQLite: an acknowledged write is a write on disk.

Two tables: `current` holds the present state, `log` the recent changes as an undo log: of each change only what was
before it (and, for a deletion, the last state that watchers saw). What came after a change is in the next change of the
same key, or in `current`. So a create is written once and an update twice, and the history costs nothing else.

One thread owns the connection. It takes everything that has queued up, writes it in one transaction, syncs, and tells
the loop: under load many writes share one sync. Checkpoints of the write-ahead log are done by the same thread between
two transactions, a few megabytes at a time, and never by a request; old log rows are deleted a few hundred at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from konverge.apiserver.storage.records import Event, Record, record_from
from konverge.apiserver.storage.store import Store

_SCHEMA = """
CREATE TABLE IF NOT EXISTS current (tbl TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tbl, key));
CREATE TABLE IF NOT EXISTS log (
  revision INTEGER PRIMARY KEY, tbl TEXT NOT NULL, key TEXT NOT NULL, time REAL NOT NULL, old BLOB, final BLOB
);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
_PUT = "INSERT INTO current (tbl, key, data) VALUES (?, ?, ?) ON CONFLICT (tbl, key) DO UPDATE SET data = excluded.data"
_DELETE = "DELETE FROM current WHERE tbl = ? AND key = ?"
_LOG = "INSERT INTO log (revision, tbl, key, time, old, final) VALUES (?, ?, ?, ?, ?, ?)"
_STATE = "INSERT INTO state (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_FORGET = "DELETE FROM log WHERE revision IN (SELECT revision FROM log WHERE revision <= ? ORDER BY revision LIMIT ?)"

CHECKPOINT_BYTES = 4 * 1024 * 1024
FORGET_ROWS = 500
BATCH = 2000

Entry = tuple[str, Event]


class SqliteJournal:
    """See `Journal` in store.py."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._compact_to = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_durable: Callable[[int], None] = lambda revision: None
        self._on_failed: Callable[[BaseException], None] = lambda error: None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # two servers on one folder would spoil it
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")
        self._connection.executescript(_SCHEMA)

    # --- start

    def load(self, store: Store) -> None:
        """Bring the state on disk into a store, and let the store go on from there."""
        state = dict(self._connection.execute("SELECT name, value FROM state"))
        for table, data in self._connection.execute("SELECT tbl, data FROM current"):
            store.table(table).restore(record_from(data))
        revision, compacted = state.get("revision", 1), state.get("compacted", 0)
        for table, event in reversed(list(self._events(store, compacted))):
            store.replay(store.table(table), event)
        store.open(revision, compacted)

    def _events(self, store: Store, compacted: int) -> Iterator[Entry]:
        """The history, newest first: what was before a change is what came out of the change before it."""
        after: dict[tuple[str, str], Record | None] = {}
        rows = self._connection.execute(
            "SELECT revision, tbl, key, time, old, final FROM log WHERE revision > ? ORDER BY revision DESC",
            (compacted,),
        )
        for revision, table, key, time, old_data, final_data in rows:
            old = record_from(old_data) if old_data is not None else None
            final = record_from(final_data) if final_data is not None else None
            if final is None:
                record = after[table, key] if (table, key) in after else store.table(table).records.get(key)
            else:
                record = None
            after[table, key] = old
            yield table, Event(revision, key, time, record, old, final)

    def start(self, on_durable: Callable[[int], None], on_failed: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_durable, self._on_failed = on_durable, on_failed
        self._thread = threading.Thread(target=self._write_all, name="konverge-journal", daemon=True)
        self._thread.start()

    # --- from the loop's thread

    def append(self, table: str, event: Event) -> None:
        self._queue.put((table, event))

    def compact(self, revision: int) -> None:
        self._compact_to = revision

    async def close(self) -> None:
        """Write what is left, then close the database."""
        thread = self._thread
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)
            self._thread = None
        self._connection.close()

    # --- in the journal's thread

    def _write_all(self) -> None:
        unsynced, ending = 0, False
        while not ending:
            batch, ending = self._take()
            if not batch:
                continue
            try:
                unsynced += self._write(batch)
            except sqlite3.Error as error:
                self._call(self._on_failed, error)
                return
            self._call(self._on_durable, batch[-1][1].revision)
            if unsynced > CHECKPOINT_BYTES and not ending:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                unsynced = 0

    def _take(self) -> tuple[list[Entry], bool]:
        """Everything that waits, up to a limit; the second member tells of the end."""
        batch: list[Entry] = []
        entry = self._queue.get()
        while True:
            if entry is None:
                return batch, True
            batch.append(entry)
            if len(batch) >= BATCH:
                return batch, False
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                return batch, False

    def _write(self, batch: list[Entry]) -> int:
        execute = self._connection.execute
        size = 0
        execute("BEGIN IMMEDIATE")
        for table, event in batch:
            if event.record is not None:
                execute(_PUT, (table, event.key, event.record.data))
                size += len(event.record.data)
            else:
                execute(_DELETE, (table, event.key))
            old = event.old.data if event.old is not None else None
            final = event.final.data if event.final is not None else None
            execute(_LOG, (event.revision, table, event.key, event.time, old, final))
            size += len(old or b"") + len(final or b"") + 200
        execute(_STATE, ("revision", batch[-1][1].revision))
        compacted = self._compact_to  # read once: the loop may move it on between two statements
        if compacted:
            execute(_STATE, ("compacted", compacted))
            execute(_FORGET, (compacted, FORGET_ROWS))
        execute("COMMIT")
        return size

    def _call(self, callback: Callable[..., None], argument: object) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop has gone; what is written is written
            self._loop.call_soon_threadsafe(callback, argument)
