"""Deployment and ReplicaSet.

Upstream: pkg/registry/apps/deployment, pkg/registry/apps/replicaset, pkg/apis/apps/validation, pkg/apis/apps/v1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.pod.defaults import default_pod_template
from konverge.apiserver.kinds.core.pod.template import (
    always_restarting,
    generation_changed,
    name_warnings,
    required_selector,
    selected_template,
)
from konverge.apiserver.kinds.core.pod.warnings import template_warnings
from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    field,
    not_above,
    same,
    same_rule,
    section,
    struct,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import (
    kept,
    next_generation,
    not_decremented,
    prepared,
    status_cleared,
    status_kept,
)
from konverge.apiserver.kinds.rules.defaults import fill, fill_unset, section_of, take
from konverge.apiserver.kinds.rules.numbers import count_of, count_or_percent, not_negative, within_hundred_percent
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

_DEPLOYMENT = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
_ROLLING = {"maxUnavailable": "25%", "maxSurge": "25%"}


def _default_deployment(obj: Obj) -> None:  # upstream: SetDefaults_Deployment
    spec = section_of(obj, "spec")
    fill(spec, _DEPLOYMENT)
    strategy = section_of(spec, "strategy")
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        fill_unset(section_of(strategy, "rollingUpdate"), _ROLLING)
    default_pod_template(section_of(spec, "template"))


def _default_replica_set(obj: Obj) -> None:  # upstream: SetDefaults_ReplicaSet
    spec = section_of(obj, "spec")
    fill(spec, {"replicas": 1})
    default_pod_template(section_of(spec, "template"))


def _not_both_zero(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateRollingUpdateDeployment
    unavailable = value.get("maxUnavailable")
    moves = count_of(unavailable) or count_of(value.get("maxSurge"))
    return bool(moves) or report.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")


_ROLLING_UPDATE = struct(  # upstream: ValidateRollingUpdateDeployment
    same_rule(("maxUnavailable", "maxSurge"), count_or_percent),
    _not_both_zero,
    field("maxUnavailable", within_hundred_percent),
)


def _strategy(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateDeploymentStrategy
    kind, rolling = value.get("type") or "", value.get("rollingUpdate")
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return rolling is None or report.forbidden(f"{path}.rollingUpdate", detail)
    if kind == "RollingUpdate":
        return _ROLLING_UPDATE(rolling or {}, f"{path}.rollingUpdate", report)
    return report.not_supported(path, internal("apps.DeploymentStrategy", value), ("Recreate", "RollingUpdate"))


def _deadline(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateDeploymentSpec
    deadline = value.get("progressDeadlineSeconds")
    if deadline is None:
        return True
    not_negative(deadline, f"{path}.progressDeadlineSeconds", report)
    fits = deadline > (value.get("minReadySeconds") or 0)
    return fits or report.invalid(f"{path}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


selector_kept = kept("spec.selector", "*meta.LabelSelector")
"""A workload keeps its selector, so that it keeps its pods."""

_TEMPLATE = selected_template(  # upstream: ValidatePodTemplateSpecForReplicaSet
    required_selector("deployment", bad="invalid label selector"), always_restarting("ReplicaSet")
)
_DEPLOYMENT_SPEC = section(  # upstream: ValidateDeploymentSpec
    "spec",
    field("replicas", not_negative),
    _TEMPLATE,
    section("strategy", _strategy),
    same_rule(("minReadySeconds", "revisionHistoryLimit"), not_negative),
    _deadline,
)
# upstream: ValidateReplicaSetSpec
_REPLICA_SET_SPEC = section("spec", same_rule(("replicas", "minReadySeconds"), not_negative), _TEMPLATE)

_ABOVE = "cannot be greater than status.replicas"
_AVAILABLE = (
    not_above("readyReplicas", "replicas", _ABOVE),
    not_above("availableReplicas", "replicas", _ABOVE),
    not_above("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
)
_DEPLOYMENT_COUNTS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
_DEPLOYMENT_STATUS = section(  # upstream: ValidateDeploymentStatus
    "status",
    same_rule(_DEPLOYMENT_COUNTS, not_negative),
    not_above("updatedReplicas", "replicas", _ABOVE),
    *_AVAILABLE,
)
_REPLICA_SET_COUNTS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)
_REPLICA_SET_STATUS = section(  # upstream: ValidateReplicaSetStatus
    "status",
    same_rule(_REPLICA_SET_COUNTS, not_negative),
    not_above("fullyLabeledReplicas", "replicas", _ABOVE),
    *_AVAILABLE,
)


def _prepare_deployment(obj: Obj, old: Obj, context: Context) -> None:  # upstream: deploymentStrategy.PrepareForUpdate
    """The controller copies annotations to its ReplicaSets, so a change of them is a new generation too."""
    status_kept(obj, old, context)
    if not same(obj["metadata"].get("annotations"), old["metadata"].get("annotations")):
        next_generation(obj, old)


def _labels_kept(obj: Obj, old: Obj, context: Context) -> None:  # upstream: deploymentStatusStrategy.PrepareForUpdate
    take(obj["metadata"], old["metadata"], "labels")


# upstream: deploymentStrategy.WarningsOnCreate
def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    if not generation_changed(obj, old):
        return ()
    warnings = template_warnings(obj["spec"]["template"], "spec.template")
    return warnings if old is not None else [*name_warnings(obj), *warnings]


DEPLOYMENT = Strategy(  # upstream: deploymentStrategy
    defaults=_default_deployment,
    prepare_create=status_cleared("apps", "v1", "Deployment"),
    prepare_update=_prepare_deployment,
    validate_create=creation(_DEPLOYMENT_SPEC),
    validate_update=update(_DEPLOYMENT_SPEC, selector_kept),
    warnings=_warnings,
    status=StatusRules(prepare=_labels_kept, validate=update(_DEPLOYMENT_STATUS, not_decremented("collisionCount"))),
    generation=True,
)

REPLICA_SET = Strategy(  # upstream: rsStrategy
    defaults=_default_replica_set,
    **prepared(status=("apps", "v1", "ReplicaSet")),
    validate_create=creation(_REPLICA_SET_SPEC),
    validate_update=update(_REPLICA_SET_SPEC, selector_kept),
    warnings=_warnings,
    status=StatusRules(validate=update(_REPLICA_SET_STATUS)),
    generation=True,
)
