"""What another version cannot say, kept as differences: `{"at": path, "was": value, "is": value}`.

An object is converted and, in thought, back; where that is not what it was, the difference is kept. Converting back for
real, a difference counts only where the value is still what it was then: a user's change since counts more. An absent
`was` or `is` means an absent field. A step of a path is the name of a field, or the keys of a list's entry as a map;
entries of lists without keys are told apart by their content (`items`: pairs of what they were and are).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from konverge.objects.custom.carried import key_of
from konverge.objects.custom.schema import Schema

Difference = dict[str, Any]
Path = tuple[Any, ...]

_KEYS: Final = "x-kubernetes-list-map-keys"
_NEVER_KEPT: Final = ("apiVersion", "kind", "metadata")
"""What an object is does not depend on its version, so it is no difference between two of them."""
DEEPEST: Final = 200
"""Levels of what is kept: far more than any schema has, and few enough to be compared."""


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()


def encode(differences: list[Difference]) -> str:
    return msgspec.json.encode(differences).decode()


def decode(text: Any) -> list[Difference]:
    """What was kept; nothing if the annotation is not one that we wrote: users can write whatever they like there."""
    try:
        kept = msgspec.json.decode(text)
    except (msgspec.DecodeError, TypeError, RecursionError):
        return []
    if not isinstance(kept, list) or _is_deeper(kept, DEEPEST):
        return []
    return [entry for entry in kept if _is_difference(entry)]


def _is_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [inner for outer in level for inner in _parts(outer)]
        if not level:
            return False
    return True


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_difference(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(path := entry.get("at"), list) or not path:
        return False
    if path[0] in _NEVER_KEPT:
        return False
    pairs = entry.get("items", [])
    shaped = isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    return shaped and all(isinstance(step, str) or (isinstance(step, dict) and step) for step in path)


# ------------------------------------------------------------------ finding


def differences(base: Any, actual: Any, schema: Schema) -> list[Difference]:
    """Where `actual` is not `base`; the schema says by which keys entries of lists are known."""
    return list(_differences(base, actual, schema, ()))


def _differences(base: Any, actual: Any, schema: Schema, path: Path) -> Iterator[Difference]:
    if same(base, actual):
        return
    if isinstance(base, dict) and isinstance(actual, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name in {**base, **actual}:
            parts = base.get(name, ABSENT), actual.get(name, ABSENT)
            yield from _differences(*parts, known.get(name, others), (*path, name))
    elif isinstance(base, list) and isinstance(actual, list) and len(base) == len(actual):
        yield from _in_list(base, actual, schema, path)
    else:
        yield _difference(path, base, actual)


def _difference(path: Path, base: Any, actual: Any) -> Difference:
    sides = {"was": base, "is": actual}
    return {"at": list(path), **{name: value for name, value in sides.items() if value is not ABSENT}}


def _in_list(base: list[Any], actual: list[Any], schema: Schema, path: Path) -> Iterator[Difference]:
    keys = schema.get(_KEYS)
    if keys and (shared := _shared_keys(base, actual, keys)):
        for before, after, key in zip(base, actual, shared, strict=True):
            yield from _differences(before, after, schema["items"], (*path, dict(zip(keys, key, strict=True))))
        return
    pairs = [[before, after] for before, after in zip(base, actual, strict=True) if not same(before, after)]
    if len(set(map(_canonical, base))) < len(base):
        yield _difference(path, base, actual)  # entries that look alike cannot be told apart later
    else:
        yield {"at": list(path), "items": pairs}


def _shared_keys(base: list[Any], actual: list[Any], keys: list[str]) -> list[tuple[Any, ...]] | None:
    """The keys of entries, if both lists have the same ones in the same order."""
    if not all(isinstance(item, dict) for item in (*base, *actual)):
        return None
    mine = [key_of(item, keys) for item in base]
    if mine != [key_of(item, keys) for item in actual] or len(set(mine)) != len(mine):
        return None
    return [tuple(item.get(key) for key in keys) for item in base]


# ------------------------------------------------------------------ putting back


def restored(content: dict[str, Any], kept: list[Difference]) -> dict[str, Any]:
    """A copy with what was kept, wherever the value is still what it was then."""
    copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(content))
    lists = _Lists()
    for entry in kept:
        *way, last = entry["at"]
        parent = _walk(copy, way, lists)
        if "items" in entry:
            lists.restore_items(_child(parent, last, lists), entry["items"])
        elif isinstance(parent, dict) and isinstance(last, str):
            _restore_field(parent, last, entry.get("was", ABSENT), entry.get("is", ABSENT))
        elif isinstance(parent, list) and isinstance(last, dict) and "is" in entry:
            index = lists.index(parent, last)
            if index is not None and same(parent[index], entry.get("was", ABSENT)):
                parent[index] = entry["is"]
    return copy


def _walk(value: Any, path: list[Any], lists: _Lists) -> Any:
    for step in path:
        value = _child(value, step, lists)
    return value


def _child(value: Any, step: Any, lists: _Lists) -> Any:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step, ABSENT)
    if isinstance(value, list) and isinstance(step, dict):
        index = lists.index(value, step)
        return ABSENT if index is None else value[index]
    return ABSENT


def _restore_field(parent: dict[str, Any], name: str, was: Any, kept: Any) -> None:
    if not same(parent.get(name, ABSENT), was):
        return
    if kept is ABSENT:
        parent.pop(name, None)
    else:
        parent[name] = kept


class _Lists:
    """The lists of one object, each looked through once, however many differences name its entries."""

    def __init__(self) -> None:
        self._by_keys: dict[int, tuple[list[Any], tuple[str, ...], dict[bytes, int]]] = {}
        self._restored: dict[int, list[Any]] = {}  # the lists are held, so that their ids stay theirs

    def index(self, items: list[Any], keys: dict[str, Any]) -> int | None:
        """Where the entry with these keys is. All entries of a list have the same keys: others are not ours."""
        names = tuple(sorted(keys))
        if id(items) not in self._by_keys:
            places: dict[bytes, int] = {}
            for index, item in enumerate(items):
                if isinstance(item, dict):
                    places.setdefault(_canonical([item.get(name) for name in names]), index)
            self._by_keys[id(items)] = items, names, places
        _, known, places = self._by_keys[id(items)]
        return places.get(_canonical([keys[name] for name in names])) if known == names else None

    def restore_items(self, items: Any, pairs: list[list[Any]]) -> None:
        """Once for each list, as it is written."""
        if not isinstance(items, list) or id(items) in self._restored:
            return
        self._restored[id(items)] = items
        places: dict[bytes, list[int]] = {}
        for index in reversed(range(len(items))):
            places.setdefault(_canonical(items[index]), []).append(index)
        for was, kept in pairs:
            if indexes := places.get(_canonical(was)):
                items[indexes.pop()] = kept


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def same(left: Any, right: Any) -> bool:
    """Equality of JSON: unlike Python's, True is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)
