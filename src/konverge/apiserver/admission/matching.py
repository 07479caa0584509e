"""Which writes a webhook or a policy is about: rules, selectors of namespaces and objects; and how they see a write.

Upstream: apiserver/pkg/admission/plugin/policy/matching, plugin/webhook/predicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from konverge.apiserver.kinds.rules.selectors import is_empty, selects

if TYPE_CHECKING:
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.objects.resource import Resource

Obj = Mapping[str, Any]


def matches(constraints: Obj, request: AdmissionRequest) -> bool:
    """A policy's `matchConstraints` or a binding's `matchResources`. Upstream: Matcher.Matches (policy/matching)."""
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
    """Upstream: Matcher.Matches (predicates/rules)."""
    resource = request.served.resource
    return (
        _any(rule.get("operations"), request.operation)
        and _any(rule.get("apiGroups"), resource.group)
        and _any(rule.get("apiVersions"), version)
        and _in_scope(rule.get("scope") or "*", request)
        and any(_names_resource(name, resource.plural, request.subresource) for name in rule.get("resources") or ())
    )


def _any(patterns: Iterable[str] | None, value: str) -> bool:
    """Upstream: exactOrWildcard."""
    return any(pattern in ("*", value) for pattern in patterns or ())


def _names_resource(name: str, plural: str, subresource: str) -> bool:
    own, _, below = name.partition("/")
    return own in ("*", plural) and below in ((subresource, "*") if subresource or "/" in name else ("",))


def _is_namespace(request: AdmissionRequest) -> bool:
    resource = request.served.resource
    return resource.plural == "namespaces" and not resource.group


def _in_scope(scope: str, request: AdmissionRequest) -> bool:
    if scope == "*":
        return True
    namespaced = bool(request.namespace) and not _is_namespace(request)
    return namespaced == (scope == "Namespaced")


def _labels(obj: Obj | None) -> Mapping[str, str]:
    labels: Mapping[str, str] = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return labels


def _namespace_selected(selector: Obj | None, request: AdmissionRequest) -> bool:
    """Upstream: MatchNamespaceSelector."""
    if selector is None or is_empty(selector):
        return True
    if _is_namespace(request):
        return selects(selector, _labels(request.obj if request.obj is not None else request.old))
    if not request.namespace:
        return True
    namespace = request.call.server.objects.get("", "namespaces", "", request.namespace)
    return selects(selector, _labels(namespace))


def _object_selected(selector: Obj | None, request: AdmissionRequest) -> bool:
    """Upstream: MatchObjectSelector."""
    if selector is None or is_empty(selector):
        return True
    objects = [obj for obj in (request.obj, request.old) if obj is not None]
    return any(selects(selector, _labels(obj)) for obj in objects)


# --- how a write is shown


def describe(request: AdmissionRequest, shown: Resource) -> dict[str, Any]:
    """The `request` of a review or an expression without its objects; `shown` is the version that its reader sees.

    Upstream: CreateV1AdmissionReview (webhook/request), CreateAdmissionRequest (plugin/cel).
    """
    own = request.served.resource
    description = {
        "kind": _kind(request, shown),
        "resource": {"group": shown.group, "version": shown.version, "resource": shown.plural},
        "subResource": request.subresource,
        "requestKind": _kind(request, own),
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "requestSubResource": request.subresource,
        "name": request.name,
        "namespace": request.name if _is_namespace(request) else request.namespace,
        "operation": request.operation,
        "userInfo": request.user.info(),
    }
    return {key: value for key, value in description.items() if value != ""}


def kind_of_body(request: AdmissionRequest, obj: Obj) -> tuple[str, str]:
    """(kind, apiVersion) of an object that is not of the resource itself (an eviction, a scale); else ("", "")."""
    kind, api_version = obj.get("kind") or "", obj.get("apiVersion") or ""
    is_other = bool(request.subresource and kind) and kind != request.served.resource.kind
    return (kind, api_version) if is_other else ("", "")


def _kind(request: AdmissionRequest, resource: Resource) -> Obj:
    kind, api_version = kind_of_body(request, (request.obj if request.obj is not None else request.old) or {})
    if not kind:
        return {"group": resource.group, "version": resource.version, "kind": resource.kind}
    group, _, version = api_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}
