"""What claims, classes and slices say about devices: selectors, configurations, attributes, taints."""

from __future__ import annotations

import re
from typing import Any

from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.checker import Environment, check
from konverge.apiserver.cel.parser import parse
from konverge.apiserver.cel.source import CompileError
from konverge.apiserver.kinds.framework.declare import Report, field, items, one_of, required, struct, text
from konverge.apiserver.kinds.rules.drivers import driver_name
from konverge.apiserver.kinds.rules.names import qualified_name
from konverge.objects.names import dns_subdomain_errors, label_value_errors

_LONGEST_EXPRESSION = 10 * 1024
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_is_identifier = re.compile(_IDENTIFIER).fullmatch
_ATTRIBUTES = t.map_of(t.STRING, t.map_of(t.STRING, t.DYN))
_DEVICE = t.struct(
    "kubernetes.DRADevice",
    {
        "driver": t.STRING,
        "allowMultipleAllocations": t.BOOL,
        "attributes": _ATTRIBUTES,
        "capacity": t.map_of(t.STRING, t.map_of(t.STRING, t.struct("kubernetes.Quantity"))),
    },
)
_ENVIRONMENT = Environment({"device": _DEVICE})


def _expression(value: Any, path: str, report: Report) -> bool:
    """A CEL expression about one device; it says yes or no, or what is not known before it sees a device."""
    if len(value) > _LONGEST_EXPRESSION:
        return report.too_long(path, _LONGEST_EXPRESSION)
    try:
        source, tree = parse(value)
        found = check(source, tree, _ENVIRONMENT).type
    except CompileError as error:
        return report.invalid(path, value, f"compilation failed: {error}")
    fits = found.kind in ("bool", "dyn")
    return fits or report.invalid(path, value, f"must evaluate to bool or the unknown type, not {found}")


def _selector(value: Any, path: str, report: Report) -> bool:
    cel = value.get("cel")
    if cel is None:
        return report.required(f"{path}.cel")
    return _expression(cel.get("expression") or "", f"{path}.cel.expression", report)


SELECTORS = field("selectors", items(_selector))


def _parameters(value: Any, path: str, report: Report) -> bool:
    found = value.get("parameters")
    if found is None:
        return report.required(f"{path}.parameters")
    return isinstance(found, dict) or report.invalid(
        f"{path}.parameters", "<value omitted>", "parameters must be a valid JSON object"
    )


def configuration(value: Any, path: str, report: Report) -> bool:
    """Parameters for a driver, which only the driver understands."""
    opaque = value.get("opaque")
    if opaque is None:
        return report.required(f"{path}.opaque")
    return _OPAQUE(opaque, f"{path}.opaque", report)


_OPAQUE = struct(_parameters)
DRIVER_OF_CONFIGURATION = field("opaque", struct(text("driver", required, driver_name)))
"""Reported last, with what the real server checks by generated rules."""


def qualified_attribute(value: Any, path: str, report: Report) -> bool:
    """An attribute with the domain of its driver: `gpu.example.com/model`."""
    if "/" not in value:
        return report.invalid(path, value, "a fully qualified name must be a domain and a name separated by a slash")
    return attribute_name(value, path, report)


def attribute_name(value: Any, path: str, report: Report) -> bool:
    """`[domain/]identifier`."""
    domain, slash, name = value.rpartition("/")
    if slash:
        if not domain:
            report.required(path, "the domain must not be empty")
        elif len(domain) > 63:
            report.too_long(path, 63)
        else:
            for error in dns_subdomain_errors(domain):
                report.invalid(path, domain, error)
    if not name:
        return report.required(path, "the name must not be empty")
    if len(name) > 32:
        report.too_long(path, 32)
    words = (
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
        f"characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"
    )
    return bool(_is_identifier(name)) or report.invalid(path, name, words)


def toleration(value: Any, path: str, report: Report) -> bool:
    """A taint of a device that the claim can live with."""
    key, operator, wanted = value.get("key") or "", value.get("operator") or "", value.get("value") or ""
    if key:
        qualified_name(key, f"{path}.key", report)
    if operator == "Exists":
        if wanted:
            report.invalid(f"{path}.value", wanted, "must be empty for operator `Exists`")
    elif operator == "Equal":
        for error in label_value_errors(wanted):
            report.invalid(f"{path}.value", wanted, error)
    elif operator:
        one_of("Equal", "Exists")(operator, f"{path}.operator", report)
    else:
        report.required(f"{path}.operator")
    effect = value.get("effect")
    return not effect or one_of("NoExecute", "NoSchedule")(effect, f"{path}.effect", report)


def pool_name(value: Any, path: str, report: Report) -> bool:
    """Subdomains, one below the other."""
    if len(value) > 253:
        report.too_long(path, 253)
    for part in value.split("/"):
        for error in dns_subdomain_errors(part):
            report.invalid(path, part, error)
    return True
