"""Folders and files of process pods. Everything is the owner's alone: folders 0700, files without group and others.
Where a container has a `/` of its own, the volumes of its pod have their full modes, in a folder that is the owner's.

    ROOT/pods/UID/volumes/NAME/              a volume of the pod
    ROOT/pods/UID/names/hosts                the names of others
    ROOT/pods/UID/containers/NAME/root/      stands for the container's /
    ROOT/pods/UID/containers/NAME/RUN.log    what a run has said
    ROOT/volumes/NAME_UID/                   a PersistentVolume, for as long as the object lives

Files of objects change as the kubelet changes them: a new folder is filled, and one rename of the link `..data` shows
all of it at once. Upstream: pkg/volume/util/atomic_writer.go.

Nothing is mounted at the paths of containers without a `/` of their own, so each has a stand-in: `root` stands for a
container's `/`, and each mount is a link in it. `Mounts.locate` gives the real place of a path, and `translate`
replaces mount paths within a text.
"""

from __future__ import annotations

import os
import posixpath
import re
import secrets
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from konverge.objects.kinds.core_v1 import Container, VolumeMount
from konverge.sim.kubelet.creation import missing_values, sub_path_refusal
from konverge.sim.processes import warden
from konverge.sim.processes.environment import ConfigError, expand

DATA = "..data"
MODE = 0o644
"""Of files, where nothing else is said."""


PRIVATE, FULL = 0o700, 0o777
"""What of a mode is kept."""


class MountError(Exception):
    """A volume that cannot be mounted; the message is the kubelet's where it has one."""


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int = MODE


Files = dict[str, File]
"""By their paths in the volume."""


def make_folder(path: Path) -> Path:
    """A folder, with what is above it; only the owner may look in."""
    for part in (*reversed(path.parents), path):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    return path


def give(path: Path, user: int | None) -> None:
    """Make a user the owner of a file, or of a folder with all in it, unless it is already. Links are not followed."""
    if user is None or path.lstat().st_uid == user:
        return
    for _, folders, files, descriptor in os.fwalk(path):
        for name in (*folders, *files):
            os.chown(name, user, user, dir_fd=descriptor, follow_symlinks=False)
    os.chown(path, user, user, follow_symlinks=False)


def open_folder(path: Path, user: int | None = None, mode: int = 0o700) -> int:
    """A descriptor of a folder, which is made (for a user) if it is not there. Raises OSError.

    Links are not followed: processes write to volumes, and a link in one must not lead us elsewhere.
    """
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    descriptor = os.open("/", flags)
    for part in path.parts[1:]:
        above = descriptor
        try:
            with suppress(FileExistsError):
                os.mkdir(part, mode, dir_fd=above)
                if user is not None:
                    os.chown(part, user, user, dir_fd=above, follow_symlinks=False)
            descriptor = os.open(part, flags, dir_fd=above)
        finally:
            os.close(above)
    return descriptor


def write_private(path: Path, data: bytes, mode: int = 0o600, *, user: int | None = None, mask: int = PRIVATE) -> None:
    """Replace a file, for a user; a reader sees the old or the new contents, never half."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    if mode & mask != 0o600:
        beside.chmod(mode & mask)
    give(beside, user)
    beside.replace(path)


def read_private(path: Path, size: int) -> bytes:
    """The end of a file that a process has written; nothing, if that is a link or no plain file any more."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return b""
        file.seek(max(found.st_size - size, 0))
        return file.read(size)


def write_volume(folder: Path, files: Files, user: int | None = None, mask: int = PRIVATE) -> bool:
    """Make a volume hold just these files, for a user. False when it does already."""
    make_folder(folder).chmod(0o755 & mask)
    _check_paths(files)
    link = folder / DATA
    old = folder / link.readlink() if link.is_symlink() else None
    if old is not None and _held(old, mask) == {path: (file.data, file.mode & mask) for path, file in files.items()}:
        give(folder, user)
        return False
    new = make_folder(folder / f"..{secrets.token_hex(8)}")
    for path, file in files.items():
        make_folder((new / path).parent)
        write_private(new / path, file.data, file.mode, mask=mask)
    for made, _, _ in os.walk(new):
        Path(made).chmod(0o755 & mask)
    give(new, user)
    beside = folder / f"{DATA}_tmp"
    beside.unlink(missing_ok=True)
    beside.symlink_to(new.name)
    beside.replace(link)
    _show(folder, {PurePosixPath(path).parts[0] for path in files})
    give(folder, user)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _check_paths(files: Files) -> None:
    """The API server has checked them; a file outside of its volume would be worth too much to rely on that."""
    for path in files:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or parts[0].startswith(".."):
            raise ValueError(f"{path!r} is no path within a volume")


def _held(folder: Path, mask: int) -> dict[str, tuple[bytes, int]]:
    held = {}
    for path in folder.rglob("*"):
        if path.is_file():
            held[path.relative_to(folder).as_posix()] = (path.read_bytes(), path.stat().st_mode & mask)
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
    else:
        write_private(target, source.read_bytes(), source.stat().st_mode, mask=FULL)


def link(path: Path, target: Path) -> None:
    """Make a path lead somewhere, unless there is something already."""
    with suppress(FileExistsError):
        path.symlink_to(target)


def remove(path: Path) -> None:
    warden.remove_tree(str(path))


