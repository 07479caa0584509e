"""Collect what a program in a virtual environment needs into a folder that is a whole root file system, and no more:
no shell, no package manager, no compiler. `python rootfs.py ENVIRONMENT FOLDER`.

What is taken: the interpreter and its standard library, the environment, every shared library that one of their
binaries is linked to, the loader, the certificate authorities, and the user that the container runs as.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

USER = 65532
"""`nonroot` in images of this sort."""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data", "__pycache__")


def collect(environment: Path, root: Path) -> None:
    """Everything lies where it lay, so that every path in it stays right."""
    library = Path(sysconfig.get_path("stdlib"))
    interpreter = (environment / "bin" / "python").resolve()
    skipped = shutil.ignore_patterns(*LEFT_OUT, "site-packages", "config-*")
    _copy_tree(library, root, skipped)
    _copy_tree(environment, root, shutil.ignore_patterns("pip", "pip-*", "activate*", "Activate*", "__pycache__"))
    for link in _links(environment / "bin" / "python"):
        _copy(link, root)
    binaries = [interpreter, *root.rglob("*.so"), *root.rglob("*.so.*")]
    for path in sorted({library for binary in binaries for library in _linked(binary)}):
        _copy(path, root)
    _copy(CERTIFICATES, root)
    _user(root)


def _links(path: Path) -> list[Path]:
    """A link and what it leads to, step by step."""
    found = [path]
    while found[-1].is_symlink():
        target = found[-1].readlink()
        found.append(found[-1].parent / target)
    return found


def _linked(binary: Path) -> list[Path]:
    said = subprocess.run(["ldd", str(binary)], capture_output=True, text=True).stdout
    if missing := re.findall(r"(\S+) => not found", said):
        raise SystemExit(f"{binary} is linked to {', '.join(missing)}, which this machine does not have")
    return [Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", said, re.MULTILINE)]


def _copy_tree(folder: Path, root: Path, ignore: object) -> None:
    shutil.copytree(folder, _under(root, folder), symlinks=True, dirs_exist_ok=True, ignore=ignore)  # type: ignore[arg-type]


def _copy(path: Path, root: Path) -> None:
    """A file with its mode; a link as a link, and what it leads to."""
    target = _under(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() or target.is_symlink():
        return
    shutil.copy2(path, target, follow_symlinks=False)
    if path.is_symlink():
        _copy(path.parent / path.readlink(), root)


def _under(root: Path, path: Path) -> Path:
    return root / path.absolute().relative_to("/")


def _user(root: Path) -> None:
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc" / "passwd").write_text(f"nonroot:x:{USER}:{USER}::/tmp:/sbin/nologin\n")
    (root / "etc" / "group").write_text(f"nonroot:x:{USER}:\n")
    temporary = root / "tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)


if __name__ == "__main__":
    collect(Path(sys.argv[1]), Path(sys.argv[2]))
