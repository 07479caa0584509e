"""Label selectors: their rules, and whether they select. Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, field, items, struct, text
from konverge.apiserver.kinds.rules.names import label_value, labels, qualified_name


def operator_and_values(value: Any, path: str, report: Report) -> bool:
    operator, values = value.get("operator") or "", value.get("values")
    if operator in ("In", "NotIn"):
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return bool(values) or report.required(f"{path}.values", detail)
    if operator in ("Exists", "DoesNotExist"):
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return not values or report.forbidden(f"{path}.values", detail)
    return report.invalid(f"{path}.operator", operator, "not a valid selector operator")


# upstream: ValidateLabelSelectorRequirement
REQUIREMENT = struct(operator_and_values, text("key", qualified_name), field("values", items(label_value)))

# upstream: ValidateLabelSelector
label_selector = struct(field("matchLabels", labels), field("matchExpressions", items(REQUIREMENT)))
"""A metav1.LabelSelector: `field("selector", present, label_selector)`."""


def is_empty(selector: Mapping[str, Any] | None) -> bool:
    """Neither labels nor expressions: selects everything."""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Does the (valid) selector select an object with these labels?"""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or ())


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or ()
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    inside = key in labels and labels[key] in values
    return inside if operator == "In" else not inside
