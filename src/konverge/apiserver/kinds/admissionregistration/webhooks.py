"""ValidatingWebhookConfiguration and MutatingWebhookConfiguration.

Upstream: pkg/apis/admissionregistration/validation, k8s.io/apiserver/pkg/util/webhook.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from konverge.apiserver.kinds.admissionregistration.matching import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATIONS,
    RULE,
    default_rules,
    match_conditions,
    reserved_name,
    reserved_name_warnings,
)
from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    field,
    given,
    items,
    one_of,
    same,
    struct,
    update,
)
from konverge.apiserver.kinds.rules.defaults import each, fill_unset
from konverge.apiserver.kinds.rules.names import three_segments
from konverge.apiserver.kinds.rules.numbers import within
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.kinds.rules.webhook_clients import webhook_service, webhook_url
from konverge.apiserver.strategy import Context, Obj, Strategy
from konverge.objects.names import dns_1035_errors

_DEFAULTS = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": dict,
    "objectSelector": dict,
    "timeoutSeconds": 10,
}
_HARMLESS = ("None", "NoneOnDryRun")
_SIDE_EFFECTS = (*_HARMLESS, "Some", "Unknown")
_REVIEWS = ("v1", "v1beta1")
_NEVER_SENT = {
    "authentication.k8s.io": ("selfsubjectreviews", "tokenreviews"),
    "authorization.k8s.io": (
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
    ),
}


def _default_hooks(obj: Obj) -> None:  # upstream: SetDefaults_ValidatingWebhook, SetDefaults_ServiceReference
    for hook in each(obj, "webhooks"):
        fill_unset(hook, _DEFAULTS)
        default_rules(each(hook, "rules"))
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = 443


def _default_mutating(obj: Obj) -> None:  # upstream: SetDefaults_MutatingWebhook
    _default_hooks(obj)
    for hook in each(obj, "webhooks"):
        fill_unset(hook, {"reinvocationPolicy": "Never"})


@dataclass(frozen=True, slots=True)
class _Options:  # upstream: validationOptions
    """Which rules apply to a configuration: an update need not pass those that the stored one fails."""

    harmless: bool = True
    known_review: bool = True
    distinct_names: bool = True
    conditions: bool = True


def _options(new: Obj, old: Obj | None) -> _Options:  # upstream: ValidateValidatingWebhookConfigurationUpdate
    if old is None:
        return _Options()
    hooks = old.get("webhooks") or []
    names = [hook.get("name") for hook in hooks]
    reviews = [hook.get("admissionReviewVersions") or () for hook in hooks]
    conditions = [[hook.get("matchConditions") for hook in obj.get("webhooks") or ()] for obj in (new, old)]
    return _Options(
        harmless=all(hook.get("sideEffects") in _HARMLESS for hook in hooks),
        known_review=all(set(listed) & set(_REVIEWS) for listed in reviews if listed),
        distinct_names=len(names) == len(set(names)),
        conditions=not same(*conditions),
    )


def _side_effects(hook: Any, path: str, report: Report) -> bool:  # upstream: validateValidatingWebhook
    effects, place = hook.get("sideEffects"), f"{path}.sideEffects"
    allowed = _HARMLESS if report.scope.harmless else _SIDE_EFFECTS
    if effects is None:
        return report.required(place, f"must specify one of {', '.join(allowed)}")
    return one_of(*allowed)(effects, place, report)


def _client(hook: Any, path: str, report: Report) -> bool:  # upstream: validateValidatingWebhook
    client, place = hook.get("clientConfig") or {}, f"{path}.clientConfig"
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return report.required(place, "exactly one of url or service is required")
    if url is not None:
        return webhook_url(url, f"{place}.url", report)
    return webhook_service(service or {}, f"{place}.service", report)


def _conditions(hook: Any, path: str, report: Report) -> bool:  # upstream: ignoreValidatingWebhookMatchConditions
    if not report.scope.conditions:
        return True
    return match_conditions(hook.get("matchConditions"), f"{path}.matchConditions", report, params=False)


def _review_versions(hook: Any, path: str, report: Report) -> bool:  # upstream: validateAdmissionReviewVersions
    versions, place = hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions"
    if not versions:
        return report.required(place, f"must specify one of {', '.join(_REVIEWS)}")
    for index, version in enumerate(versions):
        if version in versions[:index]:
            report.invalid(f"{place}[{index}]", version, "duplicate version")
            continue
        for error in dns_1035_errors(version):
            report.invalid(f"{place}[{index}]", version, error)
    fine = not report.scope.known_review or set(versions) & set(_REVIEWS)
    return bool(fine) or report.invalid(place, versions, f"must include at least one of {', '.join(_REVIEWS)}")


def _distinct_name(hook: Any, path: str, report: Report) -> bool:
    names, name = report.seen.setdefault("name", set()), hook.get("name") or ""
    if report.scope.distinct_names and name and name in names:
        report.duplicate(f"{path}.name", name)
    names.add(name)
    return True


_HOOK = struct(  # upstream: validateValidatingWebhook, validateMutatingWebhook
    field("name", three_segments),
    field("rules", items(RULE)),
    given("failurePolicy", one_of(*FAILURE_POLICIES)),
    given("matchPolicy", one_of(*MATCH_POLICIES)),
    _side_effects,
    field("timeoutSeconds", within(1, 30, "the timeout value must be between 1 and 30 seconds")),
    field("namespaceSelector", label_selector),
    field("objectSelector", label_selector),
    given("reinvocationPolicy", one_of(*REINVOCATIONS)),
    _client,
    _conditions,
    _review_versions,
    _distinct_name,
)
# upstream: validateValidatingWebhookConfiguration, validateMutatingWebhookConfiguration
_HOOKS = field("webhooks", items(_HOOK))


# upstream: WarningsForValidatingWebhookRules, WarningsForMutatingWebhookRules
def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    yield from reserved_name_warnings(obj, old, context)
    for i, hook in enumerate(each(obj, "webhooks")):
        for j, rule in enumerate(each(hook, "rules")):
            yield from _without_effect(rule, f"webhooks[{i}].rules[{j}]")


# upstream: WarningsForValidatingWebhookRules, WarningsForMutatingWebhookRules
def _without_effect(rule: Obj, path: str) -> Iterable[str]:
    """Reviews and the like are never sent to webhooks: a rule that names them is a mistake."""
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if "*" in groups or "*" in resources:
        return
    for group in dict.fromkeys(groups):
        for resource in dict.fromkeys(resources):
            if resource in _NEVER_SENT.get(group, ()):
                shown = f"{resource}.{group}" if group else resource
                yield f"{path}: {shown} is excluded from admission webhooks; this rule will have no effect"


VALIDATING = Strategy(  # upstream: validatingWebhookConfigurationStrategy
    defaults=_default_hooks,
    validate_create=creation(_HOOKS, reserved_name, scope=_options),
    validate_update=update(_HOOKS, scope=_options),
    warnings=_warnings,
    generation=True,
    unconditional_update=False,
)
MUTATING = replace(VALIDATING, defaults=_default_mutating)  # upstream: mutatingWebhookConfigurationStrategy
