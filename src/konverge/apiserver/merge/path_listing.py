"""All paths of a value, its containers included, listed by functions compiled from its type.

This is what a creation owns, and so it runs on every creation: a type's function knows the path elements of its fields
and which of them are leaves, and is built field by field when a value first has the field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.merge.elements import element_of, item, list_is_whole, member
from konverge.apiserver.merge.field_set import SELF, FieldSet
from konverge.apiserver.schema.node import Kind, TypeNode

Lister = Callable[[Any], FieldSet]


def everything(node: TypeNode, value: Any) -> FieldSet:
    """The node of a value that came or went: itself, and every path below it."""
    lister: Lister = node.lister or _compiled(node)
    return lister(value)


def _compiled(node: TypeNode) -> Lister:
    node.lister = _lister(node)
    return node.lister  # type: ignore[no-any-return]


def _lister(node: TypeNode) -> Lister:
    if _is_leaf(node):
        return _leaf
    if node.kind is Kind.LIST:
        return _items(node)
    if node.kind is Kind.MAP and _is_leaf(item(node)):
        return _flat
    return _members(node)


def _is_leaf(node: TypeNode) -> bool:
    """Owned as a whole, whatever it holds."""
    if node.kind is Kind.LIST:
        return list_is_whole(node)
    return node.kind is Kind.SCALAR or node.atomic


def _leaf(value: Any) -> FieldSet:
    return {}


def _flat(value: Any) -> FieldSet:
    if type(value) is not dict or not value:
        return {}
    return {SELF: {}, **{f"f:{name}": {} for name in value}}


def _members(node: TypeNode) -> Lister:
    known: dict[str, tuple[str, Lister | None]] = {}

    def learn(name: str) -> tuple[str, Lister | None]:
        child = member(node, name)
        listed = f"f:{name}", None if _is_leaf(child) else (child.lister or _compiled(child))
        if name in node.fields:
            known[name] = listed
        return listed

    def members(value: Any) -> FieldSet:
        # A value of no declared type may also be a list or a scalar: those are leaves.
        if type(value) is not dict or not value:
            return {}
        out: FieldSet = {SELF: {}}
        for name, inner in value.items():
            element, lister = known.get(name) or learn(name)
            out[element] = {} if lister is None else lister(inner)
        return out

    node.lister = members  # Before any child is compiled: types contain themselves.
    return members


def _items(node: TypeNode) -> Lister:
    inner = item(node)
    lister = _leaf if _is_leaf(inner) else (inner.lister or _compiled(inner))

    def items(value: Any) -> FieldSet:
        if type(value) is not list or not value:
            return {}
        out: FieldSet = {SELF: {}}
        for entry in value:
            element = element_of(node, entry)
            out[element] = {} if element in out else lister(entry)
        return out

    return items
