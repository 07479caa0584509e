"""ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings.

Upstream: pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from konverge.apiserver.kinds.admissionregistration.expressions import (
    BOOL,
    OBJECT,
    PATCHES,
    STRING,
    STRING_OR_NULL,
    Expressions,
)
from konverge.apiserver.kinds.admissionregistration.matching import (
    FAILURE_POLICIES,
    REINVOCATIONS,
    default_matching,
    match_conditions,
    match_resources,
    only_mutable_operations,
    reserved_name,
    reserved_name_warnings,
)
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    creation,
    field,
    given,
    items,
    one_of,
    required,
    same,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept, prepared
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.defaults import fill_unset, section_of
from konverge.apiserver.kinds.rules.names import dns_subdomain, path_segment, qualified_name
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import Obj, StatusRules, Strategy
from konverge.objects.cel_names import IDENTIFIER, RESERVED
from konverge.objects.names import dns_1035_errors, dns_subdomain_errors

GROUP = "admissionregistration.k8s.io"
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_MOST_ANNOTATIONS = 20
_LONGEST_ANNOTATION = 5 * 1024


# upstream: SetDefaults_ValidatingAdmissionPolicySpec, SetDefaults_MutatingAdmissionPolicySpec
def _default_policy(obj: Obj) -> None:
    spec = section_of(obj, "spec")
    fill_unset(spec, {"failurePolicy": "Fail"})
    default_matching(spec.get("matchConstraints"))


def _default_binding(obj: Obj) -> None:
    default_matching(section_of(obj, "spec").get("matchResources"))


# --- what both kinds of policies say


def _api_version(value: Any, path: str, report: Report) -> bool:  # upstream: parseGroupVersion
    if value.count("/") > 1:
        return report.invalid(path, value, f"unexpected GroupVersion string: {value}")
    group, _, version = value.rpartition("/")
    errors = dns_subdomain_errors(group) if group else []
    if errors:
        report.invalid(path, group, ",".join(errors))
    if not version:
        return report.invalid(path, value, "version must be specified")
    errors = dns_1035_errors(version)
    return not errors or report.invalid(path, version, ",".join(errors))


def _kind(value: Any, path: str, report: Report) -> bool:  # upstream: validateParamKind
    errors = dns_1035_errors(value.lower())
    detail = f"may have mixed case, but should otherwise match: {','.join(errors)}"
    return not errors or report.invalid(path, value, detail)


# upstream: validateParamKind
_PARAM_KIND = struct(text("apiVersion", required, _api_version), text("kind", required, _kind))


def _constraints(spec: Any, path: str, report: Report) -> bool:  # upstream: validateValidatingAdmissionPolicySpec
    constraints, place = spec.get("matchConstraints"), f"{path}.matchConstraints"
    if constraints is None:
        return report.required(place)
    match_resources(constraints, place, report)
    return bool(constraints.get("resourceRules")) or report.required(f"{place}.resourceRules")


_HEAD = struct(given("failurePolicy", one_of(*FAILURE_POLICIES)), field("paramKind", _PARAM_KIND), _constraints)


# upstream: ignoreValidatingAdmissionPolicyMatchConditions
def _conditions(spec: Obj, before: Obj | None, report: Report) -> None:
    """Conditions that an update does not touch stay as they are."""
    names = ("paramKind", "matchConditions")
    if before is not None and all(same(spec.get(name), before.get(name)) for name in names):
        return
    params = spec.get("paramKind") is not None
    match_conditions(spec.get("matchConditions"), "spec.matchConditions", report, params=params)


def _variables(spec: Obj, scope: Expressions, report: Report) -> None:  # upstream: validateVariable
    for index, variable in enumerate(spec.get("variables") or ()):
        place = f"spec.variables[{index}]"
        name, expression = variable.get("name") or "", variable.get("expression") or ""
        if not name.strip():
            report.required(f"{place}.name", "name is not specified")
        elif not IDENTIFIER(name) or name in RESERVED:
            report.invalid(f"{place}.name", name, "must be a valid CEL identifier")
        if not expression.strip():
            report.required(f"{place}.expression", "expression is not specified")
            continue
        error = scope.add_variable(name, expression)
        if error:
            report.invalid(f"{place}.expression", expression, error)


# --- validating


def _validation(value: Obj, scope: Expressions, path: str, report: Report) -> None:  # upstream: validateValidation
    expression = value.get("expression") or ""
    if not expression.strip():
        report.required(f"{path}.expression", "expression is not specified")
    else:
        error = scope.error(expression, BOOL)
        if error:
            report.invalid(f"{path}.expression", expression, error)
    _message(value, scope, path, report)
    reason = value.get("reason")
    if reason is not None:
        one_of(*_REASONS)(reason, f"{path}.reason", report)


def _message(value: Obj, scope: Expressions, path: str, report: Report) -> None:  # upstream: validateMessageExpression
    computed, fixed = value.get("messageExpression") or "", value.get("message") or ""
    if computed and not computed.strip():
        report.invalid(f"{path}.messageExpression", computed, "must be non-empty if specified")
    elif computed:
        error = scope.error(computed, STRING, authorizer=False)
        if error:
            report.invalid(f"{path}.messageExpression", computed, error)
    if fixed and not fixed.strip():
        report.invalid(f"{path}.message", fixed, "must be non-empty if specified")
    elif re.search(r"[\n\r]", fixed.strip()):
        report.invalid(f"{path}.message", fixed, "must not contain line breaks")


# upstream: validateAuditAnnotation
def _annotation(value: Obj, name: str, scope: Expressions, path: str, report: Report) -> None:
    qualified_name(f"{name}/{value.get('key') or ''}", f"{path}.key", report)
    expression, place = value.get("valueExpression") or "", f"{path}.valueExpression"
    size = len(expression.strip())
    if not size:
        report.required(place, "valueExpression is not specified")
    elif size > _LONGEST_ANNOTATION:
        report.required(place, f"must not exceed {_LONGEST_ANNOTATION} bytes in length")
    else:
        error = scope.error(expression.strip(), STRING_OR_NULL)
        if error:
            report.invalid(place, expression, error)


# upstream: validateValidatingAdmissionPolicySpec
def _annotations(obj: Obj, scope: Expressions, report: Report) -> None:
    listed, place = obj["spec"].get("auditAnnotations") or [], "spec.auditAnnotations"
    if len(listed) > _MOST_ANNOTATIONS:
        report.invalid(place, listed, f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations")
    seen: set[str] = set()
    for index, annotation in enumerate(listed):
        _annotation(annotation, obj["metadata"].get("name") or "", scope, f"{place}[{index}]", report)
        key = annotation.get("key") or ""
        if key in seen:
            report.duplicate(f"{place}[{index}].key", key)
        seen.add(key)


# upstream: validateValidatingAdmissionPolicySpec
def _check_validating(obj: Obj, old: Obj | None, path: str, report: Report) -> bool:
    spec = obj["spec"]
    _HEAD(spec, "spec", report)
    _conditions(spec, None if old is None else old["spec"], report)
    scope = Expressions(params=spec.get("paramKind") is not None, variables=bool(spec.get("variables")))
    _variables(spec, scope, report)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        for name in ("validations", "auditAnnotations"):
            report.required(f"spec.{name}", "validations or auditAnnotations must contain at least one item")
        return False
    for index, validation in enumerate(spec.get("validations") or ()):
        _validation(validation, scope, f"spec.validations[{index}]", report)
    _annotations(obj, scope, report)
    return True


# --- mutating

_PATCHES = {
    "ApplyConfiguration": ("applyConfiguration", "jsonPatch", OBJECT),
    "JSONPatch": ("jsonPatch", "applyConfiguration", PATCHES),
}


def _mutation(value: Obj, scope: Expressions, path: str, report: Report) -> bool:  # upstream: validateMutation
    kind = value.get("patchType") or ""
    if not kind:
        return report.required(f"{path}.patchType")
    if kind not in _PATCHES:
        return report.not_supported(f"{path}.patchType", kind, sorted(_PATCHES))
    member, other, wanted = _PATCHES[kind]
    if value.get(member) is None:
        report.required(f"{path}.{member}", f"must be specified when patchType is {kind}")
    else:
        _patch(value[member], scope, wanted, f"{path}.{member}.expression", report)
    unset = value.get(other) is None
    detail = f"must not be specified when patchType is {kind}"
    return unset or report.invalid(f"{path}.{other}", f"{{{other}}}", detail)


# upstream: validateApplyConfiguration, validateJSONPatch
def _patch(value: Obj, scope: Expressions, wanted: Any, path: str, report: Report) -> None:
    expression = (value.get("expression") or "").strip()
    if not expression:
        report.required(path)
        return
    error = scope.error(expression, wanted, patches=True)
    if error:
        report.invalid(path, expression, error)


_REINVOCATION = struct(text("reinvocationPolicy", required, one_of(*REINVOCATIONS)))


# upstream: validateMutatingAdmissionPolicySpec
def _check_mutating(obj: Obj, old: Obj | None, path: str, report: Report) -> bool:
    spec = obj["spec"]
    _HEAD(spec, "spec", report)
    only_mutable_operations(spec.get("matchConstraints"), "spec.matchConstraints", report)
    _conditions(spec, None if old is None else old["spec"], report)
    scope = Expressions(params=spec.get("paramKind") is not None, variables=True)
    _variables(spec, scope, report)
    if not spec.get("mutations"):
        report.required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(spec.get("mutations") or ()):
        _mutation(mutation, scope, f"spec.mutations[{index}]", report)
    return _REINVOCATION(spec, "spec", report)


# --- bindings


def _param_ref(value: Any, path: str, report: Report) -> bool:  # upstream: validateParamRef
    name, selector, action = value.get("name"), value.get("selector"), value.get("parameterNotFoundAction")
    detail = "name and selector are mutually exclusive"
    if name:
        path_segment(name, f"{path}.name", report)
        if selector is not None:
            report.forbidden(f"{path}.name", detail)
    if selector is not None:
        label_selector(selector, f"{path}.selector", report)
        if name:
            report.forbidden(f"{path}.selector", detail)
    if not name and selector is None:
        report.required(path, "one of name or selector must be specified")
    place = f"{path}.parameterNotFoundAction"
    return report.required(place) if not action else one_of("Deny", "Allow")(action, place, report)


def _actions(value: Any, path: str, report: Report) -> bool:  # upstream: validateValidationActions
    for index, action in enumerate(value):
        one_of(*_ACTIONS)(action, f"{path}[{index}]", report)
        if action in value[:index]:
            report.duplicate(f"{path}[{index}]", action)
    detail = (
        "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
        "and headers serves no purpose)"
    )
    return not {"Deny", "Warn"} <= set(value) or report.invalid(path, value, detail)


# upstream: validateMutatingAdmissionPolicyBindingSpec
def _mutable_matches(spec: Any, path: str, report: Report) -> bool:
    return only_mutable_operations(spec.get("matchResources"), f"{path}.matchResources", report)


_VALIDATING_BINDING = (  # upstream: validateValidatingAdmissionPolicyBindingSpec
    section(
        "spec",
        field("policyName", dns_subdomain),
        field("paramRef", _param_ref),
        field("matchResources", match_resources),
        field("validationActions", _actions),
        text("policyName", required),
        field("validationActions", required),
    ),
)
_MUTATING_BINDING = (  # upstream: validateMutatingAdmissionPolicyBindingSpec
    section(
        "spec",
        text("policyName", required, dns_subdomain),
        field("paramRef", _param_ref),
        field("matchResources", match_resources),
        _mutable_matches,
    ),
)


# --- strategies


_COMMON: dict[str, Any] = {"warnings": reserved_name_warnings, "generation": True, "unconditional_update": False}


def _policy(check: Callable[[Obj, Obj | None, str, Report], bool], **rest: Any) -> Strategy:
    return Strategy(
        defaults=_default_policy,
        validate_create=creation(lambda obj, path, report: check(obj, None, path, report), reserved_name),
        validate_update=update(check),
        **_COMMON,
        **rest,
    )


def _binding(rules: tuple[Any, ...]) -> Strategy:
    return Strategy(
        defaults=_default_binding,
        validate_create=creation(*rules, reserved_name),
        validate_update=update(rules),
        **_COMMON,
    )


_WARNING: Rule = struct(text("warning", required), text("fieldRef", required))  # upstream: validateExpressionWarning
_STATUS = section(  # upstream: validateValidatingAdmissionPolicyStatus
    "status",
    field("typeChecking", struct(field("expressionWarnings", items(_WARNING)))),
    field("conditions", conditions),
)

VALIDATING_POLICY = _policy(  # upstream: validatingAdmissionPolicyStrategy
    _check_validating,
    **prepared(status=(GROUP, "v1", "ValidatingAdmissionPolicy")),
    status=StatusRules(prepare=metadata_kept, validate=update(_STATUS)),
)
MUTATING_POLICY = _policy(_check_mutating)  # upstream: mutatingAdmissionPolicyStrategy
VALIDATING_BINDING = _binding(_VALIDATING_BINDING)  # upstream: validatingAdmissionPolicyBindingStrategy
MUTATING_BINDING = _binding(_MUTATING_BINDING)  # upstream: mutatingAdmissionPolicyBindingStrategy
