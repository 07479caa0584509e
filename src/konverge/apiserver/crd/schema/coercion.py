"""What happens to a custom resource's fields before validation: pruning, nulls, defaults.

The order is the API's: unknown fields are removed, then nulls without meaning, then defaults are set. Defaults are
applied on reads too, since a definition may gain a default after an object was stored. Upstream:
pkg/apiserver/schema/pruning/algorithm.go, defaulting/prunenulls.go and defaulting/algorithm.go.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from konverge.apiserver.crd.schema.structural import Structural

META = frozenset(("apiVersion", "kind", "metadata"))


class Coercer:
    """The three walks over one schema, each skipped when the schema gives it nothing to do."""

    def __init__(self, root: Structural) -> None:
        self._root = root

    def prune(self, obj: dict[str, Any]) -> list[str]:
        """Drop unknown fields; their paths, sorted, for warnings and strict validation."""
        unknown: list[str] = []
        _prune(obj, self._root, "", unknown, root=True)
        return sorted(unknown)

    def drop_nulls(self, obj: dict[str, Any]) -> None:
        _drop_nulls(obj, self._root)

    def default(self, obj: dict[str, Any]) -> None:
        apply_defaults(obj, self._root)


def prune(value: Any, node: Structural | None, *, root: bool = False) -> list[str]:
    unknown: list[str] = []
    _prune(value, node, "", unknown, root=root)
    return unknown


def _prune(value: Any, node: Structural | None, path: str, unknown: list[str], *, root: bool = False) -> None:
    if node is not None and node.preserve:
        _skip(value, node, path, unknown, root=root)
    elif isinstance(value, dict):
        _prune_object(value, node, path, unknown, root=root)
    elif isinstance(value, list):
        items = node.items if node is not None else None
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(item, items, f"{path}[{index}]", unknown)


def _prune_object(obj: dict[str, Any], node: Structural | None, path: str, unknown: list[str], *, root: bool) -> None:
    dropped: list[str] = []
    for key, item in obj.items():
        if node is not None and (node.embedded or root) and key in META:
            continue
        child = node.properties.get(key) if node is not None else None
        if child is not None or (node is not None and node.additional is not None):
            if isinstance(item, (dict, list)):
                _prune(item, child if child is not None else _values(node), f"{path}.{key}" if path else key, unknown)
        else:
            dropped.append(key)
    for key in dropped:
        unknown.append(f"{path}.{key}" if path else key)
        del obj[key]


def _skip(value: Any, node: Structural | None, path: str, unknown: list[str], *, root: bool = False) -> None:
    """Inside preserve-unknown-fields nothing is dropped, except below properties that are declared all the same."""
    if node is None:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if (node.embedded or root) and key in META:
                continue
            if key in node.properties or node.additional is not None:
                child = node.properties.get(key)
                _prune(item, child if child is not None else _values(node), f"{path}.{key}" if path else key, unknown)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _skip(item, node.items, f"{path}[{index}]", unknown)


def _values(node: Structural | None) -> Structural | None:
    return node.values if node is not None else None


def _drop_nulls(value: Any, node: Structural | None) -> None:
    if isinstance(value, dict):
        gone: list[str] = []
        for key, item in value.items():
            child = node.child(key) if node is not None else None
            if item is None:
                if child is not None and not child.nullable and child.default is None:
                    gone.append(key)
            elif child is not None and isinstance(item, (dict, list)):
                _drop_nulls(item, child)
        for key in gone:
            del value[key]
    elif isinstance(value, list) and node is not None and node.items is not None:
        for item in value:
            _drop_nulls(item, node.items)


def apply_defaults(value: Any, node: Structural) -> None:
    if isinstance(value, dict):
        for key, prop in node.properties.items():
            if prop.default is not None and (key not in value or (value[key] is None and not prop.nullable)):
                value[key] = deepcopy(prop.default)
        for key, item in value.items():
            child = node.child(key)
            if child is None:
                continue
            if item is None and key not in node.properties and not child.nullable:
                value[key] = item = deepcopy(child.default)
            if isinstance(item, (dict, list)):
                apply_defaults(item, child)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            if item is None and not node.items.nullable:
                value[index] = item = deepcopy(node.items.default)
            if isinstance(item, (dict, list)):
                apply_defaults(item, node.items)
