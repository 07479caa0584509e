"""Tables of facts in text files: a heading, and below it its lines, indented. Lines that begin with # are comments."""

from __future__ import annotations

from importlib import resources


def read(name: str) -> dict[str, list[str]]:
    """The lines below each heading of a file in `data`."""
    entries: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in resources.files("konverge.apiserver").joinpath("data", name).read_text().splitlines():
        if line.startswith("  "):
            lines.append(line.strip())
        elif not line.startswith("#"):
            lines = entries[line] = []
    return entries
