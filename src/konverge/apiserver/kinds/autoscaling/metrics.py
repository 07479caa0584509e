"""The metrics of a HorizontalPodAutoscaler: a union by `type`, each with a target of its own.

Upstream: pkg/apis/autoscaling/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.resource_names import container_resource_name
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    field,
    required,
    required_saying,
    section,
    struct,
    text,
)
from konverge.apiserver.kinds.rules.names import dns_label, format_rule
from konverge.apiserver.kinds.rules.numbers import at_least
from konverge.apiserver.kinds.rules.quantities import amount, shown
from konverge.objects.names import path_segment_errors

_segment = format_rule(path_segment_errors)
_NAMED = struct(text("kind", required, _segment), text("name", required, _segment))


def api_version_error(version: str, *, group_required: bool) -> str:  # upstream: ValidateAPIVersion
    """What is wrong with an apiVersion, or an empty text."""
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if group_required and "/" not in version.strip("/"):
        return "apiVersion must specify API group"
    return ""


# upstream: ValidateCrossVersionObjectReference
def reference(value: Any, path: str, report: Report, *, version_checked: bool, group_required: bool) -> bool:
    """Kind and name are path segments; the version is checked unless the stored object had the same."""
    _NAMED(value, path, report)
    version = value.get("apiVersion", "")
    error = api_version_error(version, group_required=group_required) if version_checked else ""
    return not error or report.invalid(f"{path}.apiVersion", version, error)


MEMBERS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TYPES = tuple(sorted(MEMBERS))
_TARGETS = ("Utilization", "Value", "AverageValue")


def _positive(value: Any, path: str, report: Report) -> bool:  # upstream: validateMetricTarget
    return amount(value) > 0 or report.invalid(path, shown(value), "must be positive")


def _target_type(value: Any, path: str, report: Report) -> bool:  # upstream: validateMetricTarget
    kind = value.get("type", "")
    if not kind:
        report.required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        report.invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    return True


TARGET = (  # upstream: validateMetricTarget
    _target_type,
    field("value", _positive),
    field("averageValue", _positive),
    field("averageUtilization", at_least(1, "must be greater than 0")),
)
_METRIC = section(  # upstream: validateMetricIdentifier
    "metric", text("name", required_saying("must specify a metric name"), format_rule(path_segment_errors))
)


def _needs(first: str, second: str, detail: str) -> Rule:
    """One of two members of the target; the second is named when both are missing."""

    def check(value: Any, path: str, report: Report) -> bool:
        missing = value.get(first) is None and value.get(second) is None
        return not missing or report.required(f"{path}.{second}", detail)

    return check


def _excludes(first: str, second: str, detail: str) -> Rule:
    def check(value: Any, path: str, report: Report) -> bool:
        both = value.get(first) is not None and value.get(second) is not None
        return not both or report.forbidden(f"{path}.{second}", detail)

    return check


def _described(value: Any, path: str, report: Report) -> bool:  # upstream: validateObjectSource
    checked = not (report.scope and report.scope.any_described_version)
    described = value.get("describedObject") or {}
    return reference(described, f"{path}.describedObject", report, version_checked=checked, group_required=False)


_RAW_OR_UTILIZATION = (  # upstream: validateResourceSource, validateContainerResourceSource
    _needs("averageValue", "averageUtilization", "must set either a target raw value or a target utilization"),
    _excludes("averageUtilization", "averageValue", "may not set both a target raw value and a target utilization"),
)
_NAME = text("name", required_saying("must specify a resource name"))

# upstream: validateObjectSource, validateExternalSource, validatePodsSource, validateResourceSource
SOURCES: dict[str, Rule] = {
    "object": struct(
        _described,
        _METRIC,
        section("target", *TARGET, _needs("value", "averageValue", "must set either a target value or averageValue")),
    ),
    "external": struct(
        _METRIC,
        section(
            "target",
            *TARGET,
            _needs("value", "averageValue", "must set either a target value for metric or a per-pod target"),
            _excludes("averageValue", "value", "may not set both a target value for metric and a per-pod target"),
        ),
    ),
    "pods": struct(
        _METRIC,
        section(
            "target", *TARGET, field("averageValue", required_saying("must specify a positive target averageValue"))
        ),
    ),
    "resource": struct(_NAME, section("target", *TARGET, *_RAW_OR_UTILIZATION)),
    "containerResource": struct(
        text("name", required_saying("must specify a resource name"), container_resource_name),
        text("container", required_saying("must specify a container"), dns_label),
        section("target", *TARGET, *_RAW_OR_UTILIZATION),
    ),
}


def metric(value: Any, path: str, report: Report) -> bool:  # upstream: validateMetricSpec
    """One metric: its type, the first source that is set, and no other."""
    kind = value.get("type", "")
    if not kind:
        report.required(f"{path}.type", "must specify a metric source type")
    if kind not in MEMBERS:
        report.not_supported(f"{path}.type", kind, _TYPES)
    present = [name for name in SOURCES if value.get(name) is not None]
    if present:
        SOURCES[present[0]](value[present[0]], f"{path}.{present[0]}", report)
    expected = MEMBERS.get(kind)
    if expected is None:
        report.not_supported(f"{path}.type", kind, _TYPES)
    elif expected not in present:
        report.required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(present) != 1:
        for name in sorted(set(present) - {expected}):
            report.forbidden(f"{path}.{name}", "must populate the given metric source only")
    return True


def any_odd_described_version(metrics: Any) -> bool:  # upstream: validationOptionsForHorizontalPodAutoscaler
    """Did the stored object describe an object whose version would be refused now?"""
    described = [entry["object"].get("describedObject") or {} for entry in metrics or () if entry.get("object")]
    return any(api_version_error(reference.get("apiVersion", ""), group_required=False) for reference in described)
