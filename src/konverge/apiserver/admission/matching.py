"""Which writes a webhook or a policy is about: rules, and selectors of namespaces and objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from konverge.apiserver.kinds.rules.selectors import is_empty, selects

if TYPE_CHECKING:
    from konverge.apiserver.request.admission import AdmissionRequest

Obj = Mapping[str, Any]


def matches(constraints: Obj, request: AdmissionRequest) -> bool:
    """A policy's `matchConstraints` or a binding's `matchResources`."""
    if not matches_selectors(constraints, request):
        return False
    equivalent = constraints.get("matchPolicy") != "Exact"
    if matches_rules(constraints.get("excludeResourceRules") or (), request, equivalent=equivalent):
        return False
    rules = constraints.get("resourceRules") or ()
    return not rules or matches_rules(rules, request, equivalent=equivalent)


def matches_selectors(constraints: Obj, request: AdmissionRequest) -> bool:
    return _namespace_selected(constraints.get("namespaceSelector"), request) and _object_selected(
        constraints.get("objectSelector"), request
    )


def matches_rules(rules: Iterable[Obj], request: AdmissionRequest, *, equivalent: bool = True) -> bool:
    """Any rule is enough. With `equivalent` a rule about another version of the same kind counts too."""
    for rule in rules:
        if not _rule(rule, request, request.served.resource.version) and not (
            equivalent and any(_rule(rule, request, version) for version in _other_versions(request))
        ):
            continue
        names = rule.get("resourceNames")
        if not names or request.name in names:
            return True
    return False


def _other_versions(request: AdmissionRequest) -> Iterable[str]:
    resource = request.served.resource
    versions = request.call.server.registry.versions(resource.group)
    return (version for version, plurals in versions.items() if resource.plural in plurals)


def _rule(rule: Obj, request: AdmissionRequest, version: str) -> bool:
    resource = request.served.resource
    return (
        _any(rule.get("operations"), request.operation)
        and _any(rule.get("apiGroups"), resource.group)
        and _any(rule.get("apiVersions"), version)
        and _in_scope(rule.get("scope") or "*", request)
        and any(_names_resource(name, resource.plural, request.subresource) for name in rule.get("resources") or ())
    )


def _any(values: Iterable[str] | None, value: str) -> bool:
    return any(one in ("*", value) for one in values or ())


def _names_resource(name: str, plural: str, subresource: str) -> bool:
    wanted, _, below = name.partition("/")
    return wanted in ("*", plural) and below in ((subresource, "*") if subresource or "/" in name else ("",))


def is_namespace(request: AdmissionRequest) -> bool:
    resource = request.served.resource
    return resource.plural == "namespaces" and not resource.group


def _in_scope(scope: str, request: AdmissionRequest) -> bool:
    if scope == "*":
        return True
    namespaced = bool(request.namespace) and not is_namespace(request)
    return namespaced == (scope == "Namespaced")


def _labels(obj: Obj | None) -> Mapping[str, str]:
    found: Mapping[str, str] = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return found


def _namespace_selected(selector: Obj | None, request: AdmissionRequest) -> bool:
    if selector is None or is_empty(selector):
        return True
    if is_namespace(request):
        return selects(selector, _labels(request.obj if request.obj is not None else request.old))
    if not request.namespace:
        return True
    namespace = request.call.server.objects.get("", "namespaces", "", request.namespace)
    return selects(selector, _labels(namespace))


def _object_selected(selector: Obj | None, request: AdmissionRequest) -> bool:
    if selector is None or is_empty(selector):
        return True
    objects = [obj for obj in (request.obj, request.old) if obj is not None]
    return any(selects(selector, _labels(obj)) for obj in objects)
