"""Lists and sets. Upstream: cel-go ext/lists.go and ext/sets.go, apiserver/pkg/cel/library/lists.go."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

from konverge.apiserver.cel.library.standard import FUNCTIONS as STANDARD
from konverge.apiserver.cel.library.timestamps import FUNCTIONS as TIMING
from konverge.apiserver.cel.literals import UInt
from konverge.apiserver.cel.timestamps import Duration
from konverge.apiserver.cel.values import NONE, EvalError, Optional, contains, equal

_RANGE_LIMIT = 1_000_000  # upstream: defaultMaxRangeSize


def _sorted(items: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(items))


def _sum(zero: Any, add: Callable[[Any, Any], Any]) -> Callable[[list[Any]], Any]:
    return lambda items: reduce(add, items, zero)


def _extreme(name: str, choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def find(items: list[Any]) -> Any:
        if not items:
            raise EvalError(f"{name} called on empty list")
        return choose(items)

    return find


def _index_of(items: list[Any], value: Any) -> int:
    return next((index for index, item in enumerate(items) if equal(item, value)), -1)


def _last_index_of(items: list[Any], value: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], value)), -1)


def _distinct(items: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for item in items:
        if not contains(distinct, item):
            distinct.append(item)
    return distinct


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvalError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvalError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _range(count: int) -> list[int]:
    if count < 0:
        raise EvalError(f"lists.range: size must be non-negative, got {count}")
    if count > _RANGE_LIMIT:
        raise EvalError(f"lists.range: size {count} exceeds maximum allowed ({_RANGE_LIMIT})")
    return list(range(count))


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    order = sorted(range(len(items)), key=lambda index: keys[index])
    return [items[index] for index in order]


def _includes(items: Any, value: Any) -> bool:
    if isinstance(items, list):
        return contains(items, value)
    return equal(items, value)


def _sets_contain(items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(items, item) for item in wanted)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "list_int_sum_int": _sum(0, STANDARD["add_int64"]),
    "list_uint_sum_uint": _sum(UInt(0), STANDARD["add_uint64"]),
    "list_double_sum_double": _sum(0.0, STANDARD["add_double"]),
    "list_duration_sum_duration": _sum(Duration(0), TIMING["add_duration_duration"]),
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_distinct": _distinct,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_slice": _slice,
    "list_reverse": lambda items: list(reversed(items)),
    "list_first": lambda items: Optional(items[0]) if items else NONE,
    "list_last": lambda items: Optional(items[-1]) if items else NONE,
    "list_includes_dyn_dyn": _includes,
    "lists_range": _range,
    "list_sets_contains_list": _sets_contain,
    "list_sets_equivalent_list": lambda a, b: _sets_contain(a, b) and _sets_contain(b, a),
    "list_sets_intersects_list": lambda a, b: any(contains(b, item) for item in a),
}
for _kind in ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"):
    FUNCTIONS[f"list_{_kind}_is_sorted_bool"] = _sorted
    FUNCTIONS[f"list_{_kind}_min_{_kind}"] = _extreme("min", min)
    FUNCTIONS[f"list_{_kind}_max_{_kind}"] = _extreme("max", max)
    _proto = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}.get(_kind, _kind)
    FUNCTIONS[f"list_{_proto}_sort"] = sorted
    FUNCTIONS[f"list_{_proto}_sortByAssociatedKeys"] = _sort_by
