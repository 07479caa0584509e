"""Filling in defaults.

    def defaults(obj: Obj) -> None:
        spec = section_of(obj, "spec")
        fill(spec, {"replicas": 1, "strategy": …})

A default is set where the field is absent: missing, null, or (for a text) empty. Values that are containers are given
as functions, so that no two objects share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def fill(obj: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set what is absent; a callable makes the value."""
    for name, value in values.items():
        if name not in obj or obj[name] is None or obj[name] == "":
            obj[name] = value() if callable(value) else value


def fill_unset(obj: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set what is missing or null: a pointer in Go, where an empty text is a value (and usually a wrong one)."""
    for name, value in values.items():
        if obj.get(name) is None:
            obj[name] = value() if callable(value) else value


def fill_numbers(obj: dict[str, Any], values: Mapping[str, int]) -> None:
    """Set what is absent or zero: a number that is not a pointer in Go."""
    for name, value in values.items():
        if not obj.get(name):
            obj[name] = value


def section_of(obj: dict[str, Any], name: str) -> dict[str, Any]:
    """The struct at `name`, made if it is absent (a struct that is not a pointer in Go is always there)."""
    section = obj.get(name)
    if section is None:
        section = obj[name] = {}
    return section


def take(obj: dict[str, Any], source: Mapping[str, Any], name: str) -> None:
    """Give a member the value that it has in `source`, or remove it if it has none there."""
    if name in source:
        obj[name] = source[name]
    else:
        obj.pop(name, None)


def each(obj: Mapping[str, Any], name: str) -> Iterable[dict[str, Any]]:
    """The elements of a list that may be absent."""
    return obj.get(name) or ()
