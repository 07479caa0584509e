"""Archives of file systems, unpacked into a folder: one after the other, as the layers of an image.

What an archive says is not believed: its names lead nowhere but into the folder (links are followed as if it were `/`),
devices are left out, and nothing keeps its owner or its set-user-id bit. Deleted files are those of the OCI image
specification: `.wh.NAME` and `.wh..wh..opq`.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from pathlib import Path
from typing import IO

_GONE, _OPAQUE = ".wh.", ".wh..wh..opq"
_LINKS = 40
"""As many links as the kernel follows in one path."""
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


class ImageError(Exception):
    """An image that cannot be used; the text says what to do."""


def unpack(archive: IO[bytes], folder: Path, *, what: str) -> None:
    """Put an archive (tar, also with gzip, bzip2 or xz) on top of what is in a folder. Raises ImageError."""
    start = archive.read(len(_ZSTANDARD))
    archive.seek(0)
    if start == _ZSTANDARD:
        raise ImageError(f"{what} is compressed with zstd, which this Python does not read: save the image with gzip")
    try:
        with tarfile.open(fileobj=archive, mode="r:*") as tar:
            _apply(tar, folder)
    except (tarfile.TarError, EOFError) as error:
        raise ImageError(f"{what} is no whole tar archive ({error}): save the image again") from error


def _apply(tar: tarfile.TarFile, folder: Path) -> None:
    new: set[Path] = set()
    """What this archive has brought: an opaque folder loses only what was there before."""
    for member in tar:
        parts = names(member.name)
        if not parts:
            continue
        parent = inside(folder, parts[:-1])
        _make_folders(folder, parent)
        name = parts[-1]
        if name == _OPAQUE:
            _empty(parent, new)
        elif name.startswith(_GONE):
            gone = name.removeprefix(_GONE)
            if gone not in ("", ".", ".."):
                _remove(parent / gone)
        else:
            _put(tar, member, parent / name, folder)
            new |= {parent / name, *(up for up in parent.parents if up.is_relative_to(folder)), parent}


def names(path: str) -> list[str]:
    """The names of a path, from the root on; `..` leads no higher.

    >>> names("./usr/../../etc//passwd")
    ['etc', 'passwd']
    """
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return parts


def inside(root: Path, parts: list[str]) -> Path:
    """Where a path within `root` leads, as for one whose `/` that is. What is not there yet is taken as written.

    Raises ImageError for links that go round in circles.
    """
    place, left, followed = root, list(parts), 0
    while left:
        part = left.pop(0)
        if part == "..":
            place = place if place == root else place.parent
            continue
        step = place / part
        if not step.is_symlink():
            place = step
            continue
        followed += 1
        if followed > _LINKS:
            raise ImageError(f"the links of {'/'.join(parts)} in the image go round in circles")
        target = os.readlink(step)  # noqa: PTH115 - a Path would lose `//` and a leading `./`
        place = root if target.startswith("/") else place
        left = [name for name in target.split("/") if name not in ("", ".")] + left
    return place


def _make_folders(root: Path, folder: Path) -> None:
    for part in (*reversed(folder.parents), folder):
        if part.is_relative_to(root) and not part.is_dir():
            part.unlink(missing_ok=True)
            part.mkdir(mode=0o755)


def _put(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path, root: Path) -> None:
    mode = stat.S_IMODE(member.mode) & 0o1777
    if member.isdir():
        if place.is_symlink() or not place.is_dir():
            _remove(place)
            place.mkdir()
        place.chmod(mode | 0o700)  # or we could neither fill nor remove it
        return
    if member.issym():
        _remove(place)
        place.symlink_to(member.linkname)
    elif member.islnk():
        source = names(member.linkname)
        real = inside(root, source[:-1]) / source[-1] if source else root
        if real == place:
            return
        if not real.is_symlink() and not real.is_file():
            raise ImageError(f"{member.name} in the image is a hard link to {member.linkname}, which is no file")
        _remove(place)
        os.link(real, place, follow_symlinks=False)
    elif member.isreg():
        data = tar.extractfile(member)
        assert data is not None
        _remove(place)
        with data, os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            shutil.copyfileobj(data, file)
        place.chmod(mode & 0o777 | 0o400)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _empty(folder: Path, new: set[Path]) -> None:
    for entry in folder.iterdir():
        if entry not in new:
            _remove(entry)
