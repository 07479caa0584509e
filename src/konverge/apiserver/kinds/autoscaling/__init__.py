"""autoscaling: HorizontalPodAutoscaler, stored as v2 and served as v1 too.

Upstream: pkg/registry/autoscaling/horizontalpodautoscaler, pkg/apis/autoscaling/validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from konverge.apiserver.kinds.autoscaling.metrics import any_odd_described_version, metric, reference
from konverge.apiserver.kinds.autoscaling.v1 import default_v1, from_v2, to_v2
from konverge.apiserver.kinds.framework.conversion import Conversion
from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    field,
    given,
    items,
    number,
    one_of,
    required,
    same_rule,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.declare import required_saying as saying
from konverge.apiserver.kinds.framework.lifecycle import prepared
from konverge.apiserver.kinds.rules.defaults import fill_unset
from konverge.apiserver.kinds.rules.numbers import NOT_POSITIVE, at_least, not_negative
from konverge.apiserver.kinds.rules.quantities import quantity_not_negative
from konverge.apiserver.strategy import Obj, StatusRules, Strategy

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
    field("policies", saying("must specify at least one Policy"), items(_SCALING_POLICY)),
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
