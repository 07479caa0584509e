"""Folders and files of process pods. Everything is the owner's alone: folders 0700, files without group and others.

    ROOT/pods/UID/volumes/NAME/              a volume of the pod
    ROOT/pods/UID/containers/NAME/root/      stands for the container's /
    ROOT/pods/UID/containers/NAME/RUN.log    what a run has said
    ROOT/volumes/NAME_UID/                   a PersistentVolume, for as long as the object lives

Files of objects change as the kubelet changes them: a new folder is filled, and one rename of the link `..data` shows
all of it at once.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath

from konverge.sim.processes.contents import File, Files

DATA = "..data"


def make_folder(path: Path) -> Path:
    """A folder, with what is above it; only the owner may look in."""
    for part in (*reversed(path.parents), path):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    return path


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file; a reader sees the old or the new contents, never half."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    if mode & 0o700 != 0o600:
        beside.chmod(mode & 0o700)
    beside.replace(path)


def write_volume(folder: Path, files: Files) -> bool:
    """Make a volume hold just these files. False when it does already."""
    make_folder(folder)
    _check_paths(files)
    link = folder / DATA
    old = folder / link.readlink() if link.is_symlink() else None
    if old is not None and _held(old) == {path: (file.data, file.mode & 0o700) for path, file in files.items()}:
        return False
    new = make_folder(folder / f"..{secrets.token_hex(8)}")
    for path, file in files.items():
        make_folder((new / path).parent)
        write_private(new / path, file.data, file.mode)
    beside = folder / f"{DATA}_tmp"
    beside.unlink(missing_ok=True)
    beside.symlink_to(new.name)
    beside.replace(link)
    _show(folder, {PurePosixPath(path).parts[0] for path in files})
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _check_paths(files: Files) -> None:
    """The API server has checked them; a file outside of its volume would be worth too much to rely on that."""
    for path in files:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or parts[0].startswith(".."):
            raise ValueError(f"{path!r} is no path within a volume")


def _held(folder: Path) -> dict[str, tuple[bytes, int]]:
    held = {}
    for path in folder.rglob("*"):
        if path.is_file():
            held[path.relative_to(folder).as_posix()] = (path.read_bytes(), path.stat().st_mode & 0o700)
    return held


def _show(folder: Path, names: set[str]) -> None:
    """Links to the present files, and none to those that were."""
    for entry in folder.iterdir():
        if entry.is_symlink() and entry.name != DATA and entry.name not in names:
            entry.unlink()
    for name in names:
        with suppress(FileExistsError):
            (folder / name).symlink_to(f"{DATA}/{name}")


def copied(source: Path, target: Path) -> None:
    """As a subPath shows it: as it was when the container began."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=False)
        target.chmod(0o700)
    else:
        write_private(target, source.read_bytes(), source.stat().st_mode)


def remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


__all__ = ["File", "copied", "make_folder", "remove", "write_private", "write_volume"]
