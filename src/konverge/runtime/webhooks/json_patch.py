"""What a mutating function changed, as a JSON patch on the object as the API server sent it.

The class of an object may know less than the server does. So the patch is made of three states: the object as it was
sent, and its typed form before and after. Only what differs between the last two is changed; unknown fields stay, also
in entries of lists, which are recognised by their content, by their name, or by their place.
"""

from __future__ import annotations

from typing import Any

import msgspec

Operation = dict[str, Any]
_KEYS = ("name", "key", "type", "mountPath", "devicePath", "containerPort", "port", "ip", "uid")


def changes(sent: Any, before: Any, after: Any) -> list[Operation]:
    """The operations that make on `sent` the changes from `before` to `after`; none when they are alike.

    >>> changes({"a": 1, "unknown": 2}, {"a": 1}, {"a": 3, "b": {}})
    [{'op': 'replace', 'path': '/a', 'value': 3}, {'op': 'add', 'path': '/b', 'value': {}}]
    """
    return operations(sent, merged(sent, before, after))


# ------------------------------------------------------------------ three states


def merged(sent: Any, before: Any, after: Any) -> Any:
    """`sent` with the changes that lead from `before` to `after`."""
    if _same(before, after):
        return sent
    if isinstance(after, dict) and isinstance(sent, dict):
        return _merged_maps(sent, before if isinstance(before, dict) else {}, after)
    if isinstance(after, list) and isinstance(sent, list) and isinstance(before, list) and len(sent) == len(before):
        return _merged_lists(sent, before, after)
    return after


def _merged_maps(sent: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    result = {name: value for name, value in sent.items() if name in after or name not in before}
    for name, value in after.items():
        if name not in before or not _same(before[name], value):
            result[name] = merged(sent.get(name), before.get(name), value)
    return result


def _merged_lists(sent: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    origins = _origins(before, after)
    return [
        value if origin is None else merged(sent[origin], before[origin], value)
        for value, origin in zip(after, origins, strict=True)
    ]


def _origins(before: list[Any], after: list[Any]) -> list[int | None]:
    """Where each entry of `after` was in `before`; None for a new one."""
    origins: list[int | None] = [None] * len(after)
    for index in range(min(len(before), len(after))):
        if _same(before[index], after[index]):
            origins[index] = index
    free = sorted(set(range(len(before))) - set(origins))
    for identify in (_content, _key):
        places: dict[Any, list[int]] = {}
        for place in free:
            if (identity := identify(before[place])) is not None:
                places.setdefault(identity, []).append(place)
        for index, value in enumerate(after):
            if origins[index] is None and (matches := places.get(identify(value))):
                origins[index] = matches.pop(0)
        free = sorted(set(free) - set(origins))
    if len(before) == len(after):
        for place in free:
            if origins[place] is None and _key(after[place]) is None:
                origins[place] = place
    return origins


def _content(entry: Any) -> bytes:
    return msgspec.json.encode(entry, order="sorted")


def _key(entry: Any) -> tuple[str, str] | None:
    """By which an entry is known where lists are maps: containers and ports have names, conditions types."""
    if not isinstance(entry, dict):
        return None
    return next(((name, str(entry[name])) for name in _KEYS if name in entry), None)


# ------------------------------------------------------------------ two states


def operations(old: Any, new: Any, path: str = "") -> list[Operation]:
    """The JSON patch (RFC 6902) from one value to another."""
    if _same(old, new):
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        listed = [{"op": "remove", "path": f"{path}/{_escaped(name)}"} for name in old if name not in new]
        for name, value in new.items():
            place = f"{path}/{_escaped(name)}"
            listed += operations(old[name], value, place) if name in old else [_add(place, value)]
        return listed
    if isinstance(old, list) and isinstance(new, list):
        return _of_lists(old, new, path)
    return [{"op": "replace", "path": path, "value": new}]


def _of_lists(old: list[Any], new: list[Any], path: str) -> list[Operation]:
    """What is the same at the beginning and at the end stays; in between, entries are changed, added or removed."""
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if not _same(old[index], new[index])), shorter)
    end = next(
        (index for index in range(shorter - start) if not _same(old[-1 - index], new[-1 - index])), shorter - start
    )
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    both = min(len(gone), len(come))
    listed = [
        operation
        for index in range(both)
        for operation in operations(gone[index], come[index], f"{path}/{start + index}")
    ]
    listed += [{"op": "remove", "path": f"{path}/{start + both}"} for _ in gone[both:]]
    listed += [_add(f"{path}/{start + both + index}", value) for index, value in enumerate(come[both:])]
    return listed


def _add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _same(left: Any, right: Any) -> bool:
    """Equal in JSON, where true is not 1."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
