"""What commands print and the folders of files that they read and make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any


def write(objects: Iterable[dict[str, Any]], form: str) -> str:
    """What `kubectl apply -f -` takes, in either form: YAML documents for people, a JSON list for machines."""
    listed = list(objects)
    if form == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}, indent=1)
    from konverge.go_yaml import dump

    return "---\n".join(map(dump, listed)).rstrip()


def read_folder(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The path (below the folder) and the text of each file."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from read_folder(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_text(encoding="utf-8")


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder with these files; other files in it stay."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
