"""The file of a state: its tables, how a new one is made as a whole, and how an existing one is read without a change.

`current` holds the present state, `log` the recent changes, `seal` one row over both (see checksums.py). `state` is
where earlier versions of Konverge look first: without the columns they look for, they refuse this file and leave it. (A
view that says more would end SQLite's own check of the file without a result.)
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from konverge.apiserver.storage.checksums import Seal, chained, changed_total, row_checksum, sealed
from konverge.apiserver.storage.failures import disk_problem
from konverge.apiserver.storage.folder import FolderError, create_private, sync_folder
from konverge.apiserver.storage.pages import PAGE
from konverge.apiserver.storage.witness import create as create_witness

FORMAT = 2
"""Format 1 had no checksums."""
APPLICATION = 0x4B4E5647
_SCHEMA = """
CREATE TABLE current (
  tbl TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (tbl, key)
);
CREATE TABLE log (revision INTEGER PRIMARY KEY, changes BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE seal (only INTEGER PRIMARY KEY CHECK (only = 1), data BLOB NOT NULL);
CREATE TABLE state (written_by_a_newer_konverge INTEGER);
"""
_ADD = "INSERT INTO current (tbl, key, data, checksum) VALUES (?, ?, ?, ?)"
LOG = "INSERT INTO log (revision, changes, checksum) VALUES (?, ?, ?)"
_SEAL = "INSERT INTO seal (only, data) VALUES (1, ?)"

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)
"""What SQLite says of a file with other content than it should have, and (ERROR) of a table that is not there."""

Row = tuple[str, str, bytes]
"""Table, key and data."""
Logged = tuple[int, bytes]
"""Revision and changes."""


def create_database(
    path: Path,
    seal: Seal,
    rows: Iterable[Row] = (),
    log: Iterable[Logged] = (),
    make_room: Callable[[], None] = lambda: None,
) -> Seal:
    """Make a state with these rows, and its witness; `seal` gives its identity, revision and where its log begins.

    The state is there as a whole or not at all, whenever the machine stops. It takes the place of a file of that name,
    whose write-ahead log must be gone; `make_room` is called when the new file is complete, and before it is in place.
    """
    new = path.with_name(f"{path.name}.new")
    _remove(new)
    try:
        seal = _build(new, seal, rows, log)
        make_room()
        create_witness(path, seal)
        new.replace(path)
    except BaseException:
        _remove(new)
        raise
    sync_folder(path.parent)
    return seal


def _build(new: Path, seal: Seal, rows: Iterable[Row], log: Iterable[Logged]) -> Seal:
    create_private(new)
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("PRAGMA synchronous = OFF")  # one sync of the whole file is enough
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.executescript(_SCHEMA)
        connection.execute("BEGIN")
        seal = _filled(connection, seal, rows, log)
        connection.execute(_SEAL, (sealed(seal),))
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    sync_file(new)
    return seal


def _filled(connection: sqlite3.Connection, seal: Seal, rows: Iterable[Row], log: Iterable[Logged]) -> Seal:
    count, total, chain = 0, 0, seal.base
    for table, key, data in rows:
        checksum = row_checksum(table, key, data)
        connection.execute(_ADD, (table, key, data, checksum))
        count, total = count + 1, changed_total(total, (), (checksum,))
    for revision, changes in log:
        chain = chained(chain, revision, changes)
        connection.execute(LOG, (revision, changes, chain))
    return Seal(
        id=seal.id,
        revision=seal.revision,
        compacted=seal.compacted,
        count=count,
        total=total,
        base=seal.base,
        base_revision=seal.base_revision,
        chain=chain,
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing: one that may write would bring the log into the database when it closes."""
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    had_index = index.exists()
    mode = "mode=ro" if log.exists() else "immutable=1"  # to read a log, SQLite needs its index as a file
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True, timeout=1)
    try:
        yield connection
    finally:
        connection.close()
        if not had_index:
            index.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def explained(path: Path, error: sqlite3.Error) -> FolderError:
    """What is wrong with the database, and what to do."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # without the extended part
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return FolderError(f"the state {path} is open in another program: close it there, or give another data folder")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
        return FolderError(disk_problem(path.parent, error))
    if code in _DAMAGE:
        return Damaged(path, str(error), "is damaged or of another program")
    return FolderError(
        f"the state {path} cannot be opened ({error}): check the disk and who may read the file, or give another data "
        f"folder; if it is damaged, `konverge store salvage {path.parent} --to NEW_DIR` saves what is intact"
    )


class Damaged(FolderError):
    """A state that is not as it was written."""

    def __init__(self, path: Path, problem: str, what: str = "is damaged") -> None:
        self.problem = problem
        super().__init__(
            f"the state {path} {what} ({problem}). Nothing was changed. Bring a backup back with `konverge store "
            f"restore FILE --to {path.parent} --force`, or save what is intact with `konverge store salvage "
            f"{path.parent} --to NEW_DIR`"
        )


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
