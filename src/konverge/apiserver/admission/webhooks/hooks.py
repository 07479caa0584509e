"""The webhooks that are configured, whether one is called for a write, and in which version it wants to see the object.

A rule about another version of the same resource counts as well (matchPolicy Equivalent): then the object is shown in
that version, and what the webhook changes is converted back. Upstream: apiserver/pkg/admission/plugin/webhook/generic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from konverge.apiserver import status
from konverge.apiserver.admission.matching import kind_of_body, matches_rules, matches_selectors
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.auth.authorization import Authorization
    from konverge.apiserver.registry import Served
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.apiserver.request.protocols import Backend

GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration."""

    name: str
    id: str
    """Distinguishes hooks of the same name, in one configuration or in several."""
    spec: Obj

    @property
    def ignores_failure(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")

    @property
    def seconds(self) -> int:
        return int(self.spec.get("timeoutSeconds") or 10)  # the default of the API

    @property
    def allows_dry_run(self) -> bool:
        return self.spec.get("sideEffects") in ("None", "NoneOnDryRun")

    @property
    def reinvoked(self) -> bool:
        return bool(self.spec.get("reinvocationPolicy") == "IfNeeded")


class Hooks:
    """All webhooks of one kind; read again when a configuration changes."""

    def __init__(self, server: Backend, plural: str) -> None:
        self._server = server
        self._plural = plural
        self._hooks: tuple[Hook, ...] | None = None
        server.store.subscribe(f"{GROUP}/{plural}", self._changed)

    def _changed(self, event: Any) -> None:
        self._hooks = None

    def all(self) -> tuple[Hook, ...]:
        """By the name of the configuration, then as they stand in it."""
        if self._hooks is None:
            self._hooks = tuple(
                Hook(spec.get("name", ""), f"{configuration['metadata']['name']}/{spec.get('name', '')}/{index}", spec)
                for configuration in self._server.objects.scan(GROUP, self._plural)
                for index, spec in enumerate(configuration.get("webhooks") or ())
            )
        return self._hooks


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a webhook is called for a write."""

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
        return _typed(obj, self.served, kind_of_body(request, obj))

    def converted_back(self, request: AdmissionRequest, obj: Obj) -> Obj:
        served = request.served
        if self.served is not served:
            obj = obj if self.served.conversion is None else self.served.conversion.to_storage(obj)
            obj = obj if served.conversion is None else served.conversion.from_storage(obj)
            obj = {**obj, "apiVersion": served.resource.api_version}
        return obj


def _typed(obj: Obj, served: Served, other: tuple[str, str]) -> Obj:
    kind, api_version = other if other[0] else (served.resource.kind, served.resource.api_version)
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return {"kind": kind, "apiVersion": api_version, **rest}


def invocation(hook: Hook, request: AdmissionRequest, authorization: Authorization) -> Invocation | None:
    """How the webhook is called; None if the write does not concern it. Upstream: ShouldCallHook."""
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
        served = versions.get(own.resource.plural)
        if served is not None and served is not own and served.table == own.table:
            yield served


def _conditions_hold(hook: Hook, request: AdmissionRequest, authorization: Authorization) -> bool:
    from konverge.apiserver.admission.expressions import EvaluationError, match_conditions

    try:
        return match_conditions(hook.spec["matchConditions"], request, authorization)
    except EvaluationError as error:
        if hook.ignores_failure:
            return False
        resource = request.served.resource
        raise status.forbidden(resource.group, resource.plural, request.name, str(error)) from None
