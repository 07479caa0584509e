"""The policies of a Job: which failures of pods count, and when enough indexes have succeeded.

Upstream: pkg/apis/batch/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.field_errors import OMIT
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.batch.indexes import BadIndexes, count
from konverge.apiserver.kinds.framework.declare import Report, field, items, one_of, required_saying, struct, text
from konverge.apiserver.kinds.rules.names import qualified_name
from konverge.apiserver.kinds.rules.numbers import not_negative

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MOST_RULES = 20
_MOST_CODES = 255
_LONGEST_INDEXES = 64 * 1024


def _valid_values(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(quote(value) for value in values)}]"


def _few(value: Any, path: str, report: Report) -> bool:
    if len(value) > _MOST_RULES:
        report.too_many(path, len(value), _MOST_RULES)
    return True


_PATTERN = struct(  # upstream: validatePodFailurePolicyRuleOnPodConditions
    text("type", qualified_name), text("status", required_saying(_valid_values(_STATUSES)), one_of(*_STATUSES))
)


def _codes(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodFailurePolicyRuleOnExitCodes
    codes, place = value.get("values") or [], f"{path}.values"
    if not codes:
        return report.invalid(place, value.get("values"), "at least one value is required")
    if len(codes) > _MOST_CODES:
        report.too_many(place, len(codes), _MOST_CODES)
    for index, code in enumerate(codes):
        if code == 0 and value.get("operator") == "In":
            report.invalid(f"{place}[{index}]", code, "must not be 0 for the In operator")
        if code in codes[:index]:
            report.duplicate(f"{place}[{index}]", code)
    return codes == sorted(codes) or report.invalid(place, codes, "must be ordered")


def _container(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodFailurePolicyRuleOnExitCodes
    name = value.get("containerName")
    detail = "must be one of the container or initContainer names in the pod template"
    known = name is None or name in report.scope.containers
    return known or report.invalid(f"{path}.containerName", name, detail)


_EXIT_CODES = struct(  # upstream: validatePodFailurePolicyRuleOnExitCodes
    text("operator", required_saying(_valid_values(_OPERATORS)), one_of(*_OPERATORS)), _container, _codes
)


def _action(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodFailurePolicyRule
    action, place = value.get("action") or "", f"{path}.action"
    if not action:
        return report.required(place, _valid_values(_ACTIONS))
    if action == "FailIndex" and not report.scope.per_index:
        return report.invalid(place, action, "requires the backoffLimitPerIndex to be set")
    return action in _ACTIONS or report.not_supported(place, action, _ACTIONS)


def _one_pattern(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodFailurePolicyRule
    codes, patterns = value.get("onExitCodes") is not None, bool(value.get("onPodConditions"))
    if codes and patterns:
        return report.invalid(path, OMIT, "specifying both OnExitCodes and OnPodConditions is not supported")
    detail = "specifying one of OnExitCodes and OnPodConditions is required"
    return codes or patterns or report.invalid(path, OMIT, detail)


FAILURE_POLICY = struct(  # upstream: validatePodFailurePolicy
    field(
        "rules",
        _few,
        items(
            struct(
                _action,
                field("onExitCodes", _EXIT_CODES),
                field("onPodConditions", _few, items(_PATTERN)),
                _one_pattern,
            )
        ),
    )
)


def _success_rule(value: Any, path: str, report: Report) -> bool:  # upstream: validateSuccessPolicyRule
    wanted, indexes = value.get("succeededCount"), value.get("succeededIndexes")
    if wanted is None and indexes is None:
        report.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = _indexes(indexes, f"{path}.succeededIndexes", report) if indexes is not None else None
    if wanted is None:
        return True
    place, completions = f"{path}.succeededCount", report.scope.completions
    not_negative(wanted, place, report)
    if wanted > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        report.invalid(place, wanted, detail)
    if total is not None and wanted > total:
        counted = "(the number of indexes in the specified succeededIndexes field)"
        report.invalid(place, wanted, f"must be less than or equal to {total} {counted}")
    return True


def _indexes(value: str, path: str, report: Report) -> int:  # upstream: validateSuccessPolicyRule
    if len(value) > _LONGEST_INDEXES:
        report.too_long(path, _LONGEST_INDEXES)
    try:
        return count(value, report.scope.completions)
    except BadIndexes as bad:
        report.invalid(path, value, f"error parsing succeededIndexes: {bad}")
        return 0


_SUCCESS_RULES = struct(  # upstream: validateSuccessPolicy
    field(
        "rules",
        required_saying("at least one rules must be specified when the successPolicy is specified"),
        _few,
        items(_success_rule),
    )
)


def success_policy(value: Any, path: str, report: Report) -> bool:  # upstream: validateSuccessPolicy
    if not report.scope.indexed:
        shown = internal("batch.SuccessPolicy", value)
        return report.invalid(path, shown, "requires indexed completion mode")
    return _SUCCESS_RULES(value, path, report)
