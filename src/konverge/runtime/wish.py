"""Is the wish already true? Decides whether a server-side apply is needed at all.

The steady state of an operator makes no request, so before applying, the wish is compared with the cached object:

1. everything wished is there, with the wished value (fields that others added or the server defaulted do not matter);
2. where we have applied the object before: we own everything wished, so that nobody takes it away unnoticed, and
3. we own nothing that is no longer wished: such a field must be given up, and only an apply does that.

Points 2 and 3 read our entry in `managedFields`, which also says how lists merge (`k:` by key, `v:` as a set, a leaf as
a whole), so no schema is needed. An object that somebody else made exactly as we wish it is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from konverge.objects.codec import encode_hook, to_dict
from konverge.objects.meta import Object
from konverge.objects.quantity import Quantity

Fields = dict[str, Any]
"""A FieldsV1 tree."""

# Never owned: they identify the object, or belong to the server. By path.
_UNOWNED = {
    "": frozenset({"apiVersion", "kind"}),
    ".metadata": frozenset({
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
        "generateName",
    }),
}  # fmt: skip
_NOTHING: Fields = {".": {}}
# Maps whose values are quantities: 1000m and 1 are one wish, and the server stores the canonical form.
_QUANTITIES = {"requests", "limits", "hard", "capacity", "allocatable", "max", "min", "default", "defaultRequest"}


def plain(wish: Object) -> dict[str, Any]:
    """A wish as plain data, for `unsatisfied`. An empty status is no part of it, as it is not sent."""
    try:
        data: dict[str, Any] = msgspec.to_builtins(wish, str_keys=True, enc_hook=encode_hook)
    except TypeError:  # a part of it is JSON already: an object that was read before has its managedFields so
        return to_dict(wish)
    if data.get("status") == {}:
        del data["status"]
    return data


def our_fields(live: dict[str, Any], manager: str) -> Fields | None:
    """What we own of the main resource, or None when we have never applied it."""
    for entry in live.get("metadata", {}).get("managedFields", ()):
        if entry["manager"] == manager and entry["operation"] == "Apply" and not entry.get("subresource"):
            fields: Fields = entry.get("fieldsV1", {})
            return fields
    return None


def unsatisfied(wish: dict[str, Any], live: dict[str, Any], manager: str) -> str:
    """The path of the first thing that an apply would change, or an empty string when there is nothing to do."""
    return _difference(wish, live, our_fields(live, manager), "")


def _difference(wish: Any, live: Any, fields: Fields | None, path: str) -> str:
    if wish == live and not fields:
        return ""
    if isinstance(wish, dict) and isinstance(live, dict):
        return _map_difference(wish, live, fields, path)
    if isinstance(wish, (list, tuple)) and isinstance(live, list):
        return _list_difference(wish, live, fields, path)
    return "" if wish == live or _same_quantity(wish, live, path) else path


def _map_difference(wish: dict[str, Any], live: dict[str, Any], fields: Fields | None, path: str) -> str:
    # A leaf in our fields is an atomic map: it is ours as a whole, and what is inside is compared by value alone.
    inside = fields or None
    unowned = _UNOWNED.get(path, frozenset())
    for name, value in wish.items():
        if name in unowned:
            continue
        owned = inside.get(f"f:{name}") if inside is not None else None
        if owned is None and inside is not None and name == "metadata" and not path:
            owned = _NOTHING  # metadata that only names the object is owned by nobody
        if value is None or name not in live or (inside is not None and owned is None):
            if value is not None or owned is not None:
                return f"{path}.{name}"
        elif (owned or value != live[name]) and (found := _difference(value, live[name], owned, f"{path}.{name}")):
            return found
    for name in inside or ():
        if name.startswith("f:") and name[2:] not in wish:
            return f"{path}.{name[2:]}"
    return ""


def _list_difference(wish: Sequence[Any], live: list[Any], fields: Fields | None, path: str) -> str:
    keyed = {name: child for name, child in (fields or {}).items() if name.startswith("k:")}
    if keyed:
        return _keyed_difference(wish, live, keyed, path)
    owned = [msgspec.json.decode(name[2:]) for name in fields or () if name.startswith("v:")]
    if owned:
        same = all(value in live and value in owned for value in wish) and all(value in wish for value in owned)
        return "" if same else path
    if len(wish) != len(live):
        return path
    for index, (wanted, present) in enumerate(zip(wish, live, strict=True)):
        if found := _difference(wanted, present, None, f"{path}[{index}]"):
            return found
    return ""


def _keyed_difference(wish: Sequence[Any], live: list[Any], keyed: dict[str, Fields], path: str) -> str:
    left = list(wish)
    for name, owned in keyed.items():
        keys: dict[str, Any] = msgspec.json.decode(name[2:])
        here = f"{path}[{name[2:]}]"
        wanted, present = _find(left, keys), _find(live, keys)
        if wanted is None or present is None:
            return here  # owned but no longer wished, or taken away by somebody
        left.remove(wanted)
        if found := _difference(wanted, present, owned, here):
            return found
    return path if left else ""  # wished, not yet ours


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
