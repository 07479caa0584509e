"""Whether a state on disk is exactly what was acknowledged: everything is read, and everything is checked.

    state = existing_state(Path("data/state.db"))
    print(state.seal.revision, len(state.rows))

The server reads its state so when it starts, `konverge store check` when it is run. A state that fails is refused
and left as it is: a server that went on would overwrite what could still be saved.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from konverge.apiserver.storage.checksums import BadSeal, Seal, chained, changed_total, row_checksum, unsealed
from konverge.apiserver.storage.database import (
    APPLICATION,
    FORMAT,
    Damaged,
    Logged,
    Row,
    create_database,
    explained,
    reading,
)
from konverge.apiserver.storage.folder import FolderError
from konverge.apiserver.storage.witness import Mark, marks, witness_path

_ROWS = "SELECT tbl, key, data, checksum FROM current INDEXED BY sqlite_autoindex_current_1 ORDER BY tbl, key"
"""By the index, so that both are read: with a damaged one, a later write would miss the row."""
_LOG = "SELECT revision, changes, checksum FROM log ORDER BY revision"

log = logging.getLogger("konverge.storage")


class State(msgspec.Struct, frozen=True):
    """A state that was found whole."""

    seal: Seal
    rows: list[Row]
    log: list[tuple[int, bytes, int]]
    """Revision, changes and checksum of each group, from the oldest to the newest."""


class OldFormat(Exception):
    """The state was written by a Konverge that knew no checksums."""


def new_identity() -> bytes:
    return secrets.token_bytes(16)


def prepared(path: Path) -> State:
    """The state of a folder whose lock the caller holds: read, or made if there is none, or brought to this format."""
    if not _exists(path):
        create_database(path, Seal(id=new_identity(), revision=0))
    try:
        return read_state(path)
    except OldFormat:
        _upgrade(path)
        return read_state(path)


def _exists(path: Path) -> bool:
    """Whether there is a database. Raises Damaged if there was one."""
    if path.exists() and path.stat().st_size:
        return True
    with contextlib.suppress(FileNotFoundError):
        # The witness of a new state is there a moment before the state: then nothing was ever acknowledged.
        if any(mark is None or mark.revision for mark in marks(path)):
            raise Damaged(path, f"it is {'empty' if path.exists() else 'missing'}, but its witness is there")
    if any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal")):
        raise Damaged(path, f"it is {'empty' if path.exists() else 'missing'}, but its log is there")
    return False


def existing_state(path: Path) -> State:
    """Read a state that must be there. Raises as `read_state`."""
    if not _exists(path):
        raise FolderError(f"there is no state in {path.parent}: give the folder of --data-dir")
    return read_state(path)


def read_state(path: Path) -> State:
    """Read a state without changing it. Raises FolderError, Damaged above all, and OldFormat."""
    try:
        with reading(path) as connection:
            _check_format(path, connection)
            for (problem,) in connection.execute("PRAGMA quick_check(1)"):
                if problem != "ok":
                    raise Damaged(path, problem)
            state = _read(path, connection)
    except sqlite3.Error as error:
        raise explained(path, error) from error
    _compare(path, state)
    return state


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if (version, application) == (FORMAT, APPLICATION):
        return
    if {"current", "log", "state"} <= names and not version and not application and "seal" not in names:
        raise OldFormat
    if application == APPLICATION and version > FORMAT:
        raise FolderError(
            f"the state {path} has format {version}, this Konverge knows {FORMAT}: use the newer Konverge that wrote "
            f"it; if there was none, it is damaged: `konverge store salvage {path.parent} --to NEW_DIR`"
        )
    raise Damaged(path, "its header is not that of a state", "is damaged or of another program")


def _read(path: Path, connection: sqlite3.Connection) -> State:
    sealed = connection.execute("SELECT data FROM seal").fetchall()
    try:
        ((data,),) = sealed
        seal = unsealed(data)
    except (BadSeal, TypeError, ValueError) as error:
        raise Damaged(path, "its seal cannot be read") from error
    rows = list(_rows(path, connection, seal))
    return State(seal, rows, list(_logged(path, connection, seal)))


def _rows(path: Path, connection: sqlite3.Connection, seal: Seal) -> Iterator[Row]:
    count = total = 0
    for table, key, data, checksum in connection.execute(_ROWS):
        if not is_intact(table, key, data, checksum):
            raise Damaged(path, f"the checksum of {key!r} in {table!r} is wrong")
        count, total = count + 1, changed_total(total, (), (checksum,))
        yield table, key, data
    if (count, total) != (seal.count, seal.total):
        raise Damaged(path, f"it has {count} objects of {seal.count}, or others than were written")


def is_intact(table: object, key: object, data: object, checksum: object) -> bool:
    """Whether the columns of a row are what was written; damage can change their types, too."""
    if not isinstance(table, str) or not isinstance(key, str) or not isinstance(data, bytes):
        return False
    return row_checksum(table, key, data) == checksum


def _logged(path: Path, connection: sqlite3.Connection, seal: Seal) -> Iterator[tuple[int, bytes, int]]:
    chain, newest = seal.base, seal.base_revision
    for revision, changes, checksum in connection.execute(_LOG):
        intact = isinstance(changes, bytes) and revision > newest and chained(chain, revision, changes) == checksum
        if not intact:
            raise Damaged(path, f"its history is broken at revision {revision}")
        chain, newest = checksum, revision
        yield revision, changes, checksum
    if chain != seal.chain:
        raise Damaged(path, f"its history ends at revision {newest}, not at {seal.revision}")


def _compare(path: Path, state: State) -> None:
    """Whether the state reaches as far as its witness says, on the same way."""
    mark = _newest_mark(path)
    seal = state.seal
    if mark.id != seal.id:
        raise Damaged(path, f"{witness_path(path).name} belongs to another state: one of the two was replaced")
    if seal.revision < mark.revision:
        raise Damaged(path, f"it ends at revision {seal.revision}, but revision {mark.revision} was acknowledged")
    if not _passed(state, mark):
        raise Damaged(path, f"at revision {mark.revision} it is not what was acknowledged")


def _newest_mark(path: Path) -> Mark:
    try:
        slots = marks(path)
    except FileNotFoundError:
        raise Damaged(path, f"{witness_path(path).name} is missing, so that a loss would not show") from None
    whole = [mark for mark in slots if mark is not None]
    if not whole:
        raise Damaged(path, f"{witness_path(path).name} is damaged, so that a loss would not show")
    if len(whole) < len(slots):
        log.warning("%s is damaged in part; the rest of it is enough", witness_path(path))
    return max(whole, key=lambda mark: mark.revision)


def _passed(state: State, mark: Mark) -> bool:
    """Whether the way to the state leads through a mark; what the log has dropped cannot be compared."""
    seal = state.seal
    if mark.revision <= seal.base_revision:
        return mark.revision < seal.base_revision or mark.chain == seal.base
    for revision, _, checksum in state.log:
        if revision >= mark.revision:
            return (revision, checksum) == (mark.revision, mark.chain)
    return (seal.revision, seal.chain) == (mark.revision, mark.chain)


# --- the format without checksums


def _upgrade(path: Path) -> None:
    """Make a state of this format of one without checksums; the old file stays until the new one is complete."""
    seal, rows, logged = _read_old(path)
    with contextlib.suppress(FileNotFoundError):
        known = {mark.revision for mark in marks(path) if mark is not None}
        if not known or max(known) > seal.revision:  # else an upgrade was interrupted, and the old version went on
            raise Damaged(path, "it is older than its witness: it was replaced")
    _merge_log(path)
    create_database(path, seal, rows, logged)
    log.warning("%s: the state had no checksums; it has them now, and older versions cannot read it", path.parent)


def _read_old(path: Path) -> tuple[Seal, list[Row], list[Logged]]:
    try:
        with reading(path) as connection:
            for (problem,) in connection.execute("PRAGMA integrity_check(1)"):
                if problem != "ok":
                    raise Damaged(path, problem)
            state = dict(connection.execute("SELECT name, value FROM state"))
            rows: list[Row] = connection.execute("SELECT tbl, key, data FROM current").fetchall()
            logged: list[Logged] = connection.execute("SELECT revision, changes FROM log ORDER BY revision").fetchall()
    except sqlite3.Error as error:
        raise explained(path, error) from error
    revision = state.get("revision", 1)
    base = 0 if logged else revision  # where the log begins
    return (
        Seal(id=new_identity(), revision=revision, compacted=state.get("compacted", 0), base_revision=base),
        rows,
        logged,
    )


def _merge_log(path: Path) -> None:
    """Bring the write-ahead log into the database: beside the file that takes its place it would be applied to that."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise explained(path, error) from error
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size:
        raise FolderError(f"the state {path} is open in another program: close it there, or give another data folder")
    wal.unlink(missing_ok=True)
