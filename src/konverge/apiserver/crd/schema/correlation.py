"""Which part of the old object a part of the new one is compared with.

Ratcheting tolerates what was invalid before as long as it does not change, and transition rules see `oldSelf`. Both
need the same correlation: members by name, items of map lists by their keys, items of other lists not at all.
Upstream: CorrelatedObject (apiserver/pkg/cel/common/equality.go).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any

from konverge.apiserver.crd.schema.structural import Structural
from konverge.apiserver.merge.json_patch import same

UNKNOWN: Any = object()
"""No old value corresponds to the new one."""


def unchanged(new: Any, old: Any, node: Structural | None) -> bool:
    """Equality that ignores the order of map lists, as ratcheting does."""
    if node is None or not isinstance(new, (dict, list)) or type(new) is not type(old):
        return same(new, old)
    if len(new) != len(old):
        return False
    if isinstance(new, dict):
        return all(
            key in old and node.child(key) is not None and unchanged(value, old[key], node.child(key))
            for key, value in new.items()
        )
    if node.list_type != "map":
        return same(new, old)
    old_item = old_items(old, node)
    return all(unchanged(item, old_item(item), node.items) for item in new)


def old_member(key: str, old: Any) -> Any:
    return old.get(key, UNKNOWN) if isinstance(old, dict) else UNKNOWN


def old_items(old: Any, node: Structural | None) -> Callable[[Any], Any]:
    """A function that finds the item of an old map list with the same keys as a new item."""
    if node is None or node.list_type != "map" or not isinstance(old, list):
        return _unknown
    names = node.list_keys
    by_keys: dict[Hashable, Any] = {}
    for candidate in old:
        if isinstance(candidate, dict):
            by_keys.setdefault(_keys(candidate, names), candidate)

    def old_item(item: Any) -> Any:
        return by_keys.get(_keys(item, names), UNKNOWN) if isinstance(item, dict) else UNKNOWN

    return old_item


def _unknown(item: Any) -> Any:
    return UNKNOWN


def _keys(item: dict[str, Any], names: tuple[str, ...]) -> Hashable:
    return tuple([_comparable(item.get(name)) for name in names])


def _comparable(value: Any) -> Hashable:
    """Equal for values that are the same in JSON: 1, 1.0 and true are three."""
    return (dict, json.dumps(value, sort_keys=True)) if isinstance(value, (dict, list)) else (type(value), value)
