"""What claims, classes and slices say about devices: selectors, configurations, taints, names. Only what upstream
writes by hand (pkg/apis/resource/validation): the declared rules are in `framework.declarative_validation`.
"""

from __future__ import annotations

import json
from typing import Any

from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.checker import Environment, check
from konverge.apiserver.cel.cost import estimate
from konverge.apiserver.cel.declarations import QUANTITY
from konverge.apiserver.cel.parser import parse
from konverge.apiserver.cel.source import CompileError
from konverge.apiserver.kinds.core.volume.sources import csi_driver_name
from konverge.apiserver.kinds.framework.declare import Report, Rule, chain, field, items, required, struct, text
from konverge.apiserver.kinds.rules.defaults import each
from konverge.apiserver.kinds.rules.formats import LONGEST_DOMAIN, LONGEST_IDENTIFIER, LONGEST_POOL_NAME, identifier
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain, label_value, qualified_name
from konverge.apiserver.strategy import Obj

MOST_SELECTORS = 32
MOST_CONFIGURATIONS = 32
MOST_BINDING_CONDITIONS = 4
LONGEST_DATA = 10 * 1024
LONGEST_EXPRESSION = 10 * 1024
MOST_EXPENSIVE = 1_000_000
"""CELSelectorExpressionMaxCost."""
MOST_ATTRIBUTES = 32
"""ResourceSliceMaxAttributesAndCapacitiesPerDevice."""
LONGEST_ATTRIBUTE = 64

driver_name = chain(required, csi_driver_name)


def up_to(maximum: int, *rules: Rule) -> Rule:
    """Every element of a list, unless there are too many: then the declared rules report only that."""
    every = items(*rules)

    def check_all(value: Any, path: str, report: Report) -> bool:
        return len(value) > maximum or every(value, path, report)

    return check_all


# --- selectors

_DEVICE = t.struct(
    "kubernetes.DRADevice",
    {
        "driver": t.STRING,
        "allowMultipleAllocations": t.BOOL,
        "attributes": t.map_of(t.STRING, t.map_of(t.STRING, t.DYN)),
        "capacity": t.map_of(t.STRING, t.map_of(t.STRING, QUANTITY)),
    },
)
_ENVIRONMENT = Environment({"device": _DEVICE})
_SIZES = {
    ("device", "driver"): LONGEST_DOMAIN,
    ("device", "allowMultipleAllocations"): 1,
    **{
        ("device", member, *place): size
        for member in ("attributes", "capacity")
        for place, size in {
            (): MOST_ATTRIBUTES,
            ("@keys",): LONGEST_DOMAIN,
            ("@values",): MOST_ATTRIBUTES,
            ("@values", "@keys"): LONGEST_IDENTIFIER,
        }.items()
    },
    ("device", "attributes", "@values", "@values"): LONGEST_ATTRIBUTE,
}


def _expression(value: Any, path: str, report: Report) -> bool:
    """A CEL expression about a device, which is true, false or not known to be either. Upstream: CompileCELExpression
    (k8s.io/dynamic-resource-allocation/cel)."""
    if len(value.encode()) > LONGEST_EXPRESSION:
        return report.too_long(path, LONGEST_EXPRESSION)
    try:
        source, tree = parse(value, bindings=True)
        checked = check(source, tree, _ENVIRONMENT)
    except CompileError as error:
        return report.invalid(path, value, f"compilation failed: {error}")
    if checked.type.kind not in ("bool", "dyn"):
        return report.invalid(path, value, f"must evaluate to bool or the unknown type, not {checked.type}")
    cost = estimate(checked.tree, _SIZES.get)
    return cost.high <= MOST_EXPENSIVE or report.forbidden(path, "too complex, exceeds cost limit")


def _selector(value: Any, path: str, report: Report) -> bool:
    cel = value.get("cel")
    if cel is None:
        return report.required(f"{path}.cel")
    return _expression(cel.get("expression") or "", f"{path}.cel.expression", report)


SELECTORS = field("selectors", up_to(MOST_SELECTORS, _selector))


# --- configurations


