"""Uniqueness in lists that are sets or maps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from konverge.apiserver.crd.schema.structural import Structural
from konverge.apiserver.crd.schema.value_errors import ordered
from konverge.apiserver.field_errors import FieldError, duplicate, invalid


def check(value: Any, node: Structural | None, path: str) -> Iterator[FieldError]:
    if node is None:
        return
    if isinstance(value, dict):
        if isinstance(node.additional, Structural):
            for key, item in sorted(value.items()):
                yield from check(item, node.additional, f"{path}[{key}]")
        for key, item in sorted(value.items()):
            if key in node.properties and isinstance(item, (dict, list)):
                yield from check(item, node.properties[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield from _list(value, node, path)


def _list(items: list[Any], node: Structural, path: str) -> Iterator[FieldError]:
    if node.list_type == "set":
        for index in _repeated(items):
            yield duplicate(f"{path}[{index}]", ordered(items[index]))
    elif node.list_type == "map":
        yield from _map(items, node, path)
    for index, item in enumerate(items):
        if isinstance(item, (dict, list)):
            yield from check(item, node.items, f"{path}[{index}]")


def _map(items: list[Any], node: Structural, path: str) -> Iterator[FieldError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            yield invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = [{key: item[key] for key in node.list_keys if key in item} if item else {} for item in items]
    for index in _repeated(keys):
        yield duplicate(f"{path}[{index}]", ordered(keys[index]))


def _repeated(items: list[Any]) -> list[int]:
    """The index of the second appearance of every value that is there more than once."""
    seen: dict[str, int] = {}
    found: list[int] = []
    for index, item in enumerate(items):
        key = json.dumps(item, sort_keys=True)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(index)
    return found
