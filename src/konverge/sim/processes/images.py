"""The file systems of containers: what `root` of a rule names, and what an image says about how it is run.

A folder is used as it is. An image (a folder or an archive in the layout of the OCI, or what `docker save` writes) and
a plain archive of a file system are unpacked once into the cluster's folder, for each user that containers run as.
Upstream: the OCI image specification, image-layout.md, manifest.md and config.md.
"""

from __future__ import annotations

import hashlib
import json
import platform
import secrets
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from konverge.sim.processes import disk
from konverge.sim.processes.layers import ImageError, inside, unpack

_SETTINGS = ".settings.json"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_CHUNK = 1024 * 1024
_REFERENCE = "org.opencontainers.image.ref.name"
_NAME = "io.containerd.image.name"


@dataclass(frozen=True, slots=True)
class Settings:
    """What an image says about its containers."""

    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A file system, and how it is run."""

    folder: Path
    settings: Settings = field(default_factory=Settings)

    def account(self, user: str) -> tuple[int, int, str]:
        """User, group and home of `NAME`, `ID` or either with `:GROUP`. Raises ImageError."""
        name, _, group = user.partition(":")
        entries = _entries(self.folder, "etc/passwd")
        entry = next((entry for entry in entries if len(entry) > 5 and name in (entry[0], entry[2])), None)
        if entry is None and not name.isdigit():
            raise ImageError(f"the image has no user {name!r}: set runAsUser in the container's securityContext")
        uid = int(name if entry is None else entry[2])
        gid = 0 if entry is None else int(entry[3])
        return uid, self._group(group) if group else gid, "/" if entry is None else entry[5]

    def _group(self, name: str) -> int:
        if name.isdigit():
            return int(name)
        for entry in _entries(self.folder, "etc/group"):
            if len(entry) > 2 and entry[0] == name:
                return int(entry[2])
        raise ImageError(f"the image has no group {name!r}: set runAsGroup in the container's securityContext")


def _entries(folder: Path, name: str) -> list[list[str]]:
    try:
        text = inside(folder, name.split("/")).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.split(":") for line in text.splitlines()]


class Images:
    """The images of one cluster, unpacked below a folder."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def get(self, root: str, name: str, user: int | None = None) -> Image:
        """The image that `root` of a rule names, for a container that calls it `name`; `user` is who is to own it, if
        that is not us. Blocks, the first time. Raises ImageError.
        """
        source = Path(root).expanduser()
        if not source.exists():
            raise ImageError(f"there is no {root}: `root` of the rule names a folder, an OCI layout or an archive")
        source = source.resolve()
        if source.is_dir() and not (source / "oci-layout").is_file():
            return Image(source)
        stamp = (source / "index.json" if source.is_dir() else source).stat()
        key = json.dumps([str(source), stamp.st_mtime_ns, stamp.st_size, stamp.st_ino, name, user])
        place = self._cache / hashlib.sha256(key.encode()).hexdigest()[:32]
        if not place.exists():
            self._unpack(source, name, place, user)
        return Image(place / "root", Settings(**json.loads((place / _SETTINGS).read_text())))

    def _unpack(self, source: Path, name: str, place: Path, user: int | None) -> None:
        disk.make_folder(self._cache)
        beside = self._cache / f".{secrets.token_hex(8)}"
        folder = disk.make_folder(beside / "root")
        try:
            folder.chmod(0o755)  # the folder above it keeps others out
            settings = _unpack_source(source, name, folder)
            disk.give(folder, user)
            (beside / _SETTINGS).write_text(json.dumps(settings))
            beside.rename(place)
        except (KeyError, TypeError, AttributeError) as error:
            raise ImageError(f"{source} says something that no image says ({error!r}): save it again") from error
        except OSError as error:
            if not place.exists():  # another container's thread was not faster
                raise ImageError(f"{source} cannot be unpacked: {error}") from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)


