"""Where pods may run: node selectors, affinity, tolerations, topology spread. Upstream: pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from konverge.apiserver.kinds.framework.declare import (
    Report,
    field,
    given,
    items,
    number,
    one_of,
    section,
    struct,
    text,
)
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain, label_value, qualified_name
from konverge.apiserver.kinds.rules.numbers import positive, within
from konverge.apiserver.kinds.rules.selectors import label_selector, operator_and_values
from konverge.objects.names import label_value_errors

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _requirement_operator(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNodeSelectorRequirement
    operator, values = value.get("operator") or "", value.get("values") or ()
    if operator not in ("Gt", "Lt"):
        return operator_and_values(value, path, report)
    detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
    return len(values) == 1 or report.required(f"{path}.values", detail)


def _field_requirement(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNodeFieldSelectorRequirement
    operator, key, values = value.get("operator") or "", value.get("key") or "", value.get("values") or ()
    if operator not in ("In", "NotIn"):
        report.invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        report.required(f"{path}.values", detail)
    if key != "metadata.name":
        return report.invalid(f"{path}.key", key, "not a valid field selector key")
    return items(dns_subdomain)(values, f"{path}.values", report)


_KEY = text("key", qualified_name)
_MATCH_FIELDS = field("matchFields", items(_field_requirement))
REQUIRED_TERM = struct(  # upstream: ValidateNodeSelectorTerm
    field("matchExpressions", items(struct(_requirement_operator, _KEY, field("values", items(label_value))))),
    _MATCH_FIELDS,
)
_PREFERRED_TERM = (field("matchExpressions", items(struct(_requirement_operator, _KEY))), _MATCH_FIELDS)


def node_selector(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNodeSelector
    """A NodeSelector: terms of which one must match."""
    terms, place = value.get("nodeSelectorTerms"), f"{path}.nodeSelectorTerms"
    if not terms:
        return report.required(place, "must have at least one node selector term")
    return items(REQUIRED_TERM)(terms, place, report)


def _namespaces(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodAffinityTerm
    for name in value.get("namespaces") or ():
        dns_label(name, f"{path}.namespace", report)
    return True


def label_keys(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateMatchLabelKeysAndMismatchLabelKeys
    """matchLabelKeys and mismatchLabelKeys against the selector that they extend."""
    selector = value.get("labelSelector")
    matched, mismatched = value.get("matchLabelKeys") or (), value.get("mismatchLabelKeys") or ()
    for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            report.forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
        elif keys:
            items(qualified_name)(keys, f"{path}.{name}", report)
    if matched and selector is not None:
        _keys_in_selector(matched, selector, path, report)
    for index, key in enumerate(matched):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            report.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)
    return True


# upstream: ValidateMatchLabelKeysInTopologySpread
def _keys_in_selector(keys: Sequence[str], selector: Mapping[str, Any], path: str, report: Report) -> None:
    """The server itself adds one expression for each key: only a second one is the user's."""
    seen = set(selector.get("matchLabels") or ())
    last = {key: index for index, key in enumerate(keys)}
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key")
        if key in keys and key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            report.invalid(f"{path}[{last[key]}]", key, detail)
        seen.add(key)


def _topology_key(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodAffinityTerm
    key, place = value.get("topologyKey") or "", f"{path}.topologyKey"
    if not key:
        report.required(place, "can not be empty")
    return qualified_name(key, place, report)


# upstream: ValidatePreferredSchedulingTerms, validateWeightedPodAffinityTerms
_WEIGHT = number("weight", within(1, 100, "must be in the range 1-100"))
_POD_TERM = (  # upstream: validatePodAffinityTerm
    field("labelSelector", label_selector),
    field("namespaceSelector", label_selector),
    _namespaces,
    label_keys,
    _topology_key,
)
_POD_AFFINITY = struct(  # upstream: validatePodAffinity, validatePodAntiAffinity
    field("requiredDuringSchedulingIgnoredDuringExecution", items(struct(*_POD_TERM))),
    field(
        "preferredDuringSchedulingIgnoredDuringExecution",
        items(struct(_WEIGHT, section("podAffinityTerm", *_POD_TERM))),
    ),
)
AFFINITY = struct(  # upstream: validateAffinity
    field(
        "nodeAffinity",
        struct(
            field("requiredDuringSchedulingIgnoredDuringExecution", node_selector),
            field(
                "preferredDuringSchedulingIgnoredDuringExecution",
                items(struct(_WEIGHT, section("preference", *_PREFERRED_TERM))),
            ),
        ),
    ),
    field("podAffinity", _POD_AFFINITY),
    field("podAntiAffinity", _POD_AFFINITY),
)


def _toleration(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateTolerations
    key, operator = value.get("key") or "", value.get("operator") or ""
    if key:
        qualified_name(key, f"{path}.key", report)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        report.invalid(f"{path}.operator", operator, detail)
    effect = value.get("effect") or ""
    if value.get("tolerationSeconds") is not None and effect != "NoExecute":
        report.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    _toleration_operator(operator, value.get("value") or "", f"{path}.operator", report)
    return not effect or one_of(*TAINT_EFFECTS)(effect, f"{path}.effect", report)


def _toleration_operator(operator: str, value: str, path: str, report: Report) -> bool:  # upstream: ValidateTolerations
    if operator in ("Equal", ""):
        errors = label_value_errors(value)
        return not errors or report.invalid(path, value, ";".join(errors))
    if operator == "Exists":
        return not value or report.invalid(path, value, "value must be empty when `operator` is 'Exists'")
    known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
    return report.not_supported(path, operator, known)


TOLERATIONS = items(_toleration)  # upstream: ValidateTolerations


def _min_domains(value: Any, path: str, report: Report) -> bool:  # upstream: validateMinDomains
    minimum, action = value.get("minDomains"), value.get("whenUnsatisfiable") or ""
    if minimum is None:
        return True
    positive(minimum, f"{path}.minDomains", report)
    detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
    return action == "DoNotSchedule" or report.invalid(f"{path}.minDomains", minimum, detail)


def topology_spread(value: Any, path: str, report: Report) -> bool:  # upstream: validateTopologySpreadConstraints
    """All constraints: none may repeat the key and action of a later one."""
    pairs = [(each.get("topologyKey") or "", each.get("whenUnsatisfiable") or "") for each in value]
    for index, constraint in enumerate(value):
        place, (key, action) = f"{path}[{index}]", pairs[index]
        positive(constraint.get("maxSkew") or 0, f"{place}.maxSkew", report)
        if not key:
            report.required(f"{place}.topologyKey", "can not be empty")
        one_of("DoNotSchedule", "ScheduleAnyway")(action, f"{place}.whenUnsatisfiable", report)
        if pairs[index] in pairs[index + 1 :]:
            report.duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        _SPREAD_REST(constraint, place, report)
    return True


_INCLUSION = one_of("Honor", "Ignore")  # upstream: validateNodeInclusionPolicy
_SPREAD_REST = struct(
    _min_domains,
    given("nodeAffinityPolicy", _INCLUSION),
    given("nodeTaintsPolicy", _INCLUSION),
    label_keys,
    field("labelSelector", label_selector),
)