TERMINATION_LOG = "/dev/termination-log"


def clean(path: str) -> str:
    """A path in a container, from its root on and without `..`: those would lead out of the folder that stands for it.

    >>> clean("/srv/../../etc/"), clean("srv")
    ('/etc', '/srv')
    """
    return posixpath.normpath("/" + path.lstrip("/"))


def within(path: str, folder: str) -> bool:
    return PurePosixPath(clean(path)).is_relative_to(clean(folder))


_BEFORE, _AFTER = r"(?:(?<=^)|(?<=[\s=:,;'\"]))", r"(?=$|[/\s:,;'\"])"


class Mounts:
    """The paths of one container, for one run. With `in_place` the container has them as they are."""

    def __init__(self, home: Path, user: int | None = None, *, in_place: bool = False) -> None:
        self.home = home
        self.in_place = in_place
        self._user = user
        self.root = home / "root"
        self._real: dict[PurePosixPath, Path] = {}
        self._read_only: set[PurePosixPath] = set()

    def locate(self, path: str) -> Path:
        """What stands for a path in the container. A relative one begins at its root."""
        wanted = PurePosixPath(clean(path))
        if self.in_place:
            return Path(wanted)
        for parent in (wanted, *wanted.parents):
            if parent in self._real:
                return self._real[parent] / wanted.relative_to(parent)
        return self.root / wanted.relative_to("/")

    def make_folder(self, path: str) -> Path:
        """A folder in the container, with what is above it."""
        folder = self.locate(path)
        os.close(open_folder(folder, self._user))
        return folder

    def is_mounted(self, path: str) -> bool:
        wanted = PurePosixPath(clean(path))
        return any(parent in self._real for parent in (wanted, *wanted.parents))

    def translate(self, text: str) -> str:
        """Mount paths within a text, where they begin like a path."""
        if not self._real or self.in_place:
            return text
        paths = sorted((str(path) for path in self._real), key=len, reverse=True)
        pattern = _BEFORE + "(" + "|".join(map(re.escape, paths)) + ")" + _AFTER
        return re.sub(pattern, lambda match: str(self._real[PurePosixPath(match[1])]), text)

    def listed(self) -> list[tuple[str, str, bool]]:
        """What is mounted where, and whether it is writable."""
        return [(str(real), str(path), path not in self._read_only) for path, real in self._real.items()]

    def add(self, path: str, real: Path, *, writable: bool = True) -> None:
        where = PurePosixPath(clean(path))
        if not writable:
            self._read_only.add(where)
        if self.in_place:
            self._real[where] = real
            return
        above = self.locate(str(where.parent))
        self._real[where] = real
        with suppress(OSError):  # within another mount that has something there: `locate` knows better
            folder = open_folder(above, self._user)
            try:
                os.symlink(real, where.name, dir_fd=folder)
            finally:
                os.close(folder)


def prepare(
    home: Path,
    spec: Container,
    volumes: Mapping[str, tuple[Path, bool]],
    env: Mapping[str, str],
    user: int | None = None,
    *,
    in_place: bool = False,
) -> Mounts:
    """A fresh root with its mounts. `volumes` are folders (resolved), and whether they are made of objects; `user`
    is who is to own it all, if that is not us. Raises MountError and ConfigError.
    """
    mounts = Mounts(home.resolve(), user, in_place=in_place)
    remove(mounts.root)
    remove(home / "subpaths")
    make_folder(mounts.root)
    by_depth = sorted(spec.volume_mounts, key=lambda mount: len(PurePosixPath(mount.mount_path).parts))
    for number, mount in enumerate(by_depth):
        if mount.name not in volumes:
            raise MountError(f'there is no volume "{mount.name}"')
        folder, of_objects = volumes[mount.name]
        shown = _shown(mount, folder, of_objects, mounts.home / "subpaths" / str(number), env, user)
        mounts.add(mount.mount_path, shown, writable=not of_objects and not mount.read_only)
    log = mounts.home / "termination-log"
    write_private(log, b"")
    mounts.add(spec.termination_message_path or TERMINATION_LOG, log)
    for made in (mounts.root, log, home / "subpaths"):
        if made.exists():
            give(made, user)
    return mounts


def _shown(
    mount: VolumeMount, folder: Path, of_objects: bool, copy: Path, env: Mapping[str, str], user: int | None
) -> Path:
    sub = mount.sub_path
    if mount.sub_path_expr:
        missing = missing_values(mount.sub_path_expr, env)
        if missing:
            raise ConfigError(missing)
        sub = expand(mount.sub_path_expr, env)
    if not sub:
        return folder
    if refusal := sub_path_refusal(sub):
        raise ConfigError(refusal)
    source = folder / sub
    if of_objects:
        if not source.exists():
            raise MountError(f'failed to prepare subPath for volumeMount "{mount.name}": {sub} is not in the volume')
        make_folder(copy.parent)
        copied(source, copy)
        return copy
    real = source.resolve()  # once: processes write there, and the next time it may be another place
    if not real.is_relative_to(folder):
        raise MountError(f'subPath "{sub}" leaves its volume')
    if not real.exists():
        try:
            os.close(open_folder(real, user))
        except OSError as error:
            raise MountError(f'subPath "{sub}" cannot be made: {error.strerror}') from error
    return real