def json_object(value: Any, path: str, report: Report) -> bool:
    """Raw JSON that only a driver understands; it must be an object. Upstream: validateRawExtension."""
    if value is None:
        return report.required(path)
    if len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()) > LONGEST_DATA:
        return report.too_long(path, LONGEST_DATA)
    return isinstance(value, dict) or report.invalid(path, "<value omitted>", "must be a valid JSON object")


def configuration(value: Any, path: str, report: Report) -> bool:
    """Upstream: validateDeviceConfiguration."""
    opaque = value.get("opaque")
    if opaque is None:
        return report.required(f"{path}.opaque")
    return json_object(opaque.get("parameters"), f"{path}.opaque.parameters", report)


# --- taints and tolerations

TAINT = struct(text("key", qualified_name), field("value", label_value))
"""Upstream: validateDeviceTaint."""


def _toleration(value: Any, path: str, report: Report) -> bool:
    """Upstream: validateDeviceToleration."""
    operator, wanted = value.get("operator"), value.get("value") or ""
    if operator == "Exists" and wanted:
        return report.invalid(f"{path}.value", wanted, "must be empty for operator `Exists`")
    return operator != "Equal" or label_value(wanted, f"{path}.value", report)


TOLERATIONS = field("tolerations", items(_toleration))


# --- conditions for binding a pod to a device


def binding_conditions(value: Any, path: str, report: Report) -> bool:
    """Upstream: validateDeviceBindingParameters."""
    conditions, failures = value.get("bindingConditions") or [], value.get("bindingFailureConditions") or []
    place, failure_place = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    for listed, at in ((conditions, place), (failures, failure_place)):
        up_to(MOST_BINDING_CONDITIONS, qualified_name)(listed, at, report)
    _unique(conditions, place, report)
    for index, condition in enumerate(failures):
        at = f"{failure_place}[{index}]"
        if condition in failures[:index]:
            report.duplicate(at, condition)
        if condition in conditions:
            report.invalid(at, condition, "bindingFailureConditions must not overlap with bindingConditions")
    if failures and not conditions:
        detail = "bindingConditions are required to use bindingFailureConditions"
        report.invalid(place, value.get("bindingConditions"), detail)
    if conditions and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        report.invalid(failure_place, value.get("bindingFailureConditions"), detail)
    return True


def _unique(value: list[str], path: str, report: Report) -> None:
    for index, item in enumerate(value):
        if item in value[:index]:
            report.duplicate(f"{path}[{index}]", item)


# --- names


def attribute_name(value: Any, path: str, report: Report) -> bool:
    """`[domain/]identifier`. Upstream: validateQualifiedName, which leaves names with several slashes unchecked."""
    domain, slash, name = value.rpartition("/")
    if "/" in domain:
        return True
    if slash:
        if domain:
            csi_driver_name(domain, path, report)
        else:
            report.invalid(path, "", "the domain must not be empty")
        if not name:
            return report.invalid(path, "", "the name must not be empty")
    return identifier(name, path, report)


def pool_name(value: Any, path: str, report: Report) -> bool:
    """Subdomains with slashes between them. Upstream: validatePoolName."""
    if not value:
        return report.required(path)
    if len(value.encode()) > LONGEST_POOL_NAME:
        report.too_long(path, LONGEST_POOL_NAME)
    for part in value.split("/"):
        dns_subdomain(part, path, report)
    return True


# --- names of requests, and the references to them in constraints, configurations and results

MOST_REFERENCES = 32
_UNKNOWN = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def requests_of(devices: Obj) -> set[str]:
    """What may be referred to: requests, and their alternatives as `request/alternative`."""
    names = set()
    for request in each(devices, "requests"):
        name = request.get("name") or ""
        names.add(name)
        names.update(f"{name}/{alternative.get('name') or ''}" for alternative in each(request, "firstAvailable"))
    return names


def reference(value: Any, path: str, report: Report) -> bool:
    """A request by its name; `report.scope` has the names. Upstream: validateRequestNameRef."""
    segments = value.split("/")
    if len(segments) > 2:
        return report.invalid(path, value, _UNKNOWN)
    for segment in segments:
        dns_label(segment, path, report)
    return value in report.scope or report.invalid(path, value, _UNKNOWN)


REFERENCES = field("requests", up_to(MOST_REFERENCES, reference))
