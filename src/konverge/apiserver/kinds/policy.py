"""policy: PodDisruptionBudget. Upstream: pkg/apis/policy/validation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    field,
    given,
    one_of,
    same_rule,
    section,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import prepared
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.names import path_segment_name
from konverge.apiserver.kinds.rules.numbers import count_or_percent, not_negative, within_hundred_percent
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import StatusRules, Strategy


def _not_both(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePodDisruptionBudgetSpec
    if value.get("minAvailable") is None or value.get("maxUnavailable") is None:
        return True
    shown = internal("policy.PodDisruptionBudgetSpec", value)
    return report.invalid(path, shown, "minAvailable and maxUnavailable cannot be both set")


_SPEC = section(  # upstream: ValidatePodDisruptionBudgetSpec
    "spec",
    _not_both,
    given("minAvailable", count_or_percent, within_hundred_percent),
    given("maxUnavailable", count_or_percent, within_hundred_percent),
    field("selector", label_selector),
    given("unhealthyPodEvictionPolicy", one_of("AlwaysAllow", "IfHealthyBudget")),
)
_STATUS = section(  # upstream: ValidatePodDisruptionBudgetStatusUpdate
    "status",
    field("conditions", conditions),
    same_rule(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), not_negative),
)

STRATEGIES = {  # upstream: podDisruptionBudgetStrategy
    "PodDisruptionBudget": Strategy(
        **prepared(status=("policy", "v1", "PodDisruptionBudget")),
        validate_create=creation(_SPEC),
        validate_update=update(_SPEC),
        status=StatusRules(validate=update(_STATUS)),
        generation=True,
        name_check=path_segment_name,
        unconditional_update=False,
    )
}
