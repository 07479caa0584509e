"""The cost of the list and set libraries: allocation, and comparisons of every item with every other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from konverge.apiserver.cel.cost_ranges import MAX, ONE, STRING_FACTOR, Estimate, exactly
from konverge.apiserver.cel.nodes import Literal

if TYPE_CHECKING:
    from konverge.apiserver.cel.cost import Operand


class ListCost(NamedTuple):
    cost: Estimate
    size: Estimate | None = None


def list_cost(overload: str, target: Operand | None, args: list[Operand]) -> ListCost | None:
    """None if the overload is none of these."""
    if overload.startswith("list_sets_"):
        factor = 2 if overload == "list_sets_equivalent_list" else 1
        return ListCost(args[0].estimate().times(args[1].estimate()).scaled(factor).plus(ONE))
    if overload.endswith(("_sort", "_sortByAssociatedKeys")):
        texts = "_string_" in overload or "_bytes_" in overload
        size = (args[0] if args else target).estimate()  # type: ignore[union-attr]
        return _allocating(size.times(size), 2.0 + (STRING_FACTOR if texts else 0))
    found = _COSTS.get(overload)
    return found(target, args) if found is not None else None


def _allocating(size: Estimate, factor: float = 1.0) -> ListCost:
    return ListCost(size.scaled(factor).plus(exactly(11)), size)


def _number(operand: Operand, default: int) -> int:
    value = operand.node.value if isinstance(operand.node, Literal) else None
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else default


def _slice(target: Operand | None, args: list[Operand]) -> ListCost:
    assert target is not None
    start, end = _number(args[0], 0), _number(args[1], target.estimate().high)
    return _allocating(exactly((end - start) % 2**64))


def _range(target: Operand | None, args: list[Operand]) -> ListCost:
    return _allocating(exactly(_number(args[0], MAX)))


def _reverse(target: Operand | None, args: list[Operand]) -> ListCost:
    assert target is not None
    return _allocating(target.estimate())


def _flatten(target: Operand | None, args: list[Operand]) -> ListCost:
    assert target is not None
    return _allocating(target.estimate(), float(_number(args[0], MAX) if args else 1))


def _distinct(target: Operand | None, args: list[Operand]) -> ListCost:
    assert target is not None
    size = target.estimate()
    return _allocating(size.times(size), 2.0)


_COSTS: dict[str, Callable[[Operand | None, list[Operand]], ListCost]] = {
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _distinct,
}
