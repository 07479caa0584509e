"""What a typed conversion would lose by itself: fields that the classes do not know, and explicit nulls.

A definition may be newer than the program that converts (they are upgraded one after the other), and a class may leave
fields open. Such fields are carried over at their place, unless the target has a field of that name itself. The API
server prunes what its own schema does not know, so nothing appears that it would not accept.
"""

from __future__ import annotations

from typing import Any

from konverge.objects.custom.schema import Schema

Obj = dict[str, Any]
_KEYS = "x-kubernetes-list-map-keys"


def carry(source: Obj, target: Obj, source_schema: Schema, target_schema: Schema) -> None:
    """Put into `target` what of `source` the class of neither knows, and nulls that both allow."""
    known, allowed = source_schema.get("properties"), target_schema.get("properties")
    if known is None or allowed is None:
        return
    for name, value in source.items():
        if name not in known:
            if name not in allowed:
                target.setdefault(name, value)
        elif name in allowed:
            _carry_field(name, value, target, known[name], allowed[name])


def _carry_field(name: str, value: Any, target: Obj, known: Schema, allowed: Schema) -> None:
    if value is None:
        if known.get("nullable") and allowed.get("nullable"):
            target.setdefault(name, None)
    elif isinstance(value, dict):
        inner = target.get(name, {})
        if isinstance(inner, dict):
            carry(value, inner, known, allowed)
            if inner:
                target[name] = inner
    elif isinstance(value, list) and isinstance(target.get(name), list):
        _carry_items(value, target[name], known, allowed)


def _carry_items(source: list[Any], target: list[Any], known: Schema, allowed: Schema) -> None:
    """Entries are the same if their keys are; without keys it is unknown which became which."""
    keys = known.get(_KEYS)
    if keys and keys == allowed.get(_KEYS):
        by_key = {key_of(item, keys): item for item in target if isinstance(item, dict)}
        for item in source:
            counterpart = by_key.get(key_of(item, keys)) if isinstance(item, dict) else None
            if counterpart is not None:
                carry(item, counterpart, known["items"], allowed["items"])


def key_of(item: Obj, keys: list[str]) -> tuple[str, ...]:
    """The identity of an entry of a list of type map."""
    return tuple(str(item.get(key)) for key in keys)


def without_nulls(value: Any) -> Any:
    """Plain data in which what is null in a map is absent."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
