"""The JSON text of a patched object, for the one message that quotes it.

The real server patches the text of the object: the parts that the patch went through are maps whose members come
sorted, the rest is still as the server wrote it, in the order of the Go structs.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.formatting import go_json
from konverge.apiserver.schema.node import Kind, TypeNode

Opened = dict[str, Any]
"""The members that a patch went into, nested."""


def text(node: TypeNode | None, value: Any, opened: Opened | None) -> str:
    """`node` None: no struct (maps are written sorted). `opened` None: the patch did not go in here."""
    if isinstance(value, dict):
        members = ",".join(
            f"{go_json(name)}:{text(_member(node, name), value[name], _below(opened, name))}"
            for name in _order(node, value, opened)
        )
        return "{" + members + "}"
    if isinstance(value, list):
        element = node.element if node is not None and node.kind is Kind.LIST else None
        parts = (text(element, item, _below(opened, str(index))) for index, item in enumerate(value))
        return "[" + ",".join(parts) + "]"
    return go_json(value)


def _order(node: TypeNode | None, value: dict[str, Any], opened: Opened | None) -> list[str]:
    if opened is None and node is not None and node.kind is Kind.STRUCT and node.go:
        known = [name for name in node.fields if name in value]
        return known + sorted(name for name in value if name not in node.fields)
    return sorted(value)


def _member(node: TypeNode | None, name: str) -> TypeNode | None:
    return node.child(name) if node is not None and node.kind is not Kind.LIST and node.go else None


def _below(opened: Opened | None, name: str) -> Opened | None:
    return None if opened is None else opened.get(name)


def opened_by_operations(operations: list[Any]) -> Opened:
    """What a JSON patch goes through: the containers on the way to its targets."""
    found: Opened = {}
    for operation in operations:
        for pointer in (operation.get("path"), operation.get("from")):
            here = found
            for part in str(pointer or "").split("/")[1:-1]:
                here = here.setdefault(part.replace("~1", "/").replace("~0", "~"), {})
    return found


def opened_by_merge(live: Any, patch: Any) -> Opened:
    """What a merge patch goes into: objects on both sides. What is new, lists too, is gone through for its nulls."""
    found: Opened = {}
    members = patch.items() if isinstance(patch, dict) else ((str(index), item) for index, item in enumerate(patch))
    for name, value in members:
        if isinstance(value, (dict, list)):
            before = live.get(name) if isinstance(live, dict) else None
            found[name] = opened_by_merge(before, value)
    return found
