"""Backups: all objects at one revision, in one file that proves itself.

A backup is a line that names the format, then frames: a head, rows, and an end with their number and the sum of their
checksums; each frame has its length before it and a checksum after it. So a server can send it while it is made, and
what is cut off or changed shows. It holds objects, also Secrets; no history, and none of the keys and tokens of the
data folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from konverge import clock
from konverge.apiserver.storage.checksums import changed_total, row_checksum, with_checksum, without_checksum
from konverge.apiserver.storage.database import Row
from konverge.apiserver.storage.folder import PRIVATE_FILE, FolderError, sync_folder

MAGIC = b"konverge backup 1\n"
_FRAME = 64 * 1024
"""About the bytes of one frame: what a server hashes and sends before it lets others run."""
_LENGTH = 4


class Head(msgspec.Struct, frozen=True, tag="head", array_like=True):
    revision: int
    """The state is that of this revision."""
    created: float


class _Rows(msgspec.Struct, frozen=True, tag="rows", array_like=True):
    rows: list[Row]


class End(msgspec.Struct, frozen=True, tag="end", array_like=True):
    count: int
    total: int


_decoder = msgspec.msgpack.Decoder(Head | _Rows | End)


class BackupError(FolderError):
    """A file that is no backup, or not all of one."""


def encoded(revision: int, rows: Iterable[Row]) -> Iterator[bytes]:
    """A backup in pieces of moderate size."""
    yield MAGIC + _frame(Head(revision, clock.now()))
    count = total = size = 0
    pending: list[Row] = []
    for row in rows:
        pending.append(row)
        count, total, size = count + 1, changed_total(total, (), (row_checksum(*row),)), size + len(row[2])
        if size >= _FRAME:
            yield _frame(_Rows(pending))
            pending, size = [], 0
    yield (_frame(_Rows(pending)) if pending else b"") + _frame(End(count, total))


def _frame(part: Head | _Rows | End) -> bytes:
    body = with_checksum(msgspec.msgpack.encode(part))
    return len(body).to_bytes(_LENGTH, "big") + body


def check_backup(path: Path) -> tuple[Head, End]:
    """Read all of a backup. Raises BackupError if it is not whole."""
    head: Head | None = None
    end: End | None = None
    count = total = 0
    for part in _parts(path):
        if end is not None or (head is None) is not isinstance(part, Head):
            raise _not_whole(path, "its parts are in the wrong order")
        if isinstance(part, Head):
            head = part
        elif isinstance(part, End):
            end = part
        else:
            count += len(part.rows)
            total = changed_total(total, (), (row_checksum(*row) for row in part.rows))
    if head is None or end is None:
        raise _not_whole(path, "its end is missing")
    if (count, total) != (end.count, end.total):
        raise _not_whole(path, f"it has {count} objects of {end.count}, or others than were written")
    return head, end


def backup_rows(path: Path) -> Iterator[Row]:
    """The rows of a backup that was checked."""
    for part in _parts(path):
        if isinstance(part, _Rows):
            yield from part.rows


def _parts(path: Path) -> Iterator[Head | _Rows | End]:
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise BackupError(f"{path} is no backup: give a file that `konverge store backup` wrote")
        while length := file.read(_LENGTH):
            yield _part(path, file, int.from_bytes(length, "big"))


def _part(path: Path, file: BinaryIO, length: int) -> Head | _Rows | End:
    if length > os.fstat(file.fileno()).st_size:
        raise _not_whole(path, "a length is wrong")
    body = without_checksum(file.read(length))
    if body is None:
        raise _not_whole(path, f"a checksum before byte {file.tell()} is wrong")
    try:
        part: Head | _Rows | End = _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise _not_whole(path, str(error)) from error
    return part


def _not_whole(path: Path, problem: str) -> BackupError:
    return BackupError(f"the backup {path} is damaged or cut off ({problem}): use another one")


@contextlib.contextmanager
def new_backup(path: Path) -> Iterator[BinaryIO]:
    """A file for a backup: it gets its name when it is complete, on disk, and was read again without an error."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        check_backup(new)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
