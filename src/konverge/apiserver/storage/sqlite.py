"""The journal in SQLite: an acknowledged write is a write on disk.

Two tables: `current` holds the present state, `log` the recent changes as an undo log: of each change only what was
before it (and, for a deletion, the last state that watchers saw). What came after a change is in the next change of the
same key, or in `current`. So a create is written once and an update twice, and the history costs nothing else.

Writes are committed in groups: everything that has queued up while the previous group was on its way to the disk. The
statements of a group run on the loop's thread (they only touch memory, and a second Python thread would wait for the
interpreter's lock after each of them); the commit, which waits for the disk, runs in a thread of its
own. A group is one row of the log. Checkpoints of the write-ahead log are done by that thread between two groups, a few
megabytes at a time; that log has its full size from the start. Old rows of `log` are deleted a few at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from konverge.apiserver.storage.folder import DataFolder, FolderError, create_private
from konverge.apiserver.storage.records import Event, Record, record_from
from konverge.apiserver.storage.store import Store

_SCHEMA = """
CREATE TABLE IF NOT EXISTS current (tbl TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tbl, key));
CREATE TABLE IF NOT EXISTS log (revision INTEGER PRIMARY KEY, changes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
_PUT = "INSERT INTO current (tbl, key, data) VALUES (?, ?, ?) ON CONFLICT (tbl, key) DO UPDATE SET data = excluded.data"
_DELETE = "DELETE FROM current WHERE tbl = ? AND key = ?"
_LOG = "INSERT INTO log (revision, changes) VALUES (?, ?)"
_STATE = "INSERT INTO state (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_FORGET = "DELETE FROM log WHERE revision IN (SELECT revision FROM log WHERE revision <= ? ORDER BY revision LIMIT ?)"

CHECKPOINT_BYTES = 4 * 1024 * 1024
LOG_BYTES = 8 * 1024 * 1024
"""About the size of the write-ahead log between two checkpoints, including pages that are not full."""
GROUP = 256
"""Changes that are committed at once, at most: their statements must not hold the loop for long."""
FORGET_GROUPS = 4
"""Old rows deleted with each group: more than one, so that the log shrinks while it grows."""

log = logging.getLogger("konverge.storage")

Entry = tuple[str, Event]
Change = tuple[int, str, str, float, bytes | None, bytes | None]
"""One change in the log: its revision, table, key and time, the state before, the last state if it was a deletion."""

_changes = msgspec.msgpack.Decoder(list[Change])


class SqliteJournal:
    """See `Journal` in store.py."""

    def __init__(self, path: Path) -> None:
        self._waiting: deque[Entry] = deque()
        self._busy = self._failed = False
        self._idle: asyncio.Future[None] | None = None
        self._group_end = 0
        self._compact_to = 0
        self._unchecked = 0
        self._commits: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_durable: Callable[[int], None] = lambda revision: None
        self._on_failed: Callable[[BaseException], None] = lambda error: None
        self._folder = DataFolder(path.parent)
        try:
            create_private(path)
            self._connection = _opened(path)
            self._path = path
        except BaseException:
            self._folder.close()
            raise
        self._log = path.with_name(f"{path.name}-wal")
        _preallocate(self._log)

    # --- start

    def load(self, store: Store) -> None:
        """Load the state on disk into a store, and let the store continue from there. Raises FolderError."""
        try:
            self._load(store)
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            raise FolderError(_explained(self._path, error)) from error

    def _load(self, store: Store) -> None:
        state = dict(self._connection.execute("SELECT name, value FROM state"))
        for table, data in self._connection.execute("SELECT tbl, data FROM current"):
            store.table(table).restore(record_from(data))
        revision, compacted = state.get("revision", 1), state.get("compacted", 0)
        for table, event in reversed(list(self._events(store, compacted))):
            store.replay(store.table(table), event)
        store.open(revision, compacted)

    def _events(self, store: Store, compacted: int) -> Iterator[Entry]:
        """The history, newest first: the state before a change is the result of the change before it."""
        after: dict[tuple[str, str], Record | None] = {}
        for revision, table, key, time, old_data, final_data in self._logged(compacted):
            old = record_from(old_data) if old_data is not None else None
            final = record_from(final_data) if final_data is not None else None
            if final is None:
                record = after[table, key] if (table, key) in after else store.table(table).records.get(key)
            else:
                record = None
            after[table, key] = old
            yield table, Event(revision, key, time, record, old, final)

    def _logged(self, compacted: int) -> Iterator[Change]:
        rows = self._connection.execute(
            "SELECT changes FROM log WHERE revision > ? ORDER BY revision DESC", (compacted,)
        )
        for (packed,) in rows:
            yield from (change for change in reversed(_changes.decode(packed)) if change[0] > compacted)

    def start(self, on_durable: Callable[[int], None], on_failed: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_durable, self._on_failed = on_durable, on_failed
        self._thread = threading.Thread(target=self._commit_all, name="konverge-journal", daemon=True)
        self._thread.start()

    # --- on the loop's thread

    def append(self, table: str, event: Event) -> None:
        self._waiting.append((table, event))
        if not self._busy and not self._failed:
            assert self._loop is not None
            self._busy = True
            self._loop.call_soon(self._next)  # not at once: what this turn of the loop still writes joins the group

    def compact(self, revision: int) -> None:
        self._compact_to = revision

    async def close(self) -> None:
        """Write what is left, then close the database."""
        if self._thread is not None:
            if self._busy:
                self._idle = asyncio.get_running_loop().create_future()
                await self._idle
            self._commits.put(False)
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        self.release()

    def release(self) -> None:
        """Close the database and let others have the folder; for a journal that has not been started."""
        self._connection.close()
        self._folder.close()

    def _next(self) -> None:
        """Write the next group and have it committed, or become idle."""
        waiting = self._waiting
        if not waiting:
            self._become_idle()
            return
        group = [waiting.popleft() for _ in range(min(len(waiting), GROUP))]
        self._group_end = group[-1][1].revision
        try:
            self._unchecked += self._execute(group)
        except sqlite3.Error as error:
            self._fail(error)
        else:
            self._commits.put(True)

    def _execute(self, group: list[Entry]) -> int:
        """Run a group's statements; returns about how many bytes they add to the write-ahead log."""
        connection = self._connection
        last = {(table, event.key): event.record for table, event in group}
        packed = msgspec.msgpack.encode([_change(table, event) for table, event in group])
        puts = [(*where, record.data) for where, record in last.items() if record is not None]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_PUT, puts)
        connection.executemany(_DELETE, [where for where, record in last.items() if record is None])
        connection.execute(_LOG, (self._group_end, packed))
        connection.execute(_STATE, ("revision", self._group_end))
        compacted = min(
            self._compact_to, self._group_end
        )  # the store may have dropped changes that are not yet written
        if compacted:
            connection.execute(_STATE, ("compacted", compacted))
            connection.execute(_FORGET, (compacted, FORGET_GROUPS))
        return len(packed) + sum(len(data) + 200 for _, _, data in puts)

    def _committed(self, more: bool) -> None:
        self._on_durable(self._group_end)
        if more:
            self._next()

    def _fail(self, error: sqlite3.Error | OSError) -> None:
        """Nothing is written from here on."""
        log.error("%s cannot be written any more: %s", self._path, error)
        self._failed = True
        self._on_failed(error)
        self._become_idle()

    def _become_idle(self) -> None:
        self._busy = False
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    # --- in the journal's thread, which alone uses the connection between a request to commit and its result

    def _commit_all(self) -> None:
        try:
            _sync(self._log)  # its preallocated space; while the server starts, no write waits for that
        except OSError as error:
            self._call(self._fail, error)
        while self._commits.get():
            if self._failed:
                continue
            try:
                self._connection.execute("COMMIT")
                if self._unchecked <= CHECKPOINT_BYTES:
                    self._call(self._committed, True)
                    continue
                self._call(self._committed, False)
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._unchecked = 0
                self._call(self._next)
            except sqlite3.Error as error:
                self._call(self._fail, error)

    def _call(self, callback: Callable[..., None], *arguments: object) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed; what is written is written
            self._loop.call_soon_threadsafe(callback, *arguments)


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # two servers on one folder would corrupt it
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.executescript(_SCHEMA)
        # What servers that were killed have left in the write-ahead log would add up there.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        connection.close()
        raise FolderError(_explained(path, error)) from error
    return connection


def _explained(path: Path, error: sqlite3.Error | msgspec.MsgspecError) -> str:
    """What is wrong with the database, and what to do."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"the state {path} is open in another program: close it there, or give another data folder"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return f"the state {path} is damaged or of another program ({error}): restore a copy, or move it away"
    return f"the state {path} cannot be opened ({error}): check the disk, or give another data folder"


def _preallocate(log: Path) -> None:
    """Write the space that the write-ahead log will need: syncing a file that does not grow costs half as much.

    Zeros are no frames, so they change nothing about the recovery after a crash.
    """
    with log.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(bytes(max(0, LOG_BYTES - file.tell())))


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _change(table: str, event: Event) -> Change:
    old, final = event.old, event.final
    return (
        event.revision,
        table,
        event.key,
        event.time,
        None if old is None else old.data,
        None if final is None else final.data,
    )
