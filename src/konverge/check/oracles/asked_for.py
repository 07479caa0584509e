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


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Values with the names of their fields."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, name)
    else:
        yield name, value
