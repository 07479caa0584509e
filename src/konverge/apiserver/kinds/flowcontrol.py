"""flowcontrol.apiserver.k8s.io: FlowSchema, PriorityLevelConfiguration.

Upstream: pkg/apis/flowcontrol/validation, k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    creation,
    distinct_by,
    field,
    items,
    number,
    required,
    required_saying,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept, prepared
from konverge.apiserver.kinds.rules.defaults import fill, fill_numbers, section_of
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain, format_rule
from konverge.apiserver.kinds.rules.numbers import at_least, within
from konverge.apiserver.strategy import Obj, StatusRules, Strategy
from konverge.objects.names import dns_label_errors

GROUP = "flowcontrol.apiserver.k8s.io"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_EVERYTHING: Obj = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}


def _for_groups(*names: str) -> list[Obj]:
    return [{"subjects": [{"kind": "Group", "group": {"name": name}} for name in names], **_EVERYTHING}]


MANDATORY_SCHEMAS: dict[str, Obj] = {  # upstream: MandatoryFlowSchemas
    "exempt": {
        "priorityLevelConfiguration": {"name": "exempt"},
        "matchingPrecedence": 1,
        "rules": _for_groups("system:masters"),
    },
    "catch-all": {
        "priorityLevelConfiguration": {"name": "catch-all"},
        "matchingPrecedence": 10000,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": _for_groups("system:unauthenticated", "system:authenticated"),
    },
}
MANDATORY_LEVELS: dict[str, Obj] = {  # upstream: MandatoryPriorityLevelConfigurations
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}, "lendablePercent": 0},
    },
}


# --- FlowSchema


def _default_schema(obj: Obj) -> None:  # upstream: SetDefaults_FlowSchemaSpec
    fill_numbers(section_of(obj, "spec"), {"matchingPrecedence": 1000})


def _precedence(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidateFlowSchemaSpec
    value, place = obj["spec"].get("matchingPrecedence") or 0, "spec.matchingPrecedence"
    if value <= 0:
        report.invalid(place, value, "must be a positive value")
    if value > 10000:
        report.invalid(place, value, "must not be greater than 10000")
    if value == 1 and obj["metadata"].get("name") != "exempt":
        report.invalid(place, value, "only the schema named 'exempt' may have matchingPrecedence 1")
    return True


def _distinguisher(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateFlowSchemaSpec
    shown = internal("flowcontrol.FlowDistinguisherMethod", value)
    known = ("ByNamespace", "ByUser")
    return value.get("type") in known or report.not_supported(f"{path}.type", shown, known)


def _account_name(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateServiceAccountSubject
    return value == "*" or dns_subdomain(value, path, report)


_OF_SUBJECT: dict[str, Rule] = {  # upstream: ValidateServiceAccountSubject, ValidateUserSubject, ValidateGroupSubject
    "ServiceAccount": struct(
        text("name", required, _account_name),
        text("namespace", required_saying("must specify namespace for service account"), dns_label),
    ),
    "User": struct(text("name", required)),
    "Group": struct(text("name", required)),
}


def _subject(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateFlowSchemaSubject
    kind = value.get("kind") or ""
    if kind not in _SUBJECTS:
        return report.not_supported(f"{path}.kind", kind, sorted(_SUBJECTS))
    member = _SUBJECTS[kind]
    if value.get(member) is None:
        report.required(f"{path}.{member}", f"{member} is required when subject kind is '{kind}'")
    else:
        _OF_SUBJECT[kind](value[member], f"{path}.{member}", report)
    for other in ("ServiceAccount", "User", "Group"):
        name = _SUBJECTS[other]
        if other != kind and value.get(name) is not None:
            report.forbidden(f"{path}.{name}", f"{name} is forbidden when subject kind is not '{other}'")
    return True


def _wild(name: str, noun: str, missing: str, rule: Rule | None = None) -> Rule:
    """A list that has items, and `*` only alone; without it, `rule` looks at the list."""

    def check(value: Any, path: str, report: Report) -> bool:
        listed, place = value.get(name) or [], f"{path}.{name}"
        if not listed:
            return report.required(place, missing)
        if "*" in listed:
            detail = f"if '*' is present, must not specify other {noun}"
            return len(listed) == 1 or report.invalid(place, listed, detail)
        return rule is None or rule(listed, place, report)

    return check


def _known_verbs(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateFlowSchemaResourcePolicyRule
    return set(value) <= set(_VERBS) or report.not_supported(path, value, _VERBS)


_VERBS_OF_RULE = _wild("verbs", "verbs", "verbs must contain at least one value", _known_verbs)


def _url_error(url: str) -> str:  # upstream: ValidateNonResourceURLPath
    """What is wrong with a path, or an empty text."""
    if url in ("", "/"):
        return "" if url else "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    odd = stars > 1 or (stars == 1 and not url.endswith("/*"))
    return "wildcard can only do suffix matching" if odd else ""


def _url(value: Any, path: str, report: Report) -> bool:
    error = _url_error(value)
    return not error or report.invalid(path, value, error)


def _namespace_errors(name: str) -> list[str]:
    return [f"each member of this list must be '*' or a DNS-1123 label; {error}" for error in dns_label_errors(name)]


def _namespaces(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateFlowSchemaResourcePolicyRule
    needed = value.get("namespaces") or not value.get("clusterScope")
    return not needed or _SOME_NAMESPACES(value, path, report)


_SOME_NAMESPACES = _wild(
    "namespaces",
    "namespaces",
    "resource rules that are not cluster scoped must supply at least one namespace",
    items(format_rule(_namespace_errors)),
)


_RESOURCE_RULE = struct(  # upstream: ValidateFlowSchemaResourcePolicyRule
    _VERBS_OF_RULE,
    _wild("apiGroups", "api groups", "resource rules must supply at least one api group"),
    _wild("resources", "resources", "resource rules must supply at least one resource"),
    _namespaces,
)
_URL_RULE = struct(  # upstream: ValidateFlowSchemaNonResourcePolicyRule
    _VERBS_OF_RULE,
    _wild("nonResourceURLs", "non-resource URLs", "nonResourceURLs must contain at least one value", items(_url)),
)


def _some_rule(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateFlowSchemaPolicyRulesWithSubjects
    detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
    rules = value.get("resourceRules") or value.get("nonResourceRules")
    return bool(rules) or report.required(path, detail)


_RULE = struct(  # upstream: ValidateFlowSchemaPolicyRulesWithSubjects
    field("subjects", required_saying("subjects must contain at least one value"), items(_subject)),
    _some_rule,
    field("resourceRules", items(_RESOURCE_RULE)),
    field("nonResourceRules", items(_URL_RULE)),
)


# upstream: ValidateIfMandatoryPriorityLevelConfigurationObject, ValidateFlowSchema
def _fixed(mandatory: dict[str, Obj], kind: str, *excepted: str) -> Rule:
    """The two objects without which the server cannot work keep their specs."""
    detail = "spec of '{}'" + "".join(f" except the 'spec.{name}' field" for name in excepted)

    def check(obj: Any, path: str, report: Report) -> bool:
        name = obj["metadata"].get("name") or ""
        wanted = mandatory.get(name)
        if wanted is None or _alike(obj["spec"], wanted, excepted if name == "exempt" else ()):
            return True
        text_of = detail if name == "exempt" else "spec of '{}'"
        return report.invalid("spec", internal(kind, obj["spec"]), f"{text_of.format(name)} must equal the fixed value")

    return check


def _alike(spec: Obj, wanted: Obj, excepted: tuple[str, ...]) -> bool:
    def rest(obj: Obj) -> Obj:
        return {name: value for name, value in obj.items() if name not in excepted}

    return rest(spec) == rest(wanted)


_SCHEMA = (  # upstream: ValidateFlowSchemaSpec
    _precedence,
    section(
        "spec",
        field("distinguisherMethod", _distinguisher),
        section(
            "priorityLevelConfiguration",
            text("name", required_saying("must reference a priority level"), dns_subdomain),
        ),
        field("rules", items(_RULE)),
    ),
    _fixed(MANDATORY_SCHEMAS, "flowcontrol.FlowSchemaSpec"),
)


# --- PriorityLevelConfiguration

_SHARES = {"lendablePercent": 0}


# upstream: SetDefaults_ExemptPriorityLevelConfiguration, SetDefaults_LimitedPriorityLevelConfiguration
def _default_level(obj: Obj) -> None:
    spec = section_of(obj, "spec")
    if spec.get("exempt") is not None:
        fill(spec["exempt"], {"nominalConcurrencyShares": 0, **_SHARES})
    limited = spec.get("limited")
    if limited is not None:
        fill(limited, {"nominalConcurrencyShares": 30, **_SHARES})
        queuing = section_of(limited, "limitResponse").get("queuing")
        if queuing is not None:
            fill_numbers(queuing, {"handSize": 8, "queues": 64, "queueLengthLimit": 50})


def _named_exempt(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidatePriorityLevelConfigurationSpec
    kind = obj["spec"].get("type") or ""
    fits = (obj["metadata"].get("name") == "exempt") == (kind == "Exempt")
    return fits or report.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")


_not_negative = at_least(0, "must be a non-negative integer")
_percent = within(0, 100)


def _hand(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePriorityLevelQueuingConfiguration
    hand, queues = value.get("handSize") or 0, value.get("queues") or 0
    place = f"{path}.handSize"
    if hand <= 0:
        return report.invalid(place, hand, "must be positive")
    if hand > queues:
        return report.invalid(place, hand, f"should not be greater than queues ({queues})")
    detail = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
    return math.ceil(math.log2(queues) * hand) <= 60 or report.invalid(place, hand, detail)


def _queues(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePriorityLevelQueuingConfiguration
    if value <= 0:
        return report.invalid(path, value, "must be positive")
    return value <= 10_000_000 or report.invalid(path, value, "must not be greater than 10000000")


# upstream: ValidatePriorityLevelQueuingConfiguration
_QUEUING = struct(number("queueLengthLimit", at_least(1, "must be positive")), number("queues", _queues), _hand)


def _response(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateLimitResponse
    kind = value.get("type") or ""
    if kind == "Queue" and value.get("queuing") is not None:
        return _QUEUING(value["queuing"], f"{path}.queuing", report)
    return kind in ("", "Queue", "Reject") or report.not_supported(f"{path}.type", kind, ("Queue", "Reject"))


_LIMITED = struct(  # upstream: ValidateLimitedPriorityLevelConfiguration
    field("nominalConcurrencyShares", _not_negative),
    section("limitResponse", _response),
    field("lendablePercent", _percent),
    field("borrowingLimitPercent", at_least(0, "if specified, must be a non-negative integer")),
)
# upstream: ValidateExemptPriorityLevelConfiguration
_EXEMPT = struct(field("nominalConcurrencyShares", _not_negative), field("lendablePercent", _percent))


def _level_type(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePriorityLevelConfigurationSpec
    kind = value.get("type") or ""
    rules = {"Exempt": ("exempt", _EXEMPT), "Limited": ("limited", _LIMITED)}
    if kind not in rules:
        return not kind or report.not_supported(f"{path}.type", kind, ("Exempt", "Limited"))
    member, rule = rules[kind]
    return value.get(member) is None or rule(value[member], f"{path}.{member}", report)


_LEVEL: tuple[Rule | Any, ...] = (
    _named_exempt,
    section("spec", _level_type),
    _fixed(MANDATORY_LEVELS, "flowcontrol.PriorityLevelConfigurationSpec", "exempt"),
    Declared("flowcontrol/v1.PriorityLevelConfiguration").created,
)


# upstream: ValidateFlowSchemaStatus, ValidatePriorityLevelConfigurationStatus
_STATUS = section("status", field("conditions", items(distinct_by("type"), struct(text("type", required)))))


# upstream: flowSchemaStrategy, priorityLevelConfigurationStrategy
def _strategy(kind: str, defaults: Callable[[Obj], None], rules: tuple[Any, ...]) -> Strategy:
    return Strategy(
        defaults=defaults,
        **prepared(status=(GROUP, "v1", kind)),
        validate_create=creation(*rules),
        validate_update=update(rules),
        status=StatusRules(prepare=metadata_kept, validate=update(_STATUS)),
        generation=True,
    )


STRATEGIES = {
    "FlowSchema": _strategy("FlowSchema", _default_schema, _SCHEMA),
    "PriorityLevelConfiguration": _strategy("PriorityLevelConfiguration", _default_level, _LEVEL),
}
