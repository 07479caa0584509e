"""The data folder of a server: who may use it, and that only its owner can read it. It holds Secrets and keys.

    with contextlib.closing(DataFolder(Path("data"))):
        ...

A server holds the lock of its folder for as long as it runs. The lock is the operating system's, so it ends with the
process, however that ends; the process id in the file is only for messages.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
LOCK = "lock"
DATABASE = "state.db"
_SECRET = (f"{DATABASE}*", "token", "console.token", "kubeconfig", "*.key", "pki/*.pem", LOCK)
"""The files that the server and `konverge up` write; other files in the folder are not ours to change."""

log = logging.getLogger("konverge.storage")


class FolderError(Exception):
    """A data folder that cannot be used; the message says what to do."""


class FolderInUse(FolderError):
    """Another process uses the folder."""


class DataFolder:
    """A folder that is created or checked, made private, and locked until `close`. Raises FolderError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            _create(path)
            _refuse_others(path)
            self._release = weakref.finalize(self, os.close, _locked(path))
            _make_private(path)
        except OSError as error:
            raise FolderError(
                f"the data folder {path} cannot be used ({error.strerror or error}): check the path, and that you may "
                "write there"
            ) from error

    def close(self) -> None:
        """Let others have it."""
        self._release()


def _create(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise FolderError(f"the data folder {path} is a file: give the path of a folder")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        sync_folder(
            path.parent
        )  # without its name the folder is gone after a power loss, with all that is synced in it


def _refuse_others(path: Path) -> None:
    """What another user owns, that user can read and replace at any time, whatever its mode."""
    ours = os.geteuid()
    for entry in (path, *secret_files(path)):
        owner = entry.lstat().st_uid if entry != path else entry.stat().st_uid
        if owner != ours:
            raise FolderError(
                f"{entry} belongs to user {owner}, not to user {ours}: use another data folder, or run as the owner"
            )


def secret_files(path: Path) -> list[Path]:
    """The state, keys, tokens and certificates in a folder."""
    return [entry for pattern in _SECRET for entry in sorted(path.glob(pattern)) if not entry.is_symlink()]


def _make_private(path: Path) -> None:
    """Folders and files of an earlier version, or of another umask, were open to others."""
    open_to_others = [entry for entry in secret_files(path) if stat.S_IMODE(entry.stat().st_mode) & 0o077]
    for entry in open_to_others:
        entry.chmod(PRIVATE_FILE)
    if stat.S_IMODE(path.stat().st_mode) & 0o077 and _is_ours_alone(path):
        open_to_others.insert(0, path)
        path.chmod(PRIVATE_FOLDER)
    elif stat.S_IMODE(path.stat().st_mode) & 0o022:
        raise FolderError(
            f"the data folder {path} holds other files, and other users may write there: give a folder of its own"
        )
    if open_to_others:
        names = ", ".join(entry.name for entry in open_to_others)
        log.warning("%s: other users could read %s; now only you can", path, names)


def _is_ours_alone(path: Path) -> bool:
    """A folder with other things in it (a project, a home) keeps its mode: who reads those is not ours to decide."""
    return (path / DATABASE).exists() or {entry.name for entry in path.iterdir()} <= {LOCK, "pki"}


def _locked(path: Path) -> int:
    descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE)
    _take_lock(path, descriptor, fcntl.LOCK_EX)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def _take_lock(path: Path, descriptor: int, kind: int) -> None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        who = f"process {holder}" if holder.isdecimal() else "another process"
        raise FolderInUse(
            f"the data folder {path} is in use by {who}: end that one first, or give another data folder"
        ) from None
    except OSError:
        os.close(descriptor)
        raise


@contextlib.contextmanager
def unused(path: Path) -> Iterator[None]:
    """While a folder is only read, no server may begin to use it. Raises FolderInUse; changes nothing."""
    if not path.is_dir():
        raise FolderError(f"the data folder {path} does not exist: give the folder of --data-dir")
    if not (path / LOCK).exists():
        yield
        return
    descriptor = os.open(path / LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    _take_lock(path, descriptor, fcntl.LOCK_SH)
    try:
        yield
    finally:
        os.close(descriptor)


def create_private(path: Path) -> None:
    """An empty file that only its owner can read, unless there is one: SQLite gives its other files the same mode."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE))


def sync_folder(folder: Path) -> None:
    """Make sure that the names of new files in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
