"""The objects that `konverge up -f` was given: files, folders, kustomizations, Helm charts, standard input.

A folder with a `Chart.yaml` is a chart, which `helm template` renders; with a `kustomization.yaml`, what
`kubectl kustomize` builds; any other folder is the YAML and JSON files in and below it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from konverge.apiserver.go.yaml import parse_all
from konverge.cli.exit import CommandFailed

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
RENDERED_WITHIN = 60.0
_SKIPPED = frozenset(("__pycache__", "node_modules", "venv"))


class ManifestError(CommandFailed):
    """A manifest cannot be used; the text names it."""


class Manifest(NamedTuple):
    """One object and where it comes from."""

    obj: dict[str, Any]
    origin: str


async def read_manifests(sources: Iterable[str], stdin: str = "") -> list[Manifest]:
    """The objects of all sources, lists taken apart; `stdin` is what was on standard input. Raises ManifestError."""
    manifests = [manifest for source in sources for manifest in await _read(source, stdin)]
    seen: dict[tuple[str, ...], str] = {}
    for manifest in manifests:
        metadata = manifest.obj["metadata"]
        group = manifest.obj["apiVersion"].rpartition("/")[0]
        key = (group, manifest.obj["kind"], metadata.get("namespace") or "", metadata["name"])
        if key in seen:
            raise ManifestError(f"{manifest.origin}: {key[1]} {key[3]} is in {seen[key]} as well; keep one of them")
        seen[key] = manifest.origin
    return manifests


def check_sources(sources: Iterable[str]) -> None:
    """Whether the sources are there, and what renders them. Raises ManifestError."""
    for source in sources:
        path = Path(source)
        if source == STDIN:
            continue
        if not path.exists():
            raise ManifestError(f"{source} does not exist; give a file, a folder, a chart or - for standard input")
        if path.is_dir():
            _renderer(path)


def files_of(sources: Iterable[str]) -> list[Path]:
    """Every file that a source is made from, to look for changes."""
    return [file for source in sources if source != STDIN for file in _files(Path(source))]


def files_below(folder: Path) -> Iterator[Path]:
    """All files in and below a folder, but for hidden ones and those that tools make.

    Folders that are links are left out: they may lead back to where they are.
    """
    with os.scandir(folder) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _SKIPPED:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(Path(entry.path))
        elif entry.is_file():
            yield Path(entry.path)


def _files(path: Path) -> Iterable[Path]:
    return files_below(path) if path.is_dir() else [path]


async def _read(source: str, stdin: str) -> list[Manifest]:
    path = Path(source)
    if source == STDIN:
        return _parse(stdin, "standard input")
    try:
        if path.is_dir() and (command := _renderer(path)):
            return _parse(await _rendered(command), source)
        return await asyncio.to_thread(_plain, path, source)
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{source}: {error}") from error


def _plain(path: Path, source: str) -> list[Manifest]:
    """The objects of a file, or of a folder of files."""
    if not path.is_dir():
        return _parse(path.read_text(encoding="utf-8"), source)
    files = [file for file in files_below(path) if file.suffix in SUFFIXES]
    return [manifest for file in files for manifest in _parse(file.read_text(encoding="utf-8"), str(file))]


def _renderer(folder: Path) -> list[str]:
    """The command that makes objects of a folder; none for a folder of plain files."""
    if (folder / "Chart.yaml").exists():
        command = ["helm", "template", folder.resolve().name, str(folder), "--include-crds"]
    elif any((folder / name).exists() for name in KUSTOMIZATIONS):
        command = ["kubectl", "kustomize", str(folder)]
    else:
        return []
    if shutil.which(command[0]) is None:
        raise ManifestError(f"{folder} needs {command[0]}, which is not on the PATH: install it")
    return command


async def _rendered(command: list[str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(RENDERED_WITHIN):
            output, errors = await process.communicate()
    except TimeoutError:
        raise ManifestError(f"`{' '.join(command)}` did not end within {RENDERED_WITHIN:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ManifestError(f"`{' '.join(command)}` failed: {errors.decode(errors='replace').strip()}")
    return output.decode()


def _parse(text: str, origin: str) -> list[Manifest]:
    try:
        documents = parse_all(text.encode())
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise ManifestError(f"{origin}{line}: {error.problem or error}") from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ManifestError(f"{origin}: {error}") from error
    several = len(documents) > 1
    return [
        manifest
        for number, document in enumerate(documents, 1)
        if document is not None
        for manifest in _objects(document, f"{origin}, document {number}" if several else origin)
    ]


def _objects(document: Any, origin: str) -> Iterator[Manifest]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") and "items" in document:
        items = document["items"]
        if items is not None and not isinstance(items, list):
            raise ManifestError(f"{origin}: items of the {document['kind']} is not a list but a {type(items).__name__}")
        for item in items or ():
            yield from _objects(item, origin)
        return
    _check(document, origin)
    yield Manifest(document, origin)


def _check(document: Any, origin: str) -> None:
    if not isinstance(document, dict):
        raise ManifestError(f"{origin}: is not an object but a {type(document).__name__}")
    for key in ("apiVersion", "kind"):
        if not isinstance(document.get(key), str) or not document[key]:
            raise ManifestError(f"{origin}: {key} is missing")
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise ManifestError(f"{origin}: metadata.name of the {document['kind']} is missing")
    for key, type_, what in (("namespace", str, "a text"), ("labels", dict, "a map"), ("annotations", dict, "a map")):
        value = metadata.get(key)
        if value is not None and not isinstance(value, type_):
            raise ManifestError(f"{origin}: metadata.{key} of the {document['kind']} is not {what}: {value!r:.80}")
