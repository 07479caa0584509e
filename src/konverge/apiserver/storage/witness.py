"""The witness: a small file beside the database that says how far it had come.

SQLite ends the recovery of its write-ahead log at the first frame that is not whole: a flipped bit there, or a log that
was removed, looks like a log that never had more. So after each commit, and before a client hears of it, its revision
and checksum are written to a second file. Whatever the database is after that, it must reach at least so far.

The file is written without waiting for the disk: after a power loss it may be older than the database, never newer, so
it raises no false alarm. Two slots are written in turn; while one is being written, the other is whole.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from konverge.apiserver.private_files import write_private
from konverge.apiserver.storage.checksums import Seal, with_checksum, without_checksum

SUFFIX = "-witness"
_SLOT = 4096
_SLOTS = 2


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """One point that the database had reached."""

    id: bytes
    revision: int
    chain: int


class Witness:
    """The open file of a server that runs."""

    def __init__(self, database: Path) -> None:
        revisions = [-1 if mark is None else mark.revision for mark in marks(database)]
        self._turn = revisions.index(max(revisions))  # the newest mark stays until the other slot is written
        self._file = os.open(witness_path(database), os.O_RDWR | os.O_NOFOLLOW)

    def write(self, seal: Seal) -> None:
        """Note a commit that is on disk; does not wait for the disk itself. Raises OSError."""
        self._turn = (self._turn + 1) % _SLOTS
        os.pwrite(self._file, _slot(seal), self._turn * _SLOT)

    def sync(self) -> None:
        os.fsync(self._file)

    def close(self) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):  # what is on disk is old, not wrong
                self.sync()
            os.close(self._file)
            self._file = -1


def witness_path(database: Path) -> Path:
    return database.with_name(database.name + SUFFIX)


def create(database: Path, seal: Seal) -> None:
    """Put a witness on disk that knows nothing but this point. It takes the place of another one at once."""
    write_private(witness_path(database), _slot(seal).ljust(_SLOT, b"\0") * _SLOTS)


def marks(database: Path) -> list[Mark | None]:
    """What the slots say, None for one that is damaged. Raises FileNotFoundError."""
    data = witness_path(database).read_bytes()
    return [_mark(data[slot * _SLOT : (slot + 1) * _SLOT]) for slot in range(_SLOTS)]


def _slot(seal: Seal) -> bytes:
    body = with_checksum(msgspec.msgpack.encode(Mark(seal.id, seal.revision, seal.chain)))
    return len(body).to_bytes(2, "big") + body


def _mark(slot: bytes) -> Mark | None:
    size = int.from_bytes(slot[:2], "big")
    body = without_checksum(slot[2 : 2 + size])
    try:
        return None if not body else msgspec.msgpack.decode(body, type=Mark)
    except msgspec.MsgspecError:
        return None
