"""StatefulSet. Upstream: pkg/registry/apps/statefulset/strategy.go, pkg/apis/apps/validation, pkg/apis/apps/v1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.apps.deployments import selector_kept
from konverge.apiserver.kinds.core.pod.defaults import default_claim_spec, default_pod_template
from konverge.apiserver.kinds.core.pod.template import (
    always_restarting,
    generation_changed,
    matching_labels,
    pod_template,
    required_selector,
)
from konverge.apiserver.kinds.core.pod.warnings import template_warnings
from konverge.apiserver.kinds.core.volume.claims import claim_spec
from konverge.apiserver.kinds.framework.declare import (
    Field,
    Report,
    creation,
    field,
    given,
    items,
    not_above,
    one_of,
    same_rule,
    section,
    struct,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import kept, not_decremented, prepared
from konverge.apiserver.kinds.rules.defaults import each, fill, fill_unset, section_of
from konverge.apiserver.kinds.rules.names import annotation_map, dns_label, labels, object_name
from konverge.apiserver.kinds.rules.numbers import count_of, count_or_percent, not_negative, within_hundred_percent
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import dns_label_errors

_SPEC_DEFAULTS = {
    "podManagementPolicy": "OrderedReady",
    "persistentVolumeClaimRetentionPolicy": dict,
    "replicas": 1,
    "revisionHistoryLimit": 10,
}
_RETENTION = {"whenDeleted": "Retain", "whenScaled": "Retain"}


def _default_claim_template(claim: Obj) -> None:  # upstream: Convert_apps_StatefulSetSpec_To_v1_StatefulSetSpec
    claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
    section_of(claim, "metadata")
    default_claim_spec(section_of(claim, "spec"))
    fill(section_of(claim, "status"), {"phase": "Pending"})


def _defaults(obj: Obj) -> None:  # upstream: SetDefaults_StatefulSet
    spec = section_of(obj, "spec")
    strategy = section_of(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        section_of(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        fill_unset(strategy["rollingUpdate"], {"partition": 0, "maxUnavailable": 1})
    fill(spec, _SPEC_DEFAULTS)
    fill(spec["persistentVolumeClaimRetentionPolicy"], _RETENTION)
    default_pod_template(section_of(spec, "template"))
    for claim in each(spec, "volumeClaimTemplates"):
        _default_claim_template(claim)


def _not_zero(value: Any, path: str, report: Report) -> bool:  # upstream: validateRollingUpdateStatefulSet
    count_or_percent(value, path, report)
    if count_of(value) == 0:
        report.invalid(path, value, "cannot be 0")
    return within_hundred_percent(value, path, report)


# upstream: validateRollingUpdateStatefulSet
_ROLLING = struct(field("partition", not_negative), given("maxUnavailable", _not_zero))


def _update_strategy(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateStatefulSetSpec
    kind, rolling = value.get("type") or "", value.get("rollingUpdate")
    if kind == "RollingUpdate":
        return rolling is None or _ROLLING(rolling, f"{path}.rollingUpdate", report)
    if kind == "OnDelete":
        shown = internal("*apps.RollingUpdateStatefulSetStrategy", rolling)
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        return rolling is None or report.invalid(f"{path}.rollingUpdate", shown, detail)
    shown = internal("apps.StatefulSetUpdateStrategy", value)
    return report.invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")


def _management_policy(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateStatefulSetSpec
    known = value in ("OrderedReady", "Parallel")
    return known or report.invalid(path, value, "must be 'OrderedReady' or 'Parallel'")


def _effective_template(spec: Obj) -> Obj:
    """The template with what the controller puts into it: volumes of the claims, names of its own."""
    template = spec.get("template") or {}
    inside = template.get("spec") or {}
    claims = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    if not (claims or inside.get("subdomain") or inside.get("hostname")):
        return template
    changed = {name: value for name, value in inside.items() if name not in ("subdomain", "hostname")}
    if claims:
        others = [volume for volume in inside.get("volumes") or () if volume.get("name") not in claims]
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)]
        changed["volumes"] = made + others
    return {**template, "spec": changed}


_selector = required_selector("statefulset", bad="")
_after = always_restarting("StatefulSet")


def _template(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidatePodTemplateSpecForStatefulSet
    place = f"{path}.template"
    if _selector(spec, path, report):
        template = _effective_template(spec)
        metadata = template.get("metadata") or {}
        matching_labels(spec.get("selector"), template, place, report)
        pod_template(template, place, report)
        labels(metadata.get("labels"), f"{place}.labels", report)
        annotation_map(metadata.get("annotations"), f"{place}.annotations", report)
    return _after(spec.get("template") or {}, place, report)


_RETENTION_POLICY = one_of("Retain", "Delete")  # upstream: ValidatePersistentVolumeClaimRetentionPolicyType
_CLAIMS = field("volumeClaimTemplates", items(struct(section("spec", claim_spec))))
_SERVICE = field("serviceName", dns_label)


def _spec(*, new: bool) -> Field:  # upstream: ValidateStatefulSetSpec
    """What is immutable is only checked at creation: what is stored stays valid."""
    claims, service = ((_CLAIMS,), (_SERVICE,)) if new else ((), ())
    return section(
        "spec",
        field("podManagementPolicy", _management_policy),
        section("updateStrategy", _update_strategy),
        section(
            "persistentVolumeClaimRetentionPolicy",
            text("whenDeleted", _RETENTION_POLICY),
            text("whenScaled", _RETENTION_POLICY),
        ),
        *claims,
        same_rule(("replicas", "minReadySeconds"), not_negative),
        field("ordinals", struct(field("start", not_negative))),
        *service,
        _template,
    )


_ABOVE = "cannot be greater than status.replicas"
_COUNTS = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_STATUS = section(  # upstream: ValidateStatefulSetStatus
    "status",
    same_rule((*_COUNTS, "observedGeneration", "collisionCount"), not_negative),
    *(not_above(name, "replicas", _ABOVE) for name in _COUNTS[1:]),
    not_above("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"),
)


# upstream: statefulSetStrategy.WarningsOnCreate
def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    warnings = template_warnings(obj["spec"]["template"], "spec.template") if generation_changed(obj, old) else []
    if (obj["spec"].get("revisionHistoryLimit") or 0) < 0:
        detail = "a negative value retains all historical revisions; a value >= 0 is recommended"
        return [*warnings, f"spec.revisionHistoryLimit: {detail}"]
    return warnings


STATEFUL_SET = Strategy(  # upstream: statefulSetStrategy
    defaults=_defaults,
    **prepared(status=("apps", "v1", "StatefulSet")),
    validate_create=creation(_spec(new=True)),
    validate_update=update(
        _spec(new=False),
        selector_kept,
        kept("spec.volumeClaimTemplates", "[]core.PersistentVolumeClaim"),
        unchanged("spec.serviceName", "spec.podManagementPolicy"),
    ),
    warnings=_warnings,
    status=StatusRules(validate=update(_STATUS, not_decremented("collisionCount"))),
    generation=True,
    name_check=object_name(dns_label_errors),
)
