"""LimitRange. Upstream: pkg/apis/core/validation, pkg/registry/core/limitrange/strategy.go."""

from __future__ import annotations

from typing import Any

from konverge import clock
from konverge.apiserver.kinds.core.pod.defaults import default_resource_list
from konverge.apiserver.kinds.core.resource_names import container_resource_name, may_overcommit, resource_name
from konverge.apiserver.kinds.framework.declare import Report, creation, distinct, field, items, section, update
from konverge.apiserver.kinds.framework.lifecycle import empty_is_null
from konverge.apiserver.kinds.rules.defaults import each, section_of
from konverge.apiserver.kinds.rules.names import qualified_name
from konverge.apiserver.kinds.rules.quantities import NANO, amount, quotient, shown
from konverge.apiserver.strategy import Context, Obj, Strategy

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_LISTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")

Amounts = dict[str, Any]


def _defaults(limits: Obj) -> None:  # upstream: SetDefaults_LimitRangeItem
    """The most that a container may have is also its default."""
    for limit in each(section_of(limits, "spec"), "limits"):
        for name in _LISTS:
            default_resource_list(limit.get(name))
        if limit.get("type") == "Container":
            given = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            asked = {**(limit.get("min") or {}), **given, **(limit.get("defaultRequest") or {})}
            for name, amounts in (("default", given), ("defaultRequest", asked)):
                if amounts:
                    limit[name] = amounts


def _type(kind: str, path: str, report: Report) -> bool:  # upstream: validateLimitRangeTypeName
    if not qualified_name(kind, path, report):
        return False
    known = "/" in kind or kind in _TYPES
    return known or report.invalid(path, kind, "must be a standard limit type or fully qualified")


def _limit(limit: Amounts, path: str, report: Report) -> bool:  # upstream: ValidateLimitRange
    kind = limit.get("type") or ""
    _type(kind, f"{path}.type", report)
    distinct(kind, f"{path}.type", report)
    name_rule = container_resource_name if kind in ("Pod", "Container") else resource_name
    for name in ("max", "min"):
        _names(limit, name, name_rule, path, report)
    if kind == "Pod":
        for name in ("default", "defaultRequest"):
            if limit.get(name):
                report.forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'")
    else:
        for name in ("default", "defaultRequest"):
            _names(limit, name, name_rule, path, report)
    stored = "storage" in (limit.get("min") or {}) or "storage" in (limit.get("max") or {})
    if kind == "PersistentVolumeClaim" and not stored:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        report.required(f"{path}.limits", detail)
    _names(limit, "maxLimitRequestRatio", name_rule, path, report)
    considered = [name for name in _LISTS if kind != "Pod" or not name.startswith("default")]
    for resource in sorted({key for name in considered for key in limit.get(name) or ()}):
        _relations({name: (limit.get(name) or {}).get(resource) for name in considered}, resource, path, report)
    return True


# upstream: validateLimitRangeResourceName
def _names(limit: Amounts, name: str, rule: Any, path: str, report: Report) -> None:
    for resource in sorted(limit.get(name) or ()):
        rule(resource, f"{path}.{name}[{resource}]", report)


_NAMES = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
_ORDER = (
    # (the lesser, the greater, where it is reported, the value shown, the name of the greater where it differs)
    ("min", "max", "min", "min", ""),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", ""),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", ""),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest", "default limit"),
    ("min", "default", "default", "min", ""),
    ("default", "max", "default", "max", ""),
)


def _relations(amounts: Amounts, resource: str, path: str, report: Report) -> None:  # upstream: ValidateLimitRange
    for less, more, at, value, name in _ORDER:
        lower, upper = amounts.get(less), amounts.get(more)
        if lower is not None and upper is not None and amount(lower) > amount(upper):
            greater = name or _NAMES[more]
            detail = f"{_NAMES[less]} value {shown(lower)} is greater than {greater} value {shown(upper)}"
            report.invalid(f"{path}.{at}[{resource}]", shown(amounts[value]), detail)
    _ratio(amounts, f"{path}.maxLimitRequestRatio[{resource}]", report)
    given, asked = amounts.get("default"), amounts.get("defaultRequest")
    if not may_overcommit(resource) and given is not None and asked is not None and amount(given) != amount(asked):
        detail = f"default value {shown(given)} must equal to defaultRequest value {shown(asked)} in {resource}"
        report.invalid(f"{path}.defaultRequest[{resource}]", shown(asked), detail)


def _ratio(amounts: Amounts, path: str, report: Report) -> None:  # upstream: ValidateLimitRange
    ratio, least, most = amounts.get("maxLimitRequestRatio"), amounts.get("min"), amounts.get("max")
    if ratio is None:
        return
    if amount(ratio) < NANO:
        report.invalid(path, shown(ratio), f"ratio {shown(ratio)} is less than 1")
    if least is None or most is None or not amount(least):
        return
    possible = quotient(amount(most), amount(least))
    if quotient(amount(ratio), NANO) > possible:
        report.invalid(path, shown(ratio), f"ratio {shown(ratio)} is greater than max/min = {possible:f}")


def _prepare_update(limits: Obj, old: Obj, context: Context) -> None:
    empty_is_null(limits["spec"], "limits")


def _prepare_create(limits: Obj, context: Context) -> None:  # upstream: limitrangeStrategy.PrepareForCreate
    empty_is_null(limits["spec"], "limits")
    if not limits["metadata"].get("name"):
        limits["metadata"]["name"] = clock.new_uid()


_SPEC = section("spec", field("limits", items(_limit)))

LIMIT_RANGE = Strategy(  # upstream: limitrangeStrategy
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=creation(_SPEC),
    validate_update=update(_SPEC),
    create_on_update=True,
)
