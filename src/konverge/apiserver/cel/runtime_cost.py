"""The cost of a call at run time, where it depends on the size of its arguments.

Upstream: cel-go interpreter/runtimecost.go and CallCost (apiserver/pkg/cel/library/cost.go).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.cel.cost_ranges import AUTHORIZER_CHECK

_FACTOR = 10  # characters per unit of cost: 1 / StringTraversalCostFactor
_REGEX = 4  # characters of a pattern per unit of cost: 1 / RegexStringLengthCostFactor


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes, list, dict)) else 1


def _scan(value: Any, *rest: Any) -> int:
    return _size(value) // _FACTOR + 1


def _search(text: Any, part: Any, *rest: Any) -> int:
    return (_size(text) // _FACTOR + 1) * (_size(part) // _FACTOR + 1)


def _regex(text: Any, pattern: Any, *rest: Any) -> int:
    return (_size(text) // _FACTOR + 1) * (_size(pattern) // _REGEX + 1)


def _members(value: Any, *rest: Any) -> int:
    return _size(value) + 1


_COSTS: dict[str, Callable[..., int]] = {
    "contains": _search,
    "indexOf": _search,
    "lastIndexOf": _search,
    "replace": _search,
    "split": _search,
    "matches": _regex,
    "find": _regex,
    "findAll": _regex,
    "join": _members,
    "isSorted": _members,
    "sum": _members,
    "min": _members,
    "max": _members,
    "sort": _members,
    "distinct": lambda items, *rest: _size(items) ** 2,
    "sets.contains": lambda items, other: _size(items) * _size(other) + 1,
    "sets.equivalent": lambda items, other: 2 * _size(items) * _size(other) + 1,
    "sets.intersects": lambda items, other: _size(items) * _size(other) + 1,
    "@in": lambda value, items: _size(items) + 1 if isinstance(items, list) else 1,
    "lowerAscii": _scan,
    "upperAscii": _scan,
    "trim": _scan,
    "url": _scan,
    "validate": lambda form, text: _size(text) // _FACTOR + 1,
    "check": lambda check, verb: AUTHORIZER_CHECK,
}


def cost_of(function: str) -> Callable[..., int] | None:
    return _COSTS.get(function)
