"""How a type sees a value: which form it has, what its members are, and which path element identifies a list item."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from konverge.apiserver.merge.field_set import key_element, value_element
from konverge.apiserver.schema.node import DEDUCED, Kind, TypeNode
from konverge.objects.text_cache import LONGEST, remembered


class TypedError(Exception):
    """An object that does not conform to its type; the text names path and reason."""


def shape(node: TypeNode, value: Any) -> Kind:
    """Which of the forms that a type admits a value has: MAP, LIST or SCALAR. Upstream: deduceAtom
    (typed/helpers.go)."""
    if node.kind is Kind.ANY:
        if value is None or isinstance(value, dict):
            return Kind.MAP
        return Kind.LIST if isinstance(value, list) else Kind.SCALAR
    return Kind.MAP if node.kind is Kind.STRUCT else node.kind


def list_is_whole(node: TypeNode) -> bool:
    """A list that is owned as one value."""
    return node.kind is Kind.ANY or node.list_type == "atomic"


def member(node: TypeNode, name: str) -> TypeNode:
    return node.child(name) or DEDUCED


def item(node: TypeNode) -> TypeNode:
    return node.element or DEDUCED


def element_of(node: TypeNode, value: Any) -> str:
    """The path element of a list item: its key fields, or itself. Upstream: listItemToPathElement
    (typed/helpers.go)."""
    if node.list_type == "map":
        return _keyed_element(node, value)
    if isinstance(value, dict):
        raise TypedError("associative list without keys has an element that's a map type")
    if isinstance(value, list):
        raise TypedError("not supported: associative list with lists as elements")
    if value is None:
        raise TypedError("associative list without keys has an element that's an explicit null")
    return _set_element(value) if isinstance(value, str) else value_element(value)


_set_element = remembered(8192)(value_element)


def _keyed_element(node: TypeNode, value: Any) -> str:
    if value is None:
        raise TypedError("associative list with keys may not have a null element")
    if not isinstance(value, dict):
        raise TypedError("associative list with keys may not have non-map elements")
    if len(node.map_keys) == 1:
        key = value.get(node.map_keys[0])
        if type(key) is str:
            return _string_key(node.map_keys[0], key)
    keys = tuple(
        (name, value.get(name, node.key_defaults.get(name)))
        for name in node.map_keys
        if name in value or name in node.key_defaults
    )
    if not keys:
        names = "[" + " ".join(f'"{name}"' for name in node.map_keys) + "]"
        text = f"associative list with keys has an element that omits all key fields {names}"
        raise TypedError(f"{text} (and doesn't have default values for any key fields)")
    if any(isinstance(key, (dict, list)) or (isinstance(key, str) and len(key) > LONGEST) for _, key in keys):
        return key_element(dict(keys))
    return _several_keys(keys, tuple(type(key) for _, key in keys))


@lru_cache(maxsize=8192)
def _several_keys(keys: tuple[tuple[str, Any], ...], types: tuple[type, ...]) -> str:
    """The types are part of the cache's key: 1 and True are equal, but not the same key."""
    return key_element(dict(keys))


@remembered(8192)
def _string_key(name: str, value: str) -> str:
    return key_element({name: value})