class _Blobs:
    """The files of a layout, in a folder or in an archive."""

    def __init__(self, folder: Path | None = None, tar: tarfile.TarFile | None = None) -> None:
        self._folder = folder
        self._tar = tar
        self._members = {member.name.removeprefix("./"): member for member in tar} if tar is not None else {}

    def has(self, name: str) -> bool:
        return name in self._members or (self._folder is not None and (self._folder / name).is_file())

    def open(self, name: str) -> IO[bytes]:
        """Raises ImageError."""
        if self._folder is not None and ".." not in Path(name).parts and (self._folder / name).is_file():
            return (self._folder / name).open("rb")
        member = self._members.get(name)
        opened = self._tar.extractfile(member) if self._tar is not None and member is not None else None
        if opened is None:
            raise ImageError(f"{name} is missing in the image: save it again, with all of its layers")
        return opened

    def json(self, name: str) -> Any:
        with self.open(name) as file:
            return _parsed(file.read(), name)

    @contextmanager
    def blob(self, descriptor: Mapping[str, Any]) -> Iterator[IO[bytes]]:
        """What a descriptor names, if it is what it says. Raises ImageError."""
        digest = str(descriptor.get("digest", ""))
        algorithm, _, value = digest.partition(":")
        if algorithm not in ("sha256", "sha512") or not value.isalnum():
            raise ImageError(f"{digest!r} in the image is no digest that is known here: save it again")
        with self.open(f"blobs/{algorithm}/{value}") as file:
            made = hashlib.new(algorithm)
            while data := file.read(_CHUNK):
                made.update(data)
            if made.hexdigest() != value:
                raise ImageError(f"the contents of {digest} are others than the image says: save it again")
            file.seek(0)
            yield file

    def blob_json(self, descriptor: Mapping[str, Any]) -> Any:
        with self.blob(descriptor) as file:
            return _parsed(file.read(), str(descriptor["digest"]))


def _parsed(data: bytes, name: str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise ImageError(f"{name} of the image is no JSON ({error}): save it again") from error


def _unpack_source(source: Path, name: str, folder: Path) -> dict[str, Any]:
    if source.is_dir():
        return _of_layout(_Blobs(source), name, folder)
    try:
        with tarfile.open(source) as tar:
            blobs = _Blobs(tar=tar)
            if blobs.has("oci-layout"):
                return _of_layout(blobs, name, folder)
            if blobs.has("manifest.json"):
                return _of_docker(blobs, name, folder)
    except (tarfile.TarError, EOFError) as error:
        raise ImageError(f"{source} is no whole tar archive ({error}): save the image again") from error
    with source.open("rb") as file:
        unpack(file, folder, what=str(source))
    return {}


def _of_layout(blobs: _Blobs, name: str, folder: Path) -> dict[str, Any]:
    found = blobs.json("index.json")
    wanted = _named(found.get("manifests") or [], name)
    manifest = blobs.blob_json(wanted)
    while "manifests" in manifest:
        manifest = blobs.blob_json(_for_this_machine(manifest["manifests"]))
    for layer in manifest.get("layers") or []:
        with blobs.blob(layer) as file:
            unpack(file, folder, what=f"the layer {layer['digest']}")
    return _settings(blobs.blob_json(manifest["config"])) if "config" in manifest else {}


def _of_docker(blobs: _Blobs, name: str, folder: Path) -> dict[str, Any]:
    """What `docker save` wrote before it wrote the layout of the OCI."""
    entries = blobs.json("manifest.json")
    entry = _only([entry for entry in entries if name in (entry.get("RepoTags") or ())] or entries, name, _tags)
    for layer in entry["Layers"]:
        with blobs.open(layer) as file:
            unpack(file, folder, what=f"the layer {layer}")
    return _settings(blobs.json(entry["Config"]))


def _tags(entry: Mapping[str, Any]) -> str:
    return ", ".join(entry.get("RepoTags") or ()) or "one without a name"


def _named(manifests: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The image of this name; where there is only one, its name does not matter."""

    def called(manifest: Mapping[str, Any]) -> set[str]:
        notes = manifest.get("annotations") or {}
        return {str(notes[key]) for key in (_NAME, _REFERENCE) if key in notes}

    tag = name.rpartition(":")[2]
    for wanted in ({name}, {tag}):
        if fitting := [manifest for manifest in manifests if called(manifest) & wanted]:
            return _for_this_machine(fitting)
    return _only(manifests, name, lambda manifest: ", ".join(sorted(called(manifest))) or "one without a name")


def _only(
    entries: Sequence[Mapping[str, Any]], name: str, call: Callable[[Mapping[str, Any]], str]
) -> Mapping[str, Any]:
    if len(entries) != 1:
        there = "; ".join(map(call, entries)) or "none"
        raise ImageError(f"which image is {name}? there are: {there}. Save it alone, or under that name")
    return entries[0]


def _for_this_machine(manifests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    machine = _ARCHITECTURES.get(platform.machine(), platform.machine())
    for manifest in manifests:
        made_for = manifest.get("platform") or {}
        if made_for.get("os", "linux") == "linux" and made_for.get("architecture", machine) == machine:
            return manifest
    raise ImageError(f"the image is not for linux/{machine}: save the one that is")


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    inner = config.get("config") or {}
    return {
        "entrypoint": list(inner.get("Entrypoint") or ()),
        "command": list(inner.get("Cmd") or ()),
        "env": dict(text.split("=", 1) for text in inner.get("Env") or () if "=" in text),
        "workdir": inner.get("WorkingDir") or "",
        "user": inner.get("User") or "",
    }
