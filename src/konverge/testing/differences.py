"""How two states of an object differ, in lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from konverge.objects.confidential import is_confidential

NOISE = frozenset(("metadata.resourceVersion", "metadata.managedFields", "metadata.generation"))
LONGEST = 80
_ABSENT = object()

Obj = dict[str, Any]


def differences(old: Obj | None, new: Obj | None, kind: str = "") -> list[str]:
    """The fields that differ, without what every write changes. Of a Secret the values are not shown.

    >>> differences({"spec": {"replicas": 1}}, {"spec": {"replicas": 2, "paused": True}})
    ['spec.replicas: 1 → 2', 'spec.paused: (none) → true']
    """
    lines = []
    for path, before, after in pairs(old or {}, new or {}):
        hidden = is_confidential(kind, path)
        lines.append(f"{path}: {_text(before, hidden=hidden)} → {_text(after, hidden=hidden)}")
    return lines


def pairs(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Path, old and new value of each field that differs."""
    if path in NOISE:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            below = f"{path}.{name}" if path else name
            yield from pairs(old.get(name, _ABSENT), new.get(name, _ABSENT), below)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from pairs(left, right, f"{path}[{index}]")
    elif old != new:
        yield path, old, new


def _text(value: Any, *, hidden: bool) -> str:
    if value is _ABSENT:
        return "(none)"
    if hidden:
        return "(hidden)"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
