"""A disk for the journal on which power is lost and calls fail as a plan says.

The files are real ones (in a folder in memory, if a test wants to be quick); below SQLite this disk notes what has been
written and not synced. A loss of power keeps any part of that: whole sectors of any of the writes, in any order. The
process dies with it: what was open before can change nothing any more, whoever still holds it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import apsw

from konverge.apiserver.storage.disk import Disk
from konverge.apiserver.storage.witness import SUFFIX

SECTOR = 512
"""What a disk writes whole or not at all."""

Plan = Callable[[str, str], int | None]
"""Asked before each call, with its name ("write", "sync", …) and its file; an error code of SQLite makes it fail."""


_REMEMBERED = 8


def _no_fault(call: str, path: str) -> int | None:
    return None


class File:
    """What the disk holds for certain of a file, and the changes that reads show beyond that."""

    def __init__(self, path: Path) -> None:
        self.path, self.inode = path, path.stat().st_ino
        self.kept = bytearray(path.read_bytes())
        self.pending: list[tuple[int, bytes | None]] = []  # where and what is written, or what is cut off (None)

    def sync(self) -> None:
        for offset, data in self.pending:
            _apply(self.kept, offset, data)
        self.pending.clear()

    def lose_power(self, rng: random.Random) -> None:
        share = rng.choice((0.0, 0.5, 0.9, 1.0))
        for offset, data in self.pending:
            if data is None:
                if rng.random() < share:
                    _apply(self.kept, offset, None)
                continue
            for start, sector in _sectors(offset, data):
                if rng.random() < share:
                    _apply(self.kept, start, sector)
        self.pending.clear()
        self.path.write_bytes(self.kept)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _sectors(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        length = SECTOR - (offset + at) % SECTOR
        yield offset + at, data[at : at + length]
        at += length


class SimulatedDisk:
    """One disk outlives many processes that use it."""

    def __init__(self, seed: int = 0) -> None:
        self.life = 0
        self.plan: Plan = _no_fault
        self.calls: dict[str, int] = {}
        self._files: dict[Path, File] = {}
        self._rng = random.Random(seed)
        self._connections: list[Connection] = []
        self._witnesses: dict[Path, list[bytes]] = {}

    def process(self) -> Disk:
        """How a process reaches the disk, until that process is dead."""
        return _Process(self)

    def work(self) -> None:
        """No call fails from now on."""
        self.plan = _no_fault

    def kill(self) -> None:
        """The process ends; the operating system still has all that was written."""
        self.life += 1
        for connection in self._connections:
            with contextlib.suppress(sqlite3.Error):
                connection.close()  # of a dead process: it can change nothing any more
        self._connections.clear()

    def lose_power(self) -> None:
        """The machine ends."""
        self.kill()
        for file in self._files.values():
            if file.path.exists():
                file.lose_power(self._rng)
        for path, contents in self._witnesses.items():
            path.write_bytes(self._rng.choice(contents))

    # --- for the processes

    def opened(self, connection: Connection) -> None:
        self._connections.append(connection)

    def file(self, path: Path) -> File:
        """What is known of a file; one that took its place was synced before."""
        known = self._files.get(path)
        if known is None or known.inode != path.stat().st_ino:
            known = self._files[path] = File(path)
        return known

    def log_synced(self, path: Path) -> None:
        """Note what the witness says now: it is not synced itself, so a power loss may leave any of the last states."""
        witness = path.with_name(path.name.removesuffix("-wal") + SUFFIX)
        if witness.exists():
            self._witnesses.setdefault(witness, []).append(witness.read_bytes())
            del self._witnesses[witness][:-_REMEMBERED]

    def removed(self, path: Path) -> None:
        self._files.pop(path, None)
        path.unlink(missing_ok=True)

    def called(self, call: str, path: str, life: int) -> None:
        """Raises what the plan says; and for a process that is dead, always."""
        code = apsw.SQLITE_IOERR if life != self.life else self.plan(call, path)
        self.calls[call] = self.calls.get(call, 0) + 1
        if code is not None:
            raise _error(code)


class _Process(Disk):
    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk, self._life = disk, disk.life

    def connect(self, path: Path) -> sqlite3.Connection:
        connection = Connection(str(path), _Vfs(self._disk, self._life))
        self._disk.opened(connection)
        return cast("sqlite3.Connection", connection)

    def preallocate(self, path: Path, size: int) -> None:
        self._called("preallocate", path)
        end = path.stat().st_size
        super().preallocate(path, size)
        if size > end:
            self._disk.file(path).pending.append((end, bytes(size - end)))

    def sync(self, path: Path) -> None:
        self._called("sync", path)
        if path.is_file():
            self._disk.file(path).sync()

    def rewrite(self, path: Path) -> None:
        self._called("rewrite", path)
        file = self._disk.file(path)
        file.kept[:] = path.read_bytes()
        file.pending.clear()

    def _called(self, call: str, path: Path) -> None:
        try:
            self._disk.called(call, str(path), self._life)
        except apsw.Error as error:
            full = isinstance(error, apsw.FullError)
            raise OSError(errno.ENOSPC if full else errno.EIO, "a fault of the plan", str(path)) from error


def _error(code: int) -> apsw.Error:
    full = code & 0xFF == apsw.SQLITE_FULL
    error: Any = apsw.FullError("database or disk is full") if full else apsw.IOError("disk I/O error")
    error.result, error.extendedresult = code & 0xFF, code
    return cast("apsw.Error", error)


_names = itertools.count()


class _Vfs(apsw.VFS):
    """The calls of SQLite that are not about one open file."""

    def __init__(self, disk: SimulatedDisk, life: int) -> None:
        self.name = f"simulated-{next(_names)}"
        self._disk, self._life = disk, life
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        path = str(name.filename() if isinstance(name, apsw.URIFilename) else name)
        self._disk.called("open", path, self._life)
        return _Handle(self._disk, Path(path), self._life)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self._disk.called("delete", filename, self._life)
        self._disk.removed(Path(filename))

    def xAccess(self, pathname: str, flags: int) -> bool:
        return Path(pathname).exists()

    def xFullPathname(self, name: str) -> str:
        return name


class _Handle:
    """An open file of one life of the process. The folder's lock is not the disk's matter: every lock is given."""

    def __init__(self, disk: SimulatedDisk, path: Path, life: int) -> None:
        self._disk, self._path, self._life = disk, path, life
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._file = disk.file(path)

    def _call(self, name: str) -> File:
        self._disk.called(name, str(self._path), self._life)
        return self._file

    def xRead(self, amount: int, offset: int) -> bytes:
        self._call("read")
        return os.pread(self._descriptor, amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        file = self._call("write")
        os.pwrite(self._descriptor, data, offset)
        file.pending.append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        file = self._call("truncate")
        os.ftruncate(self._descriptor, newsize)
        file.pending.append((newsize, None))

    def xSync(self, flags: int) -> None:
        self._call("sync").sync()
        if self._path.name.endswith("-wal"):
            self._disk.log_synced(self._path)

    def xFileSize(self) -> int:
        return os.fstat(self._descriptor).st_size

    def xClose(self) -> None:
        os.close(self._descriptor)

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


class Connection:
    """A connection to a database on the disk, with the methods and the errors of the standard library's."""

    def __init__(self, path: str, vfs: _Vfs) -> None:
        self._connection = _translated(lambda: apsw.Connection(path, vfs=vfs.name))
        self._vfs = vfs  # it is registered as long as it is referred to

    def execute(self, statement: str, values: Any = ()) -> Rows:
        return Rows(_translated(lambda: list(self._connection.execute(statement, values or None))))

    def executemany(self, statement: str, values: Iterable[Any]) -> None:
        _translated(lambda: list(self._connection.executemany(statement, values)))

    def close(self) -> None:
        _translated(self._connection.close)


class Rows:
    """The result of a statement."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)


def _translated(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except apsw.Error as error:
        translated: Any = sqlite3.OperationalError(str(error))
        translated.sqlite_errorcode = getattr(error, "extendedresult", 0) or getattr(error, "result", 1)
        raise translated from error
