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


_NOTHING = Structural(raw={})
"""Declares no fields: all of them are dropped."""


def prune(value: Any, node: Structural, *, root: bool = False) -> list[str]:
    """Drop unknown fields; their paths, for warnings and strict validation."""
    unknown: list[str] = []
    _prune(value, node, "", unknown, root=root, drop=not node.preserve)
    return unknown


def _prune(value: Any, node: Structural, path: str, unknown: list[str], *, drop: bool, root: bool = False) -> None:
    """`drop` is False inside preserve-unknown-fields: nothing is dropped there, except below properties that are
    declared all the same."""
    if isinstance(value, dict):
        dropped: list[str] = []
        for key, item in value.items():
            if (node.embedded or root) and key in META:
                continue
            place = f"{path}.{key}" if path else key
            if key in node.properties or node.additional is not None:
                child = node.child(key) or _NOTHING
                if isinstance(item, (dict, list)):
                    _prune(item, child, place, unknown, drop=not child.preserve)
            elif drop:
                unknown.append(place)
                dropped.append(key)
        for key in dropped:
            del value[key]
    elif isinstance(value, list):
        items = node.items or _NOTHING
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(item, items, f"{path}[{index}]", unknown, drop=drop and not items.preserve)


def drop_nulls(value: Any, node: Structural) -> None:
    if isinstance(value, dict):
        gone: list[str] = []
        for key, item in value.items():
            child = node.child(key)
            if child is None:
                continue
            if item is None:
                if not child.nullable and child.default is None:
                    gone.append(key)
            elif isinstance(item, (dict, list)):
                drop_nulls(item, child)
        for key in gone:
            del value[key]
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            drop_nulls(item, node.items)


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
