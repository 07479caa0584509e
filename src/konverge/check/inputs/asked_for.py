"""What a user can ask an operator for that looks like a mistake: to do nothing, to let nothing go, to leave something.

Read from the names of fields, which people choose alike: `paused`, `deletionProtection`, `deletePolicy: Retain`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from konverge.check.inputs.core_types import snake
from konverge.check.model import Obj

_PAUSE = frozenset(("pause", "paused", "suspend", "suspended", "unmanaged"))
_PROTECTION = re.compile(
    r"(delet|terminat|destroy)\w*protect|protect\w*(delet|terminat|destroy)|prevent\w*(delet|destroy)"
)
_KEPT = frozenset(("retain", "keep", "orphan", "preserve"))


def is_paused(obj: Obj) -> bool:
    """Whether a custom resource asks to be left alone, by a field or an annotation."""
    annotations = obj["metadata"].get("annotations") or {}
    named = ((key.rpartition("/")[2], value) for key, value in annotations.items())
    every = (*_leaves(obj.get("spec")), *named)
    return any(_is_true(value) and _PAUSE & set(re.split(r"[^a-z]+", snake(name))) for name, value in every)


def is_protected(obj: Obj) -> bool:
    """Whether it asks not to be deleted."""
    return any(_is_true(value) and _PROTECTION.search(name.lower()) for name, value in _leaves(obj.get("spec")))


def leaves_something(obj: Obj) -> bool:
    """Whether something of it has to stay when it is deleted."""
    return any(isinstance(value, str) and value.lower() in _KEPT for _, value in _leaves(obj.get("spec")))


def keeps_data(obj: Obj) -> str:
    """The field by which it asks that its data stay when it is deleted, with its value; "" where there is none."""
    for path, value in _paths(obj.get("spec"), "spec"):
        if isinstance(value, str) and value.lower() in _KEPT and _is_of_data(path):
            return f"{path}: {value}"
    return ""


def _is_of_data(path: str) -> bool:
    of_others = _OF_OTHERS.search(path) or _DATABASE.search(snake(path).replace("_", " "))
    return bool(_OF_DATA.search(path)) and not of_others


_OF_DATA = re.compile(r"delet|reclaim|retention|retain|volume|storage|claim|pvc|disk|data", re.IGNORECASE)
_OF_OTHERS = re.compile(r"scal|snapshot|backup|schedul|log|service|secret|user|topic", re.IGNORECASE)
"""Kept while members go, or kept of something else."""
_DATABASE = re.compile(r"databases?\b(?! (volume|storage|claim|pvc|disk))")
"""In words. One in a server (`databaseReclaimPolicy`) has no claims of its own."""


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Values with the names of their fields."""
    for path, leaf in _paths(value, ""):
        yield path.rpartition(".")[2], leaf


def _paths(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Values with the paths of their fields; items of a list have that of the list."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, path)
    else:
        yield path, value
