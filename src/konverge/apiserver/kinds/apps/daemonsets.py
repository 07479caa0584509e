"""DaemonSet.

The real server keeps a counter of template changes in its internal struct, which the API shows as an annotation. The
caller's annotation counts at creation only.

Upstream: pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/validation, pkg/apis/apps/v1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver import status
from konverge.apiserver.go.strconv import NumberError, parse_int
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.apps.deployments import selector_kept
from konverge.apiserver.kinds.core.pod.defaults import default_pod_template
from konverge.apiserver.kinds.core.pod.template import always_restarting, good_selector, matching_labels, pod_template
from konverge.apiserver.kinds.core.pod.warnings import template_warnings
from konverge.apiserver.kinds.framework.declare import Report, creation, field, same_rule, section, update
from konverge.apiserver.kinds.framework.lifecycle import not_decremented, status_cleared, status_kept
from konverge.apiserver.kinds.rules.defaults import fill, fill_unset, section_of
from konverge.apiserver.kinds.rules.numbers import count_of, count_or_percent, not_negative, within_hundred_percent
from konverge.apiserver.kinds.rules.selectors import is_empty
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _template_generation(obj: Obj) -> int:  # upstream: Convert_v1_DaemonSet_To_apps_DaemonSet
    text = (obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "0")
    try:
        return parse_int(text)
    except NumberError as error:
        raise status.bad_request(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {error}') from None


def _set_template_generation(obj: Obj, value: int) -> None:  # upstream: Convert_apps_DaemonSet_To_v1_DaemonSet
    section_of(obj["metadata"], "annotations")[TEMPLATE_GENERATION] = str(value)


def _defaults(obj: Obj) -> None:  # upstream: SetDefaults_DaemonSet
    section_of(obj, "metadata")
    _set_template_generation(obj, _template_generation(obj))
    spec = section_of(obj, "spec")
    strategy = section_of(spec, "updateStrategy")
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        fill_unset(section_of(strategy, "rollingUpdate"), {"maxUnavailable": 1, "maxSurge": 0})
    fill(spec, {"revisionHistoryLimit": 10})
    default_pod_template(section_of(spec, "template"))


_clear_status = status_cleared("apps", "v1", "DaemonSet")


def _prepare_create(obj: Obj, context: Context) -> None:  # upstream: daemonSetStrategy.PrepareForCreate
    _clear_status(obj, context)
    _set_template_generation(obj, max(_template_generation(obj), 1))


def _prepare_update(obj: Obj, old: Obj, context: Context) -> None:  # upstream: daemonSetStrategy.PrepareForUpdate
    status_kept(obj, old, context)
    changed = obj["spec"].get("template") != old["spec"].get("template")
    _set_template_generation(obj, _template_generation(old) + changed)


def _rolling(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateRollingUpdateDaemonSet
    for rule in (count_or_percent, within_hundred_percent):
        for name in ("maxUnavailable", "maxSurge"):
            rule(value.get(name), f"{path}.{name}", report)
    unavailable, surge = count_of(value.get("maxUnavailable")), count_of(value.get("maxSurge"))
    if unavailable and surge:
        return report.invalid(f"{path}.maxSurge", value["maxSurge"], "may not be set when maxUnavailable is non-zero")
    return bool(unavailable or surge) or report.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _update_strategy(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateDaemonSetUpdateStrategy
    kind = value.get("type") or ""
    if kind == "RollingUpdate":
        return _rolling(value.get("rollingUpdate") or {}, f"{path}.rollingUpdate", report)
    known = ("RollingUpdate", "OnDelete")
    return kind == "OnDelete" or report.not_supported(path, internal("apps.DaemonSetUpdateStrategy", value), known)


_after = always_restarting("DaemonSet")


def _template(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidateDaemonSetSpec
    selector, template, place = spec.get("selector"), spec.get("template") or {}, f"{path}.template"
    if selector is None or good_selector(selector, f"{path}.selector", report):
        matching_labels(selector, template, place, report)
    if selector is not None and is_empty(selector):
        report.invalid(f"{path}.selector", {}, "empty selector is invalid for daemonset")
    pod_template(template, place, report)
    return _after(template, place, report)


_SPEC = section(  # upstream: ValidateDaemonSetSpec
    "spec",
    _template,
    field("minReadySeconds", not_negative),
    section("updateStrategy", _update_strategy),
    field("revisionHistoryLimit", not_negative),
)
_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)
_STATUS = section("status", same_rule(_COUNTS, not_negative))  # upstream: validateDaemonSetStatus


# upstream: daemonSetStrategy.WarningsOnUpdate
def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    if old is not None and _template_generation(obj) == _template_generation(old):
        return ()
    return template_warnings(obj["spec"]["template"], "spec.template")


DAEMON_SET = Strategy(  # upstream: daemonSetStrategy
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=creation(_SPEC),
    validate_update=update(selector_kept, _SPEC),
    warnings=_warnings,
    status=StatusRules(validate=update(_STATUS, not_decremented("collisionCount"))),
    generation=True,
)
