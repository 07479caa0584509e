"""What the Go libraries answer, as rows of `[text, result, error]` (tests/objects/data/README.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

DATA = Path(__file__).parent / "data"


def rows(kind: str) -> list[tuple[str, str, str]]:
    return [(text, result, error) for text, result, error in json.loads((DATA / f"upstream_{kind}.json").read_text())]


def differences(kind: str, parse: Callable[[str], str]) -> list[str]:
    """The rows on which `parse` disagrees, as text."""
    lines = []
    for text, result, error in rows(kind):
        try:
            answer = (parse(text), "")
        except ValueError as refused:
            answer = ("", str(refused))
        if answer != (result, error):
            lines.append(f"{text!r}: upstream {(result, error)}, here {answer}")
    return lines
