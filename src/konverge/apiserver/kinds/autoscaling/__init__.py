"""autoscaling: HorizontalPodAutoscaler, stored as v2 and served as v1 too.

Upstream: pkg/registry/autoscaling/horizontalpodautoscaler, pkg/apis/autoscaling/validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from konverge.apiserver.kinds.autoscaling.v1 import default_v1, from_v2, to_v2
from konverge.apiserver.kinds.core.resource_names import container_resource_name
from konverge.apiserver.kinds.framework.conversion import Conversion
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    creation,
    field,
    given,
    items,
    number,
    one_of,
    required,
    required_saying,
    same_rule,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import prepared
from konverge.apiserver.kinds.rules.defaults import fill_unset
from konverge.apiserver.kinds.rules.names import dns_label, path_segment
from konverge.apiserver.kinds.rules.numbers import NOT_POSITIVE, at_least, not_negative
from konverge.apiserver.kinds.rules.quantities import amount, quantity_not_negative, shown
from konverge.apiserver.strategy import Obj, StatusRules, Strategy

# --- metrics: a union by `type`, each with a target of its own

_NAMED = struct(text("kind", required, path_segment), text("name", required, path_segment))


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
    "metric", text("name", required_saying("must specify a metric name"), path_segment)
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


# --- the autoscaler

DEFAULT_UTILIZATION = 80
_SCALE_UP = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
_UP_POLICIES = (("Pods", 4), ("Percent", 100))
_SCALE_DOWN = {"selectPolicy": "Max"}
_DOWN_POLICIES = (("Percent", 100),)


# upstream: GenerateHPAScaleUpRules, GenerateHPAScaleDownRules
def _default_rules(behavior: Obj, name: str, scalars: Obj, policies: tuple[tuple[str, int], ...]) -> None:
    rules = behavior.get(name) or {}
    behavior[name] = {**scalars, **rules}
    if rules.get("policies") is None:
        behavior[name]["policies"] = [{"type": kind, "value": value, "periodSeconds": 15} for kind, value in policies]


# upstream: SetDefaults_HorizontalPodAutoscaler, SetDefaults_HorizontalPodAutoscalerBehavior
def _defaults(obj: Obj) -> None:
    spec = obj["spec"]
    fill_unset(spec, {"minReplicas": 1})
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        _default_rules(behavior, "scaleUp", _SCALE_UP, _UP_POLICIES)
        _default_rules(behavior, "scaleDown", _SCALE_DOWN, _DOWN_POLICIES)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the stored object has, and its update therefore may keep."""

    target: tuple[str, str] | None = None
    any_described_version: bool = False


def _target(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateCrossVersionObjectReference
    target = value.get("scaleTargetRef") or {}
    kind = target.get("kind", "")
    checked = (target.get("apiVersion", ""), kind) != report.scope.target
    grouped = kind != "ReplicationController"
    return reference(target, f"{path}.scaleTargetRef", report, version_checked=checked, group_required=grouped)


def _at_most(maximum: int, low: int, detail: str) -> Any:  # upstream: validateScalingRules, validateScalingPolicy
    """Two errors of their own: too small, too large."""

    def check(value: Any, path: str, report: Report) -> bool:
        if value < low:
            report.invalid(path, value, detail)
        return value <= maximum or report.invalid(path, value, f"must be less than or equal to {maximum}")

    return check


_SCALING_POLICY = struct(  # upstream: validateScalingPolicy
    text("type", one_of("Percent", "Pods")),
    number("value", at_least(1, NOT_POSITIVE)),
    number("periodSeconds", _at_most(1800, 1, NOT_POSITIVE)),
)
_SCALING_RULES = struct(  # upstream: validateScalingRules
    field("stabilizationWindowSeconds", _at_most(3600, 0, "must be greater than or equal to zero")),
    given("selectPolicy", one_of("Disabled", "Max", "Min")),
    field("policies", required_saying("must specify at least one Policy"), items(_SCALING_POLICY)),
    field("tolerance", quantity_not_negative),
)


def _scale_to_zero(value: Any, path: str, report: Report) -> bool:  # upstream: validateMetrics
    if value.get("minReplicas") != 0:
        return True
    scalable = any(entry.get("type") in ("Object", "External") for entry in value.get("metrics") or ())
    detail = "must specify at least one Object or External metric to support scaling to zero replicas"
    return scalable or report.forbidden(f"{path}.metrics", detail)


def _max_not_below_min(value: Any, path: str, report: Report) -> bool:  # upstream: validateHorizontalPodAutoscalerSpec
    maximum, minimum = value.get("maxReplicas") or 0, value.get("minReplicas")
    fits = minimum is None or maximum >= minimum
    return fits or report.invalid(f"{path}.maxReplicas", maximum, "must be greater than or equal to `minReplicas`")


_SPEC = section(  # upstream: validateHorizontalPodAutoscalerSpec
    "spec",
    _max_not_below_min,
    _target,
    field("metrics", items(metric)),
    _scale_to_zero,
    field("behavior", struct(field("scaleUp", _SCALING_RULES), field("scaleDown", _SCALING_RULES))),
    field("minReplicas", not_negative),
    number("maxReplicas", required, at_least(1)),
)


def _known(obj: Obj, old: Obj | None) -> _Known:  # upstream: validationOptionsForHorizontalPodAutoscaler
    if old is None:
        return _Known()
    target = old["spec"].get("scaleTargetRef") or {}
    version, kind = target.get("apiVersion", ""), target.get("kind", "")
    return _Known((version, kind), any_odd_described_version(old["spec"].get("metrics")))


_STATUS = section(  # upstream: ValidateHorizontalPodAutoscalerStatusUpdate
    "status",
    field("conditions", items(struct(field("observedGeneration", not_negative)))),
    same_rule(("currentReplicas", "desiredReplicas"), not_negative),
)

STRATEGIES = {  # upstream: autoscalerStrategy
    "HorizontalPodAutoscaler": Strategy(
        defaults=_defaults,
        **prepared(status=("autoscaling", "v2", "HorizontalPodAutoscaler")),
        validate_create=creation(_SPEC, scope=_known),
        validate_update=update(_SPEC, scope=_known),
        generation=True,
        status=StatusRules(validate=update(_STATUS)),
    )
}

CONVERSIONS = {
    "HorizontalPodAutoscaler": Conversion(
        table="autoscaling/horizontalpodautoscalers",
        storage_version="autoscaling/v2",
        defaults=default_v1,
        to_storage=to_v2,
        from_storage=from_v2,
        reported_group="autoscaling",
    )
}
