"""The order of lists that a strategic merge patch has merged.

Items that the patch names come in its order; items that only the server has keep their order and are put among them
where the live list had them.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.merge.gotext import go_value
from konverge.apiserver.merge.strategicerrors import StrategicError, no_merge_key


def split(items: list[Any], order: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The items that `order` names, and the others."""
    if not merge_key:
        return [item for item in items if item in order], [item for item in items if item not in order]
    inside: list[Any] = []
    outside: list[Any] = []
    for item in items:
        if merge_key not in item:
            raise no_merge_key(item, merge_key)
        (outside if _position(order, item, merge_key) < 0 else inside).append(item)
    return inside, outside


def arranged(
    in_order: list[Any], server_only: list[Any], order: list[Any], live_order: list[Any], merge_key: str
) -> list[Any]:
    return _interleaved(
        _sorted(server_only, live_order, merge_key), _sorted(in_order, order, merge_key), live_order, merge_key
    )


def _sorted(items: list[Any], order: list[Any], merge_key: str) -> list[Any]:
    """Sorted by `order`. An item that is not in it goes before whatever stands there, so such items end up reversed:
    Go's insertion sort with a comparison that says yes when it does not know, and clients see its results."""
    placed: list[tuple[int, Any]] = []
    for item in items:
        position = _position(order, item, merge_key)
        index = len(placed)
        while index and _goes_before(position, placed[index - 1][0]):
            index -= 1
        placed.insert(index, (position, item))
    return [item for _, item in placed]


def _goes_before(position: int, other: int) -> bool:
    return position < other if position >= 0 and other >= 0 else True


def _interleaved(left: list[Any], right: list[Any], live_order: list[Any], merge_key: str) -> list[Any]:
    """`left` put into `right`: each item before the first one that follows it in the live list."""
    out = []
    i = j = 0
    while i < len(left) or j < len(right):
        if i == len(left):
            take_left = False
        elif j == len(right):
            take_left = True
        else:
            a, b = (_position(live_order, item, merge_key) for item in (left[i], right[j]))
            take_left = a >= 0 and b >= 0 and a < b
        if take_left:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out


def _position(order: list[Any], item: Any, merge_key: str) -> int:
    wanted = _value(item, merge_key)
    return next((index for index, entry in enumerate(order) if _value(entry, merge_key) == wanted), -1)


def _value(item: Any, merge_key: str) -> Any:
    return item.get(merge_key) if merge_key and isinstance(item, dict) else item


def check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """The items of a patch must be among those of its `$setElementOrder`, and in that order."""
    if not patch or not order:
        return
    named = [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    index = 0
    for entry in order:
        if index < len(named) and _key(named[index], merge_key) == _key(entry, merge_key):
            index += 1
    if index < len(named):
        text = (
            f"The order in patch list:\n{go_value(patch)}\n doesn't match $setElementOrder list:\n{go_value(order)}\n"
        )
        raise StrategicError(text)


def _key(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    if not isinstance(item, dict) or merge_key not in item:
        raise no_merge_key(item if isinstance(item, dict) else {}, merge_key)
    return item[merge_key]


def left_behind(live: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    """The live list after its items have been merged, as the order of the result is still read from it.

    Go deletes within the array, so a deletion moves the rest up and leaves the last item standing twice, and an
    addition takes the place of such a leftover. `$setElementOrder`, which kubectl sends with every apply, then looks at
    this array.
    """
    array, size = list(live), len(live)
    beyond: list[Any] = []
    specials = [item for item in patch if isinstance(item, dict) and "$patch" in item]
    for item in specials:
        while item["$patch"] == "delete" and (index := _position(array[:size], item, merge_key)) >= 0:
            array[index : size - 1] = array[index + 1 : size]
            size -= 1
    if any(item["$patch"] == "replace" for item in specials):
        return array
    for item in patch:
        if item in specials or _position([*array[:size], *beyond], item, merge_key) >= 0:
            continue
        if size < len(array):
            array[size] = item
            size += 1
        else:
            beyond.append(item)
    return array
