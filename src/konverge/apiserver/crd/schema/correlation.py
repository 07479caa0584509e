"""Which part of the old object a part of the new one is compared with.

Ratcheting tolerates what was invalid before as long as it does not change, and transition rules see `oldSelf`. Both
need the same correlation: members by name, items of map lists by their keys, items of other lists not at all.
Upstream: CorrelatedObject (apiserver/pkg/cel/common/equality.go).
"""

from __future__ import annotations

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
    return all(unchanged(item, old_item(item, old, node), node.items) for item in new)


def old_member(key: str, old: Any) -> Any:
    return old.get(key, UNKNOWN) if isinstance(old, dict) else UNKNOWN


def old_item(item: Any, old: Any, node: Structural) -> Any:
    """The item of an old map list with the same keys."""
    if node.list_type != "map" or not isinstance(old, list) or not isinstance(item, dict):
        return UNKNOWN
    keys = [item.get(key) for key in node.list_keys]
    for candidate in old:
        if isinstance(candidate, dict) and same([candidate.get(key) for key in node.list_keys], keys):
            return candidate
    return UNKNOWN
