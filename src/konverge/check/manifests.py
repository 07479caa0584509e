"""Objects from the files that a user names: YAML or JSON, single files or folders of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from konverge.apiserver.go.yaml import parse_all
from konverge.check.model import Obj

SUFFIXES = (".yaml", ".yml", ".json")


class CannotCheck(Exception):
    """What the user gave cannot be used for a check; the message says what to do."""


def read_objects(paths: Iterable[Path], kinds: Iterable[str] = ()) -> list[Obj]:
    """All objects of these files and folders (and of folders below), lists taken apart.

    With `kinds`, only those: folders of manifests have others too. What is no object at all is left out of a folder
    (kustomizations, values), and refused in a file that was named. Raises CannotCheck.
    """
    wanted = frozenset(kinds)
    objects = [obj for path in paths for obj in _read(path)]
    return [obj for obj in objects if not wanted or obj["kind"] in wanted]


def _read(path: Path) -> Iterator[Obj]:
    if not path.exists():
        raise CannotCheck(f"{path} does not exist; give a file or a folder of manifests")
    if not path.is_dir():
        yield from _objects(path, lenient=False)
        return
    for file in sorted(path.rglob("*")):
        if file.suffix in SUFFIXES and file.is_file():
            yield from _objects(file, lenient=True)


def _objects(path: Path, *, lenient: bool) -> Iterator[Obj]:
    try:
        documents = parse_all(path.read_bytes())
    except OSError as error:
        raise CannotCheck(f"{path} cannot be read: {error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CannotCheck(f"{path} is no YAML or JSON: {error}; correct it, or give files without it") from error
    for part in (part for document in documents for part in _parts(document)):
        if _is_object(part):
            yield part
        elif not lenient:
            raise CannotCheck(f"{path}: a document has no apiVersion, kind or metadata.name; it is no object")


def _parts(document: Any) -> list[Any]:
    """The items of a list, or the document itself; nothing of an empty one."""
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") and "items" in document:
        return document["items"] if isinstance(document["items"], list) else []
    return [] if document is None else [document]


def _is_object(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    if not all(isinstance(document.get(field), str) and document[field] for field in ("apiVersion", "kind")):
        return False
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name") or metadata.get("generateName"), str)
