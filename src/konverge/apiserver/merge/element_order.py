"""The order of lists that a strategic merge patch has merged.

Items that the patch names come in its order; items that only the server has keep their order and are put among them
where the live list had them. Upstream: normalizeElementOrder and what it calls (apimachinery strategicpatch/patch.go).
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.fmt import go_value
from konverge.apiserver.merge.strategic_errors import StrategicError, no_merge_key

MOST_COMPARED = 2000
"""Items of lists in which each may have to be compared with each: a limit of ours, against quadratic work. Lists of
which each item has a key of its own may be longer."""


def bounded(*lists: list[Any]) -> None:
    """Before work that grows with the square of the items."""
    if sum(map(len, lists)) > MOST_COMPARED:
        raise StrategicError(f"a list of more than {MOST_COMPARED} items cannot be merged item by item", 400)


class Positions:
    """Where the items of a list stand: the first place of each value."""

    def __init__(self, order: list[Any], merge_key: str) -> None:
        self._merge_key = merge_key
        self._places: dict[Any, int] = {}
        self._others: list[tuple[Any, int]] = []
        for index, entry in enumerate(order):
            value = _value(entry, merge_key)
            if isinstance(value, (dict, list)):
                self._others.append((value, index))
            else:
                self._places.setdefault(value, index)
        bounded(self._others)

    def of(self, item: Any) -> int:
        """-1 for an item that is not there."""
        value = _value(item, self._merge_key)
        if isinstance(value, (dict, list)):
            return next((index for other, index in self._others if other == value), -1)
        return self._places.get(value, -1)

    def __contains__(self, item: Any) -> bool:
        return self.of(item) >= 0


def split(items: list[Any], order: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The items that `order` names, and the others."""
    named = Positions(order, merge_key)
    inside: list[Any] = []
    outside: list[Any] = []
    for item in items:
        if merge_key and merge_key not in item:
            raise no_merge_key(item, merge_key)
        (inside if item in named else outside).append(item)
    return inside, outside


def arranged(
    in_order: list[Any], server_only: list[Any], order: list[Any], live_order: list[Any], merge_key: str
) -> list[Any]:
    live = Positions(live_order, merge_key)
    return _interleaved(_sorted(server_only, live), _sorted(in_order, Positions(order, merge_key)), live)


def _sorted(items: list[Any], order: Positions) -> list[Any]:
    """Sorted by `order`. Upstream: normalizeSliceOrder.

    An item that is not in `order` goes before whatever stands there, so such items end up reversed: Go's insertion sort
    with a comparison that says yes when it does not know, and clients see its results.
    """
    positions = [order.of(item) for item in items]
    if -1 not in positions:
        return [item for _, item in sorted(zip(positions, items, strict=True), key=lambda placed: placed[0])]
    bounded(items)
    placed: list[tuple[int, Any]] = []
    for position, item in zip(positions, items, strict=True):
        index = len(placed)
        while index and _goes_before(position, placed[index - 1][0]):
            index -= 1
        placed.insert(index, (position, item))
    return [item for _, item in placed]


def _goes_before(position: int, other: int) -> bool:
    return position < other if position >= 0 and other >= 0 else True


def _interleaved(left: list[Any], right: list[Any], live: Positions) -> list[Any]:  # upstream: mergeSortedSlice
    """`left` put into `right`: each item before the first one that follows it in the live list."""
    out = []
    i = j = 0
    while i < len(left) or j < len(right):
        if i == len(left):
            take_left = False
        elif j == len(right):
            take_left = True
        else:
            a, b = live.of(left[i]), live.of(right[j])
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


def check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:  # upstream: validatePatchWithSetOrderList
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

    Go deletes within the array (deleteMatchingEntries), so a deletion moves the rest up and leaves the last item
    standing twice, and an addition takes the place of such a leftover. `$setElementOrder`, which kubectl sends with
    every apply, then looks at this array.
    """
    array, size = list(live), len(live)
    beyond: list[Any] = []
    specials = [item for item in patch if isinstance(item, dict) and "$patch" in item]
    if not specials:
        return array
    bounded(live, patch)
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
