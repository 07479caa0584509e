"""Merging an applied configuration into an object, and removing paths from one.

Upstream: structured-merge-diff typed/merge.go and typed/remove.go.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.merge.elements import TypedError, element_of, item, list_is_whole, member, shape
from konverge.apiserver.merge.field_set import FieldSet, is_member, show_element
from konverge.apiserver.merge.typed import ABSENT
from konverge.apiserver.schema.node import Kind, TypeNode


def merge(node: TypeNode, live: Any, applied: Any) -> Any:
    """`live` with all that `applied` specifies; nothing is removed. Parts of both are shared."""
    if applied is ABSENT:
        return live
    if live is ABSENT:
        return applied
    form = shape(node, applied)
    if form is Kind.MAP and not node.atomic:
        before, after = (value if isinstance(value, dict) else {} for value in (live, applied))
        return _merge_members(node, before, after) if before or after else applied
    if form is Kind.LIST and not list_is_whole(node):
        before_items, after_items = (value if isinstance(value, list) else [] for value in (live, applied))
        return _merge_items(node, before_items, after_items) if before_items or after_items else applied
    return applied


def _merge_members(node: TypeNode, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    out = dict(live)
    for name, value in applied.items():
        out[name] = merge(member(node, name), live.get(name, ABSENT), value)
    return out


# upstream: mergingWalker.visitListItems
def _merge_items(node: TypeNode, live: list[Any], applied: list[Any]) -> list[Any]:
    """Items in the order of `applied`; those that only `live` has keep their place among their old neighbours."""
    inner = item(node)
    wanted = _wanted(node, applied)
    order = [element_of(node, entry) for entry in live]
    present: dict[str, Any] = {}
    for element, entry in zip(order, live, strict=True):
        # A repeated item cannot be merged with: it is replaced.
        present[element] = ABSENT if element in present else entry
    out: list[Any] = []
    done: set[str] = set()
    todo = list(wanted)
    shared = [element for element in todo if element in present]
    left = 0
    while left < len(order) or todo:
        if left < len(order):
            element = order[left]
            if element not in wanted:
                out.append(live[left])
                left += 1
                continue
            if todo and element != todo[0] and shared and shared[0] != element:
                left += 1
                continue
            if element in done or (todo and element == todo[0]):
                left += 1
        if todo:
            element = todo.pop(0)
            done.add(element)
            out.append(merge(inner, present.get(element, ABSENT), wanted[element]))
            if shared and shared[0] == element:
                shared.pop(0)
    return out


def _wanted(node: TypeNode, items: list[Any]) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    for entry in items:
        element = element_of(node, entry)
        if element in wanted:
            raise TypedError(f"duplicate entries for key {show_element(element)}")
        wanted[element] = entry
    return wanted


def without(node: TypeNode, value: Any, fields: FieldSet) -> Any:  # upstream: removeItemsWithSchema
    """A value without the paths of a set; a container that loses all its members becomes null."""
    form = shape(node, value)
    if form is Kind.SCALAR:
        return value
    if form is Kind.MAP:
        if not isinstance(value, dict) or node.atomic:
            return None
        return _members_without(node, value, fields) or None
    if not isinstance(value, list) or list_is_whole(node):
        return None
    return _items_without(node, value, fields) or None


def _members_without(node: TypeNode, value: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    out = {}
    for name, inner in value.items():
        below = fields.get(f"f:{name}")
        if below is None:
            out[name] = inner
        elif not is_member(below):
            out[name] = without(member(node, name), inner, below)
    return out


def _items_without(node: TypeNode, value: list[Any], fields: FieldSet) -> list[Any]:
    out = []
    for entry in value:
        below = fields.get(element_of(node, entry))
        if below is None:
            out.append(entry)
        elif not is_member(below):
            out.append(without(item(node), entry, below))
    return out
