"""The journal in SQLite: an acknowledged write is a write on disk.

Two tables: `current` holds the present state, `log` the recent changes as an undo log (changes.py). So a create is
written once and an update twice, and the history costs nothing else.

Writes are committed in groups: everything that has queued up while the previous group was on its way to the disk. The
statements of a group run on the loop's thread (they only touch memory, and a second Python thread would wait for the
interpreter's lock after each of them); the commit, which waits for the disk, runs in a thread of its
own. A group is one row of the log. Checkpoints of the write-ahead log are done by that thread between two groups, a few
megabytes at a time; that log has its full size from the start. Old rows of `log` are deleted a few at a time.

An error of the disk, wherever it comes, ends in `_fail`; how the journal comes back from there is in recovery.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from konverge.apiserver.storage.changes import Entry, events, packed
from konverge.apiserver.storage.checksums import BadSeal, Seal, chained, changed_total, row_checksum, sealed, unsealed
from konverge.apiserver.storage.database import LOG, Damaged, explained
from konverge.apiserver.storage.disk import Disk
from konverge.apiserver.storage.failures import Failed, Lost, disk_problem
from konverge.apiserver.storage.folder import DataFolder, FolderError
from konverge.apiserver.storage.integrity import State
from konverge.apiserver.storage.records import Event, record_from
from konverge.apiserver.storage.recovery import Recovery
from konverge.apiserver.storage.store import Listener, Store
from konverge.apiserver.storage.witness import witness_path
from konverge.apiserver.storage.worker import Worker

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
CLOSE_SECONDS = 5.0
"""How long the end of the process waits for a disk that does not answer."""
FORGET_GROUPS = 4
"""Old rows deleted with each group: more than one, so that the log shrinks while it grows."""

log = logging.getLogger("konverge.storage")


class SqliteJournal:
    """See `Journal` in store.py. `disk` is how it reaches its files."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self._disk = disk or Disk()
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._waiting: deque[Entry] = deque()
        self._busy = self._is_failed = self._is_closing = False
        self._idle: asyncio.Future[None] | None = None
        self._given = self._durable = 0
        """The newest revision that was appended, and the newest that is known to be on disk."""
        self._group_end = 0
        self._in_flight = 0
        """The revision of the group whose commit is not known to have succeeded or failed; 0 for none."""
        self._compact_to = 0
        self._unchecked = 0
        self._worker: Worker | None = None
        self._recovery: Recovery
        self._listener: Listener
        self._folder = DataFolder(path.parent)
        with contextlib.ExitStack() as undo:
            undo.callback(self._folder.close)
            try:
                self._open(undo)
            except (OSError, sqlite3.Error) as error:
                raise _refusal(path, error) from error
            undo.pop_all()

    def _open(self, undo: contextlib.ExitStack) -> None:
        self._state: State | None = self._disk.prepare(self._path)
        self._seal = self._sealing = self._state.seal
        self._witness = self._disk.witness(self._path)
        undo.callback(self._witness.close)
        self._connection = _opened(self._path, self._disk)
        undo.callback(self._connection.close)
        self._make_log()

    def _make_log(self) -> None:
        """Bring the write-ahead log into the database, and give it the space that it will need.

        What servers that were killed have left there would add up. Zeros are no frames, so the space changes nothing
        about the recovery after a crash.
        """
        (is_blocked, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_blocked:
            raise sqlite3.OperationalError("the database is in use")
        self._unchecked = 0
        self._disk.preallocate(self._log, LOG_BYTES)

    # --- start

    def load(self, store: Store) -> None:
        """Give the state on disk, which was checked when it was read, to a store that continues from there."""
        assert self._state is not None
        state, self._state = self._state, None
        try:
            for table, _, data in state.rows:
                store.table(table).restore(record_from(data))
            for table, event in reversed(list(events(store, state))):
                store.replay(store.table(table), event)
        except msgspec.MsgspecError as error:
            raise Damaged(self._path, f"an object cannot be read: {error}") from error
        self._given = self._durable = max(state.seal.revision, 1)
        store.open(state.seal.revision, state.seal.compacted)

    def start(self, listener: Listener) -> None:
        self._listener = listener
        self._worker = Worker("konverge-journal")
        self._recovery = Recovery(self, self._worker)
        # The preallocated space; while the server starts, no write waits for that.
        self._worker.submit(lambda: self._disk.sync(self._log), self._on_synced)

    # --- on the loop's thread

    def append(self, table: str, event: Event) -> None:
        self._waiting.append((table, event))
        self._given = event.revision
        if not self._busy:
            self._busy = True
            # Not at once: what this turn of the loop still writes joins the group.
            asyncio.get_running_loop().call_soon(self._next)

    def compact(self, revision: int) -> None:
        self._compact_to = revision

    async def close(self) -> None:
        """Write what is left, then close the database. A disk that does not answer is left alone after a while."""
        if self._worker is None:
            self.release()
            return
        if self._is_closing:
            return
        if self._busy:
            self._idle = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._idle], timeout=CLOSE_SECONDS)
        self._is_closing = True
        self._recovery.cancel()
        if self._in_flight and self._in_flight <= self._given:
            log.error("%s: whether the writes after revision %d are on disk is not known", self._path, self._durable)
        self._worker.submit(self._close_files, lambda result, error: None)
        if not await self._worker.close(within=CLOSE_SECONDS):
            log.error("%s cannot be closed: the disk does not answer", self._path)
        self._folder.close()

    def release(self) -> None:
        """Close the database and let others have the folder; for a journal that has not been started."""
        self._connection.close()
        self._witness.close()
        self._folder.close()

    def _next(self) -> None:
        """Write the next group and have it committed, or become idle."""
        waiting = self._waiting
        if self._is_failed or self._is_closing:
            return
        if not waiting:
            self._become_idle()
            return
        assert self._worker is not None
        group = [waiting.popleft() for _ in range(min(len(waiting), GROUP))]
        self._group_end = group[-1][1].revision
        try:
            self._unchecked += self._execute(group)
        except Exception as error:  # whatever it is, this group is not stored, and the next one may be
            self._fail(error)
        else:
            self._in_flight = self._group_end
            self._worker.submit(self._commit, self._on_committed)

    def _execute(self, group: list[Entry]) -> int:
        """Run a group's statements; returns about how many bytes they add to the write-ahead log."""
        connection = self._connection
        before = {(table, event.key): event.old for table, event in reversed(group)}
        after = {(table, event.key): event.record for table, event in group}
        changes = packed(group)
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
        chain = chained(seal.chain, self._group_end, changes)
        connection.execute(LOG, (self._group_end, changes, chain))
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
        return len(changes) + sum(len(put[2]) + 200 for put in puts)

    def _stored_checksum(self, where: tuple[str, str]) -> int:
        """Of the row on disk. Not of the record: that one may be shown by a newer schema than it was written by."""
        row = self._connection.execute(_CHECKSUM, where).fetchone()
        if row is None:
            raise self.lost(f"{where[1]!r} of {where[0]!r} is not on disk any more")
        checksum: int = row[0]
        return checksum

    def _on_synced(self, _: None, error: Exception | None) -> None:
        if error is not None:
            self._fail(error)

    def _on_committed(self, _: object, error: Exception | None) -> None:
        if error is not None:
            self._fail(error)
            return
        assert self._worker is not None
        self._became_durable()
        if self._is_failed:
            return
        if self._unchecked > CHECKPOINT_BYTES:
            self._worker.submit(self._checkpoint, self._on_checkpointed)
        else:
            self._next()

    def _became_durable(self) -> None:
        """The group that was on its way is on disk."""
        self._durable, self._in_flight = self._in_flight, 0
        self._seal = self._sealing
        self._listener.on_durable(self._durable)

    def _on_checkpointed(self, _: None, error: Exception | None) -> None:
        if error is not None:
            self._fail(error)
        else:
            self._next()

    def _become_idle(self) -> None:
        self._busy = False
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    # --- when the disk fails: see recovery.py

    def _fail(self, error: Exception) -> None:
        """Nothing is written until the recovery says so."""
        if self._is_failed:
            return
        self._busy = self._is_failed = True
        text = disk_problem(self._path.parent, error)
        log.error("%s. Writes are refused until then.", text)
        self._listener.on_failed(Failed(text))
        self._take_back_unless_in_doubt()
        self._recovery.begin(error)

    def _take_back_unless_in_doubt(self) -> None:
        """What never came to a commit is not stored, whatever the disk says later."""
        if not self._in_flight:
            self._waiting.clear()
            self._listener.on_truth(self._durable)

    def on_reopened(self, seal: Seal) -> None:
        """Report what is on disk: all that was acknowledged, with or without the group that was on its way."""
        if self._in_flight and seal == self._sealing:
            self._given = max(self._given, self._in_flight)
            self._became_durable()
        elif seal != self._seal:
            raise Lost(
                f"the state {self._path} was acknowledged up to revision {self._durable}, but the disk holds revision "
                f"{seal.revision}, or another state: it lost writes, or another program changed it. {self._cure}"
            )
        self._in_flight = 0
        self._take_back_unless_in_doubt()

    def on_attempt_failed(self, error: Exception) -> None:
        self._listener.on_failed(Failed(disk_problem(self._path.parent, error)))
        if self._in_flight:
            self._listener.on_doubt()
        self._become_idle()

    def on_recovered(self) -> None:
        self._is_failed = False
        self._given = self._durable = self._in_flight
        self._in_flight, self._seal = 0, self._sealing
        log.warning("the data folder %s can be written again: writes are accepted", self._path.parent)
        self._busy = True  # what the listener writes at once waits for the `_next` below, and begins none of its own
        self._listener.on_recovered(self._durable)
        self._next()

    def on_lost(self, error: Lost) -> None:
        self._listener.on_lost(error)
        self._become_idle()

    @property
    def _cure(self) -> str:
        return (
            f"Check the disk; `konverge store check {self._path.parent}` says what is intact, and `konverge store "
            "restore` brings a backup back"
        )

    def lost(self, error: Exception | str) -> Lost:
        return Lost(f"the state {self._path} is damaged ({error}). {self._cure}")

    # --- jobs of the worker, which alone uses the connection until they are done

    def _close_files(self) -> None:
        try:
            self._connection.close()
        finally:
            self._witness.close()

    def _commit(self) -> None:
        self._connection.execute("COMMIT")
        self._testify(self._witness.write, self._sealing)

    def _checkpoint(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._testify(self._witness.sync)
        self._unchecked = 0

    def _testify(self, note: Callable[..., None], *arguments: object) -> None:
        """Note how far the database has come. A commit that is on disk does not fail because of that."""
        try:
            note(*arguments)
        except OSError as error:
            log.warning("%s cannot be written, so that a damage might not show: %s", witness_path(self._path), error)

    def reopen(self) -> Seal:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        if not self._disk.exists(self._path):
            raise Lost(f"the state {self._path} is gone. {self._cure}")
        if self._disk.exists(self._log):
            self._disk.rewrite(self._log)
        self._connection = _opened(self._path, self._disk)
        self._disk.sync(self._path.parent)  # a log that was deleted must not come back after a power loss
        seal = self._seal_on_disk()
        if seal in (self._seal, self._sealing):  # any other is not ours, and must not look so at the next start
            self._testify(self._witness.write, seal)
        return seal

    def _seal_on_disk(self) -> Seal:
        (row,) = self._connection.execute("SELECT data FROM seal").fetchall()
        try:
            return unsealed(row[0])
        except BadSeal as error:
            raise self.lost(error) from error

    def make_room(self) -> None:
        self._make_log()
        self._disk.sync(self._log)

    def try_commit(self) -> None:
        self._group_end = self._given + 1
        self._unchecked += self._execute([])
        self._in_flight = self._group_end
        self._commit()


def _opened(path: Path, disk: Disk) -> sqlite3.Connection:
    connection = disk.connect(path)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # two servers on one folder would corrupt it
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _refusal(path: Path, error: OSError | sqlite3.Error) -> FolderError:
    """Why a server does not start on this disk."""
    return FolderError(disk_problem(path.parent, error)) if isinstance(error, OSError) else explained(path, error)
