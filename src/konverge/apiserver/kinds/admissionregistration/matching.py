"""Which requests a webhook or a policy is about: rules, selectors, conditions.

Upstream: pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.kinds.admissionregistration.expressions import BOOL, Expressions
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    chain,
    distinct,
    field,
    given,
    items,
    one_of,
    present,
    required,
    struct,
)
from konverge.apiserver.kinds.rules.defaults import each, fill_unset
from konverge.apiserver.kinds.rules.names import path_segment, qualified_name
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import Context, Obj

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
REINVOCATIONS = ("IfNeeded", "Never")
_SCOPES = ("*", "Cluster", "Namespaced")
_MOST_CONDITIONS = 64


def default_rules(rules: Iterable[Obj]) -> None:  # upstream: SetDefaults_Rule
    for rule in rules:
        fill_unset(rule, {"scope": "*"})


def default_matching(resources: Obj | None) -> None:  # upstream: SetDefaults_MatchResources
    """MatchResources of a policy or binding."""
    if resources is None:
        return
    fill_unset(resources, {"matchPolicy": "Equivalent", "namespaceSelector": dict, "objectSelector": dict})
    default_rules(each(resources, "resourceRules"))
    default_rules(each(resources, "excludeResourceRules"))


def _wildcard_alone(noun: str) -> Rule:  # upstream: hasWildcard
    """`*` means everything, so that it must be the only item."""

    def check(value: Any, path: str, report: Report) -> bool:
        detail = f"if '*' is present, must not specify other {noun}"
        if len(value) > 1 and "*" in value:
            report.invalid(path, value, detail)
        return True

    return check


def _resources(value: Any, path: str, report: Report) -> bool:  # upstream: validateResources
    """`pods`, `pods/log`, `pods/*`, `*/scale`, `*`, `*/*`: none may be covered by another."""
    all_of, sub_of_all = set(), set()
    plain = False
    for index, entry in enumerate(value):
        place = f"{path}[{index}]"
        if not entry:
            report.required(place)
            continue
        resource, slash, sub = entry.partition("/")
        if not slash:
            plain = entry != "*"
            continue
        if resource in all_of:
            report.invalid(place, entry, f"if '{resource}/*' is present, must not specify {entry}")
        if sub in sub_of_all:
            report.invalid(place, entry, f"if '*/{sub}' is present, must not specify {entry}")
        if sub == "*":
            all_of.add(resource)
        if resource == "*":
            sub_of_all.add(sub)
    if len(value) > 1 and "*/*" in value:
        report.invalid(path, value, "if '*/*' is present, must not specify other resources")
    detail = "if '*' is present, must not specify other resources without subresources"
    return not ("*" in value and plain) or report.invalid(path, value, detail)


RULE = struct(  # upstream: validateRuleWithOperations
    field("operations", required, _wildcard_alone("operations"), items(one_of(*OPERATIONS))),
    field("apiGroups", required, _wildcard_alone("API groups")),
    field("apiVersions", required, _wildcard_alone("API versions"), items(required)),
    field("resources", required, _resources),
    given("scope", one_of(*_SCOPES)),
)
_NAMES = field("resourceNames", items(chain(path_segment, distinct)))
_NAMED_RULES = items(struct(_NAMES, RULE))  # upstream: validateNamedRuleWithOperations


match_resources = struct(  # upstream: validateMatchResources
    given("matchPolicy", one_of(*MATCH_POLICIES)),
    field("namespaceSelector", present, label_selector),
    field("objectSelector", present, label_selector),
    field("resourceRules", _NAMED_RULES),
    field("excludeResourceRules", _NAMED_RULES),
)


# upstream: validateMutatingAdmissionPolicySpec
def only_mutable_operations(resources: Obj | None, path: str, report: Report) -> bool:
    """A mutation of something that is deleted would be lost; the real server names no index."""
    for rule in (resources or {}).get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            one_of(*MUTATING_OPERATIONS)(operation, f"{path}.resourceRules.operations", report)
    return True


# upstream: validateMatchConditions
def match_conditions(conditions: Any, path: str, report: Report, *, params: bool) -> bool:
    """Conditions in CEL, each with a name of its own."""
    listed = conditions or ()
    if len(listed) > _MOST_CONDITIONS:
        report.too_many(path, len(listed), _MOST_CONDITIONS)
    scope, seen = Expressions(params=params), set()
    for index, condition in enumerate(listed):
        place = f"{path}[{index}]"
        _condition(condition, scope, place, report)
        name = condition.get("name") or ""
        if name and name in seen:
            report.duplicate(f"{place}.name", name)
        seen.add(name)
    return True


# upstream: validateMatchCondition
def _condition(condition: Obj, scope: Expressions, path: str, report: Report) -> None:
    expression, name = (condition.get("expression") or "").strip(), condition.get("name") or ""
    if not expression:
        report.required(f"{path}.expression")
    else:
        error = scope.error(expression, BOOL)
        if error:
            report.invalid(f"{path}.expression", expression, error)
    if not name:
        report.required(f"{path}.name")
    else:
        qualified_name(name, f"{path}.name", report)


_SUFFIX = ".static.k8s.io"
_RESERVED_NAME = (
    f'names ending with "{_SUFFIX}" are reserved for static manifest-based configurations '
    "and cannot be managed via the API"
)


def reserved_name(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidateStaticSuffix
    """Refused at creation."""
    name = obj["metadata"].get("name") or ""
    return not name.endswith(_SUFFIX) or report.invalid("metadata.name", name, _RESERVED_NAME)


# upstream: WarningsForStaticSuffix
def reserved_name_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    """Tolerated, with a warning, in what is already there."""
    reserved = (obj["metadata"].get("name") or "").endswith(_SUFFIX)
    return [f"metadata.name: {_RESERVED_NAME}"] if reserved and old is not None else []
