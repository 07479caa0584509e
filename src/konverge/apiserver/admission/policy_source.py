"""The policies in force: definitions and bindings, compiled when first needed after a change.

Upstream: apiserver/pkg/admission/plugin/policy/generic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from konverge.apiserver.admission.matching import matches
from konverge.apiserver.kinds.rules.selectors import selects
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.apiserver.request.protocols import Backend

GROUP = "admissionregistration.k8s.io"
_REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")
Compiled = TypeVar("Compiled")


class ConfigurationError(Exception):
    """A policy that cannot be applied as it is configured."""


@dataclass
class Policy(Generic[Compiled]):
    definition: Obj
    bindings: list[Obj]
    compiler: Callable[[Obj], Compiled]

    @cached_property
    def compiled(self) -> Compiled:
        """Compiled by the first write that it applies to, beside the loop if that takes long."""
        return self.compiler(self.spec)

    @property
    def name(self) -> str:
        return str(self.definition["metadata"]["name"])

    @property
    def spec(self) -> Obj:
        spec: Obj = self.definition["spec"]
        return spec

    @property
    def ignores_failure(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")


class PolicySource(Generic[Compiled]):
    """All policies of one kind, by name. Upstream: policySource."""

    def __init__(self, server: Backend, policies: str, bindings: str, compiler: Callable[[Obj], Compiled]) -> None:
        self._server = server
        self._names = (policies, bindings)
        self._compiler = compiler
        self._policies: list[Policy[Compiled]] | None = None
        for name in self._names:
            server.store.subscribe(f"{GROUP}/{name}", lambda event: self._forget())

    def _forget(self) -> None:
        self._policies = None

    def policies(self) -> list[Policy[Compiled]]:
        """Those that have a binding."""
        if self._policies is None:
            bound: dict[str, list[Obj]] = {}
            for binding in self._server.objects.scan(GROUP, self._names[1]):
                bound.setdefault(binding["spec"].get("policyName") or "", []).append(binding)
            self._policies = [
                Policy(definition, bound[definition["metadata"]["name"]], self._compiler)
                for definition in self._server.objects.scan(GROUP, self._names[0])
                if definition["metadata"]["name"] in bound
            ]
        return self._policies


def concerns(group: str, plural: str) -> bool:
    """Policies do not apply to themselves, nor to reviews."""
    if group == GROUP and "admissionpolic" in plural:
        return False
    return group not in _REVIEWS


Failed = Callable[[Policy[Compiled], Obj | None, str], None]
"""(policy, binding, what is wrong): called for what cannot be configured, unless the policy ignores failures."""


def invocations(
    policies: Iterable[Policy[Compiled]], request: AdmissionRequest, failed: Failed[Compiled]
) -> Iterator[tuple[Policy[Compiled], Obj, list[Obj | None]]]:
    """The policies and bindings that apply to a write, each with the parameters for which it is evaluated."""
    for policy in policies:
        if not matches(policy.spec.get("matchConstraints") or {}, request):
            continue
        try:
            _check_params(policy, request)
        except ConfigurationError as error:
            if not policy.ignores_failure:
                failed(policy, None, f"failed to configure policy: {error}")
            continue
        for binding in policy.bindings:
            if not matches(binding["spec"].get("matchResources") or {}, request):
                continue
            try:
                parameters = _params(policy, binding, request)
            except ConfigurationError as error:
                if not policy.ignores_failure:
                    failed(policy, binding, f"failed to configure binding: {error}")
                continue
            yield policy, binding, parameters


def _check_params(policy: Policy[Compiled], request: AdmissionRequest) -> None:
    """The kind of the parameters must be served."""
    kind = policy.spec.get("paramKind")
    if kind is not None and _served(kind, request) is None:
        group, _, version = str(kind.get("apiVersion") or "").rpartition("/")
        shown = f"{group}/{version}, Kind={kind.get('kind')}"
        raise ConfigurationError(f"failed to find resource referenced by paramKind: '{shown}'")


def _served(kind: Obj, request: AdmissionRequest) -> tuple[str, str, bool] | None:
    group, _, version = str(kind.get("apiVersion") or "").rpartition("/")
    served = request.call.server.registry.by_kind(group, version, kind.get("kind") or "")
    return None if served is None else (group, served.resource.plural, served.resource.namespaced)


def _params(policy: Policy[Compiled], binding: Obj, request: AdmissionRequest) -> list[Obj | None]:
    """The parameters for which a binding is evaluated; one None where it takes none. Upstream: CollectParams."""
    kind, reference = policy.spec.get("paramKind"), binding["spec"].get("paramRef")
    if kind is None or reference is None:
        return [None]
    served = _served(kind, request)
    if served is None:
        raise ConfigurationError(f"paramKind kind `{kind.get('apiVersion')}, Kind={kind.get('kind')}` not known")
    group, plural, namespaced = served
    namespace = _namespace(reference, request, namespaced)
    objects, selector = request.call.server.objects, reference.get("selector")
    parameters: list[Obj]
    if reference.get("name"):
        if selector is not None:
            raise ConfigurationError("paramRef.name and paramRef.selector are mutually exclusive")
        parameter = objects.get(group, plural, namespace, reference["name"])
        parameters = [parameter] if parameter is not None else []
    elif selector is not None:
        candidates = objects.scan(group, plural, namespace)
        parameters = [obj for obj in candidates if selects(selector, obj["metadata"].get("labels") or {})]
    else:
        raise ConfigurationError("one of name or selector must be provided")
    if not parameters and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [{"apiVersion": kind["apiVersion"], "kind": kind["kind"], **parameter} for parameter in parameters]


def _namespace(reference: Obj, request: AdmissionRequest, namespaced: bool) -> str:
    given = str(reference.get("namespace") or "")
    if not namespaced:
        if given:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not given and not request.namespace:
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return given or request.namespace
