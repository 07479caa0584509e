"""Differences between two values as messages show them: a unified diff of Go's indented JSON.

f"spec is immutable after creation\\n{difference(internal('core.PodSpec', old), internal('core.PodSpec', new))}"
"""

from __future__ import annotations

import difflib
import json
from typing import Any

_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def _lines(value: Any) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for character, code in _ESCAPED.items():
        text = text.replace(character, code)
    return [f"{line}\n" for line in text.split("\n")]


def difference(old: Any, new: Any) -> str:
    """The hunks, with three lines around each; without the names of files."""
    return "".join(list(difflib.unified_diff(_lines(old), _lines(new), n=3))[2:])
