"""Reading plain JSON that may be anything: a wrong type reads as an empty one, so that no rule has to expect it.

What is explained comes from clusters with old objects, foreign definitions and people who write by hand. A rule that
raised on one of them would hide all the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from konverge.objects.labels import NOTHING, Selector, SelectorError, from_selector_dict
from konverge.objects.times import parse_time

Obj: TypeAlias = dict[str, Any]


def at(value: Any, *path: str) -> Any:
    """The value at a path; None where there is none.

    >>> at({"spec": {"replicas": 3}}, "spec", "replicas"), at({"spec": []}, "spec", "replicas")
    (3, None)
    """
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def mapping(value: Any, *path: str) -> Obj:
    value = at(value, *path)
    return value if isinstance(value, dict) else {}


def items(value: Any, *path: str) -> list[Obj]:
    """The objects of a list; what is none is left out."""
    value = at(value, *path)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def texts(value: Any, *path: str) -> list[str]:
    value = at(value, *path)
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def text(value: Any, *path: str) -> str:
    value = at(value, *path)
    return value if isinstance(value, str) else ""


def number(value: Any, *path: str, default: int = 0) -> int:
    value = at(value, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def labels(value: Any, *path: str) -> dict[str, str]:
    """The entries of a map from text to text."""
    return {key: entry for key, entry in mapping(value, *path).items() if type(key) is str is type(entry)}


def moment(value: Any, *path: str) -> float | None:
    """A time, in seconds since the epoch."""
    written = text(value, *path)
    try:
        return parse_time(written).timestamp() if written else None
    except ValueError:
        return None


def condition(obj: Obj, type_: str) -> Obj:
    """The condition of this type; an empty one where there is none."""
    return next((entry for entry in items(obj, "status", "conditions") if entry.get("type") == type_), {})


def holds(obj: Obj, type_: str) -> str:
    """The status of a condition: True, False, Unknown, or nothing."""
    return text(condition(obj, type_), "status")


def label_selector(value: Any) -> Selector:
    """The selector of a LabelSelector; one that cannot be understood selects nothing."""
    if not isinstance(value, dict):
        return NOTHING
    try:
        return from_selector_dict(value)
    except (SelectorError, AssertionError, AttributeError, TypeError, ValueError):
        return NOTHING


def walk(value: Any, limit: int = 5000) -> Iterator[tuple[str, Any]]:
    """Every key of every object inside, with its value, breadth first; at most `limit` of them."""
    waiting: list[Any] = [value]
    for current in waiting:
        entries = list(current.items()) if isinstance(current, dict) else [("", entry) for entry in current]
        for key, entry in entries:
            limit -= 1
            if limit < 0:
                return
            if isinstance(key, str) and key:
                yield key, entry
            if isinstance(entry, dict | list):
                waiting.append(entry)
