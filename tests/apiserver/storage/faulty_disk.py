"""A disk whose calls fail as a test says: before they take effect, after it, or without a word."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any, Literal, NamedTuple

from konverge.apiserver.storage.disk import Disk

Kind = Literal["statement", "commit", "checkpoint", "connect", "preallocate", "sync", "rewrite"]
KINDS: tuple[Kind, ...] = ("statement", "commit", "checkpoint", "connect", "preallocate", "sync", "rewrite")
FULL, BROKEN, CORRUPT = "full", "broken", "corrupt"


class Fault(NamedTuple):
    """What goes wrong. `late`: the call takes effect, and reports an error all the same."""

    error: str = FULL
    late: bool = False
    lies: bool = False
    """It reports success and does nothing."""


NO_ROOM = Fault()


def _sqlite_error(name: str) -> sqlite3.Error:
    texts = {FULL: "database or disk is full", BROKEN: "disk I/O error", CORRUPT: "database disk image is malformed"}
    codes = {
        FULL: sqlite3.SQLITE_FULL,
        BROKEN: sqlite3.SQLITE_IOERR_FSYNC,
        CORRUPT: sqlite3.SQLITE_CORRUPT,
    }
    error = sqlite3.OperationalError(texts[name])
    error.sqlite_errorcode = codes[name]
    return error


def _os_error(name: str) -> OSError:
    return OSError(ENOSPC, "No space left on device") if name == FULL else OSError(EIO, "Input/output error")


class FaultyDisk(Disk):
    """`plan` is asked before every call, and may name its fault."""

    def __init__(self, plan: Callable[[Kind], Fault | None] = lambda kind: None) -> None:
        self.plan = plan
        self.calls: list[Kind] = []
        self.keeps_log = False
        """Closing leaves the write-ahead log, as it does where the database cannot be written."""

    def fail(self, *kinds: Kind, fault: Fault = NO_ROOM) -> None:
        """From now on these calls fail."""
        self.plan = lambda kind: fault if kind in kinds else None

    def fail_once(self, kind: Kind, fault: Fault = NO_ROOM) -> None:
        """The next such call fails."""
        left = [fault]
        self.plan = lambda called: left.pop() if called == kind and left else None

    def work(self) -> None:
        self.plan = lambda kind: None

    def call(self, kind: Kind, act: Callable[[], Any], make: Callable[[str], Exception]) -> Any:
        self.calls.append(kind)
        fault = self.plan(kind)
        if fault is None:
            return act()
        if fault.lies:
            return None
        if fault.late and kind != "connect":  # that would leave a connection that holds the lock
            act()
        raise make(fault.error)

    # --- the calls

    def connect(self, path: Path) -> sqlite3.Connection:
        def opened() -> FaultyConnection:
            made = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=FaultyConnection)
            made.disk, made.log = self, path.with_name(f"{path.name}-wal")
            return made

        connection: FaultyConnection = self.call("connect", opened, _sqlite_error)
        return connection

    def preallocate(self, path: Path, size: int) -> None:
        self.call("preallocate", lambda: super(FaultyDisk, self).preallocate(path, size), _os_error)

    def sync(self, path: Path) -> None:
        self.call("sync", lambda: None, _os_error)  # no power is lost here, and syncing is slow

    def rewrite(self, path: Path) -> None:
        self.call("rewrite", lambda: super(FaultyDisk, self).rewrite(path), _os_error)


class FaultyConnection(sqlite3.Connection):
    disk: FaultyDisk
    log: Path

    def close(self) -> None:
        kept = self.log.read_bytes() if self.disk.keeps_log and self.log.exists() else None
        super().close()
        if kept is not None:
            self.log.write_bytes(kept)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if sql == "PRAGMA synchronous = FULL":
            sql = "PRAGMA synchronous = OFF"
        kind = _kind(sql)
        if kind is None:
            return super().execute(sql, parameters)

        cursor: sqlite3.Cursor | None = self.disk.call(
            kind, lambda: super(FaultyConnection, self).execute(sql, parameters), _sqlite_error
        )
        return cursor or super().execute("ROLLBACK")

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        cursor: sqlite3.Cursor = self.disk.call(
            "statement", lambda: super(FaultyConnection, self).executemany(sql, parameters), _sqlite_error
        )
        return cursor


def _kind(sql: str) -> Kind | None:
    if sql == "COMMIT":
        return "commit"
    if sql.startswith("PRAGMA wal_checkpoint"):
        return "checkpoint"
    return "statement" if sql.startswith(("BEGIN", "INSERT", "UPDATE", "DELETE", "SELECT")) else None
