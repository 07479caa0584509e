"""The patch of a status that other writers change, too.

A merge patch replaces lists as a whole, so two controllers that each set a condition would lose one. The patch is
therefore made of three states: the status as it was read, as this controller wants it, and as it is now. What this
controller changed is changed; entries of lists that have keys (conditions by `type`, and every `ListType("map", …)` of
the class) are taken one by one, with all fields that the class does not know; everything else stays.

Upstream: the meaning of listType=map (structured-merge-diff), with a read and a guarded write in place of field owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import inspect

from konverge import clock
from konverge.runtime.result import Request

Json = dict[str, Any]
Keys = tuple[str, ...]

_CONDITION: Keys = ("type",)


def changes_on(before: Json, wanted: Json, now: Json, keys: Mapping[str, Keys], path: str = "") -> Json:
    """The body of the merge patch that makes on `now` the changes that lead from `before` to `wanted`.

    >>> changes_on({}, {"phase": "Up", "n": 1}, {"n": 1, "by": "another"}, {})
    {'phase': 'Up'}
    """
    changes: Json = {name: None for name in before if name not in wanted and name in now}
    for name, value in wanted.items():
        old, present = before.get(name), now.get(name)
        if name in before and _same(old, value):
            continue
        if isinstance(value, dict) and isinstance(present, dict):
            inner = changes_on(old if isinstance(old, dict) else {}, value, present, keys, f"{path}{name}.")
            if inner:
                changes[name] = inner
            continue
        if isinstance(value, list):
            before_list, now_list = (entries if isinstance(entries, list) else [] for entries in (old, present))
            value = _merged(before_list, value, now_list, keys.get(path + name))
        if name not in now or not _same(present, value):
            changes[name] = value
    return changes


def _same(left: Any, right: Any) -> bool:
    """Equal in JSON, where true is not 1."""
    return bool(left == right) and type(left) is type(right)


def _merged(before: list[Any], wanted: list[Any], now: list[Any], keys: Keys | None) -> list[Any]:
    """A list with keys merged entry by entry; any other, and one that is declared atomic, as it is wanted."""
    if keys is None and all(map(_is_condition, (*before, *wanted, *now))):
        keys = _CONDITION
    if not keys:
        return wanted
    old, new, present = (_by_keys(entries, keys) for entries in (before, wanted, now))
    if old is None or new is None or present is None:
        return wanted  # the entries have no keys, or two have the same
    merged = []
    for key, entry in new.items():  # in the order that is wanted: readers see it, and upstream's controllers change it
        if key in present:
            merged.append(_with_changes(old.get(key), entry, present[key]))
        elif old.get(key) != entry:  # one that we did not touch and that is gone was removed by another writer
            merged.append(entry)
    return [*merged, *(entry for key, entry in present.items() if key not in new and key not in old)]


def _with_changes(before: Json | None, wanted: Json, now: Json) -> Json:
    """An entry with our changes; its other fields, such as those that our class does not know, stay."""
    if before == wanted:
        return now
    gone = set(before or ()) - set(wanted)
    return {**{name: value for name, value in now.items() if name not in gone}, **wanted}


def _by_keys(entries: Iterable[Any], keys: Keys) -> dict[tuple[Any, ...], Json] | None:
    by_keys: dict[tuple[Any, ...], Json] = {}
    for entry in entries:
        key = tuple(entry.get(name) for name in keys) if isinstance(entry, dict) else (None,)
        if None in key or key in by_keys:
            return None
        by_keys[key] = entry
    return by_keys


def _is_condition(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("type"), str) and isinstance(entry.get("status"), str)


# ------------------------------------------------------------------ what the server does not keep

SENT_AGAIN_AFTER = 3600.0
"""Seconds. A newer definition may have been installed since, which changes nothing of the object itself."""


class Unkept:
    """Changes that the server answered with the object as it was: the definition in the cluster is an earlier one.

    Without this, every reconcile would find the same difference, and send it again.
    """

    def __init__(self) -> None:
        self._sent: dict[Request, tuple[str, Json, float]] = {}

    def knows(self, request: Request, version: str, changes: Json) -> bool:
        """Whether these changes of the object at this version were sent for nothing, not long ago."""
        if request not in self._sent:
            return False
        *sent, at = self._sent[request]
        return sent == [version, changes] and clock.monotonic() < at + SENT_AGAIN_AFTER

    def add(self, request: Request, version: str, changes: Json) -> None:
        self._sent[request] = (version, changes, clock.monotonic())

    def forget(self, request: Request) -> None:
        self._sent.pop(request, None)


# ------------------------------------------------------------------ keys of a class


_keys: dict[type[Any], dict[str, Keys]] = {}


def keys_of(kind: type[Any]) -> dict[str, Keys]:
    """Path -> keys, of the lists that a class declares with `ListType("map", …)`; none for `ListType("atomic")`."""
    if kind not in _keys:
        _keys[kind] = dict(_walk(inspect.type_info(kind), "", ()))
    return _keys[kind]


def _walk(node: inspect.Type, path: str, parents: tuple[type[Any], ...]) -> Iterator[tuple[str, Keys]]:
    declared: Json = {}
    while isinstance(node, inspect.Metadata):
        declared = {**(node.extra_json_schema or {}), **declared}
        node = node.type
    keys = declared.get("x-kubernetes-list-map-keys")
    if isinstance(node, inspect.ListType) and (keys or declared.get("x-kubernetes-list-type") == "atomic"):
        yield path, tuple(keys or ())
    elif isinstance(node, inspect.UnionType):
        for part in node.types:
            yield from _walk(part, path, parents)
    elif isinstance(node, inspect.StructType) and node.cls not in parents:
        for field in node.fields:
            name = f"{path}.{field.encode_name}" if path else field.encode_name
            yield from _walk(field.type, name, (*parents, node.cls))
