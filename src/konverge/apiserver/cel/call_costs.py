"""The estimated cost of calls: functions of the language, and of the libraries that Kubernetes adds.

Upstream: functionCost (cel-go checker/cost.go) and CostEstimator (apiserver/pkg/cel/library/cost.go).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from konverge.apiserver.cel.cost_ranges import (
    AUTHORIZER_CHECK,
    MAX,
    ONE,
    REGEX_FACTOR,
    STRING_FACTOR,
    ZERO,
    Estimate,
    exactly,
)
from konverge.apiserver.cel.nodes import Literal

if TYPE_CHECKING:
    from konverge.apiserver.cel.cost import Operand


class CallCost(NamedTuple):
    cost: Estimate
    size: Estimate | None = None
    """Of the result."""


_CONSTANT = frozenset(
    (
        *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason"),
        *("error", "errored", "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "format.named"),
        *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "sign", "asInteger", "isInteger"),
        *("asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch"),
        *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    )
)
_LIST_SCANS = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"))
_ADDRESS = Estimate(4, 16)
_FORMAT_PATTERN = 128
"""The greatest length of the pattern of a named format. Upstream: MaxNameFormatRegexSize
(apiserver/pkg/cel/limits.go)."""

Costs = Callable[..., CallCost]
"""From the receiver, if there is one, and the arguments."""


def library_cost(function: str, overload: str, operands: list[Operand]) -> CallCost | None:
    """The cost of a function of a library; None where cel-go's own estimate applies.

    Upstream: EstimateCallCost, and for lists and sets cel-go ext/lists.go and ext/sets.go: allocation, and comparisons
    of all pairs of items.
    """
    if function in _CONSTANT:
        return CallCost(ONE)
    if function == "_==_":
        return _equality(*operands)
    if overload.startswith("list_sets_"):
        factor = 2 if overload == "list_sets_equivalent_list" else 1
        return CallCost(operands[0].estimate().times(operands[1].estimate()).scaled(factor).plus(ONE))
    if overload.endswith(("_sort", "_sortByAssociatedKeys")):
        texts = "_string_" in overload or "_bytes_" in overload
        return _of_pairs(operands[-1], 2.0 + (STRING_FACTOR if texts else 0))
    estimator = _COSTS.get(overload) or _COSTS.get(function)
    return estimator(*operands) if estimator is not None else None


def _scan(factor: float) -> Costs:
    return lambda text, *rest: CallCost(text.estimate().scaled(factor))


def _copy(text: Operand, *rest: Operand) -> CallCost:
    size = text.estimate()
    return CallCost(size.scaled(STRING_FACTOR), size)


def _list_scan(items: Operand, *rest: Operand) -> CallCost:
    item, size = items.item_size(), items.estimate()
    if item is None:
        return CallCost(size.scaled(STRING_FACTOR))
    each = ONE.plus(item[1].scaled(STRING_FACTOR)) if item[0].kind in ("string", "bytes") else ONE
    return CallCost(size.times(each))


def _replace(text: Operand, old_part: Operand, new_part: Operand, *rest: Operand) -> CallCost:
    size, old, new = text.estimate(), old_part.estimate(), new_part.estimate()
    most, kept_most = 0, 0
    if old.low == 0:
        most, kept_most = min(size.high + 1, MAX), size.high
    elif new.high <= old.low:
        kept_most = size.high
    else:
        most = math.ceil(float(size.high) / old.low)
    least, kept_least = 0, 0
    if old.high == 0:
        least, kept_least = min(size.low + 1, MAX), size.low
    elif old.high <= new.low:
        kept_least = size.low
    else:
        least = math.ceil(float(size.low) / old.high)
    result = Estimate(least, most).times(new).plus(Estimate(kept_least, kept_most))
    return CallCost(size.scaled(2 * STRING_FACTOR), result)


def _split(text: Operand, separator: Operand, count: Operand | None = None) -> CallCost:
    size = text.estimate()
    most = size.high
    if count is not None and isinstance(count.node, Literal):
        most = count.node.value % 2**64
    return CallCost(size.scaled(2 * STRING_FACTOR), Estimate(0, most))


def _join(items: Operand, separator: Operand | None = None) -> CallCost:
    count, item = items.estimate(), items.item_size()
    size = count.times(item[1]) if item is not None else ZERO
    if separator is not None:
        separators = Estimate(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(separator.estimate().times(separators))
    return CallCost(size.scaled(STRING_FACTOR), size)


def _find(text: Operand, pattern: Operand, *rest: Operand) -> CallCost:
    size = text.estimate()
    return CallCost(_search(size, pattern.estimate()), Estimate(0, size.high))


def _search(text: Estimate, pattern: Estimate) -> Estimate:
    return text.plus(ONE).scaled(STRING_FACTOR).times(pattern.scaled(REGEX_FACTOR))


_CONTAINS_IP = _ADDRESS.plus(_ADDRESS).scaled(STRING_FACTOR)
_CONTAINS_CIDR = _CONTAINS_IP.plus(_ADDRESS.scaled(STRING_FACTOR)).plus(ONE)


def _parsed(cost: Estimate) -> Costs:
    """With the argument read from a text first."""
    return lambda cidr, text: CallCost(cost.plus(text.estimate().scaled(STRING_FACTOR)))


def _validate(form: Operand, text: Operand) -> CallCost:
    return CallCost(text.estimate().scaled(STRING_FACTOR).scaled(_FORMAT_PATTERN * REGEX_FACTOR))


def _selector(check: Operand, text: Operand) -> CallCost:
    size = text.estimate()
    requirements = size.scaled(0.5).scaled(50)
    return CallCost(exactly(10).plus(size.scaled(STRING_FACTOR)).plus(requirements))


def _equality(left: Operand, right: Operand) -> CallCost | None:
    operand_type = left.type
    if operand_type is None or operand_type != right.type or not operand_type.name:
        return None
    if operand_type.name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
        return CallCost(ONE)
    if operand_type.name.startswith("kubernetes.authorization."):
        return CallCost(ONE)
    if operand_type.name == "kubernetes.NamedFormat":
        return CallCost(Estimate(1, 64).scaled(STRING_FACTOR))
    if operand_type.name == "kubernetes.URL":
        return CallCost(Estimate(1, (right.size or ONE).high).scaled(STRING_FACTOR))
    return None


def _allocating(size: Estimate, factor: float = 1.0) -> CallCost:
    return CallCost(size.scaled(factor).plus(exactly(11)), size)


def _of_pairs(items: Operand, factor: float = 2.0) -> CallCost:
    size = items.estimate()
    return _allocating(size.times(size), factor)


def _literal_number(operand: Operand, default: int) -> int:
    value = operand.node.value if isinstance(operand.node, Literal) else None
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else default


def _slice(items: Operand, first: Operand, last: Operand) -> CallCost:
    start, end = _literal_number(first, 0), _literal_number(last, items.estimate().high)
    return _allocating(exactly((end - start) % 2**64))


# By overload, or by function where all overloads have one.
_COSTS: dict[str, Costs] = {
    "check": lambda check, verb: CallCost(exactly(AUTHORIZER_CHECK)),
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(_LIST_SCANS, _list_scan),
    "list_includes_dyn_dyn": lambda items, value: (
        _list_scan(items) if items.item_size() else CallCost(items.estimate())
    ),
    **dict.fromkeys(("url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"), _copy),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _scan(STRING_FACTOR)),
    "string_to_ip": _scan(STRING_FACTOR),
    "cidr_ip": lambda cidr: CallCost(ONE),
    "ip.isCanonical": _scan(2 * STRING_FACTOR),
    "cidr_contains_ip_ip": lambda cidr, ip: CallCost(_CONTAINS_IP),
    "cidr_contains_ip_string": _parsed(_CONTAINS_IP),
    "cidr_contains_cidr": lambda cidr, other: CallCost(_CONTAINS_CIDR),
    "cidr_contains_cidr_string": _parsed(_CONTAINS_CIDR),
    "validate": _validate,
    "list_slice": _slice,
    "lists_range": lambda count: _allocating(exactly(_literal_number(count, MAX))),
    "list_reverse": lambda items: _allocating(items.estimate()),
    "list_flatten": lambda items: _allocating(items.estimate()),
    "list_flatten_int": lambda items, depth: _allocating(items.estimate(), float(_literal_number(depth, MAX))),
    "list_distinct": _of_pairs,
}

_TEXT_COMPARISONS = frozenset(
    f"{word}_{kind}" for word in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
)


def standard_cost(overload: str, operands: list[Operand]) -> CallCost:
    """The cost of a function of the language, without that of its arguments. Upstream: functionCost."""
    sizes = [operand.size_or_unknown() for operand in operands]
    if overload in ("equals", "not_equals") or overload in _TEXT_COMPARISONS:
        most = min(sizes[0].high, sizes[1].high)
        return CallCost(Estimate(1 if most else 0, most).scaled(STRING_FACTOR))
    estimator = _STANDARD.get(overload)
    return estimator(*sizes) if estimator is not None else CallCost(ONE)


def _scanned(size: Estimate, result: Estimate | None = None) -> CallCost:
    return CallCost(size.scaled(STRING_FACTOR), result)


# From the sizes of the receiver, if there is one, and of the arguments.
_STANDARD: dict[str, Costs] = {
    "add_string": lambda left, right: _scanned(left.plus(right), left.plus(right)),
    "add_bytes": lambda left, right: _scanned(left.plus(right), left.plus(right)),
    "add_list": lambda left, right: CallCost(ONE, left.plus(right)),
    "matches": lambda text, pattern: CallCost(_search(text, pattern)),
    "matches_string": lambda text, pattern: CallCost(_search(text, pattern)),
    "contains_string": lambda text, part: CallCost(text.scaled(STRING_FACTOR).times(part.scaled(STRING_FACTOR))),
    "starts_with_string": lambda text, part: _scanned(part),
    "ends_with_string": lambda text, part: _scanned(part),
    "in_list": lambda value, items: CallCost(items),
    "string_to_bytes": lambda size: _scanned(size, Estimate(size.low, size.high * 4 % 2**64)),
    "bytes_to_string": lambda size: _scanned(size, Estimate(size.low // 4, size.high)),
    "strings_quote": lambda size: _scanned(size, Estimate(size.low + 2, (size.high * 2 + 2) % 2**64)),
    "string_format": lambda text, args: _scanned(text),
}
