"""The difference of a write or a change, field by field; the content of Secrets is never shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from konverge.cache.record import Record
from konverge.objects.confidential import is_confidential
from konverge.runtime.story.model import FieldChange

MAX_FIELDS = 50
LONGEST = 200
"""Characters of a value."""
_NOISE = frozenset(
    (
        "apiVersion",
        "kind",
        "metadata.creationTimestamp",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
        "metadata.selfLink",
        "metadata.uid",
    )
)
_ABSENT = msgspec.UNSET

Difference = tuple[str, Any, Any]


def between(kind: str, old: Any, new: Any) -> tuple[list[FieldChange], int]:
    """The fields that differ between two states, and how many more there are.

    >>> [str(change) for change in between("WebApp", {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}})[0]]
    ['spec.replicas 1 → 2']
    """
    return _shown(kind, _differences(old, new, ""))


def of_patch(kind: str, content_type: str, body: bytes, before: Record | None) -> tuple[list[FieldChange], int]:
    """What a request asks for, compared with the state that was known, as far as the request names it."""
    patch = _decoded(body)
    old = _ABSENT if before is None else _decoded(before.raw)
    if content_type.startswith("application/json-patch") and isinstance(patch, list):
        return _shown(kind, (part for operation in patch for part in _operation(operation, old)))
    return _shown(kind, _asked(old, patch, "", removes=not content_type.startswith("application/apply")))


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _ABSENT  # such as CBOR, or YAML that an author sends


def _shown(kind: str, differences: Iterator[Difference]) -> tuple[list[FieldChange], int]:
    changes: list[FieldChange] = []
    more = 0
    for path, old, new in differences:
        if len(changes) == MAX_FIELDS:
            more += 1
        elif is_confidential(kind, path) or not path:
            changes.append(FieldChange(path=path, hidden=True))
        else:
            changes.append(FieldChange(path=path, old=_short(old), new=_short(new)))
    return changes, more


def _short(value: Any) -> Any:
    if value is _ABSENT:
        return value
    text = msgspec.json.encode(value).decode()
    return value if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _differences(old: Any, new: Any, path: str) -> Iterator[Difference]:
    """Down to single values, also where an object is new or gone."""
    if path in _NOISE:
        return
    if (isinstance(old, dict) and isinstance(new, dict)) or _is_tree(old, new):
        old, new = _as_dict(old), _as_dict(new)
        for name in dict.fromkeys((*old, *new)):
            below = f"{path}.{name}" if path else str(name)
            yield from _differences(old.get(name, _ABSENT), new.get(name, _ABSENT), below)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from _differences(left, right, f"{path}[{index}]")
    elif old != new:
        yield path, old, new


def _is_tree(old: Any, new: Any) -> bool:
    """One side has fields, the other is absent."""
    return bool(
        (old is _ABSENT and isinstance(new, dict) and new) or (new is _ABSENT and isinstance(old, dict) and old)
    )


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _asked(old: Any, asked: Any, path: str, *, removes: bool) -> Iterator[Difference]:
    """The fields that a merge patch or an applied object names, where they differ; null in a patch removes a field."""
    if path in _NOISE:
        return
    if isinstance(asked, dict) and asked:
        before = _as_dict(old)
        for name, value in asked.items():
            below = f"{path}.{name}" if path else str(name)
            yield from _asked(before.get(name, _ABSENT), value, below, removes=removes)
    elif isinstance(asked, list) and isinstance(old, list) and len(asked) == len(old):
        for index, (left, right) in enumerate(zip(old, asked, strict=True)):
            yield from _asked(left, right, f"{path}[{index}]", removes=removes)
    elif asked is None and removes:
        yield path, old, _ABSENT
    elif old != asked:
        yield path, old, asked


def _operation(operation: Any, old: Any) -> Iterator[Difference]:
    """One operation of a JSON patch. Upstream: RFC 6902."""
    if not isinstance(operation, dict) or operation.get("op") == "test":
        return
    steps = [step.replace("~1", "/").replace("~0", "~") for step in str(operation.get("path", "")).split("/")[1:]]
    parent = value = old
    for step in steps:
        parent, value = value, _child(value, step)
    new = _ABSENT if operation.get("op") == "remove" else operation.get("value", _ABSENT)
    if operation.get("op") == "add" and isinstance(parent, list):
        value = _ABSENT  # inserted: what has this place now moves on
    yield from _differences(value, new, ".".join(steps))


def _child(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _ABSENT)
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    return _ABSENT
