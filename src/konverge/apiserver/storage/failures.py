"""Why a write is refused when the disk fails, and what the writer may conclude.

Failed              nothing of the write is stored, and it can be sent again
├── InDoubt         whether it is stored is not known
└── Lost            the disk lost what was acknowledged: this server cannot go on
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from errno import EDQUOT, ENOSPC
from pathlib import Path

_NO_ROOM = 64 * 1024


class Failed(Exception):
    """The disk cannot be written at present: nothing of this write is stored. The message says what to do."""


class InDoubt(Failed):
    """The disk failed while it stored this write, and has not answered since."""


class Lost(Failed):
    """The state on disk is not the one that was acknowledged. No repair from here: the process has to end."""


def is_full(error: BaseException) -> bool:
    """Whether there is no room, as opposed to a disk that does not work."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT)


def is_damage(error: BaseException) -> bool:
    """Whether the database itself is broken: trying again changes nothing."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind, the rest its detail
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def disk_problem(folder: Path, error: BaseException) -> str:
    """What is wrong with the disk of a data folder, and what to do."""
    cause = getattr(error, "strerror", None) or str(error)
    if is_full(error) or _has_no_room(folder):
        return f"the disk of the data folder {folder} is full ({cause}): make room there"
    return f"the data folder {folder} cannot be written ({cause}): check the disk"


def _has_no_room(folder: Path) -> bool:
    """SQLite has more errors than one for that: it needs room for an index of its log, too."""
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize < _NO_ROOM
    return False
