"""The types of hostPath volumes: what has to be at the path, or is made there.

Upstream: checkTypeInternal (pkg/volume/hostpath/host_path.go), getFileType (pkg/volume/util/hostutil).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from konverge.sim.processes import disk
from konverge.sim.processes.disk import MountError

_EXPECTED = {
    "Directory": "directory",
    "File": "file",
    "Socket": "socket file",
    "CharDevice": "character device",
    "BlockDevice": "block device",
}
_TESTS = {
    "Directory": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}


def provide(path: Path, kind: str, user: int | None = None) -> None:
    """See to it that a path is what the volume's type says; what is made is for a user. Raises MountError."""
    if not kind:
        return
    wanted, _, _ = kind.partition("OrCreate")
    if wanted != kind and not path.exists():
        try:
            (_make_folder if wanted == "Directory" else _make_file)(path, user)
        except OSError as error:
            raise MountError(f"{path} cannot be made: {error.strerror}") from error
    _check(path, wanted)


def _check(path: Path, wanted: str) -> None:
    try:
        mode = path.stat().st_mode
    except OSError:
        what, why = f"{path} is not a {_EXPECTED[wanted]}", f'path "{path}" does not exist'
        raise MountError(f"hostPath type check failed, {what}, unable to determine its type: {why}") from None
    if not _TESTS[wanted](mode):
        found = next((name for name, test in _TESTS.items() if test(mode)), "")
        raise MountError(f"hostPath type check failed: {path} is not a {_EXPECTED[wanted]}, it's a {found}")


def _make_folder(path: Path, user: int | None) -> None:
    os.close(disk.open_folder(path, user, 0o755))


def _make_file(path: Path, user: int | None) -> None:
    """The folder has to be there."""
    path.parent.stat()
    folder = disk.open_folder(path.parent)
    try:
        with suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            os.close(os.open(path.name, flags, 0o644, dir_fd=folder))
            if user is not None:
                os.chown(path.name, user, user, dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(folder)
