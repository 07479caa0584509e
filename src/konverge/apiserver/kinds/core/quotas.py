"""ResourceQuota. Upstream: pkg/apis/core/validation, pkg/registry/core/resourcequota/strategy.go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.pod.defaults import default_resource_list
from konverge.apiserver.kinds.core.resource_names import is_standard_quota, quota_resource_name, resource_amounts
from konverge.apiserver.kinds.framework.declare import IMMUTABLE, Report, creation, field, section, update
from konverge.apiserver.kinds.framework.lifecycle import prepared
from konverge.apiserver.kinds.rules.defaults import section_of
from konverge.apiserver.kinds.rules.quantities import amount, shown
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

_PODS = {"pods"}
_COMPUTE = {"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
_VOLUMES = {"persistentvolumeclaims", "requests.storage"}
_SCOPES: dict[str, set[str]] = {  # upstream: IsStandardResourceQuotaScope, IsResourceQuotaScopeValidForResource
    "Terminating": _PODS | _COMPUTE,
    "NotTerminating": _PODS | _COMPUTE,
    "NotBestEffort": _PODS | _COMPUTE,
    "PriorityClass": _PODS | _COMPUTE,
    "CrossNamespacePodAffinity": _PODS | _COMPUTE,
    "BestEffort": _PODS,
    "VolumeAttributesClass": _VOLUMES,
}
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTS_ONLY = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)

# upstream: ValidateResourceQuotaResourceName, ValidateResourceQuantityValue
HARD = resource_amounts(quota_resource_name)


def _defaults(quota: Obj) -> None:  # upstream: SetDefaults_ResourceList
    default_resource_list(section_of(quota, "spec").get("hard"))
    status = section_of(quota, "status")
    default_resource_list(status.get("hard"))
    default_resource_list(status.get("used"))


def _misapplied(scope: str, hard: Iterable[str]) -> Iterable[str]:  # upstream: IsResourceQuotaScopeValidForResource
    """The limits that the scope can say nothing about."""
    known = _SCOPES.get(scope)
    return [name for name in sorted(hard) if known is not None and is_standard_quota(name) and name not in known]


def _scopes(spec: Any, path: str, report: Report) -> bool:  # upstream: validateResourceQuotaScopes
    scopes, place = spec.get("scopes") or [], f"{path}.scopes"
    for scope in scopes:
        if scope not in _SCOPES:
            report.invalid(place, scopes, "unsupported scope")
        for _ in _misapplied(scope, spec.get("hard") or ()):
            report.invalid(place, scopes, "unsupported scope applied to resource")
    for pair in _CONFLICTS:
        if pair <= set(scopes):
            report.invalid(place, scopes, "conflicting scopes")
    return True


def _scope_selector(spec: Any, path: str, report: Report) -> bool:  # upstream: validateScopeSelector
    selector, place = spec.get("scopeSelector"), f"{path}.scopeSelector.matchExpressions"
    if selector is None:
        return True
    scopes = set()
    for requirement in selector.get("matchExpressions") or ():
        scope = requirement.get("scopeName") or ""
        if scope not in _SCOPES:
            report.invalid(f"{place}.scopeName", scope, "unsupported scope")
        for _ in _misapplied(scope, spec.get("hard") or ()):
            shown_selector = internal("core.ScopeSelector", selector)
            report.invalid(place, shown_selector, "unsupported scope applied to resource")
        _requirement(scope, requirement, place, report)
        scopes.add(scope)
    for pair in _CONFLICTS:
        if pair <= scopes:
            report.invalid(place, spec.get("scopes"), "conflicting scopes")
    return True


# upstream: validateScopedResourceSelectorRequirement
def _requirement(scope: str, requirement: Any, path: str, report: Report) -> None:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if scope in _EXISTS_ONLY and operator != "Exists":
        report.invalid(f"{path}.operator", operator, _MUST_EXIST)
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            report.required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            report.invalid(f"{path}.values", values, detail)
    else:
        report.invalid(f"{path}.operator", operator, "not a valid selector operator")


_SPEC = section("spec", field("hard", HARD), _scopes, _scope_selector)  # upstream: ValidateResourceQuotaSpec
_STATUS = section("status", field("hard", HARD), field("used", HARD))  # upstream: ValidateResourceQuotaStatus


def _same_scopes(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateResourceQuotaUpdate
    scopes = new["spec"].get("scopes")
    same = set(scopes or ()) == set(old["spec"].get("scopes") or ())
    return same or report.invalid("spec.scopes", scopes, IMMUTABLE)


# upstream: resourcequotaStrategy.WarningsOnCreate
def _warnings(quota: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    if old is not None:
        return
    hard = quota["spec"].get("hard") or {}
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        request, limit = f"requests.{name}", f"limits.{name}"
        if request not in hard and name in ("cpu", "memory"):
            request = name
        if request in hard and limit in hard and amount(hard[request]) > amount(hard[limit]):
            less = f"{request} ({shown(hard[request])})"
            yield f"ResourceQuota {less} should be less than {limit} ({shown(hard[limit])})"


RESOURCE_QUOTA = Strategy(  # upstream: resourcequotaStrategy
    defaults=_defaults,
    **prepared(status=("", "v1", "ResourceQuota")),
    validate_create=creation(_SPEC, _STATUS),
    validate_update=update(_SPEC, _same_scopes),
    warnings=_warnings,
    status=StatusRules(validate=update(_STATUS)),
    returns_deleted=True,
)
