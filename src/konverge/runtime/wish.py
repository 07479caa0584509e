"""Is the wish already true? Decides whether a server-side apply is needed at all.

The steady state of an operator makes no request, so before applying, the wish is compared with the cached object:

1. everything wished is there, with the wished value (fields that others added or the server defaulted do not matter);
2. where we have applied the object before: we own everything wished, so that nobody takes it away unnoticed, and
3. we own nothing that is no longer wished: such a field must be given up, and only an apply does that.

Points 2 and 3 read our entry in `managedFields`, which also says how lists merge (`k:` by key, `v:` as a set, a leaf as
a whole), so no schema is needed. An object that somebody else made exactly as we wish it is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from konverge.objects.quantity import Quantity

Fields = dict[str, Any]
"""A FieldsV1 tree."""

# Never owned: they identify the object, or belong to the server.
_IDENTITY = {"apiVersion", "kind"}
_UNOWNED_METADATA = {
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "generateName",
}  # fmt: skip
# Maps whose values are quantities: 1000m and 1 are one wish, and the server stores the canonical form.
_QUANTITIES = {"requests", "limits", "hard", "capacity", "allocatable", "max", "min", "default", "defaultRequest"}


def our_fields(live: dict[str, Any], manager: str) -> Fields | None:
    """What we own of the main resource, or None when we have never applied it."""
    for entry in live.get("metadata", {}).get("managedFields", ()):
        if entry["manager"] == manager and entry["operation"] == "Apply" and not entry.get("subresource"):
            fields: Fields = entry.get("fieldsV1", {})
            return fields
    return None


def unsatisfied(wish: dict[str, Any], live: dict[str, Any], manager: str) -> str:
    """The path of the first thing that an apply would change, or an empty string when there is nothing to do."""
    return next(_differences(wish, live, our_fields(live, manager), ""), "")


def _differences(wish: Any, live: Any, fields: Fields | None, path: str) -> Iterator[str]:
    if isinstance(wish, dict) and isinstance(live, dict):
        yield from _map_differences(wish, live, fields, path)
    elif isinstance(wish, list) and isinstance(live, list):
        yield from _list_differences(wish, live, fields, path)
    elif wish != live and not _same_quantity(wish, live, path):
        yield path


def _map_differences(wish: dict[str, Any], live: dict[str, Any], fields: Fields | None, path: str) -> Iterator[str]:
    # A leaf in our fields is an atomic map: it is ours as a whole, and what is inside is compared by value alone.
    inside = fields or None
    for name, value in wish.items():
        if _is_identity(name, path):
            continue
        here = f"{path}.{name}"
        owned = inside.get(f"f:{name}") if inside is not None else None
        if value is None or name not in live or (inside is not None and owned is None):
            if value is not None or owned is not None:
                yield here
            continue
        yield from _differences(value, live[name], owned, here)
    for name in inside or ():
        if name.startswith("f:") and name[2:] not in wish:
            yield f"{path}.{name[2:]}"


def _is_identity(name: str, path: str) -> bool:
    return (not path and name in _IDENTITY) or (path == ".metadata" and name in _UNOWNED_METADATA)


def _list_differences(wish: list[Any], live: list[Any], fields: Fields | None, path: str) -> Iterator[str]:
    keyed = {name: child for name, child in (fields or {}).items() if name.startswith("k:")}
    if keyed:
        yield from _keyed_differences(wish, live, keyed, path)
    elif any(name.startswith("v:") for name in fields or ()):
        owned = [msgspec.json.decode(name[2:]) for name in fields or () if name.startswith("v:")]
        if any(value not in live or value not in owned for value in wish) or any(value not in wish for value in owned):
            yield path
    elif len(wish) != len(live):
        yield path
    else:
        for index, (wanted, present) in enumerate(zip(wish, live, strict=True)):
            yield from _differences(wanted, present, None, f"{path}[{index}]")


def _keyed_differences(wish: list[Any], live: list[Any], keyed: dict[str, Fields], path: str) -> Iterator[str]:
    left = list(wish)
    for name, owned in keyed.items():
        keys: dict[str, Any] = msgspec.json.decode(name[2:])
        wanted = _find(left, keys)
        if wanted is None:
            yield f"{path}[{name[2:]}]"  # owned, no longer wished
            continue
        left.remove(wanted)
        present = _find(live, keys)
        if present is None:
            yield f"{path}[{name[2:]}]"
        else:
            yield from _differences(wanted, present, owned, f"{path}[{name[2:]}]")
    if left:
        yield path  # wished, not yet ours


def _find(items: list[Any], keys: dict[str, Any]) -> dict[str, Any] | None:
    """The element with these keys. A wish may leave out a key that the server defaults (a port's protocol)."""
    for item in items:
        if isinstance(item, dict) and all(item.get(key, value) == value for key, value in keys.items()):
            return item
    return None


def _same_quantity(wish: Any, live: Any, path: str) -> bool:
    parts = path.rsplit(".", 2)
    if len(parts) < 3 or parts[1] not in _QUANTITIES:
        return False
    try:
        return Quantity(wish) == Quantity(live)
    except (ValueError, TypeError):
        return False
