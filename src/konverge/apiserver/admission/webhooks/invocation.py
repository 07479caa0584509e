"""Whether a webhook is called for a write, and in which version it wants to see the object.

A rule about another version of the same resource counts as well (matchPolicy Equivalent): then the object is shown in
that version, and what the webhook changes is taken back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from konverge.apiserver import status
from konverge.apiserver.admission.matching import matches_rules, matches_selectors
from konverge.apiserver.admission.webhooks.hooks import Hook
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.auth.authorization import Authorization
    from konverge.apiserver.registry import Served
    from konverge.apiserver.request.admission import AdmissionRequest


@dataclass(frozen=True, slots=True)
class Invocation:
    hook: Hook
    served: Served
    """The version that the webhook sees."""

    def shown(self, request: AdmissionRequest, obj: Obj | None) -> Obj | None:
        """An object of the request as the webhook sees it."""
        if obj is None:
            return None
        served = request.served
        if self.served is not served:
            obj = obj if served.conversion is None else served.conversion.to_storage(obj)
            obj = obj if self.served.conversion is None else self.served.conversion.from_storage(obj)
        return typed(obj, self.served, obj_kind(request, obj))

    def taken_back(self, request: AdmissionRequest, obj: Obj) -> Obj:
        served = request.served
        if self.served is not served:
            obj = obj if self.served.conversion is None else self.served.conversion.to_storage(obj)
            obj = obj if served.conversion is None else served.conversion.from_storage(obj)
            obj = {**obj, "apiVersion": served.resource.api_version}
        return obj


def obj_kind(request: AdmissionRequest, obj: Obj) -> tuple[str, str]:
    """The kind of an object that is not of the resource itself (an eviction, a binding); ("", "") for others."""
    resource = request.served.resource
    kind, api_version = obj.get("kind") or "", obj.get("apiVersion") or ""
    return (kind, api_version) if request.subresource and kind and kind != resource.kind else ("", "")


def typed(obj: Obj, served: Served, other: tuple[str, str]) -> Obj:
    kind, api_version = other if other[0] else (served.resource.kind, served.resource.api_version)
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return {"kind": kind, "apiVersion": api_version, **rest}


def invocation(hook: Hook, request: AdmissionRequest, authorization: Authorization) -> Invocation | None:
    """How the webhook is called; None if the write does not concern it."""
    spec = hook.spec
    if not matches_selectors(spec, request):
        return None
    served = _wanted_version(hook, request)
    if served is None:
        return None
    if spec.get("matchConditions") and not _conditions_hold(hook, request, authorization):
        return None
    return Invocation(hook, served)


def _wanted_version(hook: Hook, request: AdmissionRequest) -> Served | None:
    rules = hook.spec.get("rules") or ()
    if matches_rules(rules, request, equivalent=False):
        return request.served
    if hook.spec.get("matchPolicy") == "Exact":
        return None
    own = request.served
    for served in _equivalents(request):
        request.served = served
        try:
            if matches_rules(rules, request, equivalent=False):
                return served
        finally:
            request.served = own
    return None


def _equivalents(request: AdmissionRequest) -> Iterator[Served]:
    """The same resource in other versions."""
    own = request.served
    for versions in request.call.server.registry.versions(own.resource.group).values():
        found = versions.get(own.resource.plural)
        if found is not None and found is not own and found.table == own.table:
            yield found


def _conditions_hold(hook: Hook, request: AdmissionRequest, authorization: Authorization) -> bool:
    from konverge.apiserver.admission.conditions import EvaluationError, match_conditions

    try:
        return match_conditions(hook.spec["matchConditions"], request, authorization)
    except EvaluationError as error:
        if hook.ignores_failure:
            return False
        resource = request.served.resource
        raise status.forbidden(resource.group, resource.plural, request.name, str(error)) from None
