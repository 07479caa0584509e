"""A disk in memory for SQLite, on which power is lost and calls fail as a plan says.

What is written is seen by reads at once, and is on the disk for certain after a sync of its file. A loss of power keeps
any part of what was not synced: whole sectors of any of the writes, in any order. The process dies with it: a file that
was open before cannot be used any more, whoever still holds it.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apsw

SECTOR = 512
"""What a disk writes whole or not at all."""

Plan = Callable[[str, str], int | None]
"""Asked before each call, with its name ("write", "sync", …) and its file; an error code of SQLite makes it fail."""


class File:
    """One file: what reads see, what the disk holds, and the calls in between."""

    def __init__(self) -> None:
        self.shown, self.kept = bytearray(), bytearray()
        self.pending: list[tuple[int, bytes | None]] = []  # where and what is written, or what is cut off (None)
        self.is_named = False
        """Its name is on the disk: it has been synced."""

    def change(self, offset: int, data: bytes | None) -> None:
        _apply(self.shown, offset, data)
        self.pending.append((offset, data))

    def sync(self) -> None:
        for offset, data in self.pending:
            _apply(self.kept, offset, data)
        self.pending.clear()
        self.is_named = True

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
        self.shown = bytearray(self.kept)


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


class Disk:
    """Files by path. One disk outlives many lives of a server."""

    def __init__(self, seed: int = 0) -> None:
        self.files: dict[str, File] = {}
        self.life = 0
        self.plan: Plan = lambda call, path: None
        self.calls: dict[str, int] = {}
        self._rng = random.Random(seed)
        self._connections: list[Connection] = []

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
        for path, file in sorted(self.files.items()):
            file.lose_power(self._rng)
            if not file.is_named and self._rng.random() < 0.5:
                del self.files[path]

    def called(self, call: str, path: str, life: int) -> None:
        """Raises what the plan says; and for a process that is dead, always."""
        if life != self.life:
            raise _error(apsw.SQLITE_IOERR)
        self.calls[call] = self.calls.get(call, 0) + 1
        code = self.plan(call, path)
        if code is not None:
            raise _error(code)

    def connect(self, path: str) -> Connection:
        connection = Connection(path, _Vfs(self))
        self._connections.append(connection)
        return connection


def _error(code: int) -> apsw.Error:
    full = code & 0xFF == apsw.SQLITE_FULL
    error: Any = apsw.FullError("disk is full") if full else apsw.IOError("disk I/O error")
    error.result, error.extendedresult = code & 0xFF, code
    return error  # type: ignore[no-any-return]


_names = itertools.count()


class _Vfs(apsw.VFS):
    """The calls of SQLite that are not about one open file."""

    def __init__(self, disk: Disk) -> None:
        self.name = f"simulated-{next(_names)}"
        self._disk, self._life = disk, disk.life
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        path = str(name.filename() if isinstance(name, apsw.URIFilename) else name)
        self._disk.called("open", path, self._life)
        if path not in self._disk.files:
            if not flags[0] & apsw.SQLITE_OPEN_CREATE:
                raise apsw.CantOpenError("no such file")
            self._disk.files[path] = File()
        flags[1] = flags[0]
        return _Handle(self._disk, path, self._life)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self._disk.called("delete", filename, self._life)
        self._disk.files.pop(filename, None)

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname in self._disk.files

    def xFullPathname(self, name: str) -> str:
        return name


class _Handle:
    """An open file of one life of the process. The folder's lock is not the disk's matter: every lock is given."""

    def __init__(self, disk: Disk, path: str, life: int) -> None:
        self._disk, self._path, self._life = disk, path, life
        self._file = disk.files[path]

    def _call(self, name: str) -> File:
        self._disk.called(name, self._path, self._life)
        return self._file

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self._call("read").shown[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self._call("write").change(offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        self._call("truncate").change(newsize, None)

    def xSync(self, flags: int) -> None:
        self._call("sync").sync()

    def xFileSize(self) -> int:
        return len(self._file.shown)

    def xClose(self) -> None:
        pass

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
        self._connection = apsw.Connection(path, vfs=vfs.name)
        self._vfs = vfs  # it is registered as long as it is referred to

    def execute(self, statement: str, values: Any = ()) -> Iterator[Any]:
        rows = _translated(lambda: list(self._connection.execute(statement, values or None)))
        return iter(rows)

    def executemany(self, statement: str, values: Iterable[Any]) -> None:
        _translated(lambda: list(self._connection.executemany(statement, values)))

    def executescript(self, script: str) -> None:
        self.execute(script)

    def close(self) -> None:
        _translated(self._connection.close)


def _translated(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except apsw.Error as error:
        translated: Any = sqlite3.OperationalError(str(error))
        translated.sqlite_errorcode = getattr(error, "extendedresult", 0) or getattr(error, "result", 1)
        raise translated from error
