"""The cost of calls: what the language says, and what Kubernetes says about its own libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from konverge.apiserver.cel.cost_ranges import MAX, ONE, REGEX_FACTOR, STRING_FACTOR, ZERO, Estimate, exactly
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

Costs = Callable[[str, "Operand | None", "list[Operand]"], CallCost | None]


def kubernetes_cost(function: str, overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    """The cost of a library function; None if the language's own estimate holds."""
    if function in _CONSTANT:
        return CallCost(ONE)
    if function == "_==_":
        return _equality(args)
    found = _COSTS.get(function)
    return found(overload, target, args) if found is not None else None


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
    return CallCost(exactly(350_000))


def _selector(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    size = args[0].estimate()
    requirements = size.scaled(0.5).scaled(50)
    return CallCost(exactly(10).plus(size.scaled(STRING_FACTOR)).plus(requirements))


def _equality(args: list[Operand]) -> CallCost | None:
    found = args[0].type
    if found is None or found != args[1].type or not found.name:
        return None
    if found.name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
        return CallCost(ONE)
    if found.name.startswith("kubernetes.authorization."):
        return CallCost(ONE)
    if found.name == "kubernetes.NamedFormat":
        return CallCost(Estimate(1, 64).scaled(STRING_FACTOR))
    if found.name == "kubernetes.URL":
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
    """What the language says about its own functions, without the cost of the arguments."""
    if overload in ("equals", "not_equals") or overload in _TEXT_COMPARISONS:
        most = min(args[0].size_or_unknown().high, args[1].size_or_unknown().high)
        return CallCost(Estimate(1 if most else 0, most).scaled(STRING_FACTOR))
    found = _STANDARD.get(overload)
    return found(target, args) if found is not None else CallCost(ONE)


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
