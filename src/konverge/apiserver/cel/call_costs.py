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

Costs = Callable[[str, "Operand | None", "list[Operand]"], CallCost | None]


def kubernetes_cost(function: str, overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    """The cost of a library function; None where cel-go's own estimate applies. Upstream: EstimateCallCost."""
    if function in _CONSTANT:
        return CallCost(ONE)
    if function == "_==_":
        return _equality(args)
    estimator = _COSTS.get(function)
    return estimator(overload, target, args) if estimator is not None else None


def _scan(factor: float) -> Costs:
    def cost(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
        return CallCost(args[0].estimate().scaled(factor)) if args else None

    return cost


def _scan_argument(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    size = args[0].estimate()
    return CallCost(size.scaled(STRING_FACTOR), size)


def _scan_target(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    if target is None:
        return None
    size = target.estimate()
    return CallCost(size.scaled(STRING_FACTOR), size)


def _list_scan(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    if target is None:
        return None
    item = target.item_size()
    size = target.estimate()
    if item is not None:
        each = ONE
        if item[0].kind in ("string", "bytes"):
            each = each.plus(item[1].scaled(STRING_FACTOR))
        return CallCost(size.times(each))
    if overload == "list_includes_dyn_dyn":
        return CallCost(size)
    return CallCost(size.scaled(STRING_FACTOR))


def _replace(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    if target is None:
        return None
    size, old, new = target.estimate(), args[0].estimate(), args[1].estimate()
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


def _split(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    if target is None:
        return None
    size = target.estimate()
    most = size.high
    if len(args) > 1 and isinstance(args[1].node, Literal):
        most = args[1].node.value % 2**64
    return CallCost(size.scaled(2 * STRING_FACTOR), Estimate(0, most))


def _join(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    if target is None:
        return None
    count, item = target.estimate(), target.item_size()
    size = count.times(item[1]) if item is not None else ZERO
    if args:
        separators = Estimate(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(args[0].estimate().times(separators))
    return CallCost(size.scaled(STRING_FACTOR), size)


def _find(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    if target is None:
        return None
    size = target.estimate()
    text = size.plus(ONE).scaled(STRING_FACTOR)
    return CallCost(text.times(args[0].estimate().scaled(REGEX_FACTOR)), Estimate(0, size.high))


def _ip(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    if overload == "cidr_ip":
        return CallCost(ONE)
    return CallCost(args[0].estimate().scaled(STRING_FACTOR))


def _contains_ip(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    cost = _ADDRESS.plus(_ADDRESS).scaled(STRING_FACTOR)
    if overload == "cidr_contains_ip_string":
        cost = cost.plus(args[0].estimate().scaled(STRING_FACTOR))
    return CallCost(cost)


def _contains_cidr(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    cost = _ADDRESS.plus(_ADDRESS).scaled(STRING_FACTOR).plus(_ADDRESS.scaled(STRING_FACTOR)).plus(ONE)
    if overload == "cidr_contains_cidr_string":
        cost = cost.plus(args[0].estimate().scaled(STRING_FACTOR))
    return CallCost(cost)


def _validate(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    return CallCost(args[0].estimate().scaled(STRING_FACTOR).scaled(_FORMAT_PATTERN * REGEX_FACTOR))


def _check(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    return CallCost(exactly(AUTHORIZER_CHECK))


def _selector(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    size = args[0].estimate()
    requirements = size.scaled(0.5).scaled(50)
    return CallCost(exactly(10).plus(size.scaled(STRING_FACTOR)).plus(requirements))


def _equality(args: list[Operand]) -> CallCost | None:
    operand_type = args[0].type
    if operand_type is None or operand_type != args[1].type or not operand_type.name:
        return None
    if operand_type.name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
        return CallCost(ONE)
    if operand_type.name.startswith("kubernetes.authorization."):
        return CallCost(ONE)
    if operand_type.name == "kubernetes.NamedFormat":
        return CallCost(Estimate(1, 64).scaled(STRING_FACTOR))
    if operand_type.name == "kubernetes.URL":
        size = args[1].size or ONE
        return CallCost(Estimate(1, size.high).scaled(STRING_FACTOR))
    return None


_COSTS: dict[str, Costs] = {
    "check": _check,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(_LIST_SCANS, _list_scan),
    "url": _scan_argument,
    "jsonpatch.escapeKey": _scan_argument,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _scan_target),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _scan(STRING_FACTOR)),
    "ip": _ip,
    "ip.isCanonical": _scan(2 * STRING_FACTOR),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
}

_TEXT_COMPARISONS = frozenset(
    f"{word}_{kind}" for word in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
)


def standard_cost(overload: str, target: Operand | None, args: list[Operand]) -> CallCost:
    """The cost of a function of the language, without that of its arguments. Upstream: functionCost."""
    if overload in ("equals", "not_equals") or overload in _TEXT_COMPARISONS:
        most = min(args[0].size_or_unknown().high, args[1].size_or_unknown().high)
        return CallCost(Estimate(1 if most else 0, most).scaled(STRING_FACTOR))
    estimator = _STANDARD.get(overload)
    return estimator(target, args) if estimator is not None else CallCost(ONE)


def _concatenation(target: Operand | None, args: list[Operand]) -> CallCost:
    size = args[0].size_or_unknown().plus(args[1].size_or_unknown())
    return CallCost(size.scaled(STRING_FACTOR), size)


def _list_sum(target: Operand | None, args: list[Operand]) -> CallCost:
    return CallCost(ONE, args[0].size_or_unknown().plus(args[1].size_or_unknown()))


def _matches(text: Operand, pattern: Operand) -> CallCost:
    cost = text.size_or_unknown().plus(ONE).scaled(STRING_FACTOR)
    return CallCost(cost.times(pattern.size_or_unknown().scaled(REGEX_FACTOR)))


def _contains(target: Operand | None, args: list[Operand]) -> CallCost:
    if target is None:
        return CallCost(ONE)
    text = target.size_or_unknown().scaled(STRING_FACTOR)
    return CallCost(text.times(args[0].size_or_unknown().scaled(STRING_FACTOR)))


def _to_bytes(target: Operand | None, args: list[Operand]) -> CallCost:
    size = args[0].size_or_unknown()
    return CallCost(size.scaled(STRING_FACTOR), Estimate(size.low, size.high * 4 % 2**64))


def _to_string(target: Operand | None, args: list[Operand]) -> CallCost:
    size = args[0].size_or_unknown()
    return CallCost(size.scaled(STRING_FACTOR), Estimate(size.low // 4, size.high))


def _quoted(target: Operand | None, args: list[Operand]) -> CallCost:
    size = args[0].size_or_unknown()
    return CallCost(size.scaled(STRING_FACTOR), Estimate(size.low + 2, (size.high * 2 + 2) % 2**64))


def _formatted(target: Operand | None, args: list[Operand]) -> CallCost:
    return CallCost(target.size_or_unknown().scaled(STRING_FACTOR) if target is not None else ONE)


def _prefix(target: Operand | None, args: list[Operand]) -> CallCost:
    return CallCost(args[0].size_or_unknown().scaled(STRING_FACTOR))


_STANDARD: dict[str, Callable[[Operand | None, list[Operand]], CallCost]] = {
    "add_string": _concatenation,
    "add_bytes": _concatenation,
    "add_list": _list_sum,
    "matches": lambda target, args: _matches(args[0], args[1]),
    "matches_string": lambda target, args: _matches(target, args[0]) if target is not None else CallCost(ONE),
    "contains_string": _contains,
    "starts_with_string": _prefix,
    "ends_with_string": _prefix,
    "in_list": lambda target, args: CallCost(args[1].size_or_unknown()),
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "strings_quote": _quoted,
    "string_format": _formatted,
}


# --- lists and sets (upstream: cel-go ext/lists.go, ext/sets.go): allocation, and comparisons of all pairs of items


def list_cost(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    """The cost of a function of the list and set libraries; None for any other overload."""
    if overload.startswith("list_sets_"):
        factor = 2 if overload == "list_sets_equivalent_list" else 1
        return CallCost(args[0].estimate().times(args[1].estimate()).scaled(factor).plus(ONE))
    if overload.endswith(("_sort", "_sortByAssociatedKeys")):
        texts = "_string_" in overload or "_bytes_" in overload
        size = (args[0] if args else target).estimate()  # type: ignore[union-attr]
        return _allocating(size.times(size), 2.0 + (STRING_FACTOR if texts else 0))
    estimator = _LIST_COSTS.get(overload)
    return estimator(target, args) if estimator is not None else None


def _allocating(size: Estimate, factor: float = 1.0) -> CallCost:
    return CallCost(size.scaled(factor).plus(exactly(11)), size)


def _literal_number(operand: Operand, default: int) -> int:
    value = operand.node.value if isinstance(operand.node, Literal) else None
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else default


def _list_slice(target: Operand | None, args: list[Operand]) -> CallCost:
    assert target is not None
    start, end = _literal_number(args[0], 0), _literal_number(args[1], target.estimate().high)
    return _allocating(exactly((end - start) % 2**64))


def _list_range(target: Operand | None, args: list[Operand]) -> CallCost:
    return _allocating(exactly(_literal_number(args[0], MAX)))


def _list_reverse(target: Operand | None, args: list[Operand]) -> CallCost:
    assert target is not None
    return _allocating(target.estimate())


def _list_flatten(target: Operand | None, args: list[Operand]) -> CallCost:
    assert target is not None
    return _allocating(target.estimate(), float(_literal_number(args[0], MAX) if args else 1))


def _list_distinct(target: Operand | None, args: list[Operand]) -> CallCost:
    assert target is not None
    size = target.estimate()
    return _allocating(size.times(size), 2.0)


_LIST_COSTS: dict[str, Callable[[Operand | None, list[Operand]], CallCost]] = {
    "list_slice": _list_slice,
    "lists_range": _list_range,
    "list_reverse": _list_reverse,
    "list_flatten": _list_flatten,
    "list_flatten_int": _list_flatten,
    "list_distinct": _list_distinct,
}
