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

from konverge.apiserver.storage.checksums import Seal, chained, changed_total, row_checksum, sealed
from konverge.apiserver.storage.database import LOG, Damaged, explained, sync_file
from konverge.apiserver.storage.folder import DataFolder
from konverge.apiserver.storage.integrity import State, prepared
from konverge.apiserver.storage.records import Event, Record, record_from
from konverge.apiserver.storage.store import Store
from konverge.apiserver.storage.witness import Witness, witness_path

_PUT = (
    "INSERT INTO current (tbl, key, data, checksum) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (tbl, key) DO UPDATE SET data = excluded.data, checksum = excluded.checksum"
)
_CHECKSUM = "SELECT checksum FROM current WHERE tbl = ? AND key = ?"
_DELETE = "DELETE FROM current WHERE tbl = ? AND key = ?"
_SEAL = "UPDATE seal SET data = ?"
_FORGET = (
    "DELETE FROM log WHERE revision IN (SELECT revision FROM log WHERE revision <= ? ORDER BY revision LIMIT ?) "
    "RETURNING revision, checksum"
)

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
        self._path = path
        self._folder = DataFolder(path.parent)
        with contextlib.ExitStack() as undo:
            undo.callback(self._folder.close)
            self._state: State | None = prepared(path)
            self._seal = self._sealing = self._state.seal
            self._witness = Witness(path)
            undo.callback(self._witness.close)
            self._connection = _opened(path)
            undo.pop_all()
        self._log = path.with_name(f"{path.name}-wal")
        _preallocate(self._log)

    # --- start

    def load(self, store: Store) -> None:
        """Give the state on disk, which was checked when it was read, to a store that continues from there."""
        assert self._state is not None
        state, self._state = self._state, None
        try:
            for table, _, data in state.rows:
                store.table(table).restore(record_from(data))
            for table, event in reversed(list(self._events(store, state))):
                store.replay(store.table(table), event)
        except msgspec.MsgspecError as error:
            raise Damaged(self._path, f"an object cannot be read: {error}") from error
        store.open(state.seal.revision, state.seal.compacted)

    def _events(self, store: Store, state: State) -> Iterator[Entry]:
        """The history, newest first: the state before a change is the result of the change before it."""
        after: dict[tuple[str, str], Record | None] = {}
        for revision, table, key, time, old_data, final_data in _logged(state):
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
        self._witness.close()
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
        before = {(table, event.key): event.old for table, event in reversed(group)}
        after = {(table, event.key): event.record for table, event in group}
        packed = msgspec.msgpack.encode([_change(table, event) for table, event in group])
        puts = [
            (*where, record.data, row_checksum(*where, record.data))
            for where, record in after.items()
            if record is not None
        ]
        connection.execute("BEGIN IMMEDIATE")
        removed = [self._stored_checksum(where) for where, old in before.items() if old is not None]
        connection.executemany(_PUT, puts)
        connection.executemany(_DELETE, [where for where, record in after.items() if record is None])
        seal = self._seal
        chain = chained(seal.chain, self._group_end, packed)
        connection.execute(LOG, (self._group_end, packed, chain))
        # The store may have dropped changes that are not yet written.
        compacted = min(max(self._compact_to, seal.compacted), self._group_end)
        forgotten = connection.execute(_FORGET, (compacted, FORGET_GROUPS)).fetchall() if compacted else []
        base_revision, base = max(forgotten, default=(seal.base_revision, seal.base))
        self._sealing = Seal(
            id=seal.id,
            revision=self._group_end,
            compacted=compacted,
            count=seal.count - len(removed) + len(puts),
            total=changed_total(seal.total, removed, (put[3] for put in puts)),
            base=base,
            base_revision=base_revision,
            chain=chain,
        )
        connection.execute(_SEAL, (sealed(self._sealing),))
        return len(packed) + sum(len(put[2]) + 200 for put in puts)

    def _stored_checksum(self, where: tuple[str, str]) -> int:
        """Of the row on disk. Not of the record: that one may be shown by a newer schema than it was written by."""
        row = self._connection.execute(_CHECKSUM, where).fetchone()
        if row is None:
            raise sqlite3.DatabaseError(f"{where[1]!r} of {where[0]!r} is not on disk any more")
        checksum: int = row[0]
        return checksum

    def _committed(self, more: bool) -> None:
        self._seal = self._sealing
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
            sync_file(self._log)  # its preallocated space; while the server starts, no write waits for that
        except OSError as error:
            self._call(self._fail, error)
        while self._commits.get():
            if self._failed:
                continue
            try:
                self._connection.execute("COMMIT")
                self._testify(self._witness.write, self._sealing)
                if self._unchecked <= CHECKPOINT_BYTES:
                    self._call(self._committed, True)
                    continue
                self._call(self._committed, False)
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._testify(self._witness.sync)
                self._unchecked = 0
                self._call(self._next)
            except sqlite3.Error as error:
                self._call(self._fail, error)

    def _testify(self, note: Callable[..., None], *arguments: object) -> None:
        """Note how far the database has come. A commit that is on disk does not fail because of that."""
        try:
            note(*arguments)
        except OSError as error:
            log.warning("%s cannot be written, so that a damage might not show: %s", witness_path(self._path), error)

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
        # What servers that were killed have left in the write-ahead log would add up there.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        connection.close()
        raise explained(path, error) from error
    return connection


def _preallocate(log: Path) -> None:
    """Write the space that the write-ahead log will need: syncing a file that does not grow costs half as much.

    Zeros are no frames, so they change nothing about the recovery after a crash.
    """
    with log.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(bytes(max(0, LOG_BYTES - file.tell())))


def _logged(state: State) -> Iterator[Change]:
    """The changes that the log holds, newest first."""
    compacted = state.seal.compacted
    for revision, packed, _ in reversed(state.log):
        if revision > compacted:
            yield from (change for change in reversed(_changes.decode(packed)) if change[0] > compacted)


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
