"""Images and archives as tests need them, also those that nobody should be sent."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Entry = tuple[str, Any]
"""A name in an archive, and what it is: bytes (a file), None (a folder), `-> x` (a link), `= x` (a hard link), or the
whole TarInfo."""


def tar(*entries: Entry, mode: int = 0o644) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, what in entries:
            info, data = _entry(name, what, mode)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def _entry(name: str, what: Any, mode: int) -> tuple[tarfile.TarInfo, bytes]:
    if isinstance(what, tarfile.TarInfo):
        what.name = name
        return what, b""
    info = tarfile.TarInfo(name)
    info.mode = mode
    if isinstance(what, bytes):
        info.size = len(what)
        return info, what
    if what is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    else:
        kind, _, info.linkname = what.partition(" ")
        info.type = tarfile.SYMTYPE if kind == "->" else tarfile.LNKTYPE
    return info, b""


def layout(
    folder: Path, layers: Sequence[bytes], config: Mapping[str, Any] | None = None, *, names: Sequence[str] = ("",)
) -> Path:
    """A folder in the layout of the OCI; an image for each name, the same one."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(data: bytes, **more: Any) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data), **more}

    manifest = {
        "schemaVersion": 2,
        "config": put(json.dumps({"config": config or {}}).encode()),
        "layers": [put(gzip.compress(layer, mtime=0)) for layer in layers],
    }
    one = put(json.dumps(manifest).encode())
    wanted = [{**one, "annotations": {"org.opencontainers.image.ref.name": name}} if name else one for name in names]
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": wanted}))
    return folder


def archived(folder: Path, path: Path) -> Path:
    """A folder as an archive."""
    with tarfile.open(path, "w:gz") as archive:
        for entry in sorted(folder.rglob("*")):
            archive.add(entry, entry.relative_to(folder).as_posix(), recursive=False)
    return path


def docker_save(path: Path, layers: Sequence[bytes], config: Mapping[str, Any], tag: str) -> Path:
    """As `docker save` wrote it before version 25."""
    parts: list[Entry] = [(f"{number}/layer.tar", layer) for number, layer in enumerate(layers)]
    manifest = [{"Config": "config.json", "RepoTags": [tag], "Layers": [name for name, _ in parts]}]
    files = {"config.json": {"config": config}, "manifest.json": manifest}
    parts += [(name, json.dumps(value).encode()) for name, value in files.items()]
    path.write_bytes(tar(*parts))
    return path


_PROGRAMS = ("sh", "cat", "id", "ls", "sleep", "stat", "uname", "mkdir", "tar")


def small_root(folder: Path) -> Path:
    """A file system with a shell and a few programs of this machine, and what they are linked with."""
    for name in _PROGRAMS:
        program = shutil.which(name)
        assert program is not None, name
        _copy(Path(program).resolve(), folder / "bin" / name)
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            _copy(Path(library).resolve(), folder / library.lstrip("/"))
    return folder


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
