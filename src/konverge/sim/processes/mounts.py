"""Where the paths of a container lie on this machine: there is no mount namespace, so each path has a stand-in.

A container has a folder that stands for its `/`; each mount is a link in it. `locate` gives the real place of a path,
and `translate` replaces mount paths within a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from konverge.objects.kinds.core_v1 import Container, VolumeMount
from konverge.sim.processes import disk
from konverge.sim.processes.contents import MountError
from konverge.sim.processes.environment import expand

TERMINATION_LOG = "/dev/termination-log"
_BEFORE, _AFTER = r"(?:(?<=^)|(?<=[\s=:,;'\"]))", r"(?=$|[/\s:,;'\"])"


class Mounts:
    """The paths of one container, for one run."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "root"
        self._real: dict[PurePosixPath, Path] = {}

    def locate(self, path: str) -> Path:
        """What stands for a path in the container. A relative one begins at its root."""
        wanted = PurePosixPath("/") / path
        for parent in (wanted, *wanted.parents):
            if parent in self._real:
                return self._real[parent] / wanted.relative_to(parent)
        return self.root / wanted.relative_to("/")

    def is_mounted(self, path: str) -> bool:
        wanted = PurePosixPath(path)
        return any(parent in self._real for parent in (wanted, *wanted.parents))

    def translate(self, text: str) -> str:
        """Mount paths within a text, where they begin like a path."""
        if not self._real:
            return text
        paths = sorted((str(path) for path in self._real), key=len, reverse=True)
        pattern = _BEFORE + "(" + "|".join(map(re.escape, paths)) + ")" + _AFTER
        return re.sub(pattern, lambda match: str(self._real[PurePosixPath(match[1])]), text)

    def add(self, path: str, real: Path) -> None:
        where = PurePosixPath(path)
        link = self.root / where.relative_to("/")
        self._real[where] = real
        with suppress(OSError):  # within another mount that has something there: `locate` knows better
            disk.make_folder(link.parent)
            link.symlink_to(real)


def prepare(home: Path, spec: Container, volumes: Mapping[str, tuple[Path, bool]], env: Mapping[str, str]) -> Mounts:
    """A fresh root with its mounts. `volumes` are folders, and whether they are made of objects. Raises MountError."""
    mounts = Mounts(home)
    disk.remove(mounts.root)
    disk.remove(home / "subpaths")
    disk.make_folder(mounts.root)
    for number, mount in enumerate(
        sorted(spec.volume_mounts, key=lambda mount: len(PurePosixPath(mount.mount_path).parts))
    ):
        if mount.name not in volumes:
            raise MountError(f'there is no volume "{mount.name}"')
        folder, of_objects = volumes[mount.name]
        mounts.add(mount.mount_path, _shown(mount, folder, of_objects, home / "subpaths" / str(number), env))
    log = home / "termination-log"
    disk.write_private(log, b"")
    mounts.add(spec.termination_message_path or TERMINATION_LOG, log)
    return mounts


def _shown(mount: VolumeMount, folder: Path, of_objects: bool, copy: Path, env: Mapping[str, str]) -> Path:
    sub = expand(mount.sub_path_expr, env) if mount.sub_path_expr else mount.sub_path
    if not sub:
        return folder
    if ".." in PurePosixPath(sub).parts or sub.startswith("/"):
        raise MountError(f'subPath "{sub}" must be a relative path without ".."')
    source = folder / sub
    if of_objects:
        if not source.exists():
            raise MountError(f'failed to prepare subPath for volumeMount "{mount.name}": {sub} is not in the volume')
        disk.make_folder(copy.parent)
        disk.copied(source, copy)
        return copy
    if not source.resolve().is_relative_to(folder.resolve()):
        raise MountError(f'subPath "{sub}" leaves its volume')
    return source if source.exists() else disk.make_folder(source)
