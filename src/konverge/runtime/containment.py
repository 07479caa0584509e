"""Is the desired object already contained in the observed one? Decides whether a server-side apply is needed at all.

The steady state of an operator makes no request. So before an apply, the desired object is compared with the cached
one:

1. every desired field is there with the desired value (fields that others added or the server defaulted do not matter);
2. where we applied the object before: we own every desired field, so that no other manager can change it unnoticed, and
3. we own no field that is no longer desired: such a field must be given up, and only an apply does that.

Content that is owned as a whole (an atomic list or map) is compared as a whole; what the server itself adds to it is
known from answers (`konverge.runtime.server_additions`).

Points 2 and 3 read our entry in `managedFields`, which also says how lists merge (`k:` by key, `v:` as a set, a leaf as
a whole), so no schema is needed. An object that another manager made exactly as desired is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from konverge.objects.codec import encode_hook, to_dict
from konverge.objects.meta import Object
from konverge.objects.quantity import Quantity

Fields = dict[str, Any]
"""A FieldsV1 tree."""

Additional = Callable[[str, Any], bool]
"""Whether a field at a path, which we own as a part of something whole, was added by the server with this value."""

# Never owned: they identify the object, or belong to the server. By path.
_UNOWNED = {
    "": frozenset({"apiVersion", "kind"}),
    ".metadata": frozenset({
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
        "generateName",
    }),
}  # fmt: skip
_NOTHING: Fields = {".": {}}
_LEAVES = frozenset({str, int, bool, float})
# Maps whose values are quantities: 1000m and 1 are the same amount, and the server stores the canonical form.
_QUANTITIES = {"requests", "limits", "hard", "capacity", "allocatable", "max", "min", "default", "defaultRequest"}


def plain(desired: Object) -> dict[str, Any]:
    """A desired object as plain data, for `first_difference`. An empty status is left out, as it is not sent."""
    try:
        data: dict[str, Any] = msgspec.to_builtins(desired, enc_hook=encode_hook)
    except TypeError:  # a part is raw JSON: an object that was read from the server holds its managedFields that way
        return to_dict(desired)
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


def _never(path: str, value: Any) -> bool:
    return False


def first_difference(desired: dict[str, Any], live: dict[str, Any], manager: str, added: Additional = _never) -> str:
    """The path of the first field that an apply would change, or an empty string when there is nothing to do."""
    return _difference(desired, live, our_fields(live, manager) or None, "", added)


_WHOLE: Fields = {}
"""A leaf: we own all that is below it."""


def _difference(desired: Any, live: Any, fields: Fields | None, path: str, added: Additional) -> str:
    if isinstance(desired, dict) and isinstance(live, dict):
        return _map_difference(desired, live, fields, path, added)
    if isinstance(desired, (list, tuple)) and isinstance(live, list):
        return _list_difference(desired, live, fields, path, added)
    return "" if desired == live else path


def _map_difference(
    desired: dict[str, Any], live: dict[str, Any], fields: Fields | None, path: str, added: Additional
) -> str:
    if fields == _WHOLE:
        return _whole_difference(desired, live, path, added)
    inside = fields
    unowned = _UNOWNED.get(path, frozenset())
    for name, value in desired.items():
        if name in unowned:
            continue
        owned = inside.get(f"f:{name}") if inside is not None else None
        if owned is None and inside is not None and name == "metadata" and not path:
            owned = _NOTHING  # metadata that only names the object has no owner
        if value is None or name not in live or (inside is not None and owned is None):
            if value is not None or owned is not None:
                return f"{path}.{name}"
        elif value.__class__ in _LEAVES:  # most fields: without a call and a path
            if value != live[name] and not _same_amount(path, value, live[name]):
                return f"{path}.{name}"
        elif inner := _difference(value, live[name], owned, f"{path}.{name}", added):
            return inner
    for name in inside or ():
        if name.startswith("f:") and name[2:] not in desired:
            return f"{path}.{name[2:]}"
    return ""


def _whole_difference(desired: dict[str, Any], live: dict[str, Any], path: str, added: Additional) -> str:
    """Of a map that we own as a whole: what is not desired was added by the server, or has to go."""
    for name, value in desired.items():
        if value is None:
            continue
        if name not in live:
            return f"{path}.{name}"
        if value.__class__ in _LEAVES:
            if value != live[name] and not _same_amount(path, value, live[name]):
                return f"{path}.{name}"
        elif inner := _difference(value, live[name], _WHOLE, f"{path}.{name}", added):
            return inner
    extra = (name for name in live if desired.get(name) is None and not added(f"{path}.{name}", live[name]))
    return next((f"{path}.{name}" for name in extra), "")


def _list_difference(
    desired: Sequence[Any], live: list[Any], fields: Fields | None, path: str, added: Additional
) -> str:
    keyed = {name: child for name, child in (fields or {}).items() if name.startswith("k:")}
    if keyed:
        return _keyed_difference(desired, live, keyed, path, added)
    owned = [msgspec.json.decode(name[2:]) for name in fields or () if name.startswith("v:")]
    if owned:
        same = all(value in live and value in owned for value in desired) and all(value in desired for value in owned)
        return "" if same else path
    if len(desired) != len(live):
        return path
    inside = None if fields is None else _WHOLE  # by position: a list that we own as a whole, or not at all
    pairs = enumerate(zip(desired, live, strict=True))
    differences = (
        _difference(wanted, present, inside, f"{path}[{index}]", added) for index, (wanted, present) in pairs
    )
    return next(filter(None, differences), "")


def _keyed_difference(
    desired: Sequence[Any], live: list[Any], keyed: dict[str, Fields], path: str, added: Additional
) -> str:
    left = list(desired)
    for name, owned in keyed.items():
        keys: dict[str, Any] = msgspec.json.decode(name[2:])
        here = f"{path}[{name[2:]}]"
        wanted = _find(left, keys)
        if wanted is None:
            return here  # owned but no longer desired
        left.remove(wanted)
        if inner := _difference(wanted, _find(live, keys), owned, here, added):
            return inner
    return path if left else ""  # desired, but not owned by us yet


def _find(items: list[Any], keys: dict[str, Any]) -> dict[str, Any] | None:
    """The element with these keys. The desired one may leave out a key that the server defaults (a port's protocol);
    one that names it comes first."""
    best, most = None, -1
    for item in items:
        if not isinstance(item, dict):
            continue
        named = [item[key] == value for key, value in keys.items() if key in item]
        if len(named) > most and all(named):
            best, most = item, len(named)
    return best


def _same_amount(path: str, desired: Any, live: Any) -> bool:
    """Whether two texts in a map of quantities mean the same."""
    if path.rpartition(".")[2] not in _QUANTITIES:
        return False
    try:
        return Quantity(desired) == Quantity(live)
    except (ValueError, TypeError):
        return False
