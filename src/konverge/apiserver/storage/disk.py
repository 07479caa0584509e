"""How the journal reaches the disk: the one place where its files are opened, synced and read back.

A test gives the journal another `Disk`, whose connection fails at a chosen call or whose files are simulated.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from konverge.apiserver.storage.integrity import State, prepared
from konverge.apiserver.storage.witness import Witness

_BLOCK = 1024 * 1024


class Disk:
    """The disk of this machine. All methods may block, and raise OSError or sqlite3.Error."""

    def prepare(self, path: Path) -> State:
        """Read the state, or make a new one. Raises FolderError, too."""
        return prepared(path)

    def witness(self, path: Path) -> Witness:
        """The witness of a state that is there."""
        return Witness(path)

    def connect(self, path: Path) -> sqlite3.Connection:
        """Open a database without changing it; the journal sets it up."""
        return sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def preallocate(self, path: Path, size: int) -> None:
        """Write zeros up to a size: syncing a file that does not grow costs half as much."""
        with path.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(bytes(max(0, size - file.tell())))

    def sync(self, path: Path) -> None:
        """Make a file durable, or the entries of a folder."""
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rewrite(self, path: Path) -> None:
        """Write a file's content again and sync it, so that what is read from it is what is on disk.

        After a sync that failed, the kernel takes pages for written that are not: reads show them, and the next sync
        passes without writing them (https://lwn.net/Articles/752063/).
        """
        with path.open("r+b", buffering=0) as file:
            while block := file.read(_BLOCK):
                file.seek(-len(block), os.SEEK_CUR)
                _write_all(file.fileno(), block)
            os.fsync(file.fileno())


def _write_all(descriptor: int, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
