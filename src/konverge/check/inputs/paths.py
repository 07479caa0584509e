"""Places in an object: reading, setting and removing what is there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Path = tuple[str | int, ...]
"""Keys of maps, positions in lists."""

ABSENT: Any = object()
"""No value: unlike None, which is null."""


def text(path: Iterable[str | int]) -> str:
    """
    >>> text(("spec", "disks", 0, "size"))
    'spec.disks[0].size'
    """
    shown = ""
    for part in path:
        shown += f"[{part}]" if isinstance(part, int) else f".{part}" if shown else part
    return shown


def parsed(shown: str) -> Path:
    """What `text` shows, and the API server's messages: keys in brackets too, but none that has a dot of its own.

    >>> parsed("spec.disks[0].size"), parsed("spec.labels[app]"), parsed("spec.pools.0")
    (('spec', 'disks', 0, 'size'), ('spec', 'labels', 'app'), ('spec', 'pools', '0'))
    """
    parts: list[str | int] = []
    for name, index in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", shown):
        parts.append(int(index) if index.isdigit() else index or name)
    return tuple(parts)


def get(obj: Any, path: Path) -> Any:
    """The value at a place, or ABSENT."""
    for part in path:
        if isinstance(part, int):
            if not isinstance(obj, list) or part >= len(obj):
                return ABSENT
            obj = obj[part]
        elif not isinstance(obj, dict) or part not in obj:
            return ABSENT
        else:
            obj = obj[part]
    return obj
